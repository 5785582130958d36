/*
 * A34: a call to the store that fails once, whichever it is, ends no run: not at its
 * start, not between two steps, not at a chunk or a partition, not at the end. Each run
 * is carried
 * over connections whose n-th call fails, for each n; it must be COMPLETED, by one
 * execution, with each row once. The quick suite takes some of the calls, PAWL_FULL
 * each of them.
 */
#include "tests/store/queue/common.h"

#include "base/fsio.h"
#include "config/config.h"
#include "config/errors.h"
#include "db_faulty.h"
#include "run/result_store.h"
#include "run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS       15
#define CALLS_MAX  1000
#define QUICK_STEP 11
#define QUICK_FEW  37

struct place {
    struct harness *h;
    char folder[64];
    const char *job;
    struct config *config;
    struct queue_job *rules;
    struct result_store *results;
    struct arena arena;
};

/* The newest connection for writing that the store has opened, wrapped. */
static struct db *newest;

static int
open_faulty(const struct db_options *options, struct db **ret_db, struct err *err)
{
    struct db *db;
    int r = db_open(options, &db, err);

    if (r < 0)
        return r;
    *ret_db = db_faulty_new(db, 0, FAULTY_ONCE);
    if (!options->read_only)
        newest = *ret_db;
    return 0;
}

static const char *
no_env(void *arg, const char *name)
{
    return NULL;
}

static void
load(struct place *p)
{
    struct config_errors errors = {0};
    struct err err = {0};
    char path[128];
    FILE *file;

    snprintf(path, sizeof(path), "%s/pawl.yaml", p->folder);
    file = fopen(path, "we");
    assert_non_null(file);
    fprintf(
        file,
        "store: \"%s\"\nstate: %s/state\nresults: %s/results\n"
        "databases: {shop: \"sqlite:%s/shop.db\"}\njobs:\n  load:\n    retry: none\n"
        "    duplicates: allow\n    params: {run: {type: integer}}\n    steps:\n"
        "      - name: rows\n        chunk: 10\n"
        "        read: {database: shop, sql: \"SELECT id, :run AS run FROM city "
        "ORDER BY id\"}\n        write: {database: main, table: copied}\n"
        "      - name: file\n        chunk: 10\n"
        "        read: {database: shop, sql: \"SELECT id FROM city\"}\n"
        "        write: {file: made.csv}\n"
        "  parts:\n    retry: none\n    duplicates: allow\n"
        "    params: {run: {type: integer}}\n    steps:\n"
        "      - name: rows\n        chunk: 4\n        partitions: 3\n"
        "        partition: {key: id}\n"
        "        read: {database: shop, sql: \"SELECT id, :run AS run FROM city\"}\n"
        "        write: {database: main, table: copied}\n",
        p->h->url, p->folder, p->folder, p->folder);
    assert_int_equal(fclose(file), 0);
    if (config_load(path, no_env, NULL, &p->config, &errors, &err) < 0) {
        config_errors_print(&errors, stderr);
        fail();
    }
    assert_ok(queue_job_parse(config_job_find(p->config, p->job)->definition, &p->rules,
                              &err),
              &err);
}

static void
make_shop(struct place *p)
{
    char url[128];
    struct db_options options = {.url = url, .create = true};
    scoped(db_closep) struct db *db = NULL;
    struct err err = {0};

    snprintf(url, sizeof(url), "sqlite:%s/shop.db", p->folder);
    assert_ok(db_open(&options, &db, &err), &err);
    assert_ok(
        db_script(db,
                  "CREATE TABLE city (id integer PRIMARY KEY);"
                  "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
                  "WHERE i < 15) INSERT INTO city SELECT i FROM n",
                  &err),
        &err);
}

static void
place_open(struct place *p, struct harness *h, const char *job)
{
    struct err err = {0};
    char path[128];

    *p = (struct place){.h = h, .job = job};
    snprintf(p->folder, sizeof(p->folder), "/tmp/pawl-faults-XXXXXX");
    assert_non_null(mkdtemp(p->folder));
    make_shop(p);
    load(p);
    harness_sql(h, "CREATE TABLE copied (id bigint, run bigint)");
    h->options.open = open_faulty;
    h->options.connections = 1;
    harness_reopen(h);
    snprintf(path, sizeof(path), "%s/results", p->folder);
    assert_ok(result_store_open(path, store_id(h->store), &p->results, &err), &err);
}

