/*
 * One thin face over libpq and sqlite3: for our own store and for the databases
 * that users' jobs read and write. A struct db is one connection and belongs to
 * one thread at a time; only db_cancel may be called from another. db/pool.h
 * shares connections between threads, db/driver.h is for who writes a driver.
 *
 * Failures carry one code for both databases, and in err.detail the SQLSTATE or the
 * name of SQLite's extended code:
 *
 *      ERR_DB_CONFLICT     serialization, deadlock: run the transaction again
 *      ERR_DB_CONSTRAINT   unique, foreign key, check, not null; a value that its
 *                          column does not take
 *      ERR_STORE_BUSY      a lock was not to be had in time
 *      ERR_STORE           the store cannot be reached or read (a user's
 *                          database: ERR_CONNECT)
 *      ERR_COMMIT_UNKNOWN  the answer to COMMIT was lost: done or not, look
 *      ERR_TIMEOUT         statement timeout, or db_cancel
 *      ERR_DISK_FULL       at the database
 *      ERR_CONFIG          a URL or setting that cannot do, with the remedy
 *      ERR_DB              the rest: syntax, rights
 *
 * After a failure look at db_usable: a lost connection never comes back, close it
 * and open another. Inside a transaction a failure leaves only db_tx_end or
 * db_rollback_to, on SQLite too.
 */
#ifndef DB_DB_H
#define DB_DB_H

#include "base/compiler.h"
#include "db/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct db;

enum db_kind { DB_SQLITE, DB_PG };

struct db_setting {
    const char *name;
    const char *value;
};

struct db_options {
    /* sqlite:./path, sqlite:/abs/path, sqlite::memory:, postgresql://…, postgres://… */
    const char *url;
    bool read_only;
    bool store;  /* our own store: durable settings are set and read back */
    bool create; /* SQLite: make the file if it is missing; a store always does */
    bool allow_network_fs;  /* SQLite store on NFS, SMB, FUSE: refused without */
    int connect_timeout_ms; /* to connect, and to answer db_ping; 0 = 10 s */
    /* 0 = none. Behind a pooler it is kept here, by cancelling; a
     * server that does not even answer a cancel for 5 s counts as lost. */
    int statement_timeout_ms;
    int lock_timeout_ms; /* 0 = none; on SQLite the busy timeout, 0 = 5 s */
    /* PostgreSQL, behind a pooler too: the server ends a writing transaction, and with
     * it the connection, in which no statement came for so long, so that the locks of
     * a process that stands still go. 0 = as the role says. */
    int idle_tx_timeout_ms;
    const char *app_name; /* NULL = "pawl" */
    /* PostgreSQL, direct connections only; behind a pooler they belong to the
     * role (ALTER ROLE … SET). */
    const struct db_setting *session_settings;
    size_t n_session_settings;
};

int db_open(const struct db_options *options, struct db **ret_db,
            struct err *err) must_check;
void db_close(struct db *db);   /* accepts NULL; ends an open transaction by rollback */
void db_closep(struct db **db); /* for scoped() */

enum db_kind db_kind(const struct db *db);
bool db_usable(const struct db *db); /* false once the connection is lost */
/* Behind PgBouncer or the like: there is no session state. */
bool db_pooled(const struct db *db);
bool db_in_tx(const struct db *db);

/* One round trip: does the other end answer, within connect_timeout_ms? The beat of
 * a listening connection; look for notifications behind it. */
int db_ping(struct db *db, struct err *err) must_check;

/* Stop what the connection is doing; the running call fails with ERR_TIMEOUT
 * (detail 57014 or SQLITE_INTERRUPT). It and all that comes after it have an answer
 * within some five seconds each: a server that hangs counts as lost. From any thread,
 * while the db is open; does not wait. */
void db_cancel(struct db *db);

/* Work between these two is cancelled as a whole: what it calls after db_cancel fails
 * as the call under way does. What comes behind the second has its whole time again.
 * begin: on the db's thread; end: there, and while nobody calls db_cancel. */
