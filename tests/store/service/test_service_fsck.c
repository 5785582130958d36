/*
 * fsck: a store that only went through pawl's own hands has no finding; each damage
 * planted by hand is found by the rule made for it, under its own name.
 */
#include "tests/store/service/bench.h"

#include "base/fsio.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* --- healthy --- */

static void
one_random_act(struct bench *b, uint64_t draw)
{
    struct queue_job job = job_of("other", QUEUE_DUPLICATES_REUSE);
    struct submit_order order = order_of(&job);
    struct submit_answer answer;
    struct claim claims[4];
    struct err err = {0};
    size_t count = 0;

    switch (draw % 7) {
    case 0:
        submit_span(b->h, "task", 1 + draw / 7 % 5);
        break;
    case 1:
        order.not_before_us = draw / 7 % 2 ? HARNESS_NOW + US_PER_HOUR : 0;
        assert_ok(try_submit(b->h, &order, &answer, &err), &err);
        break;
    case 2:
    case 3:
        claim_some(b->h, "w1", 4, claims, &count);
        for (size_t i = 0; i < count; i++)
            if ((draw + i) % 3)
                finish_ok(b->h, claims[i].first_id, &claims[i],
                          (draw + i) % 2 ? OUTCOME_COMPLETED : OUTCOME_ERROR);
        break;
    case 4:
    case 5: {
        int r = queue_cancel(b->h->store, 1 + (int64_t)(draw / 7 % 60), "op", &err);

        if (r != -ERR_NOT_FOUND && r != -ERR_ALREADY_FINAL)
            assert_ok(r, &err);
        break;
    }
    default:
        complete_with_result(b);
    }
}

static void
test_a_store_that_pawl_alone_wrote_has_no_finding(struct harness *h)
{
    uint64_t seed = UINT64_C(0x9e3779b97f4a7c15);
    struct bench b;

    set_up(&b, h);
    /* So old that the audit must know of all who are cancelled here. */
    harness_sql(h, "INSERT INTO pawl.audit (at, actor, act, subject) VALUES "
                   "(1, 'op', 'pause', 'lane normal')");
    assert_clean(&b);
    /* What is free is finished first, so that complete_with_result gets its own. */
    for (int i = 0; i < 80; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        if ((seed >> 33) % 7 == 6 && rows_in(h, "ready") > 0)
            continue;
        one_random_act(&b, seed >> 33);
    }
    assert_true(rows_in(h, "claim") > 0);
    assert_true(rows_in(h, "outcome") > 0);
    assert_true(rows_in(h, "later") > 0);
    assert_clean(&b);
    tear_down(&b);
}

/* --- damaged --- */

/* Where the plants happen: 1 is COMPLETED with a result, 2 is RUNNING under token 2,
 * 3 is ready. Next id: 4. */
struct damage {
    const char *check;
    const char *sql;
    int64_t id;
};

#define EXECUTION                                                                      \
    "INSERT INTO pawl.instance (id, job, number, identity, params) VALUES "            \
    "(900, 'task', 1, '{}', '{}');"                                                    \
    "INSERT INTO pawl.execution (id, instance_id, job, request_id, token, state, "     \
    "params, started_at, ended_at, last_updated) VALUES "

#define STEP                                                                           \
    "INSERT INTO pawl.step_execution (execution_id, name, ordinal, state, effect, "    \
    "commits, chunk, started_at, ended_at, last_updated) VALUES "

#define ENDED(how)                                                                     \
    "UPDATE pawl.outcome SET outcome = '" how "', result_path = NULL WHERE id = 1;"
#define NEXT_TRY(n) "UPDATE pawl.request SET retry_of = 1, first_try = 1, attempt = " n

