/*
 * The roles of PostgreSQL: each named statement may be run by the roles that need it,
 * and what is forbidden to a role is refused by the server (42501), whoever asks.
 */
#include "tests/store/harness.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/strs.h"
#include "store/roles.h"
#include "store/sql_tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { API = 1, WORKER = 2, READER = 4, SUBMIT = 8 };

static const struct {
    int bit;
    const char *name;
} roles[] = {{API, "pawl_api"}, {WORKER, "pawl_worker"}, {READER, "pawl_reader"}};

static void
apply(struct harness *h)
{
    struct roles_report report;
    struct err err = {0};

    assert_ok(roles_apply(h->store, &report, &err), &err);
    assert_int_equal(report.missing, 0);
    assert_true(report.granted);
    harness_sql(h, "GRANT SELECT ON public.test_clock TO PUBLIC");
}

/* A connection of the role itself, with its settings. */
static struct db *
connect_as(struct harness *h, const char *role)
{
    const char *at = strchr(h->direct_url, '@');
    struct db_options options = {.store = true};
    struct err err = {0};
    struct db *db;
    char url[400];

    assert_non_null(at);
    snprintf(url, sizeof(url), "postgresql://%s%s", role, at);
    options.url = url;
    assert_ok(db_open(&options, &db, &err), &err);
    return db;
}

/* The text of all rows; NULL when it fails, with the reason in err. */
static char *
ask(struct db *db, const char *text, struct err *err)
{
    struct db_sql sql = {.name = "ask", .text = text, .flags = DB_ONCE};
    scoped(db_rows_end) struct db_rows rows = {0};
    scoped(buf_release) struct buf out = {0};
    int r = db_query(db, &sql, NULL, 0, &rows, err);

    buf_init(&out, 0);
    while (r == 0 && (r = db_next(&rows, err)) > 0) {
        if (db_column_count(&rows) > 0)
            buf_addf(&out, "%s\n", db_text(&rows, 0));
        r = 0;
    }
    return r < 0 ? NULL : xstrdup(buf_str(&out));
}

static bool
is_denied(const struct err *err)
{
    return strcmp(err->detail, "42501") == 0;
}

/* --- the named statements --- */

static const char *
type_word(enum db_type type)
{
    switch (type) {
    case DB_INT:
        return "bigint";
    case DB_REAL:
        return "float8";
    case DB_BLOB:
        return "bytea";
    case DB_INT_ARRAY:
        return "bigint[]";
    case DB_TEXT_ARRAY:
        return "text[]";
    default:
        return "text";
    }
}

/* PREPARE, for a plan that rests on no values: what EXPLAIN shows is what runs. */
static void
prepare(struct db *db, const struct db_sql *sql)
{
    scoped(buf_release) struct buf text = {0};
    struct err err = {0};

    buf_init(&text, 0);
    buf_addf(&text, "DEALLOCATE ALL; PREPARE it");
    for (unsigned i = 0; i < sql->n_params; i++)
        buf_addf(&text, "%s%s", i ? ", " : " (", type_word(sql->param_types[i]));
    buf_addf(&text, "%s AS %s", sql->n_params ? ")" : "",
             sql->text_pg ? sql->text_pg : sql->text);
    if (db_script(db, buf_str(&text), &err) < 0)
        fail_msg("%s: %s", sql->name, err.text);
}

/* The plan; NULL when the role may not run it. The server looks at rights before it
 * runs anything, so nothing is changed here. */
static char *
explain(struct db *db, const struct db_sql *sql)
{
    scoped(buf_release) struct buf text = {0};
    struct err err = {0};
    char *plan;

    prepare(db, sql);
    buf_init(&text, 0);
    buf_addf(&text, "EXPLAIN EXECUTE it");
    for (unsigned i = 0; i < sql->n_params; i++)
        buf_addf(&text, "%s", i ? ", NULL" : "(NULL");
    buf_addf(&text, "%s", sql->n_params ? ")" : "");
    plan = ask(db, buf_str(&text), &err);
    if (!plan && !is_denied(&err))
        fail_msg("%s: %s", sql->name, err.text);
    return plan;
}

/* Beyond reading: what only one of the two may run, and what neither may. */
static const enum stmt of_the_api[] = {STMT_PAUSE_PUT, STMT_PAUSE_DROP,
                                       STMT_PAUSE_SETTLE};
