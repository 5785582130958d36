/*
 * Statements in one transaction. On the store's own database it is the one that marks
 * the step as done, so they take effect once; on another they are committed first, and
 * may come again when the run is killed between the two.
 */
#include "base/arena.h"
#include "base/err.h"
#include "base/retry.h"
#include "base/strs.h"
#include "db/db.h"
#include "io/io_ctx.h"
#include "io/sql_text.h"
#include "steps/once.h"

#define CONFLICT_TRIES 8 /* about ten seconds in all */
#define BUSY_TRIES     2 /* each waits for the lock by itself */

struct statements {
    struct step_ctx *ctx;
    const json_t *sql; /* a text or a list */
    int64_t changed;
};

static size_t
statement_count(const json_t *sql)
{
    return json_is_array(sql) ? json_array_size(sql) : 1;
}

static const char *
statement_at(const json_t *sql, size_t i)
{
    return json_string_value(json_is_array(sql) ? json_array_get(sql, i) : sql);
}

int
sql_step_validate(const json_t *def, struct err *err)
{
    static const char *const keys[] = {"name", "sql", "database"};
    const json_t *sql = json_object_get(def, "sql");
    const json_t *database = json_object_get(def, "database");
    scoped(arena_release) struct arena arena = {0};
    int r = step_keys_check(def, keys, array_len(keys), err);

    if (r == 0 && database && str_empty(json_string_value(database)))
        r = err_set(err, ERR_CONFIG, "database: must be a name under databases");
    if (r == 0 && statement_count(sql) == 0)
        r = err_set(err, ERR_CONFIG, "sql: there must be a statement");
    for (size_t i = 0; r == 0 && i < statement_count(sql); i++) {
        struct sql_text made;

        if (str_empty(statement_at(sql, i)))
            r = err_set(err, ERR_CONFIG, "sql: must be a text or a list of texts");
        else
            r = sql_text_rewrite(statement_at(sql, i), true, &arena, &made, err);
    }
    return r < 0 ? err_prefix(err, "step %s",
                              json_string_value(json_object_get(def, "name")))
                 : 0;
}

static int
run_one(struct statements *statements, struct db *db, const char *text, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    bool pg = db_kind(db) == DB_PG;
    struct db_value *values;
    struct sql_text made;
    struct db_sql sql;
    int r = sql_text_rewrite(text, pg, &arena, &made, err);

    if (r < 0)
        return r;
    values = arena_array(&arena, struct db_value, made.count + 1);
    for (size_t i = 0; i < made.count; i++) {
        r = sql_text_value(text, made.names[i], statements->ctx->io->params, pg, &arena,
                           &values[i], err);
        if (r < 0)
            return r;
    }
    sql = (struct db_sql){.name = "step",
                          .text = made.text,
                          .n_params = (unsigned char)made.count,
                          .flags = DB_ONCE};
    r = db_exec(db, &sql, values, made.count, err);
    if (r == 0)
        statements->changed += db_changes(db);
    return r;
}

static int
run_all(void *arg, struct db *db, struct err *err)
{
    struct statements *statements = arg;

    statements->changed = 0;
    for (size_t i = 0; i < statement_count(statements->sql); i++) {
        int r = run_one(statements, db, statement_at(statements->sql, i), err);

        if (r < 0)
            return statement_count(statements->sql) > 1
                       ? err_prefix(err, "statement %zu", i + 1)
                       : r;
    }
    return 0;
}

static int
run_once(struct statements *statements, const char *name, struct err *err)
{
    struct io_ctx *io = statements->ctx->io;
    scoped(db_tx_end) struct db_tx tx = {0};
    struct db *db = NULL;
    int r = io->database(io, name, IO_DB_WRITE, &db, err);

    if (r == 0)
        r = db_begin(db, DB_WRITE, &tx, err);
    if (r == 0)
        r = run_all(statements, db, err);
    if (r == 0)
        r = db_commit(&tx, err);
    return r < 0 ? err_prefix(err, "database %s", name) : 0;
}

/* A deadlock, or a lock that somebody holds: nothing was done, it may go the next time.
 */
static int
run_elsewhere(struct statements *statements, const char *name, struct err *err)
{
    struct io_ctx *io = statements->ctx->io;
    struct backoff backoff = {.base_ms = 100, .max_ms = 3000, .jitter = 0.5};
    int r = run_once(statements, name, err);

    while (!io->cut(io) &&
           ((r == -ERR_DB_CONFLICT && backoff.attempts + 1 < CONFLICT_TRIES) ||
            (r == -ERR_STORE_BUSY && backoff.attempts + 1 < BUSY_TRIES))) {
        io->wait_ms(io, backoff_next_ms(&backoff));
        err_clear(err);
        r = run_once(statements, name, err);
    }
    return r;
}

int
sql_step_run(struct step_ctx *ctx, struct step_result *ret_result, struct err *err)
{
    const char *database = json_string_value(json_object_get(ctx->def, "database"));
    struct statements statements = {.ctx = ctx,
                                    .sql = json_object_get(ctx->def, "sql")};
    struct step_counters counters = {0};
    bool elsewhere = database && !str_eq(database, "main");
    int r = 0;

    if (ctx->io->stopped(ctx->io) != IO_GO_ON)
        return ctx->io->stopped(ctx->io) == IO_STOP ? STEP_STOPPED : STEP_CANCELLED;
    if (elsewhere)
        r = run_elsewhere(&statements, database, err);
    counters.written = statements.changed;
    if (r == 0)
        r = step_done(ctx, &counters, elsewhere ? NULL : run_all,
                      elsewhere ? NULL : &statements, err);
    if (r != 0)
        return r;
    *ret_result = (struct step_result){.counters = counters};
    return STEP_COMPLETED;
}
