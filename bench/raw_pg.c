/*
 * PostgreSQL's limit: one prepared statement, one round trip and one commit a call;
 * many rows as arrays (unnest), which is the quickest INSERT there is.
 */
#include "bench/raw.h"

#include "base/arena.h"
#include "base/buf.h"
#include "bench/bench.h"

#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

#define STR_(x) #x
#define STR(x)  STR_(x)

#define ARRAY_MAX ((size_t)64 << 20)

enum statement { INSERT_ONE, INSERT_MANY, FILL, CLAIM, FINISH, COUNT };

static const char *const texts[COUNT] = {
    [INSERT_ONE] = "INSERT INTO pawl.request (" RAW_COLUMNS ") VALUES ($1, $2, $3, $4, "
                   "$5, $6, $7, NULL, NULL, NULL, NULL, NULL, $8, NULL, NULL, NULL, "
                   "NULL, $9)",
    [INSERT_MANY] =
        "INSERT INTO pawl.request (" RAW_COLUMNS ") SELECT id, job, given, requester, "
        "source, lane, priority, NULL, NULL, NULL, NULL, NULL, attempt, NULL, NULL, "
        "NULL, NULL, created_at FROM unnest($1::bigint[], $2::text[], $3::text[], "
        "$4::text[], $5::text[], $6::text[], $7::smallint[], $8::int[], $9::bigint[]) "
        "AS u (id, job, given, requester, source, lane, priority, attempt, created_at)",
    [FILL] = "INSERT INTO pawl.ready (first_id, last_id, job, lane, priority, seq, "
             "ready_since) SELECT n, n, '" RAW_JOB "', '" RAW_LANE
             "', 0, n, " STR(RAW_NOW_US) " FROM generate_series($1::bigint, "
                                         "$2::bigint) n",
    [CLAIM] = "WITH gone AS (DELETE FROM pawl.ready WHERE first_id = ANY (ARRAY("
              "SELECT first_id FROM pawl.ready WHERE lane = '" RAW_LANE
              "' ORDER BY priority DESC, seq LIMIT $1::bigint FOR UPDATE SKIP LOCKED)) "
              "RETURNING first_id, last_id, job, lane) "
              "INSERT INTO pawl.claim (first_id, last_id, job, lane, worker, token, "
              "nonce, claimed_at) SELECT first_id, last_id, job, lane, '" RAW_WORKER
              "', nextval('pawl.token'), '" RAW_NONCE
              "', " STR(RAW_NOW_US) " FROM gone RETURNING first_id",
    [FINISH] =
        "WITH gone AS (DELETE FROM pawl.claim WHERE first_id = ANY "
        "($1::bigint[]) RETURNING first_id, worker, token, claimed_at) "
        "INSERT INTO pawl.outcome (id, outcome, worker, token, claimed_at, "
        "finished_at) SELECT first_id, 'COMPLETED', worker, token, claimed_at, " STR(
            RAW_NOW_US) " FROM gone",
};

/* The parameters of an INSERT after the id. */
static const char *const values[] = {
    RAW_JOB, RAW_GIVEN, RAW_REQUESTER, "api", RAW_LANE, "0", "1", STR(RAW_NOW_US)};

struct raw {
    PGconn *conn;
    struct buf ids;
    struct buf columns[array_len(values)]; /* arrays of count equal elements */
    size_t count;
};

static PGresult *
check(struct raw *raw, PGresult *res)
{
    ExecStatusType status = PQresultStatus(res);

    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        bench_die("PostgreSQL: %s", PQerrorMessage(raw->conn));
    return res;
}

static PGresult *
run(struct raw *raw, enum statement which, const char *const *params, int count)
{
    char name[16];

    snprintf(name, sizeof(name), "s%d", (int)which);
    return check(raw, PQexecPrepared(raw->conn, name, count, params, NULL, NULL, 0));
}

static struct raw *
pg_open(const char *place)
{
    struct raw *raw = xcalloc(1, sizeof(*raw));

    raw->conn = PQconnectdb(place);
    if (PQstatus(raw->conn) != CONNECTION_OK)
        bench_die("PostgreSQL: %s", PQerrorMessage(raw->conn));
    PQclear(check(raw, PQexec(raw->conn, "SET plan_cache_mode = force_generic_plan; "
                                         "SET enable_seqscan = off")));
    for (int i = 0; i < COUNT; i++) {
        char name[16];

        snprintf(name, sizeof(name), "s%d", i);
        PQclear(check(raw, PQprepare(raw->conn, name, texts[i], 0, NULL)));
    }
    buf_init(&raw->ids, ARRAY_MAX);
    for (size_t i = 0; i < array_len(values); i++)
        buf_init(&raw->columns[i], ARRAY_MAX);
    return raw;
}

