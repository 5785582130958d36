/* A repair takes away what nobody needs any more, and just that. */
#include "tests/store/service/bench.h"

#include "base/fsio.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void
test_repair_takes_away_the_orphans_and_nothing_else(struct harness *h)
{
    struct fsck_report report;
    struct err err = {0};
    char orphan[512];
    struct bench b;

    set_up(&b, h);
    plant_ground(&b);
    make_part(&b, 1, 4711, orphan, sizeof(orphan));
    harness_sql(h, "INSERT INTO pawl.active (key, request_id) VALUES ('job:x', 1), "
                   "('job:live', 3);"
                   "INSERT INTO pawl.flag (request_id, asked_by, asked_at) VALUES "
                   "(1, 'op', 1), (2, 'op', 1);"
                   "INSERT INTO pawl.progress (request_id, updated_at) VALUES (1, 1), "
                   "(2, 1);"
                   "INSERT INTO pawl.idempotency (subject, job, key, digest, "
                   "request_id, created_at) VALUES ('s', 'task', 'k', 'd', 99, 1)");
    report = look(&b);
    assert_int_equal(report.count, 5);
    assert_true(found(&report, "part", 1));
    assert_ok(fsck_repair(&b.order, "uid:1", &report, &err), &err);
    assert_int_equal(report.repaired, 4);
    assert_int_equal(
        harness_i64(h, "SELECT count(*) FROM pawl.audit WHERE act = 'fsck.repair' AND "
                       "actor = 'uid:1' AND subject = 'request:1'"),
        4);
    report = look(&b);
    assert_int_equal(report.count, 1);
    assert_true(found(&report, "idempotency", 99));
    assert_int_equal(rows_in(h, "flag"), 1);
    assert_int_equal(rows_in(h, "progress"), 1);
    assert_int_equal(rows_in(h, "active"), 1);
    assert_false(fs_exists(orphan));
    tear_down(&b);
}

/* A kill between publishing and the end of a request that did not complete. */
static void
test_B20_repair_takes_away_a_file_that_no_result_names(struct harness *h)
{
    struct fsck_report report;
    struct result_file file;
    struct err err = {0};
    char path[512];
    struct bench b;
    int64_t kept;
    int64_t running;
    struct claim claim;

    set_up(&b, h);
    kept = complete_with_result(&b);
    make_part(&b, kept, 4711, path, sizeof(path));
    assert_ok(result_store_publish(b.results, path, kept, "stray.csv", &file, &err),
              &err);
    make_part(&b, 99, 4712, path, sizeof(path));
    assert_ok(result_store_publish(b.results, path, 99, "stray.csv", &file, &err),
              &err);
    running = submit_one(h, "task");
    claim = claim_one(h, "w1");
    make_part(&b, running, claim.token.number, path, sizeof(path));
    assert_ok(result_store_publish(b.results, path, running, "x.csv", &file, &err),
              &err);
    report = look(&b);
    assert_int_equal(report.count, 2);
    assert_true(found(&report, "file-stray", kept));
    assert_true(found(&report, "file-stray", 99));
    assert_ok(fsck_repair(&b.order, "uid:1", &report, &err), &err);
    assert_int_equal(report.repaired, 2);
    assert_clean(&b); /* the result and the running one's file are there */
    assert_true(result_store_there(b.results, file.path));
    assert_false(result_store_there(b.results, "files/99"));
    tear_down(&b);
}

