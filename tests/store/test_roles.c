/*
 * The roles of PostgreSQL: each named statement may be run by the roles that need it,
 * and applying the rights again sets them right.
 */
#include "tests/store/roles.h"

#include "base/arena.h"
#include "base/buf.h"
#include "store/roles.h"
#include "store/sql_tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
                                       STMT_BATCH_RECOVERY_ASK, STMT_PAUSE_SETTLE};
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
    STMT_PRUNE_RESULTS_GONE,
    STMT_PRUNE_KEYS,
    STMT_PRUNE_REQUESTS_GONE,
    STMT_PRUNE_RECORDS,
    STMT_DELIVERY_TAKE,
    STMT_DELIVERY_DONE,
    STMT_DELIVERY_AGAIN,
    STMT_DELIVERY_GIVE_BACK,
    STMT_DELIVERY_DROP,
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
    static const char *const words[] = {"INSERT INTO",  "UPDATE pawl.",  "DELETE FROM",
                                        "FOR UPDATE",   "FOR KEY SHARE", "open_ranges",
                                        "hold_running", "_gone("};

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
    db_closep(&db);
    snprintf(url, sizeof(url), "postgresql://pawl_api%s", at);
    assert_ok(db_open(&options, &db, &err), &err);
    got = ask(db,
              "SELECT concat_ws(' ', current_user,"
              " current_setting('plan_cache_mode'), current_setting('enable_seqscan'))",
              &err);
    assert_non_null(got);
    assert_string_equal(got, "pawl_api force_generic_plan on\n");
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
        store_test_pg(test_applying_again_takes_away_what_was_granted_by_hand),
        store_test_pg(test_what_an_administrator_has_set_stays),
        store_test_pgbouncer(test_the_settings_hold_behind_a_pooler),
        store_test_pg(test_a_role_that_owns_nothing_migrates_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