static void
pg_close(struct raw *raw)
{
    PQfinish(raw->conn);
    buf_release(&raw->ids);
    for (size_t i = 0; i < array_len(values); i++)
        buf_release(&raw->columns[i]);
    free(raw);
}

static int64_t
pg_last_id(struct raw *raw)
{
    PGresult *res = check(
        raw, PQexec(raw->conn, "SELECT greatest((SELECT max(id) FROM pawl.request), "
                               "(SELECT max(id) FROM pawl.outcome), 0)"));
    int64_t id = strtoll(PQgetvalue(res, 0, 0), NULL, 10);

    PQclear(res);
    return id;
}

/* '{"…","…"}', written once: only the ids differ from call to call. */
static void
make_columns(struct raw *raw, size_t count)
{
    if (raw->count == count)
        return;
    raw->count = count;
    for (size_t i = 0; i < array_len(values); i++) {
        struct buf *column = &raw->columns[i];

        buf_clear(column);
        for (size_t k = 0; k < count; k++) {
            buf_add_str(column, k ? ",\"" : "{\"");
            for (const char *c = values[i]; *c; c++) {
                if (*c == '"' || *c == '\\')
                    buf_add_char(column, '\\');
                buf_add_char(column, *c);
            }
            buf_add_char(column, '"');
        }
        buf_add_char(column, '}');
    }
}

static void
insert_many(struct raw *raw, int64_t first_id, size_t count)
{
    const char *params[1 + array_len(values)];

    make_columns(raw, count);
    buf_clear(&raw->ids);
    for (size_t i = 0; i < count; i++)
        buf_addf(&raw->ids, "%c%" PRId64, i ? ',' : '{', first_id + (int64_t)i);
    buf_add_char(&raw->ids, '}');
    params[0] = buf_str(&raw->ids);
    for (size_t i = 0; i < array_len(values); i++)
        params[1 + i] = buf_str(&raw->columns[i]);
    PQclear(run(raw, INSERT_MANY, params, array_len(params)));
}

static void
pg_insert(struct raw *raw, int64_t first_id, size_t count)
{
    const char *params[1 + array_len(values)];
    char id[24];

    if (count > 1) {
        insert_many(raw, first_id, count);
        return;
    }
    snprintf(id, sizeof(id), "%" PRId64, first_id);
    params[0] = id;
    for (size_t i = 0; i < array_len(values); i++)
        params[1 + i] = values[i];
    PQclear(run(raw, INSERT_ONE, params, array_len(params)));
}

static void
pg_fill(struct raw *raw, int64_t first_id, size_t count)
{
    char first[24], last[24];

    snprintf(first, sizeof(first), "%" PRId64, first_id);
    snprintf(last, sizeof(last), "%" PRId64, first_id + (int64_t)count - 1);
    PQclear(run(raw, FILL, (const char *const[]){first, last}, 2));
}

static size_t
pg_claim(struct raw *raw, size_t most, int64_t *ret_ids)
{
    char limit[24];
    PGresult *res;
    size_t count;

    snprintf(limit, sizeof(limit), "%zu", most);
    res = run(raw, CLAIM, (const char *const[]){limit}, 1);
    count = (size_t)PQntuples(res);
    for (size_t i = 0; i < count; i++)
        ret_ids[i] = strtoll(PQgetvalue(res, (int)i, 0), NULL, 10);
    PQclear(res);
    return count;
}

static void
pg_finish(struct raw *raw, const int64_t *ids, size_t count)
{
    buf_clear(&raw->ids);
    for (size_t i = 0; i < count; i++)
        buf_addf(&raw->ids, "%c%" PRId64, i ? ',' : '{', ids[i]);
    buf_add_char(&raw->ids, '}');
    PQclear(run(raw, FINISH, (const char *const[]){buf_str(&raw->ids)}, 1));
}

const struct raw_ops raw_pg = {
    .open = pg_open,
    .close = pg_close,
    .last_id = pg_last_id,
    .insert = pg_insert,
    .fill = pg_fill,
    .claim = pg_claim,
    .finish = pg_finish,
};
