/*
 * No claim, no writer: an execution without its claim can be ended by anybody who holds
 * the lock of its job. One with a claim is its worker's as long as that worker beats.
 */
#include "batch/stale.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/strs.h"
#include "batch/execution.h"
#include "batch/lost.h"
#include "batch/move.h"
#include "store/store.h"
#include "store/wake.h"

#include <stdio.h>

#define ORPHANS_MAX 100

static int
find_orphans(struct db *db, const char *job, int64_t ids[ORPHANS_MAX],
             size_t *ret_count, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int r = db_ask(db, store_sql(db, STMT_BATCH_ORPHANS), &rows, err, p_text(job));

    *ret_count = 0;
    if (r < 0)
        return r;
    while ((r = db_next(&rows, err)) > 0 && *ret_count < ORPHANS_MAX)
        ids[(*ret_count)++] = db_i64(&rows, 0);
    return r < 0 ? r : 0;
}

static int
fail(struct db *db, int64_t execution_id, const char *reason, struct err *err)
{
    int r = batch_move_steps(db, execution_id, EXECUTION_FAILED, reason, err);

    return r < 0
               ? r
               : batch_move_execution(db, execution_id, EXECUTION_FAILED, reason, err);
}

static int
may_clean(struct db *db, bool *ret_may, struct err *err)
{
    int64_t may = 0;
    int r = db_query_i64(db, store_sql(db, STMT_BATCH_MAY_CLEAN), NULL, 0, &may, err);

    if (r >= 0)
        *ret_may = may != 0;
    return r < 0 ? r : 0;
}

int
batch_clean_in(struct db *db, const char *job, struct err *err)
{
    int64_t ids[ORPHANS_MAX];
    size_t count = 0;
    bool may = false;
    int r = find_orphans(db, job, ids, &count, err);

    if (r < 0 || count == 0)
        return r;
    r = may_clean(db, &may, err);
    if (r < 0 || !may)
        return r < 0 ? r : 0;
    r = batch_lock_job(db, job, err);
    if (r == 0) /* again: another may have done it while we waited */
        r = find_orphans(db, job, ids, &count, err);
    for (size_t i = 0; i < count && r == 0; i++)
        r = fail(db, ids[i],
                 "No worker carried it any more when the job was asked for again.",
                 err);
    return r < 0 ? r : (int)count;
}

/* --- by hand --- */

struct recover {
    int64_t execution_id;
    int64_t dead_after_us;
    const char *actor;
    struct lost_request lost;
    struct batch_holder holder;
    enum execution_state state;
    char job[QUEUE_NAME_MAX + 1];
};

static int
read_holder(struct db *db, struct recover *call, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int r = db_ask(db, store_sql(db, STMT_BATCH_HOLDER), &rows, err,
                   p_i64(call->execution_id));

    if (r == 0)
        r = db_next(&rows, err);
    if (r < 0)
        return r;
    if (r == 0)
        return err_set(err, ERR_NOT_FOUND, "there is no execution %lld",
                       (long long)call->execution_id);
    if (!execution_state_parse(db_text(&rows, 0), &call->state))
        return err_set(err, ERR_SCHEMA, "the store says state %.40s, unknown here",
                       db_text(&rows, 0));
    str_copy(call->job, sizeof(call->job), db_text(&rows, 2));
    call->lost = (struct lost_request){.request_id = db_i64(&rows, 1),
                                       .execution_id = call->execution_id,
                                       .job = call->job};
    call->holder = (struct batch_holder){.silence_us = -1};
    if (db_is_null(&rows, 4))
        return 0;
    call->lost.token.number = db_i64(&rows, 3);
    str_copy(call->holder.worker, sizeof(call->holder.worker), db_text(&rows, 4));
    if (!db_is_null(&rows, 5))
        call->holder.silence_us = db_i64(&rows, 5);
    return 0;
}

/* Only who may act under a claim may read all of its token. 1, 0 it is gone. */
static int
read_nonce(struct db *db, struct lost_request *lost, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int r = db_ask(db, store_sql(db, STMT_BATCH_CLAIM_NONCE), &rows, err,
                   p_i64(lost->request_id), p_i64(lost->token.number));

    if (r == 0)
        r = db_next(&rows, err);
    if (r > 0)
        str_copy(lost->token.nonce, sizeof(lost->token.nonce), db_text(&rows, 0));
    return r;
}

static int
gone(const struct recover *call, struct err *err)
{
    return err_set(err, ERR_DB_CONFLICT, "execution %lld: its claim went away",
                   (long long)call->execution_id);
}

