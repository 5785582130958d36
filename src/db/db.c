/*
 * The facade: checks what no driver should have to check, keeps the state of the
 * transaction, and calls the driver. PostgreSQL refuses everything after a failure
 * inside a transaction; SQLite would go on. Code written on SQLite would then break
 * on PostgreSQL, so the stricter rule holds for both, and is kept here.
 */
#include "db/db.h"

#include "base/buf.h"
#include "base/err.h"
#include "db/driver.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

int
db_fail(struct err *err, enum err_code code, const char *detail, const char *fmt, ...)
{
    char text[sizeof(err->text)];
    va_list args;

    if (err->code != ERR_NONE)
        return -(int)err->code;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    snprintf(err->detail, sizeof(err->detail), "%s", detail);
    return err_set(err, code, "%s", text);
}

void
db_place(const char *text, long offset, char ret[DB_PLACE_SIZE])
{
    int line = 1, column = 1;

    ret[0] = '\0';
    if (offset < 0)
        return;
    for (long i = 0; i < offset && text[i]; i++) {
        column++;
        if (text[i] == '\n') {
            line++;
            column = 1;
        }
    }
    snprintf(ret, DB_PLACE_SIZE, " (line %d, column %d)", line, column);
}

const char *
db_sql_text(const struct db_sql *sql, enum db_kind kind)
{
    const char *own = kind == DB_PG ? sql->text_pg : sql->text_sqlite;

    return own ? own : sql->text;
}

enum err_code
db_lost_code(const struct db *db)
{
    return db->store ? ERR_STORE : ERR_CONNECT;
}

int
db_open(const struct db_options *options, struct db **ret_db, struct err *err)
{
    enum db_kind kind;
    int r;

    r = db_url_kind(options->url, &kind, err);
    if (r < 0)
        return r;
    if (kind == DB_PG)
        return db_open_pg(options, ret_db, err);
    return db_open_sqlite(options, options->url + strlen("sqlite:"), ret_db, err);
}

void
db_close(struct db *db)
{
    if (db)
        db->driver->close(db);
}

void
db_closep(struct db **db)
{
    db_close(*db);
    *db = NULL;
}

enum db_kind
db_kind(const struct db *db)
{
    return db->kind;
}

bool
db_usable(const struct db *db)
{
    return db->usable;
}

bool
db_pooled(const struct db *db)
{
    return db->pooled;
}

bool
db_in_tx(const struct db *db)
{
    return db->in_tx;
}

void
db_cancel(struct db *db)
{
    atomic_store(&db->cancelled, true);
    db->driver->cancel(db);
}

void
db_cancellable_begin(struct db *db)
{
    atomic_store(&db->cancelled, false);
    db->cancellable = true;
}

void
db_cancellable_end(struct db *db)
{
    db->cancellable = false;
    atomic_store(&db->cancelled, false);
}

int64_t
db_changes(const struct db *db)
{
    return db->changes;
}

bool
db_is_duplicate(const struct err *err)
{
    static const char *const codes[] = {"23505", "SQLITE_CONSTRAINT_UNIQUE",
                                        "SQLITE_CONSTRAINT_PRIMARYKEY",
                                        "SQLITE_CONSTRAINT_ROWID"};

    for (size_t i = 0; i < array_len(codes); i++) {
        if (err->code == ERR_DB_CONSTRAINT && strcmp(err->detail, codes[i]) == 0)
            return true;
    }
    return false;
}

/* May anything run now? */
static int
guard(const struct db *db, const char *what, struct err *err)
{
    if (!db->usable)
        return db_fail(err, db_lost_code(db), "08003",
                       "%s: the connection to the database was lost; open another",
                       what);
    if (db->in_tx && db->tx_failed)
        return db_fail(err, ERR_DB, "25P02",
                       "%s: an earlier statement of this transaction failed; roll back",
                       what);
    if (db_is_cancelled(db))
        return db_fail(err, ERR_TIMEOUT,
                       db->kind == DB_PG ? "57014" : "SQLITE_INTERRUPT",
                       "%s: the work that it belongs to was cancelled", what);
    return 0;
}

