/*
 * Taking requests in. The caller (api, cli, schedule, a chain) has validated the
 * parameters, made the estimate and chosen the lane; here the duplicates rule
 * and the idempotency keys are decided, in one transaction with the insert, and
 * the answer comes after the commit. Any thread.
 */
#ifndef QUEUE_SUBMIT_H
#define QUEUE_SUBMIT_H

#include "queue/request.h"

struct arena;
struct db;
struct err;
struct queue_job;
struct store;

#define QUEUE_SUBMIT_MAX      10000
#define QUEUE_AFTER_MAX       100
#define QUEUE_PRIORITY_MIN    (-100)
#define QUEUE_PRIORITY_MAX    100
#define QUEUE_LOCK_TIMEOUT_MS 2000 /* how long a submit waits for a racer */

/* What is asked. All strings are borrowed for the call. Times 0 = none. */
struct submit_order {
    const struct queue_job *job; /* its name, duplicates policy, expire_after … */
    const char *given;           /* JSON object text; NULL = {} */
    const char *canonical;       /* effective parameters, canonical; for reuse */
    const char *requester;       /* required */
    const char *subject;         /* whose idempotency keys; NULL = requester */
    enum request_source source;
    int priority;
    int64_t not_before_us;
    int64_t expires_at_us; /* 0: now + the job's expire_after, if it has one */
    const char *next;      /* JSON array text; NULL = that of the job */
    const int64_t *after;  /* requests that must be COMPLETED before */
    size_t n_after;        /* at most QUEUE_AFTER_MAX */
    int restart;           /* -1 not said, 0, 1 */
    bool has_max_calls;
    int64_t max_calls;
    const char *lane; /* required: the lane that was routed to */
    bool has_estimate;
    int64_t estimate;
    const char *idempotency_key; /* NULL = none */
    const char *body_digest;     /* with a key: digest of the body */
    int64_t retry_of;            /* follow-ups; 0 = none */
    int64_t first_try;
    int attempt; /* 0 counts as 1 */
    int64_t restart_of;
};

enum submit_how {
    SUBMIT_NEW,
    /* The duplicates rule `reuse` found one still QUEUED; or the next try of the same
     * work waits already, and was told to wait no longer. */
    SUBMIT_REUSED,
    SUBMIT_REPLAYED, /* same Idempotency-Key and body as before */
};

struct submit_answer {
    int64_t request_id;
    enum submit_how how;
    bool reused;                   /* how != SUBMIT_NEW */
    char lane[QUEUE_NAME_MAX + 1]; /* as stored */
};

/*
 * Errors of the rules: ERR_JOB_ALREADY_RUNNING (err->detail = id of the active
 * request), ERR_JOB_BEING_SUBMITTED (a racer's transaction is open; try again
 * after a second), ERR_IDEMPOTENCY_MISMATCH, ERR_INVALID. Nothing is stored then.
 * ERR_COMMIT_UNKNOWN: it may or may not have been stored; with an idempotency
 * key the same order can be given again safely.
 */
int queue_submit(struct store *store, const struct submit_order *order,
                 struct submit_answer *ret_answer, struct err *err) must_check;

/*
 * All or nothing, at most QUEUE_SUBMIT_MAX; answers in the order of the orders.
 * On a refusal *ret_refused is the index of the order that was refused (count
 * when the failure belongs to none). ret_refused may be NULL.
 */
int queue_submit_many(struct store *store, const struct submit_order *orders,
                      size_t count, struct submit_answer *ret_answers,
                      size_t *ret_refused, struct err *err) must_check;

/* The same inside the caller's write transaction (chain, retry, schedule). */
int queue_submit_in(struct db *db, const struct submit_order *orders, size_t count,
                    struct submit_answer *ret_answers, size_t *ret_refused,
                    struct err *err) must_check;

/*
 * `pawl run`: insert the request and take it at once for this worker, in one
 * transaction; it is never in ready. One that is answered by another (a next try that
 * waits, or `reuse`) takes that one. The same refusals as queue_submit.
 */
int queue_submit_claimed(struct store *store, const struct submit_order *order,
                         const char *worker, struct submit_answer *ret_answer,
                         struct claim_token *ret_token, struct err *err) must_check;

#endif
