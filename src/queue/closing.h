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
    enum request_status from;
    enum request_outcome outcome;
    const char *worker;
    int64_t token;
    int64_t claimed_at_us;
    int64_t finished_at_us;
    const char *detail;
    int64_t execution_id;
    const struct request_result *result;
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

/* Write the outcomes; free keys, flags, progress. In a write transaction. */
int queue_close_in(struct db *db, const struct closing *closings, size_t count,
                   struct err *err) must_check;

int queue_claim_put(struct db *db, const struct claim_row *row, int64_t first_id,
                    int64_t last_id, struct err *err) must_check;

static inline struct db_value
p_id(int64_t value)
{
    return value ? p_i64(value) : p_null();
}

#endif