void db_cancellable_begin(struct db *db);
void db_cancellable_end(struct db *db);

/* The kind a URL names; -ERR_CONFIG when none. */
int db_url_kind(const char *url, enum db_kind *ret_kind, struct err *err) must_check;

/* Copy url into out (size bytes) with any password replaced by ***. Returns out. */
const char *db_url_masked(const char *url, char *out, size_t size);

/* --- statements --- */

enum db_sql_flags {
    DB_STREAM = 1, /* PostgreSQL: row by row in constant memory; nothing else may run
                    * on the connection until db_rows_end, which stops the query if
                    * rows are left, and with it a transaction around it */
    DB_ONCE = 2,   /* not worth a place among the prepared statements */
};

/*
 * A statement. Parameters are written $1…$n, in order of first appearance, and
 * bound by number on both databases. Never write $1::type (SQLite takes it for a
 * name): CAST($1 AS type). Statements are prepared once per connection.
 */
struct db_sql {
    const char *name; /* for messages */
    const char *text;
    const char *text_pg;     /* instead of text on PostgreSQL; NULL = text */
    const char *text_sqlite; /* instead of text on SQLite; NULL = text */
    unsigned char n_params;
    unsigned char flags;             /* enum db_sql_flags */
    const enum db_type *param_types; /* NULL: the server infers them */
};

/* Run and drop any rows. count must be the statement's n_params. */
int db_exec(struct db *db, const struct db_sql *sql, const struct db_value *params,
            size_t count, struct err *err) must_check;

/* Rows touched by the last db_exec, or by a db_query read to its end. */
int64_t db_changes(const struct db *db);

/* Was this ERR_DB_CONSTRAINT about a unique or primary key? */
bool db_is_duplicate(const struct err *err);

/* Several statements separated by semicolons, without parameters: schema files.
 * No transaction of its own. */
int db_script(struct db *db, const char *text, struct err *err) must_check;

/* db_exec with the parameters behind: db_run(db, &STMT, err, p_i64(1), p_text("x")) */
#define db_run(db, sql, err, ...)                                                      \
    db_exec((db), (sql), db_params_(__VA_ARGS__), db_count_(__VA_ARGS__), (err))

/* db_query likewise: db_ask(db, &STMT, &rows, err, p_i64(1)) */
#define db_ask(db, sql, ret_rows, err, ...)                                            \
    db_query((db), (sql), db_params_(__VA_ARGS__), db_count_(__VA_ARGS__), (ret_rows), \
             (err))

#define db_list_(...)   ((const struct db_value[]){{.type = DB_NULL}, ##__VA_ARGS__})
#define db_params_(...) (db_list_(__VA_ARGS__) + 1)
#define db_count_(...)  (sizeof(db_list_(__VA_ARGS__)) / sizeof(struct db_value) - 1)

/* --- rows --- */

/* scoped(db_rows_end) struct db_rows rows = {0}; */
struct db_rows {
    struct db *db;
    void *cursor; /* the driver's */
};

int db_query(struct db *db, const struct db_sql *sql, const struct db_value *params,
             size_t count, struct db_rows *ret_rows, struct err *err) must_check;

/* Columns and parameters without running: rows of which there are none. */
int db_describe(struct db *db, const struct db_sql *sql, struct db_rows *ret_rows,
                struct err *err) must_check;
int db_param_count(const struct db_rows *rows); /* after db_describe */

/* 1 a row is there, 0 no more rows, < 0 failure. */
int db_next(struct db_rows *rows, struct err *err) must_check;
void db_rows_end(struct db_rows *rows); /* accepts NULL, all-zero, twice */

/* Known from db_query on, before the first row. */
int db_column_count(const struct db_rows *rows);
const char *db_column_name(const struct db_rows *rows, int column);
int db_column(const struct db_rows *rows, const char *name); /* -1: no such column */

