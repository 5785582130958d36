/*
 * A job as the queue sees it: the policies and the parameter table of a row of
 * job_definition, read from its canonical JSON (docs/definition.md; written by
 * config/). Steps are not looked at. Read-only after parsing: any thread may
 * use it; the owner frees it.
 */
#ifndef QUEUE_JOB_H
#define QUEUE_JOB_H

#include "queue/params.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct err;

enum queue_kind { QUEUE_KIND_BATCH, QUEUE_KIND_TASK };

enum queue_duplicates {
    QUEUE_DUPLICATES_REFUSE,
    QUEUE_DUPLICATES_REUSE,
    QUEUE_DUPLICATES_ALLOW,
};

/* Bits of queue_retry.on. */
enum queue_retry_on {
    QUEUE_RETRY_ERROR = 1 << 0,
    QUEUE_RETRY_TIMEOUT = 1 << 1,
    QUEUE_RETRY_WORKER_LOST = 1 << 2,
};

struct queue_retry {
    int attempts;       /* tries in all, the first included */
    int64_t backoff_us; /* before the second try, then doubled */
    int64_t max_backoff_us;
    unsigned on;  /* enum queue_retry_on bits */
    bool drained; /* a drained run is asked for again by itself */
};

struct queue_job {
    const char *name;
    const char *title;
    const char *description;
    enum queue_kind kind;
    enum queue_duplicates duplicates;
    const char *lane;   /* where it goes unless routed to "large" */
    int64_t large_over; /* estimate of so many or more: lane "large"; -1 = not routed */
    const char *estimate_database; /* NULL = no estimate */
    const char *estimate_sql;
    int64_t estimate_timeout_us;
    const char *estimate_otherwise; /* lane when there is no answer by then */
    const char *calls_budget;       /* NULL = no forecast of calls */
    int64_t calls_per_item;
    int64_t reuse_window_us;
    int64_t timeout_us;      /* from the claim; 0 = none */
    int64_t expire_after_us; /* from the submit; 0 = never */
    int priority;            /* -100..100 */
    struct queue_retry retry;
    bool makes_result;
    const char **next; /* names of the jobs; what is mapped stands in definition */
    size_t next_count;
    const char **needs_keys;
    size_t needs_key_count;
    struct param *params; /* in the declared order */
    size_t param_count;
    json_t *definition; /* all of it; owns the texts above */
};

/* *ret_job by queue_job_free. -ERR_SCHEMA with the place when the text is not a
 * definition this version understands. */
int queue_job_parse(const char *definition, struct queue_job **ret_job,
                    struct err *err) must_check;
void queue_job_free(struct queue_job *job);
void queue_job_free_ptr(struct queue_job **job); /* for scoped() */

/* NULL when the job has no parameter of that name. */
const struct param *queue_job_param(const struct queue_job *job, const char *name);

/* "refuse" ... for answers and rows. */
const char *queue_duplicates_word(enum queue_duplicates duplicates);

#endif
