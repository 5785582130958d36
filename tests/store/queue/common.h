/* Short words for the tests of queue/, liveness/ and batch/: each fails the test when
 * the call fails for a reason that the test did not ask for. */
#ifndef TESTS_STORE_QUEUE_COMMON_H
#define TESTS_STORE_QUEUE_COMMON_H

#include "base/arena.h"
#include "base/clock.h"
#include "queue/cancel.h"
#include "queue/claim.h"
#include "queue/finish.h"
#include "queue/job.h"
#include "queue/later.h"
#include "queue/list.h"
#include "queue/progress.h"
#include "queue/submit.h"
#include "tests/store/harness.h"

struct queue_job job_of(const char *name, enum queue_duplicates duplicates);

/* A job in force in the store. Zero fields: task, allow, one try, no next, no params.
 */
struct job_text {
    const char *name;
    const char *duplicates;
    int attempts;
    const char *on; /* "\"ERROR\"" … */
    bool drained;
    int64_t backoff_us;
    const char *next;   /* JSON array */
    const char *params; /* JSON object; in alphabetical order */
    const char *param_order;
    const char *webhook; /* JSON object */
};

/* Returns it parsed, for orders; it lives until the process ends. */
const struct queue_job *define_job(struct harness *h, const struct job_text *text);

/* requester "tester", lane "normal", canonical {} */
struct submit_order order_of(const struct queue_job *job);

/* A task named "task", allowed any number of times; returns the id. */
int64_t submit_one(struct harness *h, const char *job);
int64_t submit_order(struct harness *h, const struct submit_order *order);

/* count requests of one job by one call; returns the first id. */
int64_t submit_span(struct harness *h, const char *job, size_t count);

/* What queue_submit answers, with err cleared before. */
int try_submit(struct harness *h, const struct submit_order *order,
               struct submit_answer *ret_answer, struct err *err);

/* The same for a task "other" that waits for count others. */
int try_after(struct harness *h, const int64_t *after, size_t count, int64_t *ret_id,
              struct err *err);

/* At most max requests of lane normal, jobs "task", "other", "third"; returns requests.
 */
int64_t claim_some(struct harness *h, const char *worker, int max, struct claim *claims,
                   size_t *ret_count);
/* Exactly one request, of any of those jobs. */
struct claim claim_one(struct harness *h, const char *worker);

struct finish_order finish_of(int64_t request_id, const struct claim *claim,
                              enum request_outcome outcome);
void finish_ok(struct harness *h, int64_t request_id, const struct claim *claim,
               enum request_outcome outcome);

struct request get(struct harness *h, struct arena *arena, int64_t request_id);

/* Rows of a table; every request is in exactly one place. */
int64_t rows_in(struct harness *h, const char *table);
void assert_consistent(struct harness *h);

/* Run fn(arg of each) on its own thread at the same moment, and wait for all. */
void in_parallel(size_t count, void *(*fn)(void *), void *args, size_t arg_size);

#endif
