/*
 * Inside of the processor `http`, for its own files only: process_http.c (which calls
 * are made for an item) and process_http_rows.c (what a reply gives).
 */
#ifndef IO_PROCESS_HTTP_PRIVATE_H
#define IO_PROCESS_HTTP_PRIVATE_H

#include "base/arena.h"
#include "io/http_spec.h"
#include "io/http_talk.h"
#include "io/processor.h"

struct call_names;

struct http_processor {
    struct processor processor;
    struct http_spec spec;
    struct http_link link;
    struct arena arena;
    struct http_talk talks[PROCESS_LANES_MAX];
    size_t n_talks;
    const struct column *in;
    size_t in_width;
    size_t *carried; /* columns of the item that go along */
    size_t n_carried;
    const char **paths; /* of the fields */
    size_t n_fields;
    const json_t *alternatives; /* a list, or NULL */
};

/* An item under way. */
struct asking {
    struct http_processor *http;
    struct http_talk *talk;
    struct item *item;
    const struct cell *cells; /* of the item */
    struct row_set *out;
    const char *alternative;
    char *why;
    int64_t page_rows;             /* of the page that is read */
    int64_t rows;                  /* of all pages so far */
    int64_t total;                 /* rows that the pages promise; 0 = not told */
    int64_t last;                  /* pages that there are; -1 = not told */
    int64_t most_rows;             /* of a page, so far */
    int64_t *calls;                /* that were made for the item */
    const struct reply_tree *tree; /* of the reply that is read */
    bool full;                     /* no memory for more rows */
    int failure;                   /* of a cell; err has it */
    struct err *err;
};

/* The rows of a good reply: 0, PROCESS_FAILED, or < 0. */
int process_http_take(struct asking *asking, struct http_said *said,
                      struct call_names *names) must_check;

#endif
