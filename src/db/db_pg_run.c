/*
 * PostgreSQL: running statements. On a direct connection each is prepared once under
 * a name of its own; behind a pooler, where the next statement may meet another
 * server, all go unnamed and in one round trip.
 *
 * A prepared statement can go stale (a table was altered, somebody ran DEALLOCATE
 * ALL). Outside of a transaction it is made anew and run again; inside, the caller is
 * told to repeat the transaction.
 */
#include "db/pg.h"

#include "base/arena.h"
#include "base/err.h"

#include <stdio.h>

static const Oid type_oids[] = {
    [DB_NULL] = 0,          [DB_INT] = 20,         [DB_REAL] = 701,
    [DB_TEXT] = 25,         [DB_BLOB] = 17,        [DB_BOOL] = 16,
    [DB_DECIMAL] = 1700,    [DB_DATE] = 1082,      [DB_TIMESTAMP] = 1184,
    [DB_TEXT_ARRAY] = 1009, [DB_INT_ARRAY] = 1016,
};
static_assert_count(type_oids, DB_TYPE_COUNT);

/* The statement's hints as oids; all zero lets the server infer. */
static void
fill_oids(const struct db_sql *sql, Oid *oids)
{
    for (int i = 0; i < sql->n_params; i++)
        oids[i] = sql->param_types ? type_oids[sql->param_types[i]] : 0;
}

static void
stmt_free(struct pg_stmt *stmt)
{
    cache_entry_release(&stmt->entry);
    free(stmt);
}

static void
stmt_deallocate(struct pg_db *pg, struct pg_stmt *stmt)
{
    char text[64];

    snprintf(text, sizeof(text), "DEALLOCATE %s", stmt->name);
    PQclear(pg_run_text(pg, text));
    stmt_free(stmt);
}

/* The named statement for sql, prepared if need be. */
static int
acquire(struct pg_db *pg, const struct db_sql *sql, struct pg_stmt **ret_stmt,
        struct err *err)
{
    const char *text = db_sql_text(sql, DB_PG);
    struct cache_entry *entry = cache_find(&pg->cache, text), *left;
    struct pg_stmt *stmt;
    Oid oids[UINT8_MAX];
    PGresult *res;
    int r = 0;

    if (entry) {
        *ret_stmt = container_of(entry, struct pg_stmt, entry);
        return 0;
    }
    stmt = xcalloc(1, sizeof(*stmt));
    cache_entry_init(&stmt->entry, text);
    snprintf(stmt->name, sizeof(stmt->name), "pawl_%lu", ++pg->stmt_number);
    fill_oids(sql, oids);
    res =
        pg_collect(pg, PQsendPrepare(pg->conn, stmt->name, text, sql->n_params, oids));
    if (PQresultStatus(res) != PGRES_COMMAND_OK)
        r = pg_fail(pg, sql->name, text, res, err);
    PQclear(res);
    if (r < 0) {
        stmt_free(stmt);
        return r;
    }
    left = cache_add(&pg->cache, &stmt->entry);
    if (left)
        stmt_deallocate(pg, container_of(left, struct pg_stmt, entry));
    *ret_stmt = stmt;
    return 0;
}

static bool
is_named(const struct pg_db *pg, const struct db_sql *sql)
{
    return !pg->base.pooled && !(sql->flags & DB_ONCE);
}

/* Was the prepared statement at fault? Then it is dropped here. */
static bool
drop_if_stale(struct pg_db *pg, const struct db_sql *sql, const PGresult *res)
{
    const char *state = pg_sqlstate(res);
    const char *message = res ? PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    struct cache_entry *entry;

    if (!is_named(pg, sql))
        return false;
    if (strcmp(state, "26000") != 0 &&
        !(strcmp(state, "0A000") == 0 && message && strstr(message, "cached plan")))
        return false;
    entry = cache_find(&pg->cache, db_sql_text(sql, DB_PG));
    if (!entry)
        return false;
    cache_remove(&pg->cache, entry);
    stmt_free(container_of(entry, struct pg_stmt, entry));
    return true;
}

