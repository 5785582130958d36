/* Shared by the files of the PostgreSQL driver; nobody else includes this. */
#ifndef DB_PG_H
#define DB_PG_H

#include "base/buf.h"
#include "db/cache.h"
#include "db/driver.h"

#include <libpq-fe.h>

struct pg_cancel;
struct pg_cursor;

struct pg_db {
    struct db base;
    PGconn *conn;
    struct pg_cancel *cancel;  /* made at the start: another thread may use it */
    struct stmt_cache cache;   /* of struct pg_stmt; unused behind a pooler */
    unsigned long stmt_number; /* the last name given: "pawl_7" */
    struct pg_cursor *stream;  /* has the connection for itself */
    const char *begin;     /* BEGIN that goes with the next statement; NULL = none */
    const char *begin_set; /* and a setting of that transaction; NULL = none */
    char write_set[200];   /* of each writing transaction; "" = none */
    bool read_unset;       /* what the session has set is not for reading ones */

    /* Waiting (db_pg_wait.c). */
    int connect_ms;  /* how long the server may take to answer at all */
    int patience_ms; /* how long a statement may take, 0 = for ever */
    bool may_cancel; /* at the end of patience: cancel first, then give up */
    bool asked_cancel;
    bool hurrying;       /* the running statement's limit is that of db_cancel */
    int64_t deadline_ms; /* of the running statement, 0 = none */
};

/* A named statement on the server. */
struct pg_stmt {
    struct cache_entry entry;
    char name[32];
};

struct pg_cursor {
    PGresult *res;
    char name[64]; /* of the statement: for messages */
    char *text;    /* of a stream: for places in messages */
    int row;       /* current row in res; -1 before the first */
    bool stream;
    bool row_waits; /* of a stream: res holds a row that next has not given yet */
    bool finished;  /* of a stream: the server has nothing more to say */
    void **bytes;   /* decoded bytea cells of the current row, one per column */
    size_t *lens;
};

/* Parameters in libpq's shape. */
struct pg_params {
    int count;
    const char *values[UINT8_MAX];
    int lens[UINT8_MAX];
    int formats[UINT8_MAX];
    struct buf text; /* what had to be spelled out */
};

static inline struct pg_db *
pg_of(struct db *db)
{
    return container_of(db, struct pg_db, base);
}

/* Failure of res (may be NULL: the connection's). Marks a lost connection. */
int pg_fail(struct pg_db *pg, const char *what, const char *text, const PGresult *res,
            struct err *err);
/* The SQLSTATE of res, "" when it has none. */
const char *pg_sqlstate(const PGresult *res);
/* Nothing may run while a stream has the connection, or a request to cancel is on its
 * way. */
int pg_check_free(struct pg_db *pg, const char *what, struct err *err) must_check;
/* Drop what is left of a stream, stopping the server if it takes long. */
void pg_stream_stop(struct pg_db *pg);

/* Waiting (db_pg_wait.c). What a PQsend… call sent is awaited within pg->patience_ms:
 * the last result, or the first failure; NULL when it was not sent or the connection
 * was given up. The caller clears it. */
PGresult *pg_collect(struct pg_db *pg, int sent);
PGresult *pg_run_text(struct pg_db *pg, const char *text);
/* The same for a pipeline up to its sync, which is left again. */
PGresult *pg_collect_pipeline(struct pg_db *pg, int sent);
/* The pieces of it, for streams: start, then one result after the other. */
void pg_wait_start(struct pg_db *pg);
/* The server has been asked to cancel: it has PG_GRACE_MS from now. */
void pg_wait_no_longer(struct pg_db *pg);
PGresult *pg_next_result(struct pg_db *pg);
/* Send what is put together, within pg->patience_ms; false: the connection is lost. */
bool pg_send_all(struct pg_db *pg);
int pg_ping(struct db *db, struct err *err) must_check;

void pg_params_release(struct pg_params *params);
int pg_params_init(struct pg_params *params, const char *what,
                   const struct db_value *values, size_t count,
                   struct err *err) must_check;

/* Before what cannot go with a BEGIN in one round trip. */
int pg_begin_now(struct pg_db *pg, struct err *err) must_check;

/* Statements (db_pg_run.c). */
int pg_exec(struct db *db, const struct db_sql *sql, const struct db_value *params,
            size_t count, struct err *err) must_check;
int pg_script(struct db *db, const char *text, struct err *err) must_check;
int pg_query(struct db *db, const struct db_sql *sql, const struct db_value *params,
             size_t count, void **ret_cursor, struct err *err) must_check;
int pg_describe(struct db *db, const struct db_sql *sql, void **ret_cursor,
                struct err *err) must_check;
int pg_next(struct db *db, void *cursor, struct err *err) must_check;
void pg_end(struct db *db, void *cursor);

/* Cells (db_pg_cell.c). */
int pg_param_count(struct db *db, void *cursor);
int pg_column_count(struct db *db, void *cursor);
const char *pg_column_name(struct db *db, void *cursor, int column);
enum db_type pg_column_type(struct db *db, void *cursor, int column);
struct db_value pg_cell(struct db *db, void *cursor, int column);
const char *pg_cell_text(struct db *db, void *cursor, int column, size_t *ret_len);
void pg_forget_bytes(struct pg_cursor *cursor);

/* COPY (db_pg_copy.c). */
int pg_copy_begin(struct db *db, const char *table, const char *const *columns,
                  size_t n_columns, void **ret_state, struct err *err) must_check;
int pg_copy_row(struct db *db, void *state, const struct db_value *values,
                size_t n_columns, struct err *err) must_check;
int pg_copy_end(struct db *db, void *state, struct err *err) must_check;
void pg_copy_abort(struct db *db, void *state);

/* How long a server may take to answer that has been asked to cancel. */
#define PG_GRACE_MS 5000

/* Cancelling (db_pg_cancel.c). pg_cancel: any thread; what is under way, and what comes
 * after it, has an answer within PG_GRACE_MS or the connection is given up. _ask sends
 * the request only. Neither waits for the server. _settle: before the next statement;
 * what was asked for has come through, or the connection is given up. */
struct pg_cancel *pg_cancel_new(PGconn *conn);
void pg_cancel_drop(struct pg_cancel *cancel); /* accepts NULL */
void pg_cancel_ask(struct pg_db *pg);
void pg_cancel_settle(struct pg_db *pg);
void pg_cancel(struct db *db);

/* LISTEN (db_pg_listen.c). */
int pg_listen(struct db *db, const char *channel, struct err *err) must_check;
int pg_notify_fd(const struct db *db);
int pg_notifications(struct db *db, db_notify_fn notify, void *arg,
                     struct err *err) must_check;

#endif
