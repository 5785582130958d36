/*
 * Inside queue/: what every way of ending a request does in the end. The caller has
 * removed the request's row from the hot table where it was, and so has won.
 */
#ifndef QUEUE_CLOSING_H
#define QUEUE_CLOSING_H

#include "store/store.h"
#include "queue/request.h"

struct db;
struct err;

/* One request that becomes final now. Zero fields are stored as NULL. */
struct closing {
    int64_t id;
    const char *job; /* NULL where it ends unclaimed: no next try, no chain */
    enum request_status from;
    enum request_outcome outcome;
    const char *worker;
    int64_t token;
    int64_t claimed_at_us;
    int64_t finished_at_us;
    const char *detail;
    int64_t execution_id;
    const struct request_result *result;
    bool spent;
};

/* A row of the table claim. Texts are the caller's. */
struct claim_row {
    int64_t first_id;
    int64_t last_id;
    const char *job;
    const char *lane;
    const char *worker;
    struct claim_token token;
    int64_t claimed_at_us;
};

enum queue_closed { QUEUE_CLOSED = 0, QUEUE_CLOSED_ENTERED = 1 };

/*
 * Write the outcomes; free keys, flags, progress; let in what follows (follow.h). In a
 * write transaction. QUEUE_CLOSED_ENTERED: something new is queued, so wake
 * WAKE_READY after the commit.
 */
int queue_close_in(struct db *db, const struct closing *closings, size_t count,
                   struct err *err) must_check;

/* Those that wait for requests first_id…last_id, whose outcome is written already. */
int queue_closed_range_in(struct db *db, int64_t first_id, int64_t last_id,
                          enum request_outcome outcome, int64_t now_us,
                          struct err *err) must_check;

int queue_claim_put(struct db *db, const struct claim_row *row, int64_t first_id,
                    int64_t last_id, struct err *err) must_check;

static inline struct db_value
p_id(int64_t value)
{
    return value ? p_i64(value) : p_null();
}

#endif