/* stmt NULL: unnamed. */
static int
send(struct pg_db *pg, const struct db_sql *sql, const struct pg_stmt *stmt,
     const struct pg_params *params)
{
    const char *const *values = params->values;
    Oid oids[UINT8_MAX];

    if (stmt)
        return PQsendQueryPrepared(pg->conn, stmt->name, params->count, values,
                                   params->lens, params->formats, 0);
    fill_oids(sql, oids);
    return PQsendQueryParams(pg->conn, db_sql_text(sql, DB_PG), params->count, oids,
                             values, params->lens, params->formats, 0);
}

/* One attempt. *ret_res is NULL when nothing could be sent. */
static int
run_once(struct pg_db *pg, const struct db_sql *sql, const struct pg_params *params,
         PGresult **ret_res, struct err *err)
{
    struct pg_stmt *stmt = NULL;
    const char *begin;
    int sent;
    int r;

    if (is_named(pg, sql)) {
        r = acquire(pg, sql, &stmt, err);
        if (r < 0)
            return r;
    }
    if (!pg->begin) {
        *ret_res = pg_collect(pg, send(pg, sql, stmt, params));
        return 0;
    }
    begin = pg->begin;
    pg->begin = NULL;
    sent = PQenterPipelineMode(pg->conn) &&
           PQsendQueryParams(pg->conn, begin, 0, NULL, NULL, NULL, NULL, 0) &&
           (!pg->begin_set ||
            PQsendQueryParams(pg->conn, pg->begin_set, 0, NULL, NULL, NULL, NULL, 0)) &&
           send(pg, sql, stmt, params) && PQpipelineSync(pg->conn);
    *ret_res = pg_collect_pipeline(pg, sent);
    return 0;
}

