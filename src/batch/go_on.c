/*
 * Go on or start anew. An instance is gone on with when its last execution is STOPPED
 * or FAILED. These rule that out, whoever asks: its last execution was
 * cancelled, so somebody did not want its work; it holds something that was confirmed
 * for one request only; and, where nobody names it, a parameter that is given now and
 * differs from what its first run had. What is not given does not differ: it is the
 * first run's. Where a job has one execution at a time, an instance is superseded by
 * the next one.
 */
#include "batch/go_on.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "store/store.h"

/* An instance with its last execution. */
struct stand {
    int64_t number;
    const char *params;
    bool confirmed;
    bool last; /* of its job */
    int64_t execution_id;
    int64_t request_id;
    enum execution_state state;
    bool cancelled;
};

/* 1, or 0 when the instance has none. */
static int
read_stand(struct db *db, int64_t instance_id, struct arena *arena, struct stand *ret,
           struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int r;

    r = db_ask(db, store_sql(db, STMT_BATCH_INSTANCE_STANDS), &rows, err,
               p_i64(instance_id));
    if (r == 0)
        r = db_next(&rows, err);
    if (r <= 0)
        return r;
    *ret = (struct stand){
        .number = db_i64(&rows, 0),
        .params = arena_strndup(arena, db_text(&rows, 1), db_text_len(&rows, 1)),
        .confirmed = db_i64(&rows, 2) != 0,
        .last = db_i64(&rows, 3) != 0,
        .execution_id = db_i64(&rows, 4),
        .request_id = db_i64(&rows, 5),
        .cancelled = db_i64(&rows, 7) != 0,
    };
    if (!execution_state_parse(db_text(&rows, 6), &ret->state))
        return err_set(err, ERR_SCHEMA, "the store says state %.40s, unknown here",
                       db_text(&rows, 6));
    return 1;
}

static bool
is_open(const struct stand *stand)
{
    return stand->state != EXECUTION_COMPLETED && !stand->cancelled &&
           !stand->confirmed;
}

/* Is each parameter that is given the same as the first run's? 1, 0, or < 0. */
static int
fits(const char *given_text, const char *params_text, struct err *err)
{
    scoped(json_drop) json_t *given = NULL;
    scoped(json_drop) json_t *params = NULL;
    const char *name;
    json_t *value;
    int r;

    if (!given_text)
        return 1;
    r = json_parse(given_text, strlen(given_text), JSON_DEPTH_MAX, &given, err);
    if (r == 0)
        r = json_parse(params_text, strlen(params_text), JSON_DEPTH_MAX, &params, err);
    if (r < 0)
        return r;
    json_object_foreach(given, name, value)
    {
        if (!json_equal(value, json_object_get(params, name)))
            return 0;
    }
    return 1;
}

/* Which one comes into question; 0 = none. */
static int
find_instance(struct db *db, const struct batch_start_order *order, int64_t *ret_id,
              struct err *err)
{
    struct db_value by = p_i64(order->of);
    enum stmt stmt = STMT_BATCH_LAST_OF_REQUEST;
    int r;

    *ret_id = 0;
    switch (order->go_on) {
    case BATCH_ANEW:
        return 0;
    case BATCH_GO_ON:
        by = p_text(order->job);
        stmt = STMT_BATCH_LAST_OF_JOB;
        break;
    case BATCH_GO_ON_OF:
        break;
    }
    r = db_query_i64(db, store_sql(db, stmt), &by, 1, ret_id, err);
    return r < 0 ? r : 0;
}

int
batch_go_on(struct db *db, const struct batch_start_order *order, struct arena *arena,
            struct batch_started *started, struct err *err)
{
    struct stand stand = {0};
    int64_t instance_id = 0;
    int r = find_instance(db, order, &instance_id, err);

    if (r < 0 || !instance_id)
        return r;
    r = read_stand(db, instance_id, arena, &stand, err);
    if (r > 0 && order->go_on == BATCH_GO_ON_OF && stand.state == EXECUTION_COMPLETED)
        started->done_request_id = stand.request_id;
    if (r <= 0 || !is_open(&stand) || (order->one_alive && !stand.last))
        return r < 0 ? r : 0;
    if (order->go_on == BATCH_GO_ON) {
        r = fits(order->given, stand.params, err);
        if (r <= 0)
            return r;
    }
    started->instance_id = instance_id;
    started->instance_number = stand.number;
    if (execution_state_alive(stand.state))
        return 0;
    started->resumed = true;
    started->previous_execution_id = stand.execution_id;
    started->params = stand.params;
    return 0;
}

struct look {
    int64_t asked;
    struct batch_stand stand;
};

static int
look_fn(struct db *db, void *arg, struct err *err)
{
    struct look *look = (struct look *)arg;
    struct batch_start_order order = {.go_on = BATCH_GO_ON_OF, .of = look->asked};
    scoped(arena_release) struct arena arena = {0};
    scoped(db_tx_end) struct db_tx tx = {0};
    struct stand stand = {0};
    int64_t instance_id = 0;
    int r = db_begin(db, DB_READ, &tx, err);

    look->stand = (struct batch_stand){0};
    if (r == 0)
        r = find_instance(db, &order, &instance_id, err);
    if (r < 0 || !instance_id)
        return r;
    r = read_stand(db, instance_id, &arena, &stand, err);
    if (r <= 0)
        return r;
    look->stand = (struct batch_stand){
        .instance_id = instance_id,
        .execution_id = stand.execution_id,
        .request_id = stand.request_id,
        .state = stand.state,
        .can_go_on = !execution_state_alive(stand.state) && is_open(&stand),
    };
    return 0;
}

int
batch_stand_of_request(struct store *store, int64_t request_id,
                       struct batch_stand *ret_stand, struct err *err)
{
    struct look look = {.asked = request_id};
    int r = store_read(store, look_fn, &look, err);

    if (r == 0)
        *ret_stand = look.stand;
    return r;
}
