/*
 * Progress and flags meet in one call: a run that reports learns in the same
 * transaction whether it should go on.
 */
#include "queue/progress.h"

#include "base/err.h"
#include "queue/hold.h"
#include "store/store.h"
#include "store/wake.h"

#include <assert.h>

struct call {
    int64_t request_id;
    struct claim_token token;
    int64_t done;
    int64_t total;
    const char *message;
    struct queue_flags flags;
};

static int
read_flags(struct db *db, int64_t request_id, struct queue_flags *ret, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int r;

    *ret = (struct queue_flags){0};
    r = db_ask(db, store_sql(db, STMT_QUEUE_FLAGS_GET), &rows, err, p_i64(request_id));
    if (r == 0)
        r = db_next(&rows, err);
    if (r <= 0)
        return r;
    ret->stop = db_i64(&rows, 0) != 0;
    ret->cancel = db_i64(&rows, 1) != 0;
    return 0;
}

static int
progress_fn(struct db *db, void *arg, struct err *err)
{
    struct call *call = (struct call *)arg;
    int r = queue_hold_in(db, call->request_id, &call->token, err);

    if (r <= 0)
        return r < 0 ? r : QUEUE_PROGRESS_LOST;
    r = db_run(db, store_sql(db, STMT_QUEUE_PROGRESS), err, p_i64(call->request_id),
               p_i64(call->done), call->total >= 0 ? p_i64(call->total) : p_null(),
               p_opt_text(call->message));
    return r < 0 ? r : read_flags(db, call->request_id, &call->flags, err);
}

int
queue_progress(struct store *store, int64_t request_id, struct claim_token token,
               int64_t done, int64_t total, const char *message,
               struct queue_flags *ret_flags, struct err *err)
{
    struct call call = {.request_id = request_id,
                        .token = token,
                        .done = done,
                        .total = total,
                        .message = message};
    int r = store_write(store, STORE_NORMAL, progress_fn, &call, err);

    if (r != QUEUE_PROGRESS_OK)
        return r;
    *ret_flags = call.flags;
    store_wake(store, WAKE_DONE);
    return QUEUE_PROGRESS_OK;
}

static int
look_fn(struct db *db, void *arg, struct err *err)
{
    struct call *call = (struct call *)arg;
    const struct db_value params[] = {
        p_i64(call->request_id), p_i64(call->token.number), p_text(call->token.nonce)};
    int64_t held = 0;
    int r;

    r = db_query_i64(db, store_sql(db, STMT_QUEUE_HOLDS), params, array_len(params),
                     &held, err);
    if (r < 0 || !held)
        return r < 0 ? r : QUEUE_PROGRESS_LOST;
    return read_flags(db, call->request_id, &call->flags, err);
}

int
queue_look_flags(struct store *store, int64_t request_id, struct claim_token token,
                 struct queue_flags *ret_flags, struct err *err)
{
    struct call call = {.request_id = request_id, .token = token};
    int r = store_read(store, look_fn, &call, err);

    if (r == QUEUE_PROGRESS_OK)
        *ret_flags = call.flags;
    return r;
}

struct of_worker {
    const char *worker;
    size_t max;
    struct queue_flagged *flagged;
    size_t count;
};

static int
of_worker_fn(struct db *db, void *arg, struct err *err)
{
    struct of_worker *call = (struct of_worker *)arg;
    scoped(db_rows_end) struct db_rows rows = {0};
    int r;

    call->count = 0;
    r = db_ask(db, store_sql(db, STMT_QUEUE_FLAGS_OF_WORKER), &rows, err,
               p_text(call->worker), p_i64((int64_t)call->max));
    if (r < 0)
        return r;
    while ((r = db_next(&rows, err)) > 0) {
        assert(call->count < call->max);
        call->flagged[call->count++] = (struct queue_flagged){
            .request_id = db_i64(&rows, 0),
            .flags = {.stop = db_i64(&rows, 1) != 0, .cancel = db_i64(&rows, 2) != 0},
        };
    }
    return r;
}

int
queue_flags_of_worker(struct store *store, const char *worker, size_t max,
                      struct queue_flagged *ret_flagged, size_t *ret_count,
                      struct err *err)
{
    struct of_worker call = {.worker = worker, .max = max, .flagged = ret_flagged};
    int r = store_read(store, of_worker_fn, &call, err);

    if (r == 0)
        *ret_count = call.count;
    return r;
}