static const enum stmt of_the_worker[] = {
    STMT_QUEUE_CLAIM,
    STMT_QUEUE_CLAIM_PUT,
    STMT_QUEUE_CLAIMS_OF,
    STMT_QUEUE_HOLDS,
    STMT_QUEUE_HOLD,
    STMT_QUEUE_HOLD_ALONE,
    STMT_QUEUE_HELD_BY,
    STMT_QUEUE_LOST_TAKE,
    STMT_QUEUE_ORPHANS_TAKE,
    STMT_QUEUE_FINISH_TAKE,
    STMT_QUEUE_PROGRESS,
    STMT_SCHEDULE_SLOT_ADD,
    STMT_SCHEDULE_SLOT_SET,
    STMT_WORKER_REGISTER,
    STMT_WORKER_BEAT,
    STMT_WORKER_BURY,
    STMT_WORKER_REMOVE,
    STMT_FSCK_TOKEN_TWICE,
    STMT_BATCH_INSTANCE_ADD,
    STMT_BATCH_EXECUTION_ADD,
    STMT_BATCH_EXECUTION_MOVE,
    STMT_BATCH_STEP_ADD,
    STMT_BATCH_EXECUTION_TOUCH,
    STMT_BATCH_STEP_MOVE,
    STMT_BATCH_STATE_LOCK,
    STMT_BATCH_STEP_CHECKPOINT,
    STMT_BATCH_STEP_STATE_LOCK,
    STMT_STORE_OPEN_RANGES,
    STMT_BATCH_STEP_PLACE,
    STMT_BUDGET_TAKE,
    STMT_BUDGET_CLOSE,
    STMT_BUDGET_REQUEST_TAKE,
    STMT_BATCH_CLAIM_NONCE,
    STMT_BATCH_SKIP_NOTE,
    STMT_PARTITION_FREE,
    STMT_PARTITION_ADD,
    STMT_PARTITION_AGAIN,
    STMT_PARTITION_HOLD,
    STMT_PARTITION_LET_GO,
    STMT_PARTITION_CHECKPOINT,
    STMT_PARTITION_PLACE,
    STMT_HAND_ADD,
    STMT_HAND_GET,
};
static const enum stmt of_the_owner[] = {STMT_STORE_IDENTITY_MAKE,
                                         STMT_STORE_MIGRATION_DONE};

static bool
is_among(enum stmt stmt, const enum stmt *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == stmt)
            return true;
    return false;
}

static bool
writes(const struct db_sql *sql)
{
    static const char *const words[] = {"INSERT INTO", "UPDATE pawl.",  "DELETE FROM",
                                        "FOR UPDATE",  "FOR KEY SHARE", "open_ranges",
                                        "hold_running"};

    for (size_t i = 0; i < array_len(words); i++)
        if (strstr(sql->text_pg ? sql->text_pg : sql->text, words[i]))
            return true;
    return false;
}

static int
may_run(enum stmt stmt, const struct db_sql *sql)
{
    bool worker = is_among(stmt, of_the_worker, array_len(of_the_worker));
    int who = 0;

    if (is_among(stmt, of_the_owner, array_len(of_the_owner)))
        return 0;
    if (is_among(stmt, of_the_api, array_len(of_the_api)))
        return API;
    who |= worker ? WORKER : WORKER | API;
    /* Keys of clients are no matter for readers. */
    if (!writes(sql) && !worker && stmt != STMT_QUEUE_IDEM_GET &&
        stmt != STMT_FSCK_IDEMPOTENCY)
        who |= READER;
    return who;
}

static int
check_role(struct harness *h, int bit, const char *role)
{
    scoped(db_closep) struct db *db = connect_as(h, role);
    struct err err = {0};
    int bad = 0;

    assert_ok(db_script(db, "SET plan_cache_mode = force_generic_plan", &err), &err);
    for (int stmt = 0; stmt < STMT_COUNT; stmt++) {
        const struct db_sql *sql = &store_statements[DB_PG][stmt];
        bool wanted = sql->text && may_run((enum stmt)stmt, sql) & bit;
        char *plan;

        if (!sql->text)
            continue;
        plan = explain(db, sql);
        if (!plan == wanted) {
            print_error("%s %s %s: correct src/sql/roles/3_grants.sql, or the list "
                        "here\n",
                        role, wanted ? "may not run" : "may run", sql->name);
            bad++;
        }
        free(plan);
    }
    return bad;
}

