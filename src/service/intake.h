/*
 * From what a client asks to an order the queue takes: check the parameters,
 * estimate the size, choose the lane. What the api and the command line share.
 * Nothing is stored here; queue_submit decides the rest. Any thread.
 */
#ifndef SERVICE_INTAKE_H
#define SERVICE_INTAKE_H

#include "queue/params.h"
#include "queue/submit.h"

#include <jansson.h>

struct arena;
struct err;
struct estimates;
struct queue_job;

/* What a client asks. Borrowed for the call; times 0 = none. */
struct intake {
    const struct queue_job *job;
    const json_t *params; /* object as given; NULL = none; `_next` in it is `next` */
    const json_t *next;   /* array of job names or {job, params}; NULL = none */
    const int64_t *after; /* requests that must be COMPLETED before */
    size_t n_after;
    const char *requester;
    const char *subject;
    enum request_source source;
    bool has_priority;
    int64_t priority;
    int64_t not_before_us;
    int64_t expires_at_us;
    int restart; /* -1 = not said */
    bool has_max_calls;
    int64_t max_calls;
    const char *idempotency_key; /* NULL = none */
    const char *body_digest;
};

enum intake_outcome {
    INTAKE_OK,
    INTAKE_INVALID, /* errors holds every field that is wrong */
};

/*
 * Fill ret_order (its strings live in the arena and in the intake). An estimate
 * that gives no answer in its time sends it to the lane `otherwise` and is no failure;
 * one whose SQL is wrong is (-ERR_DB, naming the job).
 */
int intake_order(struct estimates *estimates, const struct intake *intake,
                 struct arena *arena, struct submit_order *ret_order,
                 struct params_errors *ret_errors, struct err *err) must_check;

/* Rows the job's estimate expects; -1 when it gave no answer in time. */
int intake_estimate(struct estimates *estimates, const struct queue_job *job,
                    const json_t *effective, int64_t *ret_rows,
                    struct err *err) must_check;

/* SHA-256 (hex, in the arena) of a body's canonical text: what an idempotency key of
 * a bulk item is compared by. */
const char *intake_digest(const json_t *body, struct arena *arena);

#endif
