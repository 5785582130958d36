/*
 * Inside queue/: rows of later and ready, which hold consecutive requests alike in
 * all that the row says. Whoever takes one request out puts back the rest.
 */
#ifndef QUEUE_SPANS_H
#define QUEUE_SPANS_H

#include "queue/request.h"

struct arena;
struct db;
struct err;

struct span {
    int64_t first_id;
    int64_t last_id;
    const char *job;
    const char *lane;
    int priority;
    int64_t expires_at_us; /* 0 = never */
    int64_t not_before_us; /* later only */
    int64_t created_at_us; /* later only */
    const char *reason;    /* later only */
    bool patient;          /* later only: waits for its key as long as it takes */
    int64_t seq;           /* ready only */
    int64_t ready_since_us;
};

/* Into ready, in this order, with new seq. In a write transaction. */
int queue_ready_enter(struct db *db, const struct span *spans, size_t count,
                      struct err *err) must_check;

/* A part of a span back to where it was, with its seq. Empty parts are fine. */
int queue_ready_put(struct db *db, const struct span *span, int64_t first_id,
                    int64_t last_id, struct err *err) must_check;
int queue_later_put(struct db *db, const struct span *span, int64_t first_id,
                    int64_t last_id, struct err *err) must_check;

/*
 * Take the one request out of its span; the rest stays. 1: it was there and is
 * ours now, *ret_now_us is the store's time; 0: not there.
 */
int queue_later_take(struct db *db, int64_t request_id, int64_t *ret_now_us,
                     struct err *err) must_check;
int queue_ready_take(struct db *db, int64_t request_id, int64_t *ret_now_us,
                     struct err *err) must_check;

/* A request that waits for its time waits no longer; any other stays where it is. */
int queue_later_lift(struct db *db, int64_t request_id, struct err *err) must_check;

#endif