static void
test_each_role_may_run_the_statements_that_it_needs_and_no_others(struct harness *h)
{
    int bad = 0;

    apply(h);
    for (size_t i = 0; i < array_len(roles); i++)
        bad += check_role(h, roles[i].bit, roles[i].name);
    assert_int_equal(bad, 0);
}

/* A worker's plan must not rest on what a table looked like when it was analysed. */
static void
test_the_claim_walks_the_index_whatever_the_statistics_say(struct harness *h)
{
    scoped(db_closep) struct db *db = NULL;
    const struct db_sql *claim = &store_statements[DB_PG][STMT_QUEUE_CLAIM];
    const char *at;
    char *plan;
    int walks = 0;

    apply(h);
    harness_sql(h, "ANALYZE pawl.ready; ANALYZE pawl.claim; ANALYZE pawl.active");
    db = connect_as(h, "pawl_worker");
    plan = explain(db, claim);
    assert_non_null(plan);
    for (at = plan; (at = strstr(at, "Index Scan using ready_claim")); at++)
        walks++;
    if (walks != 2 || strstr(plan, "Seq Scan on ready") ||
        strstr(plan, "Seq Scan on active"))
        fail_msg("%s", plan);
    free(plan);
    /* What has to read a whole table is not compiled for it: that takes far longer. */
    plan = explain(db, &store_statements[DB_PG][STMT_WORKER_DEAD]);
    assert_non_null(strstr(plan, "Seq Scan on worker"));
    assert_null(strstr(plan, "JIT:"));
    free(plan);
}

static void
test_every_table_stands_in_the_grants(struct harness *h)
{
    char *missing;

    apply(h);
    missing = harness_text(
        h, "SELECT string_agg(c.relname, ', ') FROM pg_class c"
           " WHERE c.relnamespace = 'pawl'::regnamespace AND NOT c.relispartition"
           "  AND c.relkind IN ('r', 'p', 'v', 'S')"
           "  AND NOT (c.relkind = 'S' AND EXISTS (SELECT FROM pg_depend d"
           "   WHERE d.objid = c.oid AND d.deptype = 'i'))"
           "  AND NOT CASE c.relkind WHEN 'S' THEN"
           "   has_sequence_privilege('pawl_worker', c.oid, 'SELECT')"
           "   ELSE has_any_column_privilege('pawl_worker', c.oid, 'SELECT') END");
    if (missing)
        fail_msg("without a row in src/sql/roles/3_grants.sql: %s", missing);
}

/* --- what is forbidden --- */

#define ALL (API | WORKER | READER | SUBMIT)
#define ADD "INSERT INTO pawl.outcome (id, finished_at, outcome"