static const struct damage damages[] = {
    {"nowhere", "DELETE FROM pawl.ready WHERE first_id = 3", 3},
    {"nowhere", "DELETE FROM pawl.outcome WHERE id = 1", 1},
    {"overlap",
     "INSERT INTO pawl.ready (first_id, last_id, job, lane, priority, seq, ready_since)"
     " VALUES (2, 2, 'task', 'normal', 0, 1, 1)",
     2},
    {"overlap",
     "INSERT INTO pawl.later (first_id, last_id, job, lane, priority, not_before, "
     "reason, created_at) VALUES (3, 3, 'task', 'normal', 0, 1, 'time', 1)",
     3},
    {"final-open",
     "INSERT INTO pawl.ready (first_id, last_id, job, lane, priority, seq, ready_since)"
     " VALUES (1, 1, 'task', 'normal', 0, 1, 1)",
     1},
    {"stray-span", "UPDATE pawl.ready SET last_id = 77 WHERE first_id = 3", 3},
    {"stray-outcome",
     "INSERT INTO pawl.outcome (id, outcome, finished_at) VALUES (88, 'ERROR', 1)", 88},
    {"never-due",
     "DELETE FROM pawl.ready WHERE first_id = 3;"
     "INSERT INTO pawl.later (first_id, last_id, job, lane, priority, "
     "reason, created_at) VALUES (3, 3, 'task', 'normal', 0, 'time', 1)",
     3},
    {"never-due",
     "DELETE FROM pawl.ready WHERE first_id = 3;"
     "INSERT INTO pawl.later (first_id, last_id, job, lane, priority, "
     "reason, created_at) VALUES (3, 3, 'task', 'normal', 0, 'after', 1)",
     3},
    {"wait", "INSERT INTO pawl.wait (request_id, after_id) VALUES (3, 2)", 3},
    {"wait",
     "DELETE FROM pawl.ready WHERE first_id = 3;"
     "INSERT INTO pawl.later (first_id, last_id, job, lane, priority, "
     "reason, created_at) VALUES (3, 3, 'task', 'normal', 0, 'after', 1);"
     "INSERT INTO pawl.wait (request_id, after_id) VALUES (3, 2), (3, 1)",
     3},
    {"dead-claim", "DELETE FROM pawl.worker", 2},
    {"dead-claim", "UPDATE pawl.worker SET beat_at = beat_at - 61000000", 2},
    {"paused-start",
     "INSERT INTO pawl.paused (kind, name, paused_by, paused_at) SELECT 'job', job, "
     "'op', "
     "claimed_at - 60000001 FROM pawl.claim WHERE first_id = 2",
     2},
    {"paused-start",
     "INSERT INTO pawl.paused (kind, name, paused_by, paused_at) SELECT 'lane', lane, "
     "'op', claimed_at - 60000001 FROM pawl.claim WHERE first_id = 2",
     2},
    {"token-twice",
     "DELETE FROM pawl.ready WHERE first_id = 3;"
     "INSERT INTO pawl.claim SELECT 3, 3, job, lane, 'w2', token, nonce, claimed_at "
     "FROM pawl.claim WHERE first_id = 2;"
     "INSERT INTO pawl.worker (id, seat, host, pid, boot_id, started_at, beat_at, "
     "lanes,"
     " in_use, keys, jobs, version) SELECT 'w2', 's2', host, pid, boot_id, started_at, "
     "beat_at, lanes, in_use, keys, jobs, version FROM pawl.worker",
     2},
    {"slots", "UPDATE pawl.worker SET lanes = '{\"normal\":0,\"x\":9}'", 2},
    {"slots", "UPDATE pawl.worker SET lanes = '{\"other\":9}'", 2},
    {"try", NEXT_TRY("2") " WHERE id = 3", 3},
    {"try", ENDED("CANCELLED") NEXT_TRY("2") " WHERE id = 3", 3},
    {"try", ENDED("ERROR") NEXT_TRY("3") " WHERE id = 3", 3},
    {"try", ENDED("STOPPED") NEXT_TRY("2") " WHERE id = 3", 3},
    {"try", ENDED("ERROR") NEXT_TRY("2") " WHERE id > 1", 3},
    {"try",
     "UPDATE pawl.request SET retry_of = 2, first_try = 2, attempt = 2 WHERE id = 3",
     3},
    {"link",
     "UPDATE pawl.request SET source = 'chain', requester = 'chain:#2' WHERE id = 3",
     3},
    {"link",
     "UPDATE pawl.request SET source = 'chain', requester = 'chain:#1' WHERE id > 1",
     3},
    {"max-calls",
     "UPDATE pawl.request SET max_calls = 7 WHERE id = 2;"
     "INSERT INTO pawl.request_calls (request_id, used) VALUES (2, 8)",
     2},
    {"budget",
     "INSERT INTO pawl.budget (name, day_start, day_end, used, next_at) VALUES "
     "('calls', 1, 2, 10, 1)",
     0},
    {"result", "UPDATE pawl.outcome SET outcome = 'STOPPED' WHERE id = 1", 1},
    {"active", "INSERT INTO pawl.active (key, request_id) VALUES ('job:x', 1)", 1},
    {"active", "INSERT INTO pawl.active (key, request_id) VALUES ('job:x', 99)", 99},
    {"flag",
     "INSERT INTO pawl.flag (request_id, asked_by, asked_at) VALUES (3, 'op', 1)", 3},
    {"progress", "INSERT INTO pawl.progress (request_id, updated_at) VALUES (1, 1)", 1},
    {"idempotency",
     "INSERT INTO pawl.idempotency (subject, job, key, digest, request_id, created_at)"
     " VALUES ('s', 'task', 'k', 'd', 99, 1)",
     99},
    {"execution", EXECUTION "(901, 900, 'task', 3, 1, 'STARTED', '{}', 1, NULL, 1)",
     901},
    {"ended",
     EXECUTION "(901, 900, 'task', 1, 1, 'COMPLETED', '{}', 1, 2, 2);"
               "INSERT INTO pawl.step_execution (execution_id, name, ordinal, state, "
               "started_at, last_updated) VALUES (901, 's', 1, 'COMPLETED', 1, 1)",
     901},
    {"step",
     EXECUTION "(901, 900, 'task', 1, 1, 'COMPLETED', '{}', 1, 2, 2);"
               "INSERT INTO pawl.step_execution (execution_id, name, ordinal, state, "
               "started_at, last_updated) VALUES (901, 's', 1, 'STARTED', 1, 1)",
     901},
    {"outcome-execution", "UPDATE pawl.outcome SET execution_id = 77 WHERE id = 1", 1},
    {"outcome-execution",
     EXECUTION "(901, 900, 'task', 1, 1, 'FAILED', '{}', 1, 2, 2);"
               "UPDATE pawl.outcome SET execution_id = 901 WHERE id = 1",
     1},
    {"resumed",
     EXECUTION "(901, 900, 'task', 1, 1, 'COMPLETED', '{}', 1, 2, 2),"
               "(902, 900, 'task', 1, 1, 'FAILED', '{}', 1, 2, 2);"
               "UPDATE pawl.execution SET resumed_from = 901 WHERE id = 902",
     902},
    {"resumed",
     EXECUTION "(901, 900, 'task', 1, 1, 'FAILED', '{}', 1, 2, 2),"
               "(902, 900, 'task', 1, 1, 'FAILED', '{}', 1, 2, 2);"
               "UPDATE pawl.execution SET resumed_from = 901 WHERE id = 902;"
               "UPDATE pawl.instance SET confirmed = 1 WHERE id = 900",
     902},
    {"place",
     EXECUTION "(901, 900, 'task', 1, 1, 'COMPLETED', '{}', 1, 2, 2);" STEP
               "(901, 's', 1, 'COMPLETED', 'file', 3, 2, 1, 2, 2)",
     901},
    {"place",
     "INSERT INTO pawl.step_partition (instance_id, step, n, state, commits, chunk) "
     "VALUES (900, 's', 1, 'FREE', 1, 2)",
     900},
    {"goes-back",
     EXECUTION "(901, 900, 'task', 1, 1, 'STOPPED', '{}', 1, 2, 2),"
               "(902, 900, 'task', 1, 1, 'COMPLETED', '{}', 1, 2, 2);"
               "UPDATE pawl.execution SET resumed_from = 901 WHERE id = 902;" STEP
               "(901, 's', 1, 'STOPPED', 'transactional', 3, 3, 1, 2, 2),"
               "(902, 's', 1, 'COMPLETED', 'transactional', 2, 2, 1, 2, 2)",
     902},
    {"slot-twice",
     "INSERT INTO pawl.schedule_slot (schedule, slot_time, last_time, state, "
     "request_id,"
     " decided_at) VALUES ('s', 1, 9, 'skipped', NULL, 1), ('s', 5, 5, 'fired', 1, 1)",
     1},
    {"slot-request",
     "INSERT INTO pawl.schedule_slot (schedule, slot_time, last_time, state, "
     "request_id,"
     " decided_at) VALUES ('s', 1, 1, 'fired', 99, 1)",
     99},
    {"delivery",
     "INSERT INTO pawl.delivery (request_id, webhook, created_at, due_at)"
     " VALUES (3, 'shop', 1, 1)",
     3},
    {"backfill",
     "INSERT INTO pawl.backfill (id, job, requester, given, priority, parallel, "
     "hold_on_failure, total, passed_over, next_n, open, state, created_at) VALUES "
     "(70, 'task', 'u', '{}', 0, 1, 0, 1, 0, 2, 1, 'RUNNING', 1)",
     70},
    {"audit",
     "INSERT INTO pawl.audit (at, actor, act, subject) VALUES (1, 'op', 'cancel', "
     "'request 7');" ENDED("CANCELLED"),
     1},
    {"number", "UPDATE pawl.claim SET token = 5000 WHERE first_id = 2", 5000},
    {"number", "UPDATE pawl.ready SET seq = 6000 WHERE first_id = 3", 6000},
    {"file-missing",
     "UPDATE pawl.outcome SET result_path = 'files/1/none' WHERE id = 1", 1},
    {"file-missing", "UPDATE pawl.outcome SET result_bytes = 4 WHERE id = 1", 1},
    {"file-damaged", "UPDATE pawl.outcome SET result_sha256 = 'ab' WHERE id = 1", 1},
    {"file-stray", "UPDATE pawl.outcome SET result_gone_at = 1 WHERE id = 1", 1},
};

