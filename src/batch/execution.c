/*
 * A run's own record. Each function is one transaction that begins by holding the
 * claim: then no rescuer can close the request before our commit, and what we write
 * belongs to a claim that stood when it was written.
 */
#include "batch/execution.h"

#include "base/arena.h"
#include "base/err.h"
#include "batch/go_on.h"
#include "batch/lifecycle.h"
#include "batch/move.h"
#include "batch/stale.h"
#include "queue/finish.h"
#include "queue/hand.h"
#include "queue/hold.h"
#include "store/store.h"
#include "store/wake.h"

/* --- start --- */

struct start {
    const struct batch_start_order *order;
    struct arena *arena;
    struct batch_started started;
};

static int
add_instance(struct db *db, struct start *start, struct err *err)
{
    const struct batch_start_order *order = start->order;
    scoped(db_rows_end) struct db_rows rows = {0};
    int r;

    r = db_ask(db, store_sql(db, STMT_BATCH_INSTANCE_ADD), &rows, err,
               p_text(order->job), p_text(order->identity), p_text(order->params),
               p_i64(order->confirmed));
    if (r == 0)
        r = db_next(&rows, err);
    if (r < 0)
        return r;
    start->started.instance_id = db_i64(&rows, 0);
    start->started.instance_number = db_i64(&rows, 1);
    start->started.params = order->params;
    return 0;
}

static int
add_execution(struct db *db, struct start *start, struct err *err)
{
    const struct batch_start_order *order = start->order;
    struct batch_started *started = &start->started;
    const struct db_value params[] = {
        p_i64(started->instance_id),
        p_text(order->job),
        p_i64(order->request_id),
        p_i64(order->token.number),
        p_text(execution_state_name(EXECUTION_STARTING)),
        p_text(started->params),
        order->steps ? p_i64(order->steps) : p_null(),
        started->resumed ? p_i64(started->previous_execution_id) : p_null(),
    };
    int r;

    r = db_query_i64(db, store_sql(db, STMT_BATCH_EXECUTION_ADD), params,
                     array_len(params), &started->execution_id, err);
    if (r < 0)
        return r;
    return batch_move_execution(db, started->execution_id, EXECUTION_STARTED, NULL,
                                err);
}

/* Somebody in the way: 1, 0 nobody, < 0. */
static int
find_alive(struct db *db, struct start *start, enum stmt stmt, struct db_value of,
           struct err *err)
{
    return db_query_i64(db, store_sql(db, stmt), &of, 1,
                        &start->started.alive_execution_id, err);
}

/* Which instance, and who is in the way: 1 somebody is, 0 nobody. */
static int
look_round(struct db *db, struct start *start, struct err *err)
{
    const struct batch_start_order *order = start->order;
    struct batch_started *started = &start->started;
    int r = 0;

    *started = (struct batch_started){0};
    if (order->one_alive)
        r = find_alive(db, start, STMT_BATCH_ALIVE_OF_JOB, p_text(order->job), err);
    if (r == 0)
        r = batch_go_on(db, order, start->arena, started, err);
    if (r == 0 && started->instance_id && !started->resumed)
        r = find_alive(db, start, STMT_BATCH_ALIVE_OF_INSTANCE,
                       p_i64(started->instance_id), err);
    return r;
}

/* What an earlier try of this same call made, whose answer was lost: 1, 0, < 0. Behind
 * the lock of the job, where that try has ended. */
static int
find_mine(struct db *db, struct start *start, struct err *err)
{
    const struct batch_start_order *order = start->order;
    struct batch_started *started = &start->started;
    scoped(db_rows_end) struct db_rows rows = {0};
    int r = db_ask(db, store_sql(db, STMT_BATCH_EXECUTION_MINE), &rows, err,
                   p_i64(order->request_id), p_i64(order->token.number));

    if (r == 0)
        r = db_next(&rows, err);
    if (r <= 0)
        return r;
    *started = (struct batch_started){
        .execution_id = db_i64(&rows, 0),
        .instance_id = db_i64(&rows, 1),
        .instance_number = db_i64(&rows, 2),
        .params = arena_strndup(start->arena, db_text(&rows, 3), db_text_len(&rows, 3)),
        .resumed = !db_is_null(&rows, 4),
        .previous_execution_id = db_is_null(&rows, 4) ? 0 : db_i64(&rows, 4),
    };
    return 1;
}

static int
start_fn(struct db *db, void *arg, struct err *err)
{
    struct start *start = (struct start *)arg;
    const struct batch_start_order *order = start->order;
    int r;

    r = queue_hold_in(db, order->request_id, &order->token, err);
    if (r <= 0)
        return r < 0 ? r : BATCH_LOST;
    r = batch_lock_job(db, order->job, err);
    if (r == 0)
        r = find_mine(db, start, err);
    if (r != 0)
        return r < 0 ? r : BATCH_OK;
    r = look_round(db, start, err);
    if (r > 0) { /* what nobody carries any more is in nobody's way */
        r = batch_clean_in(db, order->job, err);
        r = r > 0 ? look_round(db, start, err) : r < 0 ? r : BATCH_ALIVE;
    }
    if (r != 0)
        return r < 0 ? r : BATCH_ALIVE;
    if (start->started.done_request_id)
        return BATCH_DONE;
    if (!start->started.resumed)
        r = add_instance(db, start, err);
    if (r == 0)
        r = add_execution(db, start, err);
    return r < 0 ? r : BATCH_OK;
}

