/* The state that stands there is read under a lock, then changed from exactly that. */
#include "batch/move.h"

#include "base/arena.h"
#include "base/err.h"
#include "batch/lifecycle.h"
#include "store/store.h"

#define STEPS_MAX 1000

/* One kind of row that has a state. */
struct kind {
    const char *word;
    enum stmt lock;
    enum stmt move;
};

static const struct kind execution_kind = {"execution", STMT_BATCH_STATE_LOCK,
                                           STMT_BATCH_EXECUTION_MOVE};
static const struct kind step_kind = {"step execution", STMT_BATCH_STEP_STATE_LOCK,
                                      STMT_BATCH_STEP_MOVE};

static int
read_state(struct db *db, const struct kind *kind, int64_t id,
           enum execution_state *ret_state, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int r;

    r = db_ask(db, store_sql(db, kind->lock), &rows, err, p_i64(id));
    if (r == 0)
        r = db_next(&rows, err);
    if (r < 0)
        return r;
    if (r == 0 || !execution_state_parse(db_text(&rows, 0), ret_state))
        return err_set(err, ERR_INTERNAL, "there is no %s %lld", kind->word,
                       (long long)id);
    return 0;
}

static int
move_once(struct db *db, const struct kind *kind, int64_t id, enum execution_state from,
          enum execution_state to, const char *message, struct err *err)
{
    if (!execution_may_move(from, to))
        return err_set(err, ERR_INTERNAL, "%s %lld: no way from %s to %s", kind->word,
                       (long long)id, execution_state_name(from),
                       execution_state_name(to));
    return db_run(db, store_sql(db, kind->move), err, p_text(execution_state_name(to)),
                  p_i64(!execution_state_alive(to)), p_opt_text(message), p_i64(id),
                  p_text(execution_state_name(from)));
}

static int
move(struct db *db, const struct kind *kind, int64_t id, enum execution_state to,
     const char *message, struct err *err)
{
    enum execution_state from;
    int r = read_state(db, kind, id, &from, err);

    if (r < 0 || from == to)
        return r;
    if (from == EXECUTION_STARTED && to == EXECUTION_STOPPED) {
        r = move_once(db, kind, id, from, EXECUTION_STOPPING, NULL, err);
        from = EXECUTION_STOPPING;
    }
    return r < 0 ? r : move_once(db, kind, id, from, to, message, err);
}

int
batch_move_execution(struct db *db, int64_t execution_id, enum execution_state to,
                     const char *message, struct err *err)
{
    return move(db, &execution_kind, execution_id, to, message, err);
}

int
batch_move_step(struct db *db, int64_t step_id, enum execution_state to,
                const char *message, struct err *err)
{
    return move(db, &step_kind, step_id, to, message, err);
}

int
batch_move_steps(struct db *db, int64_t execution_id, enum execution_state to,
                 const char *message, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    scoped(db_rows_end) struct db_rows rows = {0};
    int64_t *ids = arena_array(&arena, int64_t, STEPS_MAX);
    size_t n = 0;
    int r;

    r = db_ask(db, store_sql(db, STMT_BATCH_STEPS_ALIVE), &rows, err,
               p_i64(execution_id));
    if (r < 0)
        return r;
    while ((r = db_next(&rows, err)) > 0 && n < STEPS_MAX)
        ids[n++] = db_i64(&rows, 0);
    db_rows_end(&rows);
    for (size_t i = 0; i < n && r >= 0; i++)
        r = batch_move_step(db, ids[i], to, message, err);
    return r < 0 ? r : 0;
}

int
batch_lock_job(struct db *db, const char *job, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};

    if (db_kind(db) != DB_PG)
        return 0;
    return db_run(db, store_sql(db, STMT_BATCH_JOB_LOCK), err,
                  p_text(arena_printf(&arena, "batch:%s", job)));
}