/* clang-format off */
static const struct {
    int who;
    const char *sql;
} forbidden[] = {
    /* the store itself */
    {ALL, "TRUNCATE pawl.ready"},
    {ALL, "TRUNCATE pawl.request"},
    {ALL, "DROP TABLE pawl.audit"},
    {ALL, "DROP SCHEMA pawl CASCADE"},
    {ALL, "CREATE TABLE pawl.mine (x integer)"},
    {ALL, "CREATE FUNCTION pawl.mine() RETURNS integer LANGUAGE sql AS 'SELECT 1'"},
    {ALL, "CREATE OR REPLACE FUNCTION pawl.pawl_now() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'"},
    {ALL, "CREATE SCHEMA mine"},
    {ALL, "CREATE INDEX ON pawl.claim (nonce)"},
    {ALL, "ALTER TABLE pawl.outcome DISABLE ROW LEVEL SECURITY"},
    {ALL, "ALTER TABLE pawl.request ADD COLUMN x integer"},
    {ALL, "DROP POLICY outcome_api ON pawl.outcome"},
    {ALL, "CREATE TRIGGER t BEFORE INSERT ON pawl.request FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()"},
    {ALL, "LOCK TABLE pawl.request IN ACCESS EXCLUSIVE MODE"},
    {ALL, "SELECT setval('pawl.token', 1)"},
    {ALL, "SELECT setval('pawl.request_id', 1)"},
    {ALL, "UPDATE pawl.store SET store_id = 'x'"},
    {ALL, "INSERT INTO pawl.migration (number, name, applied_at) VALUES (999, 'x', 1)"},
    {ALL, "DELETE FROM pawl.migration"},
    /* more than the store */
    {ALL, "SET ROLE pawl_owner"},
    {ALL, "SET SESSION AUTHORIZATION postgres"},
    {ALL, "CREATE ROLE pawl_mine"},
    {ALL, "COPY pawl.store TO PROGRAM 'cat'"},
    {ALL, "SELECT pg_read_file('/etc/passwd')"},
    /* history is written once */
    {ALL, "UPDATE pawl.request SET given = '{}'"},
    {ALL, "DELETE FROM pawl.request"},
    {ALL, "DELETE FROM pawl.request_rest"},
    {ALL, "SELECT * FROM pawl.outcome_rest"},
    {ALL, "INSERT INTO pawl.outcome_rest (id, outcome, finished_at) VALUES (1, 'COMPLETED', 1)"},
    {ALL, "UPDATE pawl.outcome SET outcome = 'COMPLETED'"},
    {ALL, "DELETE FROM pawl.outcome"},
    {ALL, "UPDATE pawl.audit SET actor = 'x'"},
    {ALL, "DELETE FROM pawl.audit"},
    {ALL, "DELETE FROM pawl.job_definition"},
    {ALL, "DELETE FROM pawl.schedule"},
    {ALL, "DELETE FROM pawl.schedule_slot"},
    {ALL, "UPDATE pawl.schedule_slot SET slot_time = 1"},
    {ALL, "DELETE FROM pawl.instance"},
    {ALL, "UPDATE pawl.instance SET params = '{}'"},
    {ALL, "DELETE FROM pawl.execution"},
    {ALL, "UPDATE pawl.execution SET token = 1"},
    {ALL, "DELETE FROM pawl.step_execution"},
    {ALL, "UPDATE pawl.step_execution SET execution_id = 1"},
    {ALL, "DELETE FROM pawl.idempotency"},
    {ALL, "UPDATE pawl.idempotency SET subject = 'x'"},
    /* a claim is not rewritten, a worker not renamed */
    {ALL, "UPDATE pawl.claim SET token = 1"},
    {ALL, "UPDATE pawl.claim SET nonce = 'x'"},
    {ALL, "UPDATE pawl.claim SET worker = 'x'"},
    {ALL, "UPDATE pawl.worker SET id = 'x'"},
    {ALL, "UPDATE pawl.worker SET seat = 'x'"},
    {ALL, "UPDATE pawl.ready SET seq = 1"},
    {ALL, "UPDATE pawl.ready SET first_id = 1"},
    {ALL, "UPDATE pawl.flag SET asked_by = 'x'"},
    /* the inside of pawl.submit */
    {ALL, "SELECT pawl.take_key('job:x', 1, '{}')"},
    {ALL, "SELECT pawl.lift(1)"},
    /* an api claims nothing, beats nothing, carries nothing out */
    {API | READER | SUBMIT, "SELECT nonce FROM pawl.claim"},
    {API | READER | SUBMIT, "SELECT * FROM pawl.claim"},
    {API | READER | SUBMIT, "DELETE FROM pawl.claim"},
    {API | READER | SUBMIT, "UPDATE pawl.claim SET claimed_at = 1"},
    {API | READER | SUBMIT, "INSERT INTO pawl.claim (first_id, last_id, job, lane, worker, token, nonce, claimed_at) VALUES (1, 1, 'j', 'l', 'w', 1, 'n', 1)"},
    {API | READER | SUBMIT, "SELECT nextval('pawl.token')"},
    {API | READER | SUBMIT, "SELECT pawl.open_ranges()"},
    {API | READER | SUBMIT, "INSERT INTO pawl.worker (id, seat, host, pid, boot_id, started_at, beat_at, lanes, in_use, keys, jobs, version) VALUES ('w', 's', 'h', 1, 'b', 1, 1, '', '', '', '', '')"},
    {API | READER | SUBMIT, "UPDATE pawl.worker SET beat_at = 1"},
    {API | READER | SUBMIT, "DELETE FROM pawl.worker"},
    {API | READER | SUBMIT, "INSERT INTO pawl.progress (request_id, updated_at) VALUES (1, 1)"},
    {API | READER | SUBMIT, "UPDATE pawl.progress SET done = 1"},
    {API | READER | SUBMIT, "INSERT INTO pawl.instance (job, number, identity, params) VALUES ('j', 1, '', '')"},
    {API | READER | SUBMIT, "UPDATE pawl.execution SET state = 'COMPLETED'"},
    {API | READER | SUBMIT, "UPDATE pawl.step_execution SET chunk = 1"},
    {API | READER | SUBMIT, "INSERT INTO pawl.schedule_slot (schedule, slot_time, last_time, state, decided_at) VALUES ('s', 1, 1, 'skipped', 1)"},
    {API | READER | SUBMIT, "UPDATE pawl.schedule_slot SET state = 'skipped'"},
    /* nor does it tell how work ended */
    {API | READER | SUBMIT, ADD ") VALUES (1, 1, 'COMPLETED')"},
    {API | READER | SUBMIT, ADD ") VALUES (1, 1, 'STOPPED')"},
    {API | READER | SUBMIT, ADD ") VALUES (1, 1, 'ERROR')"},
    {API | READER | SUBMIT, ADD ") VALUES (1, 1, 'TIMEOUT')"},
    {API | READER | SUBMIT, ADD ") VALUES (1, 1, 'WORKER_LOST')"},
    {API | READER | SUBMIT, ADD ", worker) VALUES (1, 1, 'CANCELLED', 'w')"},
    {API | READER | SUBMIT, ADD ", token) VALUES (1, 1, 'CANCELLED', 1)"},
    {API | READER | SUBMIT, ADD ", claimed_at) VALUES (1, 1, 'CANCELLED', 1)"},
    {API | READER | SUBMIT, ADD ", execution_id) VALUES (1, 1, 'EXPIRED', 1)"},
    {API | READER | SUBMIT, ADD ", result_path) VALUES (1, 1, 'EXPIRED', 'x')"},
    {API | READER | SUBMIT, ADD ", result_name) VALUES (1, 1, 'REFUSED', 'x')"},
    /* who only reads */
    {READER | SUBMIT, ADD ") VALUES (1, 1, 'CANCELLED')"},
    {READER | SUBMIT, "INSERT INTO pawl.request (id, job, given, requester, source, lane, created_at) VALUES (1, 'j', '{}', 'r', 'api', 'l', 1)"},
    {READER | SUBMIT, "INSERT INTO pawl.ready (first_id, last_id, job, lane, priority, seq, ready_since) VALUES (1, 1, 'j', 'l', 0, 1, 1)"},
    {READER | SUBMIT, "DELETE FROM pawl.ready"},
    {READER | SUBMIT, "UPDATE pawl.ready SET lane = 'x'"},
    {READER | SUBMIT, "DELETE FROM pawl.later"},
    {READER | SUBMIT, "INSERT INTO pawl.flag (request_id, asked_by, asked_at) VALUES (1, 'x', 1)"},
    {READER | SUBMIT, "DELETE FROM pawl.flag"},
    {READER | SUBMIT, "DELETE FROM pawl.progress"},
    {READER | SUBMIT, "DELETE FROM pawl.active"},
    {READER | SUBMIT, "DELETE FROM pawl.wait"},
    {READER | SUBMIT, "INSERT INTO pawl.audit (at, actor, act, subject) VALUES (1, 'a', 'b', 'c')"},
    {READER | SUBMIT, "UPDATE pawl.job_definition SET definition = '{}'"},
    {READER | SUBMIT, "UPDATE pawl.schedule SET paused_by = 'x'"},
    {READER | SUBMIT, "SELECT nextval('pawl.request_id')"},
    {READER | SUBMIT, "SELECT * FROM pawl.idempotency"},
    {READER | SUBMIT, "SELECT first_id FROM pawl.ready FOR UPDATE"},
    {READER | SUBMIT, "SELECT pawl.hold_running(1)"},
    {READER, "SELECT pawl.submit('x')"},
    {READER, "SELECT pawl.try_submit('x')"},
    /* who only submits */
    {SUBMIT, "SELECT * FROM pawl.request"},
    {SUBMIT, "SELECT * FROM pawl.request_view"},
    {SUBMIT, "SELECT * FROM pawl.job_definition"},
    {SUBMIT, "SELECT * FROM pawl.audit"},
};
/* clang-format on */