int
batch_start(struct store *store, const struct batch_start_order *order,
            struct arena *arena, struct batch_started *ret_started, struct err *err)
{
    struct start start = {.order = order, .arena = arena};
    int r = store_write(store, STORE_NORMAL, start_fn, &start, err);

    if (r >= 0) {
        *ret_started = start.started;
        if (r == BATCH_OK)
            ret_started->params = arena_strdup(arena, start.started.params);
    }
    return r;
}

/* --- steps --- */

struct step_start {
    const struct batch_step_order *order;
    struct arena *arena;
    struct batch_step_started started;
};

static const char *
text_of(const struct db_rows *rows, int column, struct arena *arena)
{
    if (db_is_null(rows, column))
        return NULL;
    return arena_strndup(arena, db_text(rows, column), db_text_len(rows, column));
}

/* What the executions before of this instance left of the step. */
static int
look_before(struct db *db, struct step_start *start, struct err *err)
{
    const struct batch_step_order *order = start->order;
    struct batch_step_started *started = &start->started;
    scoped(db_rows_end) struct db_rows rows = {0};
    enum execution_state state;
    int r;

    r = db_ask(db, store_sql(db, STMT_BATCH_STEP_BEFORE), &rows, err,
               p_i64(order->execution_id), p_text(order->name));
    if (r == 0)
        r = db_next(&rows, err);
    if (r <= 0)
        return r;
    if (!execution_state_parse(db_text(&rows, 0), &state))
        return err_set(err, ERR_SCHEMA, "the store says state %.40s, unknown here",
                       db_text(&rows, 0));
    if (state == EXECUTION_COMPLETED && order->again)
        return 0;
    started->completed = state == EXECUTION_COMPLETED;
    started->previous_token = db_i64(&rows, 1);
    started->point = (struct step_point){
        .counts = {.read = db_i64(&rows, 2),
                   .written = db_i64(&rows, 3),
                   .filtered = db_i64(&rows, 4),
                   .skipped = db_i64(&rows, 5),
                   .commits = db_i64(&rows, 6),
                   .rollbacks = db_i64(&rows, 7)},
        .chunk = db_i64(&rows, 8),
        .position = text_of(&rows, 9, start->arena),
        .writer_state = text_of(&rows, 10, start->arena),
    };
    started->resumed = !started->completed && started->point.chunk > 0;
    return 0;
}

static int
add_step(struct db *db, struct step_start *start, struct err *err)
{
    const struct batch_step_order *order = start->order;
    struct batch_step_started *started = &start->started;
    const struct step_point *point = &started->point;
    const struct db_value params[] = {
        p_i64(order->execution_id),
        p_text(order->name),
        p_i64(order->ordinal),
        p_text(execution_state_name(EXECUTION_STARTING)),
        p_opt_text(order->effect),
        p_i64(point->counts.read),
        p_i64(point->counts.written),
        p_i64(point->counts.filtered),
        p_i64(point->counts.skipped),
        p_i64(point->counts.commits),
        p_i64(point->counts.rollbacks),
        p_i64(point->chunk),
        p_opt_text(point->position),
        p_opt_text(point->writer_state),
        p_opt_text(order->kind),
    };
    int r = db_query_i64(db, store_sql(db, STMT_BATCH_STEP_ADD), params,
                         array_len(params), &started->step_id, err);

    return r < 0 ? r
                 : batch_move_step(db, started->step_id, EXECUTION_STARTED, NULL, err);
}

/* What an earlier try of this same call made: 1, 0, < 0. Its row refers to the
 * execution's, so whoever gets that to himself looks when that try has ended. */
static int
find_my_step(struct db *db, struct step_start *start, struct err *err)
{
    const struct batch_step_order *order = start->order;
    const struct db_value params[] = {p_i64(order->execution_id), p_text(order->name)};
    int r = db_run(db, store_sql(db, STMT_BATCH_STATE_LOCK), err,
                   p_i64(order->execution_id));

    return r < 0 ? r
                 : db_query_i64(db, store_sql(db, STMT_BATCH_STEP_MINE), params,
                                array_len(params), &start->started.step_id, err);
}

static int
step_start_fn(struct db *db, void *arg, struct err *err)
{
    struct step_start *start = (struct step_start *)arg;
    const struct batch_step_order *order = start->order;
    int r = queue_hold_in(db, order->request_id, &order->token, err);

    start->started = (struct batch_step_started){0};
    if (r <= 0)
        return r < 0 ? r : BATCH_LOST;
    r = look_before(db, start, err);
    if (r < 0 || start->started.completed)
        return r < 0 ? r : BATCH_OK;
    r = find_my_step(db, start, err);
    if (r == 0)
        r = add_step(db, start, err);
    return r < 0 ? r : BATCH_OK;
}

int
batch_step_start(struct store *store, const struct batch_step_order *order,
                 struct arena *arena, struct batch_step_started *ret_started,
                 struct err *err)
{
    struct step_start start = {.order = order, .arena = arena};
    int r = store_write(store, STORE_NORMAL, step_start_fn, &start, err);

    if (r == BATCH_OK)
        *ret_started = start.started;
    return r;
}

struct step {
    int64_t execution_id;
    int64_t request_id;
    struct claim_token token;
    int64_t step_id;
    enum execution_state state;
    const char *message;
};

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
    if (r == 0 && id)
        r = queue_hands_end_in(db, finish->order->request_id, err);
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
