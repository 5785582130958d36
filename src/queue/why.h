/*
 * The stored facts about a lane that tell why a request in it does not run yet.
 * Reads only; any thread.
 */
#ifndef QUEUE_WHY_H
#define QUEUE_WHY_H

#include "base/compiler.h"

#include <stddef.h>
#include <stdint.h>

struct arena;
struct err;
struct store;

#define WHY_HOLDERS_MAX 10
#define WHY_WAITS_MAX   11 /* one more than anybody shows */

struct why_holder {
    int64_t first_id;
    int64_t last_id;
    const char *job;
    const char *worker;
};

struct why_lane {
    int64_t ahead;   /* requests claimed before this one; -1: it is not ready */
    int64_t running; /* in the lane, on all workers */
    struct why_holder holders[WHY_HOLDERS_MAX]; /* those that run longest */
    size_t n_holders;
};

int queue_why_lane(struct store *store, int64_t request_id, const char *lane,
                   struct arena *arena, struct why_lane *ret_lane,
                   struct err *err) must_check;

/* The first WHY_WAITS_MAX of those that a request waits for (`after`). */
int queue_why_waits(struct store *store, int64_t request_id,
                    int64_t ret_ids[WHY_WAITS_MAX], size_t *ret_count,
                    struct err *err) must_check;

#endif
