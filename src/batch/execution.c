/*
 * A run's own record. Each function is one transaction that begins by holding the
 * claim: then no rescuer can close the request before our commit, and what we write
 * belongs to a claim that stood when it was written.
 */
#include "batch/execution.h"

#include "base/arena.h"
#include "base/err.h"
#include "batch/lifecycle.h"
#include "batch/move.h"
#include "queue/finish.h"
#include "queue/hold.h"
#include "store/store.h"
#include "store/wake.h"

/* --- start --- */

struct start {
    const struct batch_start_order *order;
    struct batch_started started;
};

/* One at a time for a job: numbers of instances, and who is alive. */
static int
lock_job(struct db *db, const char *job, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};

    if (db_kind(db) != DB_PG)
        return 0;
    return db_run(db, store_sql(db, STMT_BATCH_JOB_LOCK), err,
                  p_text(arena_printf(&arena, "batch:%s", job)));
}

static int
add_instance(struct db *db, struct start *start, struct err *err)
{
    const struct batch_start_order *order = start->order;
    scoped(db_rows_end) struct db_rows rows = {0};
    int r;

    r = db_ask(db, store_sql(db, STMT_BATCH_INSTANCE_ADD), &rows, err,
               p_text(order->job), p_text(order->identity), p_text(order->params));
    if (r == 0)
        r = db_next(&rows, err);
    if (r < 0)
        return r;
    start->started.instance_id = db_i64(&rows, 0);
    start->started.instance_number = db_i64(&rows, 1);
    return 0;
}

static int
add_execution(struct db *db, struct start *start, struct err *err)
{
    const struct batch_start_order *order = start->order;
    const struct db_value params[] = {
        p_i64(start->started.instance_id),
        p_text(order->job),
        p_i64(order->request_id),
        p_i64(order->token.number),
        p_text(execution_state_name(EXECUTION_STARTING)),
        p_text(order->params),
        order->steps ? p_i64(order->steps) : p_null(),
    };
    int r;

    r = db_query_i64(db, store_sql(db, STMT_BATCH_EXECUTION_ADD), params,
                     array_len(params), &start->started.execution_id, err);
    if (r < 0)
        return r;
    return batch_move_execution(db, start->started.execution_id, EXECUTION_STARTED,
                                NULL, err);
}

static int
start_fn(struct db *db, void *arg, struct err *err)
{
    struct start *start = (struct start *)arg;
    const struct batch_start_order *order = start->order;
    const struct db_value job = p_text(order->job);
    int r;

    start->started = (struct batch_started){0};
    r = queue_hold_in(db, order->request_id, &order->token, err);
    if (r <= 0)
        return r < 0 ? r : BATCH_LOST;
    r = lock_job(db, order->job, err);
    if (r == 0 && order->one_alive)
        r = db_query_i64(db, store_sql(db, STMT_BATCH_ALIVE_OF_JOB), &job, 1,
                         &start->started.alive_execution_id, err);
    if (r != 0)
        return r < 0 ? r : BATCH_ALIVE;
    r = add_instance(db, start, err);
    if (r == 0)
        r = add_execution(db, start, err);
    return r < 0 ? r : BATCH_OK;
}

int
batch_start(struct store *store, const struct batch_start_order *order,
            struct batch_started *ret_started, struct err *err)
{
    struct start start = {.order = order};
    int r = store_write(store, STORE_NORMAL, start_fn, &start, err);

    if (r >= 0)
        *ret_started = start.started;
    return r;
}

/* --- steps --- */

struct step {
    int64_t execution_id;
    int64_t request_id;
    struct claim_token token;
    const char *name;
    int ordinal;
    const char *effect;
    int64_t step_id;
    enum execution_state state;
    const char *message;
};

static int
step_start_fn(struct db *db, void *arg, struct err *err)
{
    struct step *step = (struct step *)arg;
    int r = queue_hold_in(db, step->request_id, &step->token, err);
    const struct db_value params[] = {
        p_i64(step->execution_id), p_text(step->name),
        p_i64(step->ordinal),      p_text(execution_state_name(EXECUTION_STARTING)),
        p_opt_text(step->effect),
    };

    if (r <= 0)
        return r < 0 ? r : BATCH_LOST;
    r = db_query_i64(db, store_sql(db, STMT_BATCH_STEP_ADD), params, array_len(params),
                     &step->step_id, err);
    if (r >= 0)
        r = batch_move_step(db, step->step_id, EXECUTION_STARTED, NULL, err);
    return r < 0 ? r : BATCH_OK;
}