/* Pass r on, remembering that the transaction is spoilt. */
static int
note(struct db *db, int r)
{
    if (r < 0 && db->in_tx)
        db->tx_failed = true;
    return r;
}

static int
check_params(const struct db_sql *sql, size_t count, struct err *err)
{
    if (count == sql->n_params)
        return 0;
    return err_set(err, ERR_INTERNAL, "%s: takes %d parameters, given %zu", sql->name,
                   sql->n_params, count);
}

int
db_ping(struct db *db, struct err *err)
{
    int r = guard(db, "ping", err);

    return r < 0 ? r : note(db, db->driver->ping(db, err));
}

int
db_exec(struct db *db, const struct db_sql *sql, const struct db_value *params,
        size_t count, struct err *err)
{
    int r = guard(db, sql->name, err);

    if (r == 0)
        r = check_params(sql, count, err);
    if (r < 0)
        return r;
    return note(db, db->driver->exec(db, sql, params, count, err));
}

int
db_script(struct db *db, const char *text, struct err *err)
{
    int r = guard(db, "script", err);

    return r < 0 ? r : note(db, db->driver->script(db, text, err));
}

int
db_query(struct db *db, const struct db_sql *sql, const struct db_value *params,
         size_t count, struct db_rows *ret_rows, struct err *err)
{
    void *cursor;
    int r;

    r = guard(db, sql->name, err);
    if (r == 0)
        r = check_params(sql, count, err);
    if (r < 0)
        return r;
    r = db->driver->query(db, sql, params, count, &cursor, err);
    if (r < 0)
        return note(db, r);
    *ret_rows = (struct db_rows){.db = db, .cursor = cursor};
    return 0;
}

int
db_describe(struct db *db, const struct db_sql *sql, struct db_rows *ret_rows,
            struct err *err)
{
    void *cursor;
    int r;

    r = guard(db, sql->name, err);
    if (r < 0)
        return r;
    r = db->driver->describe(db, sql, &cursor, err);
    if (r < 0)
        return note(db, r);
    *ret_rows = (struct db_rows){.db = db, .cursor = cursor};
    return 0;
}

int
db_query_i64(struct db *db, const struct db_sql *sql, const struct db_value *params,
             size_t count, int64_t *ret_value, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int r;

    r = db_query(db, sql, params, count, &rows, err);
    if (r < 0)
        return r;
    r = db_next(&rows, err);
    if (r > 0)
        *ret_value = db_i64(&rows, 0);
    return r;
}

/* --- transactions --- */

int
db_begin(struct db *db, enum db_mode mode, struct db_tx *ret_tx, struct err *err)
{
    int r;

    if (db->in_tx)
        return err_set(err, ERR_INTERNAL,
                       "begin: a transaction is already open on this connection");
    r = guard(db, "begin", err);
    if (r < 0)
        return r;
    r = db->driver->begin(db, mode, err);
    if (r < 0)
        return r;
    db->in_tx = true;
    db->tx_failed = false;
    db->mode = mode;
    *ret_tx = (struct db_tx){.db = db};
    return 0;
}

int
db_commit(struct db_tx *tx, struct err *err)
{
    struct db *db = tx->db;
    int r;

    assert(db && db->in_tx);
    r = guard(db, "commit", err);
    if (r < 0)
        return r;
    r = db->driver->commit(db, err);
    if (r < 0)
        return r; /* what is left of it goes with db_tx_end */
    db->in_tx = false;
    tx->db = NULL;
    return 0;
}

void
db_tx_end(struct db_tx *tx)
{
    struct db *db = tx ? tx->db : NULL;

    if (!db)
        return;
    tx->db = NULL;
    if (db->usable)
        db->driver->rollback(db);
    db->in_tx = false;
    db->tx_failed = false;
}

