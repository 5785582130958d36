/*
 * SQLite: running statements. SQLite numbers $1… by first appearance, so each
 * statement keeps a map from its bind index to the number that was written.
 */
#include "db/sqlite.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"

#include <ctype.h>
#include <stdio.h>

#define STEPS_BETWEEN_LOOKS 10000

void
sqlite_stmt_free(struct sqlite_stmt *stmt)
{
    if (!stmt)
        return;
    sqlite3_finalize(stmt->stmt);
    free(stmt->param_of);
    free(stmt->types);
    cache_entry_release(&stmt->entry);
    free(stmt);
}

/* Fill param_of: every parameter must read $ and digits. */
static int
map_params(struct sqlite_stmt *stmt, const char *name, struct err *err)
{
    stmt->n_params = sqlite3_bind_parameter_count(stmt->stmt);
    if (stmt->n_params > UINT8_MAX)
        return err_set(err, ERR_INVALID,
                       "%s: has %d parameters, at most %d are allowed", name,
                       stmt->n_params, UINT8_MAX);
    stmt->param_of = xcalloc((size_t)stmt->n_params + 1, 1);
    for (int i = 0; i < stmt->n_params; i++) {
        const char *word = sqlite3_bind_parameter_name(stmt->stmt, i + 1);
        char *end = NULL;
        long number = word && *word == '$' ? strtol(word + 1, &end, 10) : 0;

        if (number < 1 || number > stmt->n_params || *end != '\0')
            return err_set(err, ERR_INVALID,
                           "%s: parameter \"%s\" is not one of $1…$%d; write "
                           "CAST($1 AS type) where $1::type was meant",
                           name, word ? word : "?", stmt->n_params);
        stmt->param_of[i] = (unsigned char)number;
    }
    return 0;
}

/* Is there more than blanks, semicolons and comments? */
static bool
has_more(struct sqlite_db *sl, const char *tail)
{
    sqlite3_stmt *next = NULL;
    bool more;

    while (*tail == ';' || isspace((unsigned char)*tail))
        tail++;
    if (*tail == '\0')
        return false;
    more = sqlite3_prepare_v2(sl->conn, tail, -1, &next, NULL) != SQLITE_OK || next;
    sqlite3_finalize(next);
    return more;
}

static int
prepare(struct sqlite_db *sl, const char *name, const char *text, bool keep,
        struct sqlite_stmt **ret_stmt, struct err *err)
{
    struct sqlite_stmt *stmt = xcalloc(1, sizeof(*stmt));
    const char *tail = "";
    int rc, r = 0;

    cache_entry_init(&stmt->entry, text);
    rc = sqlite3_prepare_v3(sl->conn, text, -1, keep ? SQLITE_PREPARE_PERSISTENT : 0,
                            &stmt->stmt, &tail);
    if (rc != SQLITE_OK)
        r = sqlite_fail(sl, name, text, rc, err);
    else if (!stmt->stmt)
        r = err_set(err, ERR_INVALID, "%s: there is no statement in the text", name);
    else if (has_more(sl, tail))
        r = err_set(err, ERR_INVALID, "%s: more than one statement in the text", name);
    if (r == 0)
        r = map_params(stmt, name, err);
    if (r < 0) {
        sqlite_stmt_free(stmt);
        return r;
    }
    *ret_stmt = stmt;
    return 0;
}

/* The statement, ready and marked busy; give it back by release. */
static int
acquire(struct sqlite_db *sl, const struct db_sql *sql, struct sqlite_stmt **ret_stmt,
        struct err *err)
{
    const char *text = db_sql_text(sql, DB_SQLITE);
    struct cache_entry *entry = cache_find(&sl->cache, text);
    struct cache_entry *left;
    struct sqlite_stmt *stmt;
    bool keep = !(sql->flags & DB_ONCE) && !entry;
    int r;

    if (entry && !entry->busy) {
        stmt = container_of(entry, struct sqlite_stmt, entry);
    } else {
        r = prepare(sl, sql->name, text, keep, &stmt, err);
        if (r < 0)
            return r;
        left = keep ? cache_add(&sl->cache, &stmt->entry) : NULL;
        if (left)
            sqlite_stmt_free(container_of(left, struct sqlite_stmt, entry));
    }
    stmt->entry.busy = true;
    stmt->described = stmt->stepped = false;
    snprintf(stmt->name, sizeof(stmt->name), "%s", sql->name);
    *ret_stmt = stmt;
    return 0;
}

