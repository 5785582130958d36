/*
 * The next try. Whether there is one is the job's `retry`, read from the definition
 * that is in force in this transaction. It is a request of its own, linked by retry_of
 * and first_try, and takes over the key of the duplicates rule, so nobody comes in
 * between.
 *
 * A worker that dies is rarely the fault of what it ran, so the first loss goes on at
 * once; whatever fails again waits, longer each time. A drained try is not a used one:
 * it keeps its number.
 */
#include "queue/follow.h"

#include "base/err.h"
#include "base/json.h"
#include "base/retry.h"
#include "base/strs.h"
#include "queue/job.h"
#include "queue/params.h"
#include "queue/submit_rows.h"
#include "store/store.h"

#define JITTER 0.25

struct retries {
    struct follow *follow;
    struct submission sub;
    struct submit_order *orders;
    int64_t *from; /* the try before, by order */
    size_t count;
};

static void
retries_release(struct retries *retries)
{
    arena_release(&retries->sub.arena);
}

/* By outcome and policy; the number of tries is looked at later. */
static bool
wants_retry(const struct follow_fact *fact, const struct queue_job *job)
{
    if (!job || fact->cancel_asked)
        return false;
    switch (fact->closing->outcome) {
    case OUTCOME_ERROR:
        return job->retry.on & QUEUE_RETRY_ERROR;
    case OUTCOME_TIMEOUT:
        return job->retry.on & QUEUE_RETRY_TIMEOUT;
    case OUTCOME_WORKER_LOST:
        return job->retry.on & QUEUE_RETRY_WORKER_LOST;
    case OUTCOME_STOPPED: /* by a drain, unless somebody asked for it */
        return job->retry.drained && !fact->stop_asked && !fact->closing->spent;
    case OUTCOME_NONE:
    case OUTCOME_COMPLETED:
    case OUTCOME_CANCELLED:
    case OUTCOME_EXPIRED:
    case OUTCOME_REFUSED:
    case OUTCOME_COUNT:
        break;
    }
    return false;
}

/* How long the next try waits, in microseconds. */
static int64_t
wait_us(const struct queue_retry *retry, enum request_outcome outcome, int attempt)
{
    struct backoff backoff = {
        .base_ms = (retry->backoff_us + 999) / 1000,
        .max_ms = (retry->max_backoff_us + 999) / 1000,
        .jitter = JITTER,
        .attempts = attempt - 1,
    };

    if (outcome == OUTCOME_STOPPED || backoff.base_ms <= 0)
        return 0;
    if (outcome == OUTCOME_WORKER_LOST) {
        if (attempt == 1)
            return 0;
        backoff.attempts = attempt - 2;
    }
    if (backoff.max_ms < backoff.base_ms)
        backoff.max_ms = backoff.base_ms;
    return backoff_next_ms(&backoff) * 1000;
}

/* The parameters as they were given, without what was good for that one try only. *ret
 * stays NULL when the rest is not enough for the job as it is defined now. */
static int
inherit_params(struct retries *retries, const struct request *request,
               const struct queue_job *job, struct submit_order *order, struct err *err)
{
    struct arena *arena = &retries->sub.arena;
    scoped(json_drop) json_t *given = NULL;
    scoped(json_drop) json_t *rest = NULL;
    scoped(json_drop) json_t *effective = NULL;
    struct params_errors errors;
    struct err unread = {0};
    char text[400] = "its parameters cannot be read";

    if (json_parse(request->given, strlen(request->given), JSON_DEPTH_MAX, &given,
                   &unread) == 0) {
        rest = params_without_confirm(job, given);
        if (params_check(job, rest, &effective, &errors) == PARAMS_OK) {
            order->given = follow_json(arena, rest);
            order->canonical = follow_canonical(arena, effective);
            if (order->given && order->canonical)
                return 0;
        } else {
            params_errors_text(&errors, text, sizeof(text));
        }
    }
    order->given = NULL;
    return follow_drop(retries->sub.db, retries->follow, request->id, "retry-dropped",
                       text, err);
}

