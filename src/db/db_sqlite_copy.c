/* SQLite: many rows in, by one prepared INSERT. */
#include "db/sqlite.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#include <stdio.h>

#define INSERT_MAX ((size_t)1 << 20)

struct sqlite_copy {
    struct sqlite_stmt stmt;
    int64_t rows;
};

static int
make_insert(struct buf *text, const char *table, const char *const *columns,
            size_t n_columns, struct err *err)
{
    buf_add_str(text, "INSERT INTO ");
    db_quote_table(text, table);
    for (size_t i = 0; i < n_columns; i++) {
        buf_add_str(text, i ? "," : "(");
        db_quote_name(text, columns[i]);
    }
    buf_add_str(text, ")VALUES");
    for (size_t i = 0; i < n_columns; i++)
        buf_addf(text, "%s?%zu", i ? "," : "(", i + 1);
    buf_add_str(text, ")");
    return buf_check(text, table, err);
}

int
sqlite_copy_begin(struct db *db, const char *table, const char *const *columns,
                  size_t n_columns, void **ret_state, struct err *err)
{
    struct sqlite_db *sl = sqlite_of(db);
    scoped(buf_release) struct buf text = {0};
    struct sqlite_copy *copy;
    int rc, r;

    buf_init(&text, INSERT_MAX);
    r = make_insert(&text, table, columns, n_columns, err);
    if (r < 0)
        return r;
    copy = xcalloc(1, sizeof(*copy));
    snprintf(copy->stmt.name, sizeof(copy->stmt.name), "copy into %s", table);
    rc = sqlite3_prepare_v2(sl->conn, buf_str(&text), -1, &copy->stmt.stmt, NULL);
    if (rc != SQLITE_OK) {
        r = sqlite_fail(sl, copy->stmt.name, NULL, rc, err);
        sqlite_copy_abort(db, copy);
        return r;
    }
    *ret_state = copy;
    return 0;
}

int
sqlite_copy_row(struct db *db, void *state, const struct db_value *values,
                size_t n_columns, struct err *err)
{
    struct sqlite_db *sl = sqlite_of(db);
    struct sqlite_copy *copy = state;
    sqlite3_stmt *stmt = copy->stmt.stmt;
    int rc;

    if (db->in_tx && sqlite3_get_autocommit(sl->conn))
        return db_fail(err, ERR_DB, "25P01",
                       "%s: SQLite has rolled this transaction back after an error",
                       copy->stmt.name);
    for (size_t i = 0; i < n_columns; i++) {
        int r = sqlite_bind(sl, &copy->stmt, (int)i + 1, (int)i + 1, &values[i], false,
                            err);

        if (r < 0)
            return r;
    }
    rc = sqlite3_step(stmt);
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
    if (rc != SQLITE_DONE) {
        char what[128];

        snprintf(what, sizeof(what), "%s, row %lld", copy->stmt.name,
                 (long long)copy->rows + 1);
        return sqlite_fail(sl, what, NULL, rc, err);
    }
    copy->rows++;
    return 0;
}

int
sqlite_copy_end(struct db *db, void *state, struct err *err)
{
    struct sqlite_copy *copy = state;

    db->changes = copy->rows;
    sqlite_copy_abort(db, copy);
    return 0;
}

void
sqlite_copy_abort(struct db *db, void *state)
{
    struct sqlite_copy *copy = state;

    sqlite3_finalize(copy->stmt.stmt);
    free(copy);
}
