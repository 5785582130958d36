/* An execution is closed together with its request, in the one transaction of
 * queue_close_lost. */
#include "batch/lost.h"

#include "base/err.h"
#include "batch/execution.h"
#include "batch/move.h"
#include "queue/finish.h"
#include "queue/hand.h"
#include "queue/hold.h"
#include "store/store.h"
#include "store/wake.h"

static int
close_execution(struct db *db, struct lost_request *lost, const char *reason, void *arg,
                struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    enum execution_state state;
    int64_t id;
    int r;

    r = db_ask(db, store_sql(db, STMT_BATCH_EXECUTION_OF_REQUEST), &rows, err,
               p_i64(lost->request_id));
    if (r == 0)
        r = db_next(&rows, err);
    if (r <= 0)
        return r; /* it had not begun, or is a task */
    id = db_i64(&rows, 0);
    if (!execution_state_parse(db_text(&rows, 1), &state))
        return err_set(err, ERR_SCHEMA, "the store says state %.40s, unknown here",
                       db_text(&rows, 1));
    db_rows_end(&rows);
    lost->execution_id = id;
    if (!execution_state_alive(state))
        return 0;
    r = batch_move_steps(db, id, EXECUTION_FAILED, reason, err);
    if (r == 0)
        r = batch_move_execution(db, id, EXECUTION_FAILED, reason, err);
    return r < 0 ? r : queue_hands_end_in(db, lost->request_id, err);
}

int
batch_close_lost_if(struct store *store, const char *worker, struct queue_gate gate,
                    const char *reason, struct arena *arena,
                    struct lost_request **ret_lost, size_t *ret_count, struct err *err)
{
    return queue_close_lost_if(store, worker, gate, reason, close_execution, NULL,
                               arena, ret_lost, ret_count, err);
}

static int
cancel_asked(struct db *db, int64_t request_id, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int r =
        db_ask(db, store_sql(db, STMT_QUEUE_FLAGS_GET), &rows, err, p_i64(request_id));

    if (r == 0)
        r = db_next(&rows, err);
    return r <= 0 ? r : db_i64(&rows, 1) == 1;
}

int
batch_close_one_in(struct db *db, struct lost_request *lost, const char *reason,
                   struct err *err)
{
    struct finish_order order = {
        .request_id = lost->request_id, .token = lost->token, .detail = reason};
    bool gone = false;
    int r = queue_hold_alone_in(db, lost->request_id, &lost->token, err);

    if (r <= 0)
        return r < 0 ? r : BATCH_LOST;
    r = cancel_asked(db, lost->request_id, err);
    if (r < 0)
        return r;
    lost->outcome = r ? OUTCOME_CANCELLED : OUTCOME_WORKER_LOST;
    r = close_execution(db, lost, reason, NULL, err);
    order.outcome = lost->outcome;
    order.execution_id = lost->execution_id;
    if (r == 0)
        r = queue_finish_in(db, &order, 1, &gone, err);
    /* It was held a moment ago, in this transaction. */
    if (r == 0 && gone)
        return err_set(err, ERR_DB_CONFLICT, "request %lld: its claim went away",
                       (long long)lost->request_id);
    return r < 0 ? r : BATCH_OK;
}

struct one {
    struct lost_request *lost;
    const char *reason;
};

static int
close_one_fn(struct db *db, void *arg, struct err *err)
{
    struct one *one = (struct one *)arg;

    return batch_close_one_in(db, one->lost, one->reason, err);
}

int
batch_close_one(struct store *store, struct lost_request *lost, const char *reason,
                struct err *err)
{
    struct one one = {.lost = lost, .reason = reason};
    int r = store_write(store, STORE_NORMAL, close_one_fn, &one, err);

    if (r == BATCH_OK)
        store_wake(store, WAKE_DONE | WAKE_READY);
    return r;
}

int
batch_close_lost(struct store *store, const char *worker, const char *reason,
                 struct arena *arena, struct lost_request **ret_lost, size_t *ret_count,
                 struct err *err)
{
    return queue_close_lost(store, worker, reason, close_execution, NULL, arena,
                            ret_lost, ret_count, err);
}