static void
place_close(struct place *p)
{
    db_faulty_arm(newest, 0, FAULTY_ONCE);
    result_store_close(p->results);
    queue_job_free(p->rules);
    config_free(p->config);
    fs_remove_tree_quietly(p->folder);
    arena_release(&p->arena);
}

static struct claim
claim_new(struct place *p, int64_t run, int64_t *ret_id)
{
    char given[64];
    struct submit_order order = {.job = p->rules,
                                 .given = given,
                                 .canonical = given,
                                 .requester = "tester",
                                 .source = SOURCE_API,
                                 .lane = "normal",
                                 .restart = -1};
    const struct claim_want want = {
        .worker = "w1", .lane = "normal", .jobs = &p->job, .n_jobs = 1, .max = 1};
    struct submit_answer answer;
    struct claim claims[1];
    size_t count = 0;
    struct err err = {0};

    snprintf(given, sizeof(given), "{\"run\":%lld}", (long long)run);
    assert_ok(queue_submit(p->h->store, &order, &answer, &err), &err);
    *ret_id = answer.request_id;
    assert_ok(queue_claim(p->h->store, &want, &p->arena, claims, &count, &err), &err);
    assert_int_equal(count, 1);
    return claims[0];
}

/* False when the run makes no n-th call. */
static bool
carry_failing_at(struct place *p, int n, enum faulty_how how)
{
    char temp[128];
    struct run_env env = {.config = p->config,
                          .store = p->h->store,
                          .results = p->results,
                          .clock = clock_real(),
                          .worker = "w1",
                          .temp_folder = temp,
                          .record_retry_us = US_PER_MINUTE};
    struct run_report report;
    int before = db_faulty_hits();
    struct err err = {0};
    struct claim claim;
    struct run *run;
    int64_t id;

    snprintf(temp, sizeof(temp), "%s/tmp", p->folder);
    assert_ok(fs_mkdir_private(temp, &err), &err);
    claim = claim_new(p, how * CALLS_MAX + n, &id);
    db_faulty_arm(newest, n, how);
    run = run_new(&env, id, p->job, claim.token);
    run_carry_out(run, &report);
    run_free(run);
    db_faulty_arm(newest, 0, FAULTY_ONCE);
    if (report.outcome != OUTCOME_COMPLETED || !report.recorded)
        fail_msg("call %d fails (%d): %s %s", n, how,
                 request_outcome_name(report.outcome), report.detail);
    assert_int_equal(harness_i64(p->h,
                                 "SELECT count(*) FROM pawl.outcome "
                                 "WHERE id = %lld AND outcome = 'COMPLETED'",
                                 (long long)id),
                     1);
    assert_int_equal(harness_i64(p->h,
                                 "SELECT count(*) FROM pawl.execution "
                                 "WHERE request_id = %lld",
                                 (long long)id),
                     1);
    assert_int_equal(harness_i64(p->h,
                                 "SELECT count(*) * 1000 + count(DISTINCT id) "
                                 "FROM copied WHERE run = %d",
                                 how * CALLS_MAX + n),
                     ROWS * 1000 + ROWS);
    /* Hands were let in once, and none is left. */
    assert_int_equal(
        harness_i64(p->h,
                    "SELECT count(*) FROM pawl.request r WHERE r.id > %lld "
                    "AND r.source = 'partition'",
                    (long long)id),
        strcmp(p->job, "parts") == 0 ? 2 : 0);
    assert_int_equal(harness_i64(p->h, "SELECT count(*) FROM pawl.ready"), 0);
    return db_faulty_hits() > before;
}

static void
sweep(struct harness *h, const char *job, enum faulty_how how, int first)
{
    int quick = strcmp(job, "parts") == 0 ? QUICK_FEW : QUICK_STEP;
    int step = getenv("PAWL_FULL") ? 1 : quick;
    int n = getenv("PAWL_FULL") ? 1 : first;
    struct place p;

    place_open(&p, h, job);
    for (; carry_failing_at(&p, n, how); n += step)
        assert_true(n < CALLS_MAX);
    assert_true(n > 40); /* start, two steps, four chunks, end */
    place_close(&p);
}

