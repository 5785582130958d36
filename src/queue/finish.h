/*
 * Closing requests: RUNNING becomes DONE or FAILED under the token. Any thread.
 */
#ifndef QUEUE_FINISH_H
#define QUEUE_FINISH_H

#include "queue/request.h"

struct db;
struct err;
struct store;

enum queue_finish_result {
    QUEUE_FINISHED = 0,
    QUEUE_CLAIM_LOST = 1, /* someone else has closed it: drop what you have */
};

struct finish_order {
    int64_t request_id;
    struct claim_token token;
    enum request_outcome outcome;        /* not NONE */
    const char *detail;                  /* for people; NULL = none */
    int64_t execution_id;                /* 0 = none */
    const struct request_result *result; /* NULL or !known = none */
    bool spent; /* STOPPED since no call is left: a next try would end as this one */
};

/*
 * The claim shrinks, the outcome is written, the key of the duplicates rule is
 * free again, flag and progress go, what follows is queued: one transaction. After
 * ERR_COMMIT_UNKNOWN inside, the outcome is read back, so the answer is always true:
 * QUEUE_FINISHED when it stands as ordered.
 */
int queue_finish(struct store *store, const struct finish_order *order,
                 struct err *err) must_check;

/*
 * Many at once, e.g. one span. ret_lost (count entries, may be NULL) tells for
 * each whether its claim was lost; returns 0 even then.
 */
int queue_finish_many(struct store *store, const struct finish_order *orders,
                      size_t count, bool *ret_lost, struct err *err) must_check;

/* The same inside the caller's write transaction. > 0: something that follows is
 * queued now (a next try, the next of a chain): wake WAKE_READY after the commit. */
int queue_finish_in(struct db *db, const struct finish_order *orders, size_t count,
                    bool *ret_lost, struct err *err) must_check;

#endif
