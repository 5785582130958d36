/*
 * A submit in the order that its promises need:
 *
 *   1. draw the ids, and the store's time with them;
 *   2. idempotency keys: the insert decides who is first, a second gets the answer of
 *      the first whatever the duplicates rule would say;
 *   3. the keys of the duplicates rule: on PostgreSQL first a lock per key, waited for
 *      at most 2 s, so that racers get a true answer instead of a database error; then
 *      the insert of the row `active` decides;
 *   4. the requests, and their spans into ready or later.
 *
 * Any refusal fails the transaction, so nothing of it is stored.
 */
#include "queue/submit.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/rand.h"
#include "base/sha256.h"
#include "base/strs.h"
#include "queue/job.h"
#include "queue/submit_rows.h"
#include "store/store.h"
#include "store/wake.h"

#include <assert.h>
#include <stdio.h>

#define LOCK_NOT_AVAILABLE "55P03" /* SQLSTATE */

static int
check_order(const struct submit_order *order, struct err *err)
{
    if (!order->job || str_empty(order->job->name) ||
        strlen(order->job->name) > QUEUE_NAME_MAX)
        return err_set(err, ERR_INVALID, "job: a name of 1 to %d bytes is needed",
                       QUEUE_NAME_MAX);
    if (str_empty(order->requester))
        return err_set(err, ERR_INVALID, "requester: must not be empty");
    if (str_empty(order->lane) || strlen(order->lane) > QUEUE_NAME_MAX)
        return err_set(err, ERR_INVALID, "lane: a name of 1 to %d bytes is needed",
                       QUEUE_NAME_MAX);
    if (order->priority < QUEUE_PRIORITY_MIN || order->priority > QUEUE_PRIORITY_MAX)
        return err_set(err, ERR_INVALID, "priority: %d is not within %d to %d",
                       order->priority, QUEUE_PRIORITY_MIN, QUEUE_PRIORITY_MAX);
    if (order->has_max_calls && order->max_calls < 0)
        return err_set(err, ERR_INVALID, "maxCalls: must not be negative");
    if (order->n_after > QUEUE_AFTER_MAX)
        return err_set(err, ERR_INVALID, "after: at most %d requests can be waited for",
                       QUEUE_AFTER_MAX);
    if (order->idempotency_key && str_empty(order->body_digest))
        return err_set(err, ERR_INTERNAL, "an idempotency key without body digest");
    return 0;
}

static int
fill_drafts(struct submission *sub, struct err *err)
{
    for (size_t i = 0; i < sub->count; i++) {
        struct draft *draft = &sub->drafts[i];
        int r;

        sub->refused = i;
        r = check_order(&sub->orders[i], err);
        if (r < 0)
            return r;
        draft->order = &sub->orders[i];
        draft->at = i;
        draft->key = submit_key_of(&sub->arena, draft->order);
        sub->n_keys += draft->key != NULL;
        sub->has_keys |=
            draft->key || draft->order->idempotency_key || draft->order->n_after > 0;
    }
    sub->refused = sub->count;
    return 0;
}

static int
settle_times(struct submission *sub, struct err *err)
{
    for (size_t i = 0; i < sub->count; i++) {
        struct draft *draft = &sub->drafts[i];
        const struct submit_order *order = draft->order;

        if (draft->settled)
            continue;
        draft->expires_at_us = order->expires_at_us;
        if (!order->expires_at_us && order->job->expire_after_us > 0)
            draft->expires_at_us = sub->now_us + order->job->expire_after_us;
        if (draft->expires_at_us && draft->expires_at_us <= sub->now_us) {
            sub->refused = i;
            return err_set(err, ERR_INVALID, "expiresAt: is in the past");
        }
        if (order->not_before_us > sub->now_us)
            draft->not_before_us = order->not_before_us;
    }
    return 0;
}

/* --- the whole --- */

static int
set_lock_timeout(struct submission *sub, struct err *err)
{
    char text[16];

    if (db_kind(sub->db) != DB_PG || !sub->has_keys)
        return 0;
    snprintf(text, sizeof(text), "%d", QUEUE_LOCK_TIMEOUT_MS);
    return db_run(sub->db, store_sql(sub->db, STMT_QUEUE_LOCK_TIMEOUT), err,
                  p_text(text));
}

