/* Reading an execution with its steps, all of one moment. */
#include "base/arena.h"
#include "base/err.h"
#include "batch/execution.h"
#include "store/store.h"

#include <string.h>

#define GROW      32
#define BEGUN_MAX 1000

struct get {
    int64_t request_id; /* or 0: by execution_id */
    int64_t execution_id;
    struct arena *arena;
    struct execution execution;
};

static const char *
text(const struct db_rows *rows, int column, struct arena *arena)
{
    if (db_is_null(rows, column))
        return NULL;
    return arena_strndup(arena, db_text(rows, column), db_text_len(rows, column));
}

static int
read_state(const struct db_rows *rows, int column, enum execution_state *ret_state,
           struct err *err)
{
    if (!execution_state_parse(db_text(rows, column), ret_state))
        return err_set(err, ERR_SCHEMA, "the store says state %.40s, unknown here",
                       db_text(rows, column));
    return 0;
}

static int
read_execution(const struct db_rows *rows, struct arena *arena,
               struct execution *ret_execution, struct err *err)
{
    *ret_execution = (struct execution){
        .id = db_i64(rows, 0),
        .instance_id = db_i64(rows, 1),
        .instance_number = db_i64(rows, 2),
        .job = text(rows, 3, arena),
        .request_id = db_i64(rows, 4),
        .token = db_i64(rows, 5),
        .params = text(rows, 7, arena),
        .started_at_us = db_i64(rows, 8),
        .ended_at_us = db_i64(rows, 9),
        .last_updated_us = db_i64(rows, 10),
        .message = text(rows, 11, arena),
        .planned = db_is_null(rows, 12) ? 0 : db_i64(rows, 12),
        .resumed_from = db_is_null(rows, 13) ? 0 : db_i64(rows, 13),
    };
    return read_state(rows, 6, &ret_execution->state, err);
}

static int
read_step(const struct db_rows *rows, struct arena *arena,
          struct step_execution *ret_step, struct err *err)
{
    *ret_step = (struct step_execution){
        .id = db_i64(rows, 0),
        .name = text(rows, 1, arena),
        .ordinal = (int)db_i64(rows, 2),
        .effect = text(rows, 4, arena),
        .point =
            {
                .counts =
                    {
                        .read = db_i64(rows, 5),
                        .written = db_i64(rows, 6),
                        .filtered = db_i64(rows, 7),
                        .skipped = db_i64(rows, 8),
                        .commits = db_i64(rows, 9),
                        .rollbacks = db_i64(rows, 10),
                    },
                .chunk = db_i64(rows, 11),
                .position = text(rows, 12, arena),
                .writer_state = text(rows, 13, arena),
            },
        .started_at_us = db_i64(rows, 14),
        .ended_at_us = db_i64(rows, 15),
        .last_updated_us = db_i64(rows, 16),
        .message = text(rows, 17, arena),
        .of_execution = db_i64(rows, 18),
        .of_token = db_i64(rows, 19),
    };
    return read_state(rows, 3, &ret_step->state, err);
}

static int
read_steps(struct db *db, struct get *get, struct err *err)
{
    struct execution *execution = &get->execution;
    scoped(db_rows_end) struct db_rows rows = {0};
    int r;

    r = db_ask(db, store_sql(db, STMT_BATCH_STEPS_GET), &rows, err,
               p_i64(get->execution_id));
    if (r < 0)
        return r;
    while ((r = db_next(&rows, err)) > 0) {
        if (execution->n_steps % GROW == 0) {
            struct step_execution *more = arena_array(get->arena, struct step_execution,
                                                      execution->n_steps + GROW);

            if (execution->n_steps)
                memcpy(more, execution->steps, execution->n_steps * sizeof(*more));
            execution->steps = more;
        }
        r = read_step(&rows, get->arena, &execution->steps[execution->n_steps++], err);
        if (r < 0)
            return r;
    }
    return r;
}

/* The newest execution of the request, if the request is what was asked for. */
static int
find_id(struct db *db, struct get *get, struct err *err)
{
    const struct db_value id = p_i64(get->request_id);
    int r;

    if (!get->request_id)
        return 0;
    r = db_query_i64(db, store_sql(db, STMT_BATCH_EXECUTION_OF_REQUEST), &id, 1,
                     &get->execution_id, err);
    if (r == 0)
        return err_set(err, ERR_NOT_FOUND, "request %lld has no execution",
                       (long long)get->request_id);
    return r < 0 ? r : 0;
}

static int
get_fn(struct db *db, void *arg, struct err *err)
{
    struct get *get = (struct get *)arg;
    scoped(db_tx_end) struct db_tx tx = {0};
    scoped(db_rows_end) struct db_rows rows = {0};
    int r;

    get->execution = (struct execution){0};
    r = db_begin(db, DB_READ, &tx, err);
    if (r == 0)
        r = find_id(db, get, err);
    if (r == 0)
        r = db_ask(db, store_sql(db, STMT_BATCH_EXECUTION_GET), &rows, err,
                   p_i64(get->execution_id));
    if (r == 0)
        r = db_next(&rows, err);
    if (r < 0)
        return r;
    if (r == 0)
        return err_set(err, ERR_NOT_FOUND, "there is no execution %lld",
                       (long long)get->execution_id);
    r = read_execution(&rows, get->arena, &get->execution, err);
    if (r < 0)
        return r;
    db_rows_end(&rows);
    return read_steps(db, get, err);
}

int
batch_execution_get(struct store *store, int64_t execution_id, struct arena *arena,
                    struct execution *ret_execution, struct err *err)
{
    struct get get = {.execution_id = execution_id, .arena = arena};
    int r = store_read(store, get_fn, &get, err);

    if (r == 0)
        *ret_execution = get.execution;
    return r;
}

int
batch_execution_of_request(struct store *store, int64_t request_id, struct arena *arena,
                           struct execution *ret_execution, struct err *err)
{
    struct get get = {.request_id = request_id, .arena = arena};
    int r = store_read(store, get_fn, &get, err);

    if (r == 0)
        *ret_execution = get.execution;
    return r;
}

/* --- what was begun before --- */

struct begun {
    int64_t execution_id;
    struct arena *arena;
    struct batch_step_begun *steps;
    size_t count;
};

static int
begun_fn(struct db *db, void *arg, struct err *err)
{
    struct begun *begun = arg;
    scoped(db_rows_end) struct db_rows rows = {0};
    int r = db_ask(db, store_sql(db, STMT_BATCH_STEPS_BEGUN), &rows, err,
                   p_i64(begun->execution_id));

    begun->count = 0;
    if (r < 0)
        return r;
    while (begun->count < BEGUN_MAX && (r = db_next(&rows, err)) > 0)
        begun->steps[begun->count++] = (struct batch_step_begun){
            .name = text(&rows, 0, begun->arena),
            .completed = strcmp(db_text(&rows, 1), "COMPLETED") == 0,
            .kind = text(&rows, 2, begun->arena),
        };
    return r < 0 ? r : 0;
}

int
batch_steps_begun(struct store *store, int64_t execution_id, struct arena *arena,
                  struct batch_step_begun **ret_steps, size_t *ret_count,
                  struct err *err)
{
    struct begun begun = {.execution_id = execution_id, .arena = arena};
    int r;

    begun.steps = arena_array(arena, struct batch_step_begun, BEGUN_MAX);
    r = store_read(store, begun_fn, &begun, err);
    if (r < 0)
        return r;
    *ret_steps = begun.steps;
    *ret_count = begun.count;
    return 0;
}