static void
test_each_planted_damage_is_found_by_its_own_rule(struct harness *h)
{
    /* What was planted is undone from a copy of the tables. */
    static const char *const tables[] = {
        "later",          "ready",          "claim",     "outcome",
        "worker",         "active",         "flag",      "progress",
        "idempotency",    "step_execution", "execution", "instance",
        "schedule_slot",  "wait",           "paused",    "backfill",
        "request_calls",  "request",        "budget",    "audit",
        "step_partition", "delivery"};
    struct bench b;

    set_up(&b, h);
    plant_ground(&b);
    for (size_t t = 0; t < array_len(tables); t++)
        harness_sql(h, "CREATE TABLE pawl.kept_%s AS SELECT * FROM pawl.%s", tables[t],
                    tables[t]);
    for (size_t i = 0; i < array_len(damages); i++) {
        struct fsck_report report;

        harness_sql(h, "%s", damages[i].sql);
        report = look(&b);
        if (!found(&report, damages[i].check, damages[i].id))
            fail_msg("damage %zu is not found as %s %lld", i, damages[i].check,
                     (long long)damages[i].id);
        for (size_t f = 0; f < report.count; f++)
            assert_true(report.findings[f].remedy[0] && report.findings[f].rule[0]);
        /* Children go first, parents come first. */
        for (size_t t = 0; t < array_len(tables); t++)
            harness_sql(h, "DELETE FROM pawl.%s", tables[t]);
        for (size_t t = array_len(tables); t-- > 0;)
            harness_sql(h, "INSERT INTO pawl.%s SELECT * FROM pawl.kept_%s", tables[t],
                        tables[t]);
        assert_clean(&b);
    }
    for (size_t t = 0; t < array_len(tables); t++)
        harness_sql(h, "DROP TABLE pawl.kept_%s", tables[t]);
    tear_down(&b);
}