static void
release(struct sqlite_stmt *stmt)
{
    sqlite3_reset(stmt->stmt);
    sqlite3_clear_bindings(stmt->stmt);
    stmt->entry.busy = false;
    free(stmt->types);
    stmt->types = NULL;
    if (!stmt->entry.cached)
        sqlite_stmt_free(stmt);
}

static int
bind_array(sqlite3_stmt *stmt, int index, const struct db_value *value)
{
    scoped(buf_release) struct buf json = {0};

    buf_init(&json, (size_t)256 << 20);
    db_array_json(&json, value);
    if (json.overflow)
        return SQLITE_TOOBIG;
    return sqlite3_bind_text64(stmt, index, buf_str(&json), json.len, SQLITE_TRANSIENT,
                               SQLITE_UTF8);
}

int
sqlite_bind(struct sqlite_db *sl, struct sqlite_stmt *stmt, int index, int number,
            const struct db_value *value, bool copy, struct err *err)
{
    sqlite3_destructor_type keep = copy ? SQLITE_TRANSIENT : SQLITE_STATIC;
    const char *bytes;
    int rc = SQLITE_MISUSE;

    switch (value->type) {
    case DB_NULL:
        rc = sqlite3_bind_null(stmt->stmt, index);
        break;
    case DB_INT:
    case DB_BOOL:
        rc = sqlite3_bind_int64(stmt->stmt, index, value->i);
        break;
    case DB_REAL:
        rc = sqlite3_bind_double(stmt->stmt, index, value->d);
        break;
    case DB_TEXT:
    case DB_DECIMAL:
    case DB_DATE:
    case DB_TIMESTAMP:
        bytes = value->s.p ? value->s.p : "";
        if (memchr(bytes, '\0', value->s.n))
            return err_set(err, ERR_INVALID, "%s: text for $%d has a NUL byte in it",
                           stmt->name, number);
        rc = sqlite3_bind_text64(stmt->stmt, index, bytes, value->s.n, keep,
                                 SQLITE_UTF8);
        break;
    case DB_BLOB:
        bytes = value->s.p ? value->s.p : "";
        rc = sqlite3_bind_blob64(stmt->stmt, index, bytes, value->s.n, keep);
        break;
    case DB_TEXT_ARRAY:
    case DB_INT_ARRAY:
        rc = bind_array(stmt->stmt, index, value);
        break;
    case DB_TYPE_COUNT:
        break;
    }
    return rc == SQLITE_OK ? 0 : sqlite_fail(sl, stmt->name, NULL, rc, err);
}

static int
bind_all(struct sqlite_db *sl, struct sqlite_stmt *stmt, const struct db_value *params,
         size_t count, bool copy, struct err *err)
{
    if ((size_t)stmt->n_params != count)
        return err_set(err, ERR_INTERNAL, "%s: its text has %d parameters, given %zu",
                       stmt->name, stmt->n_params, count);
    for (int i = 0; i < stmt->n_params; i++) {
        int number = stmt->param_of[i];
        int r = sqlite_bind(sl, stmt, i + 1, number, &params[number - 1], copy, err);

        if (r < 0)
            return r;
    }
    return 0;
}

/*
 * Some failures (disk full, I/O) make SQLite roll the whole transaction back. What
 * follows would then run outside of any: refuse it.
 */
static int
check_tx(const struct sqlite_db *sl, const char *name, struct err *err)
{
    if (sl->base.in_tx && sqlite3_get_autocommit(sl->conn))
        return db_fail(err, ERR_DB, "25P01",
                       "%s: SQLite has rolled this transaction back after an error",
                       name);
    return 0;
}

/* PostgreSQL refuses a write in a read transaction, so it is refused here. */
static int
check_mode(const struct sqlite_db *sl, const struct sqlite_stmt *stmt, struct err *err)
{
    if (!sl->base.in_tx || sl->base.mode != DB_READ ||
        sqlite3_stmt_readonly(stmt->stmt))
        return 0;
    return db_fail(err, ERR_DB, "25006", "%s: writes in a read-only transaction",
                   stmt->name);
}

static void
count_changes(struct sqlite_db *sl, int64_t total_before)
{
    bool none = sqlite3_total_changes64(sl->conn) == total_before;

    sl->base.changes = none ? 0 : sqlite3_changes64(sl->conn);
}

