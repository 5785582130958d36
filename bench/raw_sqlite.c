/*
 * SQLite's limit: prepared statements, one transaction a call, WAL and
 * synchronous=FULL as the store has them. A call begins with BEGIN IMMEDIATE, so that
 * threads wait for each other instead of failing.
 */
#include "bench/raw.h"

#include "base/arena.h"
#include "bench/bench.h"

#include <sqlite3.h>
#include <stdlib.h>

#define STR_(x) #x
#define STR(x)  STR_(x)

enum statement { BEGIN, COMMIT, INSERT, FILL, PICK, TAKE, CLAIM, DROP, OUTCOME, COUNT };

static const char *const texts[COUNT] = {
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [INSERT] = "INSERT INTO request (" RAW_COLUMNS ") VALUES (?1, '" RAW_JOB
               "', '" RAW_GIVEN "', '" RAW_REQUESTER "', 'api', '" RAW_LANE
               "', 0, NULL, NULL, NULL, NULL, NULL, 1, NULL, NULL, NULL, NULL, " STR(
                   RAW_NOW_US) ")",
    [FILL] = "INSERT INTO ready (first_id, last_id, job, lane, priority, seq, "
             "ready_since) VALUES (?1, ?1, '" RAW_JOB "', '" RAW_LANE
             "', 0, ?1, " STR(RAW_NOW_US) ")",
    [PICK] = "SELECT first_id FROM ready WHERE lane = '" RAW_LANE
             "' ORDER BY priority DESC, seq LIMIT ?1",
    [TAKE] = "DELETE FROM ready WHERE first_id = ?1",
    [CLAIM] = "INSERT INTO claim (first_id, last_id, job, lane, worker, token, nonce, "
              "claimed_at) VALUES (?1, ?1, '" RAW_JOB "', '" RAW_LANE "', '" RAW_WORKER
              "', ?1, '" RAW_NONCE "', " STR(RAW_NOW_US) ")",
    [DROP] = "DELETE FROM claim WHERE first_id = ?1",
    [OUTCOME] = "INSERT INTO outcome (id, outcome, worker, token, claimed_at, "
                "finished_at) VALUES (?1, 'COMPLETED', '" RAW_WORKER
                "', ?1, " STR(RAW_NOW_US) ", " STR(RAW_NOW_US) ")",
};

struct raw {
    sqlite3 *db;
    sqlite3_stmt *statements[COUNT];
};

static void
check(struct raw *raw, int rc)
{
    if (rc != SQLITE_OK && rc != SQLITE_DONE && rc != SQLITE_ROW)
        bench_die("sqlite3: %s", sqlite3_errmsg(raw->db));
}

static void
run(struct raw *raw, enum statement which, int64_t number)
{
    sqlite3_stmt *statement = raw->statements[which];

    if (sqlite3_bind_parameter_count(statement) > 0)
        check(raw, sqlite3_bind_int64(statement, 1, number));
    check(raw, sqlite3_step(statement));
    check(raw, sqlite3_reset(statement));
}

static struct raw *
lite_open(const char *place)
{
    struct raw *raw = xcalloc(1, sizeof(*raw));

    check(raw, sqlite3_open_v2(place, &raw->db, SQLITE_OPEN_READWRITE, NULL));
    check(raw, sqlite3_busy_timeout(raw->db, 60000));
    check(raw, sqlite3_exec(raw->db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL",
                            NULL, NULL, NULL));
    for (int i = 0; i < COUNT; i++)
        check(raw, sqlite3_prepare_v3(raw->db, texts[i], -1, SQLITE_PREPARE_PERSISTENT,
                                      &raw->statements[i], NULL));
    return raw;
}

static void
lite_close(struct raw *raw)
{
    for (int i = 0; i < COUNT; i++)
        sqlite3_finalize(raw->statements[i]);
    sqlite3_close(raw->db);
    free(raw);
}

static int64_t
lite_last_id(struct raw *raw)
{
    sqlite3_stmt *statement;
    int64_t id;

    check(raw, sqlite3_prepare_v2(raw->db,
                                  "SELECT max(coalesce((SELECT max(id) FROM request), "
                                  "0), coalesce((SELECT max(id) FROM outcome), 0))",
                                  -1, &statement, NULL));
    check(raw, sqlite3_step(statement));
    id = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return id;
}

static void
lite_insert(struct raw *raw, int64_t first_id, size_t count)
{
    run(raw, BEGIN, 0);
    for (size_t i = 0; i < count; i++)
        run(raw, INSERT, first_id + (int64_t)i);
    run(raw, COMMIT, 0);
}

static void
lite_fill(struct raw *raw, int64_t first_id, size_t count)
{
    run(raw, BEGIN, 0);
    for (size_t i = 0; i < count; i++)
        run(raw, FILL, first_id + (int64_t)i);
    run(raw, COMMIT, 0);
}

static size_t
lite_claim(struct raw *raw, size_t most, int64_t *ret_ids)
{
    sqlite3_stmt *pick = raw->statements[PICK];
    size_t count = 0;

    run(raw, BEGIN, 0);
    check(raw, sqlite3_bind_int64(pick, 1, (int64_t)most));
    while (sqlite3_step(pick) == SQLITE_ROW)
        ret_ids[count++] = sqlite3_column_int64(pick, 0);
    check(raw, sqlite3_reset(pick));
    for (size_t i = 0; i < count; i++) {
        run(raw, TAKE, ret_ids[i]);
        run(raw, CLAIM, ret_ids[i]);
    }
    run(raw, COMMIT, 0);
    return count;
}

static void
lite_finish(struct raw *raw, const int64_t *ids, size_t count)
{
    run(raw, BEGIN, 0);
    for (size_t i = 0; i < count; i++) {
        run(raw, DROP, ids[i]);
        run(raw, OUTCOME, ids[i]);
    }
    run(raw, COMMIT, 0);
}

const struct raw_ops raw_sqlite = {
    .open = lite_open,
    .close = lite_close,
    .last_id = lite_last_id,
    .insert = lite_insert,
    .fill = lite_fill,
    .claim = lite_claim,
    .finish = lite_finish,
};
