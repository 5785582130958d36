/*
 * The rows of a submit: each new request once into request, and runs of consecutive
 * ids that are alike as one span into ready or later. Few requests go by single
 * inserts, many by copy.
 */
#include "queue/submit_rows.h"

#include "base/err.h"
#include "base/sha256.h"
#include "base/strs.h"
#include "queue/closing.h"
#include "queue/job.h"
#include "queue/pause.h"
#include "queue/spans.h"
#include "store/store.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#define FEW 4

const char *
queue_refuse_key(struct arena *arena, const char *job)
{
    return arena_printf(arena, "job:%s", job);
}

/* 'job:' and the job, or 'req:' and a digest; pawl.submit makes the same ones. The
 * digest is unambiguous: a job's name and canonical parameters hold no raw newline. */
const char *
submit_key_of(struct arena *arena, const struct submit_order *order)
{
    char hex[SHA256_HEX_SIZE];
    const char *text;

    switch (order->job->duplicates) {
    case QUEUE_DUPLICATES_ALLOW:
        return NULL;
    case QUEUE_DUPLICATES_REFUSE:
        return queue_refuse_key(arena, order->job->name);
    case QUEUE_DUPLICATES_REUSE:
        if (order->n_after > 0) /* one that waits for nothing is no answer to it */
            return NULL;
        text = arena_printf(arena, "%s\n%s\n%s", order->requester, order->job->name,
                            order->canonical ? order->canonical : "{}");
        sha256_hex(text, strlen(text), hex);
        return arena_printf(arena, "req:%s", hex);
    }
    return NULL;
}

/* SQLite says the last one; PostgreSQL's sequence may have holes between them. */
int
submit_draw_ids(struct submission *sub, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int64_t count = (int64_t)sub->count;
    size_t i = 0;
    int r;

    r = db_ask(sub->db, store_sql(sub->db, STMT_QUEUE_DRAW_IDS), &rows, err,
               p_i64(count));
    if (r < 0)
        return r;
    while ((r = db_next(&rows, err)) > 0) {
        sub->now_us = db_i64(&rows, 1);
        if (db_kind(sub->db) == DB_SQLITE)
            for (; i < sub->count; i++)
                sub->drafts[i].id = db_i64(&rows, 0) - count + 1 + (int64_t)i;
        else if (i < sub->count)
            sub->drafts[i++].id = db_i64(&rows, 0);
    }
    assert(r < 0 || i == sub->count);
    return r;
}

/* --- rows --- */

static const char *const columns[] = {
    "id",       "job",        "given",      "requester",  "source",   "lane",
    "priority", "estimate",   "not_before", "expires_at", "retry_of", "first_try",
    "attempt",  "restart_of", "restart",    "max_calls",  "next",     "created_at",
};

static void
values_of(const struct submission *sub, const struct draft *draft,
          struct db_value ret[array_len(columns)])
{
    const struct submit_order *order = draft->order;

    ret[0] = p_i64(draft->id);
    ret[1] = p_text(order->job->name);
    ret[2] = p_text(order->given ? order->given : "{}");
    ret[3] = p_text(order->requester);
    ret[4] = p_text(request_source_name(order->source));
    ret[5] = p_text(order->lane);
    ret[6] = p_i64(order->priority);
    ret[7] = order->has_estimate ? p_i64(order->estimate) : p_null();
    ret[8] = p_id(order->not_before_us);
    ret[9] = p_id(draft->expires_at_us);
    ret[10] = p_id(order->retry_of);
    ret[11] = p_id(order->first_try);
    ret[12] = p_i64(order->attempt > 0 ? order->attempt : 1);
    ret[13] = p_id(order->restart_of);
    ret[14] = order->restart >= 0 ? p_i64(order->restart != 0) : p_null();
    ret[15] = order->has_max_calls ? p_i64(order->max_calls) : p_null();
    ret[16] = p_opt_text(order->next);
    ret[17] = p_i64(sub->now_us);
}

static int
add_few(struct submission *sub, struct err *err)
{
    struct db_value values[array_len(columns)];
    int r = 0;

    for (size_t i = 0; i < sub->count && r == 0; i++) {
        if (!sub->drafts[i].is_new)
            continue;
        values_of(sub, &sub->drafts[i], values);
        r = db_exec(sub->db, store_sql(sub->db, STMT_QUEUE_REQUEST_ADD), values,
                    array_len(columns), err);
    }
    return r;
}

static int
add_many(struct submission *sub, struct err *err)
{
    scoped(db_copy_abort) struct db_copy copy = {0};
    struct db_value values[array_len(columns)];
    int64_t rows;
    int r;

    r = db_copy_begin(sub->db, "pawl.request", columns, array_len(columns), &copy, err);
    for (size_t i = 0; i < sub->count && r == 0; i++) {
        if (!sub->drafts[i].is_new)
            continue;
        values_of(sub, &sub->drafts[i], values);
        r = db_copy_row(&copy, values, err);
    }
    return r < 0 ? r : db_copy_end(&copy, &rows, err);
}

static struct span
span_of(const struct submission *sub, const struct draft *draft)
{
    return (struct span){
        .first_id = draft->id,
        .last_id = draft->id,
        .job = draft->order->job->name,
        .lane = draft->order->lane,
        .priority = draft->order->priority,
        .expires_at_us = draft->expires_at_us,
        .not_before_us = draft->not_before_us,
        .created_at_us = sub->now_us,
        .reason = draft->reason ? draft->reason : "time",
    };
}