static int
close_claimed(struct db *db, struct recover *call, const char *reason, struct err *err)
{
    int r = read_nonce(db, &call->lost, err);

    if (r > 0)
        r = batch_close_one_in(db, &call->lost, reason, err);
    else if (r == 0)
        r = BATCH_LOST;
    return r == BATCH_LOST ? gone(call, err) : r;
}

static int
close_it(struct db *db, struct recover *call, struct err *err)
{
    char subject[40];
    char reason[200];
    int r;

    snprintf(reason, sizeof(reason),
             "Its worker is dead; closed by hand by the administrator %.100s.",
             call->actor);
    snprintf(subject, sizeof(subject), "execution %lld", (long long)call->execution_id);
    if (call->lost.token.number)
        r = close_claimed(db, call, reason, err);
    else
        r = fail(db, call->execution_id, reason, err);
    if (r == 0)
        r = store_audit(db, call->actor, "recover", subject,
                        call->holder.worker[0] ? call->holder.worker : NULL, err);
    return r < 0 ? r : BATCH_RECOVERED;
}

/* Its claim stands, and the worker of it beats. */
static bool
is_carried(const struct recover *call)
{
    return call->lost.token.number && call->holder.silence_us >= 0 &&
           call->holder.silence_us < call->dead_after_us;
}

static int
recover_fn(struct db *db, void *arg, struct err *err)
{
    struct recover *call = (struct recover *)arg;
    bool may = false;
    int r = read_holder(db, call, err);

    if (r < 0)
        return r;
    if (!execution_state_alive(call->state))
        return BATCH_OVER;
    if (is_carried(call))
        return BATCH_STILL_CARRIED;
    r = may_clean(db, &may, err);
    if (r < 0 || !may)
        return r < 0 ? r : BATCH_NOT_OURS;
    return close_it(db, call, err);
}

int
batch_recover(struct store *store, int64_t execution_id, int64_t dead_after_us,
              const char *actor, struct lost_request *ret_lost,
              struct batch_holder *ret_holder, struct err *err)
{
    struct recover call = {
        .execution_id = execution_id, .dead_after_us = dead_after_us, .actor = actor};
    int r = store_write(store, STORE_NORMAL, recover_fn, &call, err);

    if (r < 0)
        return r;
    *ret_lost = call.lost;
    ret_lost->job = NULL; /* it was ours */
    *ret_holder = call.holder;
    if (r == BATCH_RECOVERED)
        store_wake(store, WAKE_DONE | WAKE_READY);
    return r;
}

/* 1: dead, and its token is read. */
static int
holder_fn(struct db *db, void *arg, struct err *err)
{
    struct recover *call = (struct recover *)arg;
    bool may = false;
    int r = read_holder(db, call, err);

    if (r < 0 || !execution_state_alive(call->state) || !call->lost.token.number ||
        is_carried(call))
        return r;
    r = may_clean(db, &may, err);
    return r < 0 || !may ? r : read_nonce(db, &call->lost, err);
}

int
batch_holding_token(struct store *store, int64_t execution_id, int64_t dead_after_us,
                    struct claim_token *ret_token, struct err *err)
{
    struct recover call = {.execution_id = execution_id,
                           .dead_after_us = dead_after_us};
    int r = store_read(store, holder_fn, &call, err);

    if (r > 0)
        *ret_token = call.lost.token;
    return r;
}

struct holder_look {
    int64_t request_id;
    struct batch_holder holder;
};

static int
look_fn(struct db *db, void *arg, struct err *err)
{
    struct holder_look *look = (struct holder_look *)arg;
    scoped(db_rows_end) struct db_rows rows = {0};
    int r = db_ask(db, store_sql(db, STMT_BATCH_HOLDER_OF_REQUEST), &rows, err,
                   p_i64(look->request_id));

    if (r == 0)
        r = db_next(&rows, err);
    if (r <= 0)
        return r;
    str_copy(look->holder.worker, sizeof(look->holder.worker), db_text(&rows, 0));
    look->holder.silence_us = db_is_null(&rows, 1) ? -1 : db_i64(&rows, 1);
    return 1;
}

int
batch_holder_of_request(struct store *store, int64_t request_id,
                        struct batch_holder *ret_holder, struct err *err)
{
    struct holder_look look = {.request_id = request_id};
    int r = store_read(store, look_fn, &look, err);

    if (r == 1)
        *ret_holder = look.holder;
    return r;
}