static void
test_each_rule_has_a_planted_damage(struct harness *h)
{
    const char *name;

    (void)h;
    for (size_t at = 0; (name = fsck_check_name(at)); at++) {
        bool planted = strcmp(name, "part") == 0 || /* in the test of repairs */
                       strcmp(name, "pages") == 0;  /* a test of its own */

        for (size_t i = 0; i < array_len(damages); i++)
            planted |= strcmp(damages[i].check, name) == 0;
        if (!planted)
            fail_msg("nothing is planted for the rule %s", name);
    }
}

static void
test_a_damaged_page_of_the_file_is_found(struct harness *h)
{
    const char *path = strchr(h->url, ':') + 1;
    scoped(buf_release) struct buf file = {0};
    struct fsck_report report;
    struct err err = {0};
    struct bench b;
    char *name;

    set_up(&b, h);
    plant_ground(&b);
    store_close(h->store);
    h->store = NULL;
    harness_sql(h, "PRAGMA wal_checkpoint(TRUNCATE)");
    /* A name in the table that its index does not know, or the other way. */
    buf_init(&file, 0);
    assert_ok(fs_read_file(path, 8 << 20, &file, &err), &err);
    name = memmem(file.data, file.len, "tester", 6);
    assert_non_null(name);
    {
        scoped(fd_close) int fd = open(path, O_WRONLY | O_CLOEXEC);

        assert_int_equal(pwrite(fd, "T", 1, name - file.data), 1);
    }
    assert_ok(store_open(&h->options, &h->store, &err), &err);
    b.order.store = h->store;
    report = look(&b);
    assert_true(found(&report, "pages", 0));
    tear_down(&b);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_a_store_that_pawl_alone_wrote_has_no_finding),
        store_test(test_each_planted_damage_is_found_by_its_own_rule),
        store_test_sqlite(test_each_rule_has_a_planted_damage),
        store_test_sqlite(test_a_damaged_page_of_the_file_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