static bool
joins(const struct span *span, const struct span *next)
{
    return next->first_id == span->last_id + 1 && next->priority == span->priority &&
           next->expires_at_us == span->expires_at_us &&
           next->not_before_us == span->not_before_us && str_eq(next->job, span->job) &&
           str_eq(next->lane, span->lane) && str_eq(next->reason, span->reason) &&
           str_eq(span->reason, "time"); /* the others move one by one */
}

/* Runs of consecutive new requests alike; returns how many. */
static size_t
group(const struct submission *sub, struct span *ret_spans)
{
    size_t n = 0;

    for (size_t i = 0; i < sub->count; i++) {
        struct span span;

        if (!sub->drafts[i].is_new)
            continue;
        span = span_of(sub, &sub->drafts[i]);
        if (n > 0 && joins(&ret_spans[n - 1], &span))
            ret_spans[n - 1].last_id = span.last_id;
        else
            ret_spans[n++] = span;
    }
    return n;
}

static int
write_spans(struct submission *sub, struct err *err)
{
    struct span *spans = arena_array(&sub->arena, struct span, sub->count);
    size_t count = group(sub, spans);
    size_t n_ready = 0;
    int r = 0;

    for (size_t i = 0; i < count && r == 0; i++) {
        if (spans[i].not_before_us || !str_eq(spans[i].reason, "time"))
            r = queue_later_put(sub->db, &spans[i], spans[i].first_id, spans[i].last_id,
                                err);
        else
            spans[n_ready++] = spans[i];
    }
    return r < 0 ? r : queue_ready_enter(sub->db, spans, n_ready, err);
}

/* PostgreSQL: a single request that can be claimed at once. */
static int
enter_one_pg(struct submission *sub, const struct draft *draft, struct err *err)
{
    struct db_value values[array_len(columns)];

    values_of(sub, draft, values);
    return db_exec(sub->db, store_sql(sub->db, STMT_QUEUE_REQUEST_ENTER), values,
                   array_len(columns), err);
}

/* Straight into claim; a reuse key would end with the claim, so it is not kept. */
static int
write_claim(struct submission *sub, struct submit_claimer *claimer, int64_t id,
            const char *lane, struct err *err)
{
    const struct draft *draft = &sub->drafts[0];
    scoped(db_rows_end) struct db_rows rows = {0};
    struct claim_row row = {
        .job = draft->order->job->name,
        .lane = lane,
        .worker = claimer->worker,
    };
    int r;

    r = db_ask(sub->db, store_sql(sub->db, STMT_QUEUE_TOKEN_NEXT), &rows, err);
    if (r == 0)
        r = db_next(&rows, err);
    if (r < 0)
        return r;
    claimer->token.number = db_i64(&rows, 0);
    db_rows_end(&rows);
    row.token = claimer->token;
    row.claimed_at_us = sub->now_us;
    r = queue_claim_put(sub->db, &row, id, id, err);
    if (r == 0)
        r = queue_pause_refuse_in(sub->db, row.job, row.lane, err);
    if (r == 0 && draft->order->job->duplicates == QUEUE_DUPLICATES_REUSE)
        r = db_run(sub->db, store_sql(sub->db, STMT_QUEUE_ACTIVE_RELEASE_RANGE), err,
                   p_i64(id), p_i64(id));
    return r;
}

/* It was answered by one that is queued already, such as a next try: that one is taken,
 * unless it waits for others or has begun elsewhere. */
static int
claim_other(struct submission *sub, struct submit_claimer *claimer, struct err *err)
{
    const struct submit_answer *answer = &sub->answers[0];
    int64_t now_us;
    int r = queue_later_lift(sub->db, answer->request_id, err);

    if (r >= 0)
        r = queue_ready_take(sub->db, answer->request_id, &now_us, err);
    if (r < 0)
        return r;
    if (r > 0)
        return write_claim(sub, claimer, answer->request_id, answer->lane, err);
    r = err_set(
        err, ERR_JOB_ALREADY_RUNNING,
        "job %s has request %" PRId64 ", which waits or runs already; `pawl why "
        "%" PRId64 "` tells what for",
        sub->drafts[0].order->job->name, answer->request_id, answer->request_id);
    snprintf(err->detail, sizeof(err->detail), "%" PRId64, answer->request_id);
    return r;
}

int
submit_write_rows(struct submission *sub, struct submit_claimer *claimer,
                  struct err *err)
{
    const struct draft *last = NULL;
    size_t n_new = 0;
    int r;

    for (size_t i = 0; i < sub->count; i++) {
        if (!sub->drafts[i].is_new)
            continue;
        last = &sub->drafts[i];
        n_new++;
    }
    if (n_new == 0)
        return claimer ? claim_other(sub, claimer, err) : 0;
    if (n_new == 1 && !claimer && !last->not_before_us && !last->reason &&
        db_kind(sub->db) == DB_PG)
        return enter_one_pg(sub, last, err);
    r = n_new <= FEW ? add_few(sub, err) : add_many(sub, err);
    if (r < 0)
        return r;
    assert(!claimer || sub->count == 1);
    return claimer ? write_claim(sub, claimer, last->id, last->order->lane, err)
                   : write_spans(sub, err);
}