/* A racer kept its transaction open longer than we wait. */
static int
explain_busy(struct err *err)
{
    if (strcmp(err->detail, LOCK_NOT_AVAILABLE) != 0)
        return -(int)err->code;
    err_clear(err);
    return err_set(err, ERR_JOB_BEING_SUBMITTED,
                   "the same job is being submitted by somebody else right now; try "
                   "again after a second");
}

static int
decide(struct submission *sub, struct err *err)
{
    int r;

    r = submit_draw_ids(sub, err);
    if (r == 0)
        r = set_lock_timeout(sub, err);
    if (r == 0)
        r = submit_take_idem(sub, err);
    if (r == 0)
        r = settle_times(sub, err);
    if (r == 0)
        r = submit_settle_after(sub, err);
    if (r == 0 && db_kind(sub->db) == DB_PG)
        r = submit_lock_keys(sub, err);
    if (r == 0)
        r = submit_take_keys(sub, err);
    return r < 0 ? explain_busy(err) : 0;
}

static void
submission_release(struct submission *sub)
{
    arena_release(&sub->arena);
}

/* claimed: NULL, or who takes the (one) request at once. */
static int
submit_in(struct db *db, const struct submit_order *orders, size_t count,
          struct submit_answer *ret_answers, size_t *ret_refused,
          struct submit_claimer *claimer, struct err *err)
{
    scoped(submission_release) struct submission sub = {
        .db = db, .orders = orders, .count = count, .answers = ret_answers};
    int r;

    if (count > QUEUE_SUBMIT_MAX)
        return err_set(err, ERR_TOO_LARGE, "at most %d requests fit in one call",
                       QUEUE_SUBMIT_MAX);
    if (count == 0)
        return 0;
    sub.drafts = arena_array(&sub.arena, struct draft, count);
    r = fill_drafts(&sub, err);
    if (r == 0)
        r = decide(&sub, err);
    if (r == 0) {
        for (size_t i = 0; i < count; i++) {
            struct draft *draft = &sub.drafts[i];

            if (draft->settled)
                continue;
            draft->is_new = true;
            submit_settle(&sub, draft, draft->id, SUBMIT_NEW, NULL);
        }
        r = submit_write_rows(&sub, claimer, err);
        if (r == 0)
            r = submit_write_waits(&sub, err);
    }
    if (r < 0 && ret_refused)
        *ret_refused = sub.refused;
    return r;
}

int
queue_submit_in(struct db *db, const struct submit_order *orders, size_t count,
                struct submit_answer *ret_answers, size_t *ret_refused, struct err *err)
{
    return submit_in(db, orders, count, ret_answers, ret_refused, NULL, err);
}

struct call {
    const struct submit_order *orders;
    size_t count;
    struct submit_answer *answers;
    size_t refused;
    struct submit_claimer *claimer;
};

static int
submit_fn(struct db *db, void *arg, struct err *err)
{
    struct call *call = (struct call *)arg;

    call->refused = call->count;
    return submit_in(db, call->orders, call->count, call->answers, &call->refused,
                     call->claimer, err);
}

int
queue_submit_many(struct store *store, const struct submit_order *orders, size_t count,
                  struct submit_answer *ret_answers, size_t *ret_refused,
                  struct err *err)
{
    struct call call = {.orders = orders, .count = count, .answers = ret_answers};
    int r = store_write(store, STORE_NORMAL, submit_fn, &call, err);

    if (r < 0 && ret_refused)
        *ret_refused = call.refused;
    if (r == 0)
        store_wake(store, WAKE_READY);
    return r;
}

int
queue_submit(struct store *store, const struct submit_order *order,
             struct submit_answer *ret_answer, struct err *err)
{
    struct submit_answer answer;
    int r = queue_submit_many(store, order, 1, &answer, NULL, err);

    if (r == 0)
        *ret_answer = answer;
    return r;
}

int
queue_submit_claimed(struct store *store, const struct submit_order *order,
                     const char *worker, struct submit_answer *ret_answer,
                     struct claim_token *ret_token, struct err *err)
{
    struct submit_claimer claimer = {.worker = worker};
    struct submit_answer answer;
    struct call call = {
        .orders = order, .count = 1, .answers = &answer, .claimer = &claimer};
    int r;

    rand_hex128(claimer.token.nonce);
    r = store_write(store, STORE_NORMAL, submit_fn, &call, err);
    if (r < 0)
        return r;
    *ret_answer = answer;
    *ret_token = claimer.token;
    return 0;
}