/* Each in a transaction that is rolled back, so that one that gets through harms none.
 */
static int
try_forbidden(struct db *db, const char *role, const char *sql)
{
    struct err err = {0};
    struct err note = {0};
    char *got;

    assert_ok(db_script(db, "BEGIN", &err), &err);
    got = ask(db, sql, &err);
    assert_ok(db_script(db, "ROLLBACK", &note), &note);
    if (!got && is_denied(&err))
        return 0;
    print_error("%s: %s: %s\n", role, sql, got ? "was carried out" : err.text);
    free(got);
    return 1;
}

static int
try_all_as(struct harness *h, int bit, const char *role)
{
    scoped(db_closep) struct db *db = connect_as(h, role);
    int bad = 0;

    for (size_t i = 0; i < array_len(forbidden); i++)
        if (forbidden[i].who & bit)
            bad += try_forbidden(db, role, forbidden[i].sql);
    return bad;
}

static void
test_what_is_forbidden_to_a_role_is_refused(struct harness *h)
{
    int bad = 0;

    apply(h);
    for (size_t i = 0; i < array_len(roles); i++)
        bad += try_all_as(h, roles[i].bit, roles[i].name);
    /* An application's own role, which was given pawl_submit. */
    harness_sql(h, "DO $$ BEGIN CREATE ROLE pawl_test_app LOGIN; EXCEPTION WHEN"
                   " duplicate_object OR unique_violation THEN NULL; END $$;"
                   "GRANT pawl_submit TO pawl_test_app");
    bad += try_all_as(h, SUBMIT, "pawl_test_app");
    assert_int_equal(bad, 0);
}