static int
add_order(struct retries *retries, const struct request *request, struct err *err)
{
    const struct follow *follow = retries->follow;
    const struct follow_fact *fact = follow_fact(follow, request->id);
    enum request_outcome outcome = fact->closing->outcome;
    const struct queue_job *job = follow_known_job(follow, request->job);
    struct submit_order *order = &retries->orders[retries->count];
    bool begun = fact->closing->execution_id != 0;
    int r;

    if (request->source == SOURCE_PARTITION ||
        (outcome != OUTCOME_STOPPED && request->attempt >= job->retry.attempts))
        return 0;
    *order = (struct submit_order){
        .job = job,
        .requester = request->requester,
        .source = request->source == SOURCE_BACKFILL ? SOURCE_BACKFILL : SOURCE_RETRY,
        .priority = request->priority,
        .next = request->next,
        /* What was begun is gone on with, whatever was asked of the first try. */
        .restart = begun ? -1 : request->restart,
        .restart_of = begun ? 0 : request->restart_of,
        .lane = request->lane,
        .has_estimate = request->estimate >= 0,
        .estimate = request->estimate,
        .retry_of = request->id,
        .first_try = request->first_try ? request->first_try : request->id,
        .attempt = request->attempt + (outcome != OUTCOME_STOPPED),
    };
    r = inherit_params(retries, request, job, order, err);
    if (r < 0 || !order->given)
        return r;
    retries->from[retries->count++] = request->id;
    return 0;
}

/* One time for all that are alike, so that they stay one span. */
static void
settle_times(struct retries *retries)
{
    const struct submit_order *before = NULL;
    enum request_outcome outcome_before = OUTCOME_NONE;
    int64_t at_us = 0;

    for (size_t i = 0; i < retries->count; i++) {
        struct submit_order *order = &retries->orders[i];
        struct draft *draft = &retries->sub.drafts[i];
        enum request_outcome outcome =
            follow_fact(retries->follow, retries->from[i])->closing->outcome;

        if (!before || before->job != order->job || before->attempt != order->attempt ||
            outcome_before != outcome) {
            int64_t wait = wait_us(&order->job->retry, outcome, order->attempt - 1);

            at_us = wait > 0 ? retries->sub.now_us + wait : 0;
        }
        order->not_before_us = at_us;
        draft->not_before_us = at_us;
        before = order;
        outcome_before = outcome;
    }
}

/* The key that the try before had is free in this transaction only, so the next one has
 * it before anybody else. That of `reuse` ended with the claim: whoever asks for the
 * same now meets the next try, unless somebody has asked already, or is just asking. */
static int
take_key(struct retries *retries, const struct draft *draft, struct err *err)
{
    struct db *db = retries->sub.db;
    const struct db_value take[] = {p_opt_text(draft->key), p_i64(draft->id)};
    int64_t got = 1;
    int r = 0;

    if (!draft->key)
        return 0;
    if (db_kind(db) == DB_PG && draft->order->job->duplicates == QUEUE_DUPLICATES_REUSE)
        r = db_query_i64(db, store_sql(db, STMT_CHAIN_TRY_LOCK), take, 1, &got, err);
    if (r >= 0 && got)
        r = db_query_i64(db, store_sql(db, STMT_QUEUE_ACTIVE_TAKE), take,
                         array_len(take), &got, err);
    return r < 0 ? r : 0;
}

static int
enter(struct retries *retries, struct err *err)
{
    struct submission *sub = &retries->sub;
    int r;

    sub->orders = retries->orders;
    sub->count = retries->count;
    sub->drafts = arena_array(&sub->arena, struct draft, sub->count);
    r = submit_draw_ids(sub, err);
    if (r < 0)
        return r;
    settle_times(retries);
    for (size_t i = 0; i < sub->count && r == 0; i++) {
        struct draft *draft = &sub->drafts[i];

        draft->order = &retries->orders[i];
        draft->at = i;
        draft->is_new = true;
        draft->key = submit_key_of(&sub->arena, draft->order);
        follow_fact(retries->follow, retries->from[i])->followup_id = draft->id;
        r = take_key(retries, draft, err);
    }
    if (r == 0)
        r = submit_write_rows(sub, NULL, err);
    if (r == 0)
        retries->follow->entered = true;
    return r;
}

int
follow_retry(struct db *db, struct follow *follow, struct err *err)
{
    scoped(retries_release) struct retries retries = {.follow = follow, .sub.db = db};
    int64_t *ids = arena_array(&follow->arena, int64_t, follow->count);
    struct request *requests = NULL;
    size_t n = 0;
    int r;

    for (size_t i = 0; i < follow->count; i++) {
        const struct follow_fact *fact = &follow->facts[i];

        if (wants_retry(fact, follow_known_job(follow, fact->closing->job)))
            ids[n++] = fact->id;
    }
    if (n == 0)
        return 0;
    retries.orders = arena_array(&follow->arena, struct submit_order, n);
    retries.from = arena_array(&follow->arena, int64_t, n);
    r = follow_requests(db, follow, ids, n, &requests, &n, err);
    for (size_t i = 0; i < n && r == 0; i++)
        r = add_order(&retries, &requests[i], err);
    return r < 0 || retries.count == 0 ? r : enter(&retries, err);
}