/* Called by SQLite every so many steps of its machine; not 0: interrupt. */
static int
over_time(void *arg)
{
    const struct sqlite_db *sl = arg;

    return db_is_cancelled(&sl->base) || clock_mono_us(clock_real()) > sl->deadline_us;
}

void
sqlite_limit_statements(struct sqlite_db *sl, int timeout_ms)
{
    if (timeout_ms <= 0)
        return;
    sl->timeout_us = timeout_ms * US_PER_MS;
    sqlite3_progress_handler(sl->conn, STEPS_BETWEEN_LOOKS, over_time, sl);
}

static void
start_clock(struct sqlite_db *sl)
{
    if (sl->timeout_us)
        sl->deadline_us = clock_mono_us(clock_real()) + sl->timeout_us;
}

int
sqlite_exec(struct db *db, const struct db_sql *sql, const struct db_value *params,
            size_t count, struct err *err)
{
    struct sqlite_db *sl = sqlite_of(db);
    int64_t before = sqlite3_total_changes64(sl->conn);
    struct sqlite_stmt *stmt;
    int rc, r;

    start_clock(sl);
    r = check_tx(sl, sql->name, err);
    if (r == 0)
        r = acquire(sl, sql, &stmt, err);
    if (r < 0)
        return r;
    r = check_mode(sl, stmt, err);
    if (r == 0)
        r = bind_all(sl, stmt, params, count, false, err);
    if (r == 0) {
        do
            rc = sqlite3_step(stmt->stmt);
        while (rc == SQLITE_ROW);
        if (rc == SQLITE_DONE)
            count_changes(sl, before);
        else
            r = sqlite_fail(sl, sql->name, stmt->entry.text, rc, err);
    }
    release(stmt);
    return r;
}

int
sqlite_query(struct db *db, const struct db_sql *sql, const struct db_value *params,
             size_t count, void **ret_cursor, struct err *err)
{
    struct sqlite_db *sl = sqlite_of(db);
    struct sqlite_stmt *stmt;
    int r;

    start_clock(sl);
    r = check_tx(sl, sql->name, err);
    if (r == 0)
        r = acquire(sl, sql, &stmt, err);
    if (r < 0)
        return r;
    r = check_mode(sl, stmt, err);
    if (r == 0)
        r = bind_all(sl, stmt, params, count, true, err);
    if (r < 0) {
        release(stmt);
        return r;
    }
    stmt->total_before = sqlite3_total_changes64(sl->conn);
    *ret_cursor = stmt;
    return 0;
}

int
sqlite_describe(struct db *db, const struct db_sql *sql, void **ret_cursor,
                struct err *err)
{
    struct sqlite_stmt *stmt;
    int r;

    r = acquire(sqlite_of(db), sql, &stmt, err);
    if (r < 0)
        return r;
    stmt->described = true;
    *ret_cursor = stmt;
    return 0;
}

int
sqlite_next(struct db *db, void *cursor, struct err *err)
{
    struct sqlite_db *sl = sqlite_of(db);
    struct sqlite_stmt *stmt = cursor;
    int rc;

    if (stmt->described)
        return 0;
    rc = sqlite3_step(stmt->stmt);
    if (!stmt->stepped) { /* the first step may have prepared anew */
        stmt->stepped = true;
        free(stmt->types);
        stmt->types = NULL;
    }
    if (rc == SQLITE_ROW)
        return 1;
    stmt->described = true; /* stepping again would start over */
    if (rc != SQLITE_DONE)
        return sqlite_fail(sl, stmt->name, stmt->entry.text, rc, err);
    count_changes(sl, stmt->total_before);
    return 0;
}

void
sqlite_end(struct db *db, void *cursor)
{
    release(cursor);
}

int
sqlite_script(struct db *db, const char *text, struct err *err)
{
    struct sqlite_db *sl = sqlite_of(db);
    const char *at = text;
    int rc = SQLITE_OK, r;

    sl->deadline_us = INT64_MAX; /* migrations take what they take */
    r = check_tx(sl, "script", err);
    if (r < 0)
        return r;
    while (*at && rc == SQLITE_OK) {
        sqlite3_stmt *stmt = NULL;
        const char *tail = at;

        rc = sqlite3_prepare_v2(sl->conn, at, -1, &stmt, &tail);
        while (stmt && (rc = sqlite3_step(stmt)) == SQLITE_ROW)
            ;
        rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
        if (rc != SQLITE_OK)
            r = sqlite_fail_at(sl, "script", text, at, rc, err);
        sqlite3_finalize(stmt);
        at = tail;
    }
    return r;
}