/* It is being gone on with, and has been for long. */
static void
test_B20_the_part_of_a_run_that_is_gone_on_with_is_known(struct harness *h)
{
    struct fsck_report report;
    struct bench b;
    char path[512];

    set_up(&b, h);
    make_part(&b, 5, 4711, path, sizeof(path));
    submit_one(h, "task");
    claim_one(h, "w1");
    harness_sql(
        h, "INSERT INTO pawl.instance (id, job, number, identity, params) VALUES "
           "(5, 'task', 1, '{}', '{}'), (6, 'task', 2, '{}', '{}');"
           "INSERT INTO pawl.execution (id, instance_id, job, request_id, token, "
           "state, params, started_at, ended_at, last_updated) VALUES "
           "(1, 5, 'task', 90, 4711, 'STOPPED', '{}', 1, 1, 1);"
           "INSERT INTO pawl.execution (id, instance_id, job, request_id, token, "
           "state, params, started_at, last_updated) SELECT 2, 5, 'task', first_id, "
           "token, 'STARTED', '{}', 1, 1 FROM pawl.claim;"
           "INSERT INTO pawl.step_execution (execution_id, name, ordinal, state, "
           "chunk, started_at, ended_at, last_updated) VALUES "
           "(1, 'export', 1, 'COMPLETED', 3, 1, 1, 1)");
    report = look(&b);
    assert_false(found(&report, "part", 5));
    harness_sql(
        h, "UPDATE pawl.execution SET state = 'FAILED', ended_at = 1 WHERE id = 2");
    report = look(&b);
    assert_true(found(&report, "part", 5));
    tear_down(&b);
}

static void
test_a_repair_looks_again_before_it_acts(struct harness *h)
{
    struct fsck_report report;
    struct err err = {0};
    struct bench b;

    set_up(&b, h);
    plant_ground(&b);
    harness_sql(h, "INSERT INTO pawl.active (key, request_id) VALUES ('job:x', 1);"
                   "INSERT INTO pawl.flag (request_id, asked_by, asked_at) VALUES "
                   "(3, 'op', 1)");
    report = look(&b);
    assert_int_equal(report.count, 2);
    /* Meanwhile the key moves on and the request is claimed. */
    harness_sql(h, "UPDATE pawl.active SET request_id = 3");
    claim_one(h, "w1");
    assert_ok(fsck_repair(&b.order, "uid:1", &report, &err), &err);
    assert_int_equal(rows_in(h, "active"), 1);
    assert_int_equal(rows_in(h, "flag"), 1);
    assert_int_equal(
        harness_i64(h, "SELECT count(*) FROM pawl.audit WHERE act = 'fsck.repair'"), 0);
    tear_down(&b);
}

static void
test_only_the_owner_of_the_schema_may_repair(struct harness *h)
{
    struct store_options options = h->options;
    struct fsck_report report;
    struct err err = {0};
    char url[400];
    struct bench b;

    set_up(&b, h);
    plant_ground(&b);
    harness_sql(h, "INSERT INTO pawl.active (key, request_id) VALUES ('job:x', 1);"
                   "DROP ROLE IF EXISTS pawl_fsck_guest; CREATE ROLE pawl_fsck_guest;"
                   "GRANT USAGE ON SCHEMA pawl TO pawl_fsck_guest;"
                   "GRANT ALL ON ALL TABLES IN SCHEMA pawl TO pawl_fsck_guest;"
                   "GRANT ALL ON ALL SEQUENCES IN SCHEMA pawl TO pawl_fsck_guest;"
                   "GRANT SELECT ON public.test_clock TO pawl_fsck_guest");
    snprintf(url, sizeof(url), "%s?options=-c%%20role%%3Dpawl_fsck_guest", h->url);
    options.url = url;
    options.migrate = false;
    b.order.store = NULL;
    assert_ok(store_open(&options, &b.order.store, &err), &err);
    report = look(&b);
    assert_true(found(&report, "active", 1));
    assert_int_equal(fsck_repair(&b.order, "uid:1", &report, &err), -ERR_FORBIDDEN);
    assert_int_equal(report.repaired, 0);
    assert_int_equal(rows_in(h, "active"), 1);
    store_close(b.order.store);
    harness_sql(h, "DROP OWNED BY pawl_fsck_guest; DROP ROLE pawl_fsck_guest");
    tear_down(&b);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_repair_takes_away_the_orphans_and_nothing_else),
        store_test(test_B20_repair_takes_away_a_file_that_no_result_names),
        store_test(test_B20_the_part_of_a_run_that_is_gone_on_with_is_known),
        store_test(test_a_repair_looks_again_before_it_acts),
        store_test_pg(test_only_the_owner_of_the_schema_may_repair),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