static void
test_no_role_has_powers_or_may_hand_on_its_rights(struct harness *h)
{
    apply(h);
    assert_int_equal(
        harness_i64(h,
                    "SELECT count(*) FROM pg_roles WHERE rolname ~ '^pawl_(owner|api|"
                    "worker|reader|submit)$' AND (rolsuper OR rolcreatedb OR"
                    " rolcreaterole OR rolreplication OR rolbypassrls OR"
                    " rolcanlogin = (rolname IN ('pawl_owner', 'pawl_submit')))"),
        0);
    assert_int_equal(
        harness_i64(h, "SELECT count(*) FROM pg_class c, aclexplode(c.relacl) a"
                       " WHERE c.relnamespace = 'pawl'::regnamespace"
                       " AND a.is_grantable AND a.grantee <> c.relowner"),
        0);
}

/* What runs with the rights of the owner is called by whom it is for. */
static void
test_each_function_is_for_the_roles_that_call_it(struct harness *h)
{
    char *got;

    apply(h);
    harness_sql(h, "DO $$ BEGIN CREATE ROLE pawl_test_stranger; EXCEPTION WHEN"
                   " duplicate_object OR unique_violation THEN NULL; END $$");
    got = harness_text(
        h,
        "SELECT string_agg(r.rolname || ' ' || p.proname, ', '"
        "  ORDER BY r.rolname, p.proname COLLATE \"C\")"
        " FROM pg_proc p, pg_roles r WHERE p.pronamespace = 'pawl'::regnamespace"
        "  AND r.rolname IN ('pawl_api', 'pawl_worker', 'pawl_reader', 'pawl_submit',"
        "   'pawl_test_stranger')"
        "  AND p.proname NOT IN ('at', 'pawl_now')"
        "  AND has_function_privilege(r.oid, p.oid, 'EXECUTE')");
    assert_string_equal(got, "pawl_api claims_settled, pawl_api hold_running,"
                             " pawl_api submit, pawl_api try_submit,"
                             " pawl_submit submit, pawl_submit try_submit,"
                             " pawl_worker hold_running, pawl_worker open_ranges,"
                             " pawl_worker submit, pawl_worker try_submit");
    free(got);
}

/* What an api does write of outcomes. */
static void
test_an_api_closes_what_nobody_holds(struct harness *h)
{
    static const char *const words[] = {"CANCELLED", "EXPIRED", "REFUSED"};
    scoped(db_closep) struct db *db = NULL;

    apply(h);
    db = connect_as(h, "pawl_api");
    for (size_t i = 0; i < array_len(words); i++) {
        struct err err = {0};
        char sql[200];
        char *got;

        snprintf(sql, sizeof(sql), ADD ") VALUES (%zu, 1, '%s') RETURNING outcome",
                 i + 1, words[i]);
        got = ask(db, sql, &err);
        if (!got)
            fail_msg("%s: %s", words[i], err.text);
        free(got);
    }
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.outcome"), 3);
}

