/*
 * Taking work: the one place where QUEUED becomes RUNNING. Any thread.
 */
#ifndef QUEUE_CLAIM_H
#define QUEUE_CLAIM_H

#include "queue/request.h"

struct arena;
struct err;
struct store;

/* Where the last claim of a lane ended: the next one goes on behind it and need
 * not walk what was taken before. All zero = from the start (a sweep). */
struct claim_cursor {
    bool set;
    int priority;
    int64_t seq;
};

struct claim_want {
    const char *worker; /* worker id */
    const char *lane;
    const char *const *jobs; /* those that this worker can run */
    size_t n_jobs;
    int max; /* free slots, 1…; never more requests than this are taken */
    struct claim_cursor *cursor; /* moved on success; NULL = a sweep */
};

/* Requests first_id..last_id, RUNNING now and ours as long as the token holds. */
struct claim {
    int64_t first_id;
    int64_t last_id;
    const char *job; /* in the arena */
    const char *lane;
    int priority;
    struct claim_token token;
    int64_t claimed_at_us;
};

/*
 * Highest priority first, then the order of entry. ret_claims has room for
 * want->max entries; *ret_count = 0 is the normal answer of an empty lane (also
 * when the cursor stands behind everything: sweep then). Expired requests are
 * left alone.
 */
int queue_claim(struct store *store, const struct claim_want *want, struct arena *arena,
                struct claim *ret_claims, size_t *ret_count,
                struct err *err) must_check;

/*
 * After a sweep that took less than want->max: 1 when something is ready in the lane
 * all the same. On PostgreSQL a claim passes by rows that the claim of another worker
 * holds at that moment, also those that the other does not take in the end, and no
 * wake-up follows. 0 nothing is there. On SQLite always 0.
 */
int queue_claim_left(struct store *store, const struct claim_want *want,
                     struct err *err) must_check;

/* The written-once part of requests first_id..last_id, in order of id; what
 * stands in hot tables is not filled. ret_requests has room for all of them. */
int queue_load(struct store *store, int64_t first_id, int64_t last_id,
               struct arena *arena, struct request *ret_requests, size_t *ret_count,
               struct err *err) must_check;

/* Is this request still ours? 1 yes, 0 no. */
int queue_claim_holds(struct store *store, int64_t request_id, struct claim_token token,
                      struct err *err) must_check;

#endif
