/* What is forbidden to a role is refused by the server (42501), whoever asks. */
#include "tests/store/roles.h"

#include <stdio.h>
#include <stdlib.h>

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
    {READER | SUBMIT | API, "SELECT pawl.keys_gone(1, 1)"},
    {READER | SUBMIT | API, "SELECT pawl.results_gone(ARRAY[1])"},
    {READER | SUBMIT | API, "SELECT pawl.requests_gone(ARRAY[1], 1)"},
    {READER | SUBMIT | API, "SELECT pawl.records_gone(1, 1)"},
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
    {API | READER | SUBMIT, "UPDATE pawl.delivery SET due_at = 1"},
    {API | READER | SUBMIT, "DELETE FROM pawl.delivery"},
    {API | WORKER | READER | SUBMIT, "UPDATE pawl.delivery SET webhook = 'x'"},
    {API | WORKER | READER | SUBMIT, "INSERT INTO pawl.delivery (request_id, webhook, created_at, due_at, attempts) VALUES (1, 'w', 1, 1, 2147483647)"},
    {API | WORKER | READER | SUBMIT, "INSERT INTO pawl.delivery (request_id, webhook, created_at, due_at, last_error) VALUES (1, 'w', 1, 1, 'x')"},
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
    {READER | SUBMIT, "INSERT INTO pawl.delivery (request_id, webhook, created_at, due_at) VALUES (1, 'w', 1, 1)"},
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
                             " pawl_worker hold_running, pawl_worker keys_gone,"
                             " pawl_worker open_ranges, pawl_worker records_gone,"
                             " pawl_worker requests_gone, pawl_worker results_gone,"
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

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test_pg(test_what_is_forbidden_to_a_role_is_refused),
        store_test_pg(test_no_role_has_powers_or_may_hand_on_its_rights),
        store_test_pg(test_each_function_is_for_the_roles_that_call_it),
        store_test_pg(test_an_api_closes_what_nobody_holds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