static bool
is_good(const PGresult *res)
{
    ExecStatusType status = PQresultStatus(res);

    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* Bring a connection back that a statement switched to COPY. */
static void
end_copy(struct pg_db *pg, const PGresult *res)
{
    ExecStatusType status = PQresultStatus(res);
    char *row = NULL;

    if (status != PGRES_COPY_IN && status != PGRES_COPY_OUT)
        return;
    if (status == PGRES_COPY_IN)
        PQputCopyEnd(pg->conn, "COPY is not a statement to run here");
    while (status == PGRES_COPY_OUT && PQgetCopyData(pg->conn, &row, 0) > 0)
        PQfreemem(row);
    PQclear(pg_collect(pg, 1));
}

static int
run(struct pg_db *pg, const struct db_sql *sql, const struct db_value *values,
    size_t count, PGresult **ret_res, struct err *err)
{
    scoped(pg_params_release) struct pg_params params;
    PGresult *res = NULL;
    int r;

    params.text = (struct buf){0}; /* the rest is filled as far as it is used */
    r = pg_check_free(pg, sql->name, err);
    if (r < 0)
        return r;
    r = pg_params_init(&params, sql->name, values, count, err);
    if (r == 0)
        r = run_once(pg, sql, &params, &res, err);
    if (r == 0 && !is_good(res) && drop_if_stale(pg, sql, res)) {
        if (PQtransactionStatus(pg->conn) == PQTRANS_IDLE) {
            PQclear(res);
            res = NULL;
            r = run_once(pg, sql, &params, &res, err);
        } else {
            r = db_fail(err, ERR_DB_CONFLICT, pg_sqlstate(res),
                        "%s: the prepared statement went stale, run the transaction "
                        "again",
                        sql->name);
        }
    }
    if (r == 0 && !is_good(res)) {
        end_copy(pg, res);
        r = pg_fail(pg, sql->name, db_sql_text(sql, DB_PG), res, err);
    }
    if (r < 0) {
        PQclear(res);
        return r;
    }
    *ret_res = res;
    return 0;
}

/* SELECT counts the rows it gave, which are no changes. */
static int64_t
changes_of(PGresult *res)
{
    const char *status = PQcmdStatus(res);

    if (strncmp(status, "SELECT", 6) == 0 || strncmp(status, "FETCH", 5) == 0)
        return 0;
    return strtoll(PQcmdTuples(res), NULL, 10);
}

int
pg_exec(struct db *db, const struct db_sql *sql, const struct db_value *params,
        size_t count, struct err *err)
{
    PGresult *res;
    int r;

    r = run(pg_of(db), sql, params, count, &res, err);
    if (r < 0)
        return r;
    db->changes = changes_of(res);
    PQclear(res);
    return 0;
}

int
pg_script(struct db *db, const char *text, struct err *err)
{
    struct pg_db *pg = pg_of(db);
    PGresult *res;
    int r;

    r = pg_check_free(pg, "script", err);
    if (r == 0)
        r = pg_begin_now(pg, err);
    if (r < 0)
        return r;
    res = pg_run_text(pg, text);
    if (!is_good(res) && PQresultStatus(res) != PGRES_EMPTY_QUERY) {
        end_copy(pg, res);
        r = pg_fail(pg, "script", text, res, err);
    }
    PQclear(res);
    return r;
}

/* --- rows --- */

static struct pg_cursor *
cursor_new(const struct db_sql *sql, PGresult *res)
{
    struct pg_cursor *cursor = xcalloc(1, sizeof(*cursor));

    snprintf(cursor->name, sizeof(cursor->name), "%s", sql->name);
    cursor->res = res;
    cursor->row = -1;
    return cursor;
}

static int
send_stream(struct pg_db *pg, const struct db_sql *sql, const struct pg_params *params,
            struct err *err)
{
    const char *text = db_sql_text(sql, DB_PG);
    Oid oids[UINT8_MAX];

    /* Unnamed: the rows of a stream cost more than its planning. */
    fill_oids(sql, oids);
    if (PQsendQueryParams(pg->conn, text, params->count, oids, params->values,
                          params->lens, params->formats, 0) == 1 &&
        PQsetSingleRowMode(pg->conn) == 1)
        return 0;
    return pg_fail(pg, sql->name, NULL, NULL, err);
}

static void
drain(struct pg_db *pg)
{
    PGresult *res;

    while (pg->base.usable && (res = pg_next_result(pg))) {
        end_copy(pg, res);
        PQclear(res);
    }
}

void
pg_stream_stop(struct pg_db *pg)
{
    struct pg_cursor *cursor = pg->stream;

    if (!cursor)
        return;
    pg->stream = NULL;
    if (cursor->finished)
        return;
    pg_cancel_ask(pg);
    pg_wait_start(pg);
    pg_wait_no_longer(pg);
    drain(pg);
    cursor->finished = true;
    if (pg->base.in_tx)
        pg->base.tx_failed = true;
}

/* The next result of a stream into cursor->res; 1 a row, 0 the end. */
static int
stream_step(struct pg_db *pg, struct pg_cursor *cursor, struct err *err)
{
    PGresult *res;
    int r = 0;

    pg_wait_start(pg);
    res = pg_next_result(pg);
    if (PQresultStatus(res) == PGRES_SINGLE_TUPLE) {
        PQclear(cursor->res);
        cursor->res = res;
        return 1;
    }
    cursor->finished = true;
    pg->stream = NULL;
    if (is_good(res)) {
        pg->base.changes = changes_of(res);
    } else {
        end_copy(pg, res);
        r = pg_fail(pg, cursor->name, cursor->text, res, err);
    }
    drain(pg);
    PQclear(cursor->res);
    cursor->res = res; /* without rows, but it knows the columns */
    return r;
}

static int
query_stream(struct pg_db *pg, const struct db_sql *sql, const struct db_value *values,
             size_t count, void **ret_cursor, struct err *err)
{
    scoped(pg_params_release) struct pg_params params;
    struct pg_cursor *cursor;
    int r;

    params.text = (struct buf){0}; /* the rest is filled as far as it is used */
    r = pg_check_free(pg, sql->name, err);
    if (r == 0)
        r = pg_begin_now(pg, err);
    if (r < 0)
        return r;
    r = pg_params_init(&params, sql->name, values, count, err);
    if (r == 0)
        r = send_stream(pg, sql, &params, err);
    if (r < 0)
        return r;
    cursor = cursor_new(sql, NULL);
    cursor->text = xstrdup(db_sql_text(sql, DB_PG));
    cursor->stream = true;
    pg->stream = cursor;
    r = stream_step(pg, cursor, err);
    if (r < 0) {
        pg_end(&pg->base, cursor);
        return r;
    }
    cursor->row_waits = r == 1;
    *ret_cursor = cursor;
    return 0;
}

int
pg_query(struct db *db, const struct db_sql *sql, const struct db_value *params,
         size_t count, void **ret_cursor, struct err *err)
{
    struct pg_db *pg = pg_of(db);
    PGresult *res;
    int r;

    if (sql->flags & DB_STREAM)
        return query_stream(pg, sql, params, count, ret_cursor, err);
    r = run(pg, sql, params, count, &res, err);
    if (r < 0)
        return r;
    db->changes = changes_of(res);
    *ret_cursor = cursor_new(sql, res);
    return 0;
}

/*
 * Preparing and describing are two exchanges, and behind a pooler each could meet
 * another server: a transaction around them holds one.
 */
static int
describe_unnamed(struct pg_db *pg, const struct db_sql *sql, PGresult **ret_res,
                 struct err *err)
{
    const char *text = db_sql_text(sql, DB_PG);
    bool wrap = PQtransactionStatus(pg->conn) == PQTRANS_IDLE;
    Oid oids[UINT8_MAX];
    PGresult *res;
    int r = 0;

    if (wrap)
        r = pg_script(&pg->base, "BEGIN", err);
    if (r < 0)
        return r;
    fill_oids(sql, oids);
    res = pg_collect(pg, PQsendPrepare(pg->conn, "", text, sql->n_params, oids));
    if (is_good(res)) {
        PQclear(res);
        res = pg_collect(pg, PQsendDescribePrepared(pg->conn, ""));
    }
    if (!is_good(res))
        r = pg_fail(pg, sql->name, text, res, err);
    if (wrap)
        PQclear(pg_run_text(pg, "ROLLBACK"));
    if (r < 0)
        PQclear(res);
    else
        *ret_res = res;
    return r;
}

int
pg_describe(struct db *db, const struct db_sql *sql, void **ret_cursor, struct err *err)
{
    struct pg_db *pg = pg_of(db);
    PGresult *res;
    int r;

    r = pg_check_free(pg, sql->name, err);
    if (r == 0)
        r = pg_begin_now(pg, err);
    if (r == 0)
        r = describe_unnamed(pg, sql, &res, err);
    if (r < 0)
        return r;
    *ret_cursor = cursor_new(sql, res);
    return 0;
}

int
pg_next(struct db *db, void *state, struct err *err)
{
    struct pg_db *pg = pg_of(db);
    struct pg_cursor *cursor = state;

    pg_forget_bytes(cursor);
    if (!cursor->stream) {
        if (cursor->row + 1 >= PQntuples(cursor->res))
            return 0;
        cursor->row++;
        return 1;
    }
    cursor->row = 0;
    if (cursor->row_waits) {
        cursor->row_waits = false;
        return 1;
    }
    if (cursor->finished)
        return 0;
    return stream_step(pg, cursor, err);
}

void
pg_end(struct db *db, void *state)
{
    struct pg_db *pg = pg_of(db);
    struct pg_cursor *cursor = state;

    if (pg->stream == cursor)
        pg_stream_stop(pg);
    pg_forget_bytes(cursor);
    free(cursor->bytes);
    free(cursor->lens);
    free(cursor->text);
    PQclear(cursor->res);
    free(cursor);
}