static void
test_A34_a_call_that_fails_once_ends_no_run(struct harness *h)
{
    sweep(h, "load", FAULTY_ONCE, 1);
}

static void
test_A34_a_commit_whose_answer_is_lost_ends_no_run(struct harness *h)
{
    sweep(h, "load", FAULTY_COMMIT_LOST, 2);
}

static void
test_A34_a_call_that_fails_once_ends_no_step_in_partitions(struct harness *h)
{
    sweep(h, "parts", FAULTY_ONCE, 3);
}

static void
test_A34_a_commit_whose_answer_is_lost_ends_no_step_in_partitions(struct harness *h)
{
    sweep(h, "parts", FAULTY_COMMIT_LOST, 1);
}

/* The end of the run lets go of it: nobody waits for that before the end. */
static void
test_a_partition_that_cannot_be_let_go_of_does_not_keep_the_run(struct harness *h)
{
    char temp[128];
    struct run_env env;
    struct run_report report;
    struct err err = {0};
    struct claim claim;
    struct place p;
    struct run *run;
    int64_t id;

    place_open(&p, h, "parts");
    snprintf(temp, sizeof(temp), "%s/tmp", p.folder);
    assert_ok(fs_mkdir_private(temp, &err), &err);
    env = (struct run_env){.config = p.config,
                           .store = h->store,
                           .results = p.results,
                           .clock = clock_real(),
                           .worker = "w1",
                           .temp_folder = temp,
                           .record_retry_us = US_PER_MINUTE};
    harness_sql(h, "CREATE UNIQUE INDEX one_row ON copied (run);"
                   "CREATE TRIGGER pawl.kept BEFORE UPDATE ON step_partition"
                   " WHEN NEW.state = 'FAILED'"
                   " BEGIN SELECT RAISE(ABORT, 'it cannot be written'); END");
    claim = claim_new(&p, 1, &id);
    run = run_new(&env, id, "parts", claim.token);
    run_carry_out(run, &report);
    run_free(run);
    assert_true(report.recorded);
    assert_int_equal(report.outcome, OUTCOME_ERROR);
    place_close(&p);
}

/* Who cuts a run off while it is connecting finds no statement to cut off. */
static void
test_A19_a_run_that_is_cut_off_begins_no_statement(struct harness *h)
{
    char temp[128];
    struct run_env env;
    struct run_report report;
    struct err err = {0};
    struct claim claim;
    struct place p;
    struct run *run;
    int64_t id;

    place_open(&p, h, "load");
    snprintf(temp, sizeof(temp), "%s/tmp", p.folder);
    assert_ok(fs_mkdir_private(temp, &err), &err);
    env = (struct run_env){.config = p.config,
                           .store = h->store,
                           .results = p.results,
                           .clock = clock_real(),
                           .worker = "w1",
                           .temp_folder = temp};
    claim = claim_new(&p, 1, &id);
    run = run_new(&env, id, "load", claim.token);
    run_cut(run);
    run_carry_out(run, &report);
    run_free(run);
    assert_int_equal(report.outcome, OUTCOME_ERROR);
    assert_non_null(strstr(report.detail, "the run is to end"));
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM copied"), 0);
    place_close(&p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test_sqlite(test_A34_a_call_that_fails_once_ends_no_run),
        store_test_pg(test_A34_a_call_that_fails_once_ends_no_run),
        store_test_sqlite(test_A34_a_commit_whose_answer_is_lost_ends_no_run),
        store_test_pg(test_A34_a_commit_whose_answer_is_lost_ends_no_run),
        store_test_sqlite(test_A34_a_call_that_fails_once_ends_no_step_in_partitions),
        store_test_pg(test_A34_a_call_that_fails_once_ends_no_step_in_partitions),
        store_test_sqlite(
            test_A34_a_commit_whose_answer_is_lost_ends_no_step_in_partitions),
        store_test_pg(
            test_A34_a_commit_whose_answer_is_lost_ends_no_step_in_partitions),
        store_test_sqlite(
            test_a_partition_that_cannot_be_let_go_of_does_not_keep_the_run),
        store_test_sqlite(test_A19_a_run_that_is_cut_off_begins_no_statement),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