int
batch_step_start(struct store *store, int64_t execution_id, int64_t request_id,
                 struct claim_token token, const char *name, int ordinal,
                 const char *effect, int64_t *ret_step_id, struct err *err)
{
    struct step step = {
        .execution_id = execution_id,
        .request_id = request_id,
        .token = token,
        .name = name,
        .ordinal = ordinal,
        .effect = effect,
    };
    int r = store_write(store, STORE_NORMAL, step_start_fn, &step, err);

    if (r == BATCH_OK)
        *ret_step_id = step.step_id;
    return r;
}

static int
step_end_fn(struct db *db, void *arg, struct err *err)
{
    const struct step *step = (const struct step *)arg;
    int r = queue_hold_in(db, step->request_id, &step->token, err);

    if (r <= 0)
        return r < 0 ? r : BATCH_LOST;
    r = batch_move_step(db, step->step_id, step->state, step->message, err);
    return r < 0 ? r : BATCH_OK;
}

int
batch_step_end(struct store *store, int64_t request_id, struct claim_token token,
               int64_t step_id, enum execution_state state, const char *message,
               struct err *err)
{
    struct step step = {
        .request_id = request_id,
        .token = token,
        .step_id = step_id,
        .state = state,
        .message = message,
    };

    return store_write(store, STORE_NORMAL, step_end_fn, &step, err);
}

/* --- stop, finish --- */

static int
stopping_fn(struct db *db, void *arg, struct err *err)
{
    const struct step *step = (const struct step *)arg;
    int r = queue_hold_in(db, step->request_id, &step->token, err);

    if (r <= 0)
        return r < 0 ? r : BATCH_LOST;
    r = batch_move_execution(db, step->execution_id, EXECUTION_STOPPING, NULL, err);
    if (r == 0)
        r = batch_move_steps(db, step->execution_id, EXECUTION_STOPPING, NULL, err);
    return r < 0 ? r : BATCH_OK;
}

int
batch_stopping(struct store *store, int64_t request_id, struct claim_token token,
               int64_t execution_id, struct err *err)
{
    struct step step = {
        .request_id = request_id, .token = token, .execution_id = execution_id};
    int r = store_write(store, STORE_NORMAL, stopping_fn, &step, err);

    if (r == BATCH_OK)
        store_wake(store, WAKE_DONE);
    return r;
}

struct finish {
    int64_t execution_id;
    enum execution_state state;
    const char *message;
    const struct finish_order *order;
    bool entered; /* something follows */
};

/* The execution that was begun for this request, though its beginner may not know: the
 * answer to that commit can have been lost. 0: none. */
static int
find_execution(struct db *db, const struct finish *finish, int64_t *ret_id,
               struct err *err)
{
    const struct db_value request = p_i64(finish->order->request_id);
    int r;

    *ret_id = finish->execution_id;
    if (*ret_id)
        return 0;
    r = db_query_i64(db, store_sql(db, STMT_BATCH_EXECUTION_OF_REQUEST), &request, 1,
                     ret_id, err);
    return r < 0 ? r : 0;
}

static int
finish_fn(struct db *db, void *arg, struct err *err)
{
    struct finish *finish = (struct finish *)arg;
    bool lost = false;
    int64_t id = 0;
    int r = queue_finish_in(db, finish->order, 1, &lost, err);

    if (r < 0 || lost)
        return r < 0 ? r : BATCH_LOST;
    finish->entered = r > 0;
    /* Only now: who still commits a beginning holds the claim that we took. */
    r = find_execution(db, finish, &id, err);
    if (r == 0 && id)
        r = batch_move_steps(db, id, finish->state, finish->message, err);
    if (r == 0 && id)
        r = batch_move_execution(db, id, finish->state, finish->message, err);
    return r < 0 ? r : BATCH_OK;
}

int
batch_finish(struct store *store, int64_t execution_id, enum execution_state state,
             const char *message, const struct finish_order *finish, struct err *err)
{
    struct finish_order order = *finish;
    struct finish call = {
        .execution_id = execution_id,
        .state = state,
        .message = message,
        .order = &order,
    };
    int r;

    order.execution_id = execution_id;
    r = store_write(store, STORE_NORMAL, finish_fn, &call, err);
    if (r == -ERR_COMMIT_UNKNOWN) {
        /* Again: what stands already as ordered is found to be ours. */
        err_clear(err);
        r = store_write(store, STORE_NORMAL, finish_fn, &call, err);
        call.entered = true; /* perhaps, the first time */
    }
    if (r == BATCH_OK)
        store_wake(store, WAKE_DONE | (call.entered ? WAKE_READY : 0u));
    return r;
}
