/* Shared by the files of the SQLite driver; nobody else includes this. */
#ifndef DB_SQLITE_H
#define DB_SQLITE_H

#include "db/cache.h"
#include "db/driver.h"

#include <sqlite3.h>

struct sqlite_db {
    struct db base;
    sqlite3 *conn;
    struct stmt_cache cache;
    db_clock_fn clock; /* NULL: the machine's */
    void *clock_arg;
    int64_t timeout_us;  /* of a statement; 0 = none */
    int64_t deadline_us; /* of the running one, monotonic */
};

/* A prepared statement, and while rows are read from it also their cursor. */
struct sqlite_stmt {
    struct cache_entry entry;
    sqlite3_stmt *stmt;
    char name[64]; /* of the running call's struct db_sql: for messages */
    int n_params;
    unsigned char *param_of; /* bind index - 1 → number behind the $ */
    enum db_type *types;     /* declared, one per column; made when asked for */
    int64_t total_before;    /* changes on the connection before this one */
    bool described;          /* has no (more) rows to give */
    bool stepped;
};

static inline struct sqlite_db *
sqlite_of(struct db *db)
{
    return container_of(db, struct sqlite_db, base);
}

/* Note the connection's failure rc. With text the place in it is told, counted from
 * at (an earlier part of the text is somebody else's); both NULL: no place. */
int sqlite_fail_at(struct sqlite_db *sl, const char *what, const char *text,
                   const char *at, int rc, struct err *err);
int sqlite_fail(struct sqlite_db *sl, const char *what, const char *text, int rc,
                struct err *err);
/* "SQLITE_BUSY_SNAPSHOT" for an extended code. */
const char *sqlite_code_name(int rc);

int sqlite_add_functions(struct sqlite_db *sl, struct err *err) must_check;

/* Refuse a file on NFS, SMB or FUSE: WAL needs locks and shared memory that hold. */
int sqlite_check_fs(const char *path, struct err *err) must_check;

/* Statements that run longer end like a cancelled one: SQLITE_INTERRUPT. */
void sqlite_limit_statements(struct sqlite_db *sl, int timeout_ms);

/* Statements (db_sqlite_run.c). */
int sqlite_exec(struct db *db, const struct db_sql *sql, const struct db_value *params,
                size_t count, struct err *err) must_check;
int sqlite_script(struct db *db, const char *text, struct err *err) must_check;
int sqlite_query(struct db *db, const struct db_sql *sql, const struct db_value *params,
                 size_t count, void **ret_cursor, struct err *err) must_check;
int sqlite_describe(struct db *db, const struct db_sql *sql, void **ret_cursor,
                    struct err *err) must_check;
int sqlite_next(struct db *db, void *cursor, struct err *err) must_check;
void sqlite_end(struct db *db, void *cursor);
void sqlite_stmt_free(struct sqlite_stmt *stmt);
int sqlite_bind(struct sqlite_db *sl, struct sqlite_stmt *stmt, int index, int number,
                const struct db_value *value, bool copy, struct err *err) must_check;

/* Bulk (db_sqlite_copy.c). */
int sqlite_copy_begin(struct db *db, const char *table, const char *const *columns,
                      size_t n_columns, void **ret_state, struct err *err) must_check;
int sqlite_copy_row(struct db *db, void *state, const struct db_value *values,
                    size_t n_columns, struct err *err) must_check;
int sqlite_copy_end(struct db *db, void *state, struct err *err) must_check;
void sqlite_copy_abort(struct db *db, void *state);

/* Cells (db_sqlite_cell.c). */
int sqlite_param_count(struct db *db, void *cursor);
int sqlite_column_count_of(struct db *db, void *cursor);
const char *sqlite_column_name_of(struct db *db, void *cursor, int column);
enum db_type sqlite_column_type_of(struct db *db, void *cursor, int column);
struct db_value sqlite_cell(struct db *db, void *cursor, int column);
const char *sqlite_cell_text(struct db *db, void *cursor, int column, size_t *ret_len);

#endif