static int
savepoint_run(struct db *db, const char *verb, const char *name, struct err *err)
{
    char text[96];
    struct db_sql sql = {.name = verb, .text = text};

    assert(strlen(name) <= 60);
    for (const char *p = name; *p; p++)
        assert((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || *p == '_' ||
               (*p >= '0' && *p <= '9'));
    snprintf(text, sizeof(text), "%s \"%s\"", verb, name);
    return db->driver->exec(db, &sql, NULL, 0, err);
}

int
db_savepoint(struct db *db, const char *name, struct err *err)
{
    int r;

    assert(db->in_tx);
    r = guard(db, "savepoint", err);
    return r < 0 ? r : note(db, savepoint_run(db, "SAVEPOINT", name, err));
}

int
db_release(struct db *db, const char *name, struct err *err)
{
    int r;

    assert(db->in_tx);
    r = guard(db, "release savepoint", err);
    return r < 0 ? r : note(db, savepoint_run(db, "RELEASE SAVEPOINT", name, err));
}

int
db_rollback_to(struct db *db, const char *name, struct err *err)
{
    bool failed = db->tx_failed;
    int r;

    assert(db->in_tx);
    db->tx_failed = false;
    r = guard(db, "rollback to savepoint", err);
    if (r == 0)
        r = savepoint_run(db, "ROLLBACK TO SAVEPOINT", name, err);
    if (r < 0)
        db->tx_failed = failed || db->in_tx;
    return r;
}

/* --- many rows in --- */

int
db_copy_begin(struct db *db, const char *table, const char *const *columns,
              size_t n_columns, struct db_copy *ret_copy, struct err *err)
{
    void *state;
    int r;

    assert(n_columns > 0);
    r = guard(db, table, err);
    if (r < 0)
        return r;
    r = db->driver->copy_begin(db, table, columns, n_columns, &state, err);
    if (r < 0)
        return note(db, r);
    *ret_copy = (struct db_copy){.db = db, .state = state, .n_columns = n_columns};
    return 0;
}

int
db_copy_row(struct db_copy *copy, const struct db_value *values, struct err *err)
{
    struct db *db = copy->db;
    int r;

    r = guard(db, "copy", err);
    if (r < 0)
        return r;
    r = db->driver->copy_row(db, copy->state, values, copy->n_columns, err);
    if (r < 0)
        return note(db, r);
    copy->rows++;
    return 0;
}

int
db_copy_end(struct db_copy *copy, int64_t *ret_rows, struct err *err)
{
    struct db *db = copy->db;
    int r;

    r = guard(db, "copy", err);
    if (r < 0)
        return r;
    r = db->driver->copy_end(db, copy->state, err);
    *copy = (struct db_copy){.rows = copy->rows};
    if (r < 0)
        return note(db, r);
    if (ret_rows)
        *ret_rows = copy->rows;
    return 0;
}

void
db_copy_abort(struct db_copy *copy)
{
    if (!copy || !copy->db)
        return;
    copy->db->driver->copy_abort(copy->db, copy->state);
    note(copy->db, -1);
    *copy = (struct db_copy){0};
}

/* --- notifications, clock --- */

int
db_listen(struct db *db, const char *channel, struct err *err)
{
    int r = guard(db, "listen", err);

    return r < 0 ? r : note(db, db->driver->listen(db, channel, err));
}

int
db_notify_fd(const struct db *db)
{
    return db->usable ? db->driver->notify_fd(db) : -1;
}

int
db_notifications(struct db *db, db_notify_fn notify, void *arg, struct err *err)
{
    int r = guard(db, "notifications", err);

    return r < 0 ? r : note(db, db->driver->notifications(db, notify, arg, err));
}

int
db_sqlite_set_clock(struct db *db, db_clock_fn clock, void *arg, struct err *err)
{
    return db->driver->set_clock(db, clock, arg, err);
}