/* Declared type; on SQLite DB_NULL for an expression (look at the cells). */
enum db_type db_column_type(const struct db_rows *rows, int column);

/* The current row. NULL reads as 0, 0.0, false, NULL. Text is NUL-terminated. A
 * cell of another type is converted as its database would. */
bool db_is_null(const struct db_rows *rows, int column);
int64_t db_i64(const struct db_rows *rows, int column);
double db_double(const struct db_rows *rows, int column);
bool db_bool(const struct db_rows *rows, int column);
const char *db_text(const struct db_rows *rows, int column);
size_t db_text_len(const struct db_rows *rows, int column);
struct db_value db_cell(const struct db_rows *rows, int column);

/* First column of the first row as a number: 1 there, 0 no row, < 0 failure. */
int db_query_i64(struct db *db, const struct db_sql *sql, const struct db_value *params,
                 size_t count, int64_t *ret_value, struct err *err) must_check;

/* --- transactions --- */

enum db_mode {
    DB_READ,  /* read only; every statement sees the same state */
    DB_WRITE, /* SQLite: takes the write lock at once; PostgreSQL: READ COMMITTED */
};

/* scoped(db_tx_end) struct db_tx tx = {0}; rolls back unless committed */
struct db_tx {
    struct db *db;
};

int db_begin(struct db *db, enum db_mode mode, struct db_tx *ret_tx,
             struct err *err) must_check;
/* -ERR_COMMIT_UNKNOWN: the connection was lost while the server was deciding. */
int db_commit(struct db_tx *tx, struct err *err) must_check;
void db_tx_end(struct db_tx *tx);

/* name: letters, digits and _, at most 60 */
int db_savepoint(struct db *db, const char *name, struct err *err) must_check;
int db_release(struct db *db, const char *name, struct err *err) must_check;
int db_rollback_to(struct db *db, const char *name, struct err *err) must_check;

/* --- many rows in --- */

/* scoped(db_copy_abort) struct db_copy copy = {0}; COPY on PostgreSQL, a prepared
 * INSERT on SQLite. Open a transaction first: on SQLite rows before a failure would
 * stay. Nothing else may run on the connection until the end. */
struct db_copy {
    struct db *db;
    void *state; /* the driver's */
    size_t n_columns;
    int64_t rows;
};

/* table may be schema.table; names are quoted here. */
int db_copy_begin(struct db *db, const char *table, const char *const *columns,
                  size_t n_columns, struct db_copy *ret_copy,
                  struct err *err) must_check;
int db_copy_row(struct db_copy *copy, const struct db_value *values,
                struct err *err) must_check;
int db_copy_end(struct db_copy *copy, int64_t *ret_rows, struct err *err) must_check;
void db_copy_abort(struct db_copy *copy);

/* "name" with inner quotes doubled; db_quote_table quotes each part between dots. */
void db_quote_name(struct buf *buf, const char *name);
void db_quote_table(struct buf *buf, const char *table);

/* --- notifications (PostgreSQL, direct connections) --- */

typedef void (*db_notify_fn)(void *arg, const char *channel, const char *payload);

int db_listen(struct db *db, const char *channel, struct err *err) must_check;
int db_notify_fd(const struct db *db); /* readable: call db_notifications; -1: none */
/* Hand over what has arrived, without waiting; returns how many, or < 0. */
int db_notifications(struct db *db, db_notify_fn notify, void *arg,
                     struct err *err) must_check;

/* --- SQLite --- */

typedef int64_t (*db_clock_fn)(void *arg); /* microseconds since 1970 UTC */

/* The SQL functions there: pawl_now(), pawl_sha256(text or blob) in lower hex.
 * Replaces the clock behind pawl_now; no effect on PostgreSQL. */
int db_sqlite_set_clock(struct db *db, db_clock_fn clock, void *arg,
                        struct err *err) must_check;

#endif
