/*
 * Notes about items that a step left out. Each is a transaction of its own under the
 * token, so it stays when the chunk of the item is rolled back. Any thread.
 */
#ifndef BATCH_SKIP_H
#define BATCH_SKIP_H

#include "queue/request.h"

struct arena;
struct err;
struct store;

struct batch_skip {
    const char *step;
    int64_t item; /* its number among those read, from 1 */
    const char *class;
    const char *values; /* JSON */
    const char *message;
    int64_t noted_at_us;
};

/* BATCH_OK or BATCH_LOST (batch/execution.h), or < 0. */
int batch_skip_note(struct store *store, int64_t request_id, struct claim_token token,
                    int64_t instance_id, const struct batch_skip *skip,
                    struct err *err) must_check;

/* The first max of those that the request's run noted, oldest first, in the arena. */
int batch_skips(struct store *store, int64_t request_id, int64_t max,
                struct arena *arena, struct batch_skip **ret_skips, size_t *ret_count,
                struct err *err) must_check;

#endif
