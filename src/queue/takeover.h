/*
 * Requests that wait in a lane which nobody serves: after a time they are moved into a
 * lane of somebody who can run them, and claimed and counted there. Any thread.
 */
#ifndef QUEUE_TAKEOVER_H
#define QUEUE_TAKEOVER_H

#include "base/compiler.h"

#include <stddef.h>
#include <stdint.h>

struct arena;
struct err;
struct store;

/* The lanes in which something is ready, by name, in the arena. */
int queue_ready_lanes(struct store *store, struct arena *arena, const char ***ret_lanes,
                      size_t *ret_count, struct err *err) must_check;

struct take_over {
    const char *from;
    const char *to;
    const char *const *jobs; /* those that the worker can run */
    size_t n_jobs;
    int64_t older_than_us; /* only what has been ready for longer */
    int most;              /* spans */
};

/* Returns how many spans were moved. They keep their place and the time since which
 * they are ready, so that another worker can take them over from us in turn. */
int queue_take_over(struct store *store, const struct take_over *order,
                    struct err *err) must_check;

#endif