/* --- applying --- */

static void
test_applying_again_takes_away_what_was_granted_by_hand(struct harness *h)
{
    apply(h);
    harness_sql(h, "GRANT DELETE ON pawl.outcome TO pawl_api;"
                   "GRANT SELECT (nonce) ON pawl.claim TO pawl_reader;"
                   "GRANT EXECUTE ON FUNCTION pawl.open_ranges() TO PUBLIC");
    apply(h);
    assert_int_equal(
        harness_i64(h, "SELECT count(*) FROM (VALUES"
                       " (has_table_privilege('pawl_api', 'pawl.outcome', 'DELETE')),"
                       " (has_column_privilege('pawl_reader', 'pawl.claim', 'nonce',"
                       "  'SELECT')),"
                       " (has_function_privilege('pawl_api', 'pawl.open_ranges()',"
                       "  'EXECUTE'))) v (may) WHERE may"),
        0);
}

static void
test_what_an_administrator_has_set_stays(struct harness *h)
{
    char *got;

    apply(h);
    harness_sql(h, "ALTER ROLE pawl_api IN DATABASE %s SET statement_timeout = '7s'",
                h->database);
    apply(h);
    got = harness_text(h, "SELECT c FROM pg_db_role_setting, unnest(setconfig) c"
                          " WHERE setrole = 'pawl_api'::regrole AND setdatabase ="
                          " (SELECT oid FROM pg_database WHERE datname ="
                          " current_database()) AND c LIKE 'statement_timeout=%%'");
    assert_string_equal(got, "statement_timeout=7s");
    free(got);
    harness_sql(h, "ALTER ROLE pawl_api IN DATABASE %s RESET statement_timeout",
                h->database);
}

/* There a session cannot set them. */
static void
test_the_settings_hold_behind_a_pooler(struct harness *h)
{
    const char *at = strchr(h->url, '@');
    struct db_options options = {.store = true};
    scoped(db_closep) struct db *db = NULL;
    struct err err = {0};
    char url[400];
    char *got;

    apply(h);
    snprintf(url, sizeof(url), "postgresql://pawl_worker%s", at);
    options.url = url;
    assert_ok(db_open(&options, &db, &err), &err);
    assert_true(db_pooled(db));
    got = ask(db,
              "SELECT concat_ws(' ', current_user,"
              " current_setting('plan_cache_mode'), current_setting('enable_seqscan'),"
              " current_setting('jit'), current_setting('synchronous_commit'))",
              &err);
    assert_non_null(got);
    assert_string_equal(got, "pawl_worker force_generic_plan off off on\n");
    free(got);
}

/* Who owns nothing opens a store that is up to date, though asked to migrate. */
static void
test_a_role_that_owns_nothing_migrates_nothing(struct harness *h)
{
    const char *at = strchr(h->direct_url, '@');
    struct store_options options = h->options;
    struct roles_report report;
    struct store *store;
    struct err err = {0};
    char url[400];

    apply(h);
    snprintf(url, sizeof(url), "postgresql://pawl_worker%s", at);
    options.url = url;
    assert_ok(store_open(&options, &store, &err), &err);
    assert_ok(roles_apply(store, &report, &err), &err);
    assert_false(report.granted);
    store_close(store);
    harness_sql(h, "DELETE FROM pawl.migration WHERE number ="
                   " (SELECT max(number) FROM pawl.migration)");
    assert_int_equal(store_open(&options, &store, &err), -ERR_SCHEMA);
    assert_non_null(strstr(err.text, "pawl migrate"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test_pg(
            test_each_role_may_run_the_statements_that_it_needs_and_no_others),
        store_test_pg(test_the_claim_walks_the_index_whatever_the_statistics_say),
        store_test_pg(test_every_table_stands_in_the_grants),
        store_test_pg(test_what_is_forbidden_to_a_role_is_refused),
        store_test_pg(test_no_role_has_powers_or_may_hand_on_its_rights),
        store_test_pg(test_each_function_is_for_the_roles_that_call_it),
        store_test_pg(test_an_api_closes_what_nobody_holds),
        store_test_pg(test_applying_again_takes_away_what_was_granted_by_hand),
        store_test_pg(test_what_an_administrator_has_set_stays),
        store_test_pgbouncer(test_the_settings_hold_behind_a_pooler),
        store_test_pg(test_a_role_that_owns_nothing_migrates_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
