/*
 * The progress of one request on stderr: a bar that is drawn over itself on a
 * terminal, plain lines (at most one a second, only when something moved) where
 * there is none. bar_line is the drawing alone, a function of values.
 */
#ifndef CLI_BAR_H
#define CLI_BAR_H

#include "base/buf.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* What stands in the line; -1 = not known. */
struct bar_view {
    const char *status; /* of the request: "QUEUED", "RUNNING" … */
    const char *where;  /* lane while it waits, message while it runs; may be "" */
    int64_t percent;
    int64_t done;
    int64_t total;
    int64_t eta_s;
    int64_t elapsed_s;
    bool ending; /* a cancel or stop was asked */
};

/* The view of a request as the service answers it; texts are borrowed from it. */
struct bar_view bar_view_of(const json_t *request, int64_t elapsed_s);

/* Append the line, at most width columns (>= 20), without its end. */
void bar_line(const struct bar_view *view, int width, struct buf *buf);

struct bar {
    bool on;
    bool terminal;
    int64_t start_us; /* monotonic */
    int64_t shown_us; /* of the last line; 0 = none yet */
    char *last;       /* what it said */
};

/* quiet: nothing is ever shown. */
void bar_init(struct bar *bar, bool quiet);
void bar_release(struct bar *bar); /* leaves an empty line behind */
void bar_show(struct bar *bar, const json_t *request);
/* Take the bar away so that something else can be said. */
void bar_hide(struct bar *bar);

#endif
