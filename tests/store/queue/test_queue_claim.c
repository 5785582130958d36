/* The claim: once each, in order, never more than asked, whatever the plan. */
#include "tests/store/queue/common.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct claimer {
    struct harness *h;
    char worker[24];
    int max;
    const char *const *jobs;
    size_t n_jobs;
    int64_t taken[256];
    size_t n_taken;
    struct err err;
    int r;
};

static int
claim_into(struct claimer *claimer, struct arena *arena, size_t *ret_count)
{
    struct claim_want want = {.worker = claimer->worker,
                              .lane = "normal",
                              .jobs = claimer->jobs,
                              .n_jobs = claimer->n_jobs,
                              .max = claimer->max};
    struct claim claims[16];
    int r =
        queue_claim(claimer->h->store, &want, arena, claims, ret_count, &claimer->err);

    for (size_t i = 0; r == 0 && i < *ret_count; i++)
        for (int64_t id = claims[i].first_id; id <= claims[i].last_id; id++)
            claimer->taken[claimer->n_taken++] = id;
    return r;
}

/* Claims until nothing is there. */
static void *
claim_all(void *arg)
{
    struct claimer *claimer = (struct claimer *)arg;
    scoped(arena_release) struct arena arena = {0};
    size_t count;

    do
        claimer->r = claim_into(claimer, &arena, &count);
    while (claimer->r == 0 && count > 0);
    return NULL;
}

static void
claimers_init(struct claimer *claimers, size_t count, struct harness *h, int max,
              const char *const *jobs, size_t n_jobs)
{
    for (size_t i = 0; i < count; i++) {
        claimers[i] =
            (struct claimer){.h = h, .max = max, .jobs = jobs, .n_jobs = n_jobs};
        snprintf(claimers[i].worker, sizeof(claimers[i].worker), "w%zu", i);
    }
}

/* Every id from first on was taken by exactly one. */
static void
assert_each_once(const struct claimer *claimers, size_t count, int64_t first, size_t n)
{
    char *seen = xcalloc(n, 1);
    size_t total = 0;

    for (size_t i = 0; i < count; i++) {
        assert_ok(claimers[i].r, &claimers[i].err);
        for (size_t k = 0; k < claimers[i].n_taken; k++) {
            size_t at = (size_t)(claimers[i].taken[k] - first);

            assert_true(at < n);
            assert_int_equal(seen[at], 0);
            seen[at] = 1;
            total++;
        }
    }
    assert_int_equal(total, n);
    free(seen);
}

static void
test_A8_two_hundred_jobs_are_claimed_once_each_by_eight_workers(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    const char **names = arena_array(&arena, const char *, 200);
    struct claimer claimers[8];
    int64_t first = 0;

    for (size_t i = 0; i < 200; i++) {
        int64_t id;

        names[i] = arena_printf(&arena, "job-%zu", i);
        id = submit_one(h, names[i]);
        if (i == 0)
            first = id;
    }
    claimers_init(claimers, 8, h, 3, names, 200);
    in_parallel(8, claim_all, claimers, sizeof(claimers[0]));
    assert_each_once(claimers, 8, first, 200);
    assert_int_equal(
        harness_i64(h,
                    "SELECT count(*) FROM (SELECT DISTINCT token FROM pawl.claim) t"),
        200);
    assert_consistent(h);
}

static void
test_A8_a_locked_row_is_passed_over_without_waiting(struct harness *h)
{
    int64_t oldest = submit_one(h, "task");
    int64_t next = submit_one(h, "task");
    struct claim claim;

    harness_sql(h, "BEGIN; SELECT * FROM pawl.ready WHERE first_id = %lld FOR UPDATE",
                (long long)oldest);
    claim = claim_one(h, "w1");
    assert_int_equal(claim.first_id, next);
    harness_sql(h, "ROLLBACK");
    claim = claim_one(h, "w1");
    assert_int_equal(claim.first_id, oldest);
}

/* B13: no lock of ours is needed; a foreign one on the job's key changes nothing. */
static void
test_B12_B13_one_id_offered_to_two_workers_has_one_winner(struct harness *h)
{
    static const char *const jobs[] = {"task"};

    if (h->kind != HARNESS_SQLITE)
        harness_sql(h, "BEGIN; SELECT pg_advisory_xact_lock("
                       "hashtextextended('job:task', 0))");
    for (int round = 0; round < (getenv("PAWL_FULL") ? 1000 : 100); round++) {
        int64_t id = submit_one(h, "task");
        struct claimer claimers[2];

        claimers_init(claimers, 2, h, 1, jobs, 1);
        in_parallel(2, claim_all, claimers, sizeof(claimers[0]));
        assert_each_once(claimers, 2, id, 1);
    }
    if (h->kind != HARNESS_SQLITE)
        harness_sql(h, "ROLLBACK");
}

static void
test_B21_what_was_queued_is_claimed_once_after_a_restart_of_all(struct harness *h)
{
    static const char *const jobs[] = {"task"};
    int64_t first = submit_span(h, "task", 10);
    struct claimer claimers[2];

    harness_reopen(h);
    claimers_init(claimers, 2, h, 2, jobs, 1);
    in_parallel(2, claim_all, claimers, sizeof(claimers[0]));
    assert_each_once(claimers, 2, first, 10);
}

static int64_t
submit_with(struct harness *h, const char *name, const char *lane, int priority)
{
    struct queue_job job = job_of(name, QUEUE_DUPLICATES_ALLOW);
    struct submit_order order = order_of(&job);

    order.lane = lane;
    order.priority = priority;
    return submit_order(h, &order);
}

static void
test_highest_priority_first_then_the_order_of_entry(struct harness *h)
{
    int64_t low = submit_with(h, "task", "normal", -100);
    int64_t first = submit_with(h, "task", "normal", 0);
    int64_t second = submit_with(h, "other", "normal", 0);
    int64_t high = submit_with(h, "task", "normal", 100);
    int64_t large = submit_with(h, "task", "large", 100);
    int64_t foreign = submit_with(h, "unknown", "normal", 100);
    struct claim claims[8];
    size_t count;

    assert_int_equal(claim_some(h, "w1", 8, claims, &count), 4);
    assert_int_equal(claims[0].first_id, high);
    assert_int_equal(claims[1].first_id, first);
    assert_int_equal(claims[2].first_id, second);
    assert_int_equal(claims[3].first_id, low);
    assert_string_equal(claims[2].job, "other");
    assert_true(claims[0].token.number != claims[1].token.number);
    assert_int_equal(claims[0].claimed_at_us, HARNESS_NOW);
    /* The lane and the job that are not ours stay. */
    assert_int_equal(rows_in(h, "ready"), 2);
    assert_int_equal(
        harness_i64(h, "SELECT count(*) FROM pawl.ready WHERE first_id IN (%lld, %lld)",
                    (long long)large, (long long)foreign),
        2);
}

static void
test_a_span_is_split_at_the_free_slots(struct harness *h)
{
    int64_t first = submit_span(h, "task", 10);
    int64_t single = submit_one(h, "other");
    struct claim claims[8];
    size_t count;

    assert_int_equal(claim_some(h, "w1", 3, claims, &count), 3);
    assert_int_equal(count, 1);
    assert_int_equal(claims[0].first_id, first);
    assert_int_equal(claims[0].last_id, first + 2);
    assert_int_equal(claim_some(h, "w2", 8, claims, &count), 8);
    assert_int_equal(count, 2); /* the rest of the span kept its place */
    assert_int_equal(claims[0].first_id, first + 3);
    assert_int_equal(claims[0].last_id, first + 9);
    assert_int_equal(claims[1].first_id, single);
    assert_int_equal(rows_in(h, "ready"), 0);
    assert_consistent(h);
}

static void
test_what_has_expired_is_not_claimed(struct harness *h)
{
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_ALLOW);
    struct submit_order order = order_of(&job);
    struct claim claims[2];
    size_t count;

    job.expire_after_us = US_PER_MINUTE;
    submit_order(h, &order);
    harness_clock_advance(h, US_PER_MINUTE);
    assert_int_equal(claim_some(h, "w1", 2, claims, &count), 0);
    order.expires_at_us = HARNESS_NOW + US_PER_HOUR; /* beats the job's */
    submit_order(h, &order);
    harness_clock_advance(h, US_PER_MINUTE);
    assert_int_equal(claim_some(h, "w1", 2, claims, &count), 1);
}

/* --- the cursor --- */

static int64_t
claim_behind(struct harness *h, struct claim_cursor *cursor)
{
    static const char *const jobs[] = {"task"};
    scoped(arena_release) struct arena arena = {0};
    struct claim_want want = {.worker = "w1",
                              .lane = "normal",
                              .jobs = jobs,
                              .n_jobs = 1,
                              .max = 1,
                              .cursor = cursor};
    struct claim claim;
    struct err err = {0};
    size_t count;

    assert_ok(queue_claim(h->store, &want, &arena, &claim, &count, &err), &err);
    return count ? claim.first_id : 0;
}

/* A transaction that drew its seq early and commits late: behind the cursor. */
static void
test_a_late_commit_of_a_lower_seq_is_found_by_the_sweep(struct harness *h)
{
    struct claim_cursor cursor = {0};
    int64_t late = submit_one(h, "task");
    int64_t early, found;

    harness_sql(h, "BEGIN; CREATE TEMP TABLE late AS SELECT * FROM pawl.ready");
    harness_sql(h, "DELETE FROM pawl.ready; COMMIT");
    early = submit_one(h, "task");
    assert_int_equal(claim_behind(h, &cursor), early);
    assert_true(cursor.set);
    harness_sql(h, "INSERT INTO pawl.ready SELECT * FROM late");
    found = claim_behind(h, &cursor);
    if (found == 0) { /* behind the cursor, which was cleared: now a sweep */
        assert_false(cursor.set);
        found = claim_behind(h, &cursor);
    }
    assert_int_equal(found, late);
}

static void
test_the_cursor_goes_through_spans_and_down_the_priorities(struct harness *h)
{
    struct claim_cursor cursor = {0};
    int64_t low = submit_with(h, "task", "normal", -5);
    int64_t span = submit_span(h, "task", 3);
    int64_t next = submit_one(h, "task");

    for (int i = 0; i < 3; i++)
        assert_int_equal(claim_behind(h, &cursor), span + i);
    assert_int_equal(claim_behind(h, &cursor), next);
    assert_int_equal(claim_behind(h, &cursor), low);
    assert_int_equal(claim_behind(h, &cursor), 0);
    assert_false(cursor.set);
}

/* --- PostgreSQL's planner --- */

static void
test_F5_no_plan_makes_the_claim_take_more_than_asked(struct harness *h)
{
    static const char *const bad[] = {
        "enable_hashjoin",  "enable_mergejoin", "enable_material", "enable_hashagg",
        "enable_indexscan", "enable_sort",      "enable_memoize",  "enable_bitmapscan",
    };
    struct claim claims[8];
    size_t count;

    submit_span(h, "task", 5);
    for (int i = 0; i < 200; i++)
        submit_one(h, "other");
    for (size_t i = 0; i <= array_len(bad); i++) {
        harness_sql(h, "ALTER DATABASE %s SET plan_cache_mode = force_generic_plan",
                    h->database);
        if (i < array_len(bad))
            harness_sql(h, "ALTER DATABASE %s SET %s = off", h->database, bad[i]);
        else
            harness_sql(h, "ALTER DATABASE %s SET enable_nestloop = off", h->database);
        if (i == 4)
            harness_sql(h, "ANALYZE pawl.ready");
        harness_reopen(h); /* new connections take it up */
        assert_int_equal(claim_some(h, "w1", 5, claims, &count), 5);
    }
    assert_consistent(h);
    harness_sql(h, "ALTER DATABASE %s RESET ALL", h->database);
}

/* The plan as pinned: each scan of ready by an index, though the statistics were made
 * while the table was empty. */
static void
test_the_claim_reads_ready_by_index_though_analysed_empty(struct harness *h)
{
    struct db_sql explain = {.name = "explain", .flags = DB_ONCE};
    scoped(db_rows_end) struct db_rows rows = {0};
    const char *text = store_sql(h->db, STMT_QUEUE_CLAIM)->text;
    struct err err = {0};
    bool by_index = false;

    harness_sql(h, "ANALYZE pawl.ready; SET plan_cache_mode = force_generic_plan;"
                   "SET enable_seqscan = off");
    submit_span(h, "task", 100);
    harness_sql(h,
                "PREPARE the_claim (text, bigint, bigint, text[], bigint, text, text)"
                " AS %s",
                text);
    explain.text = "EXPLAIN EXECUTE the_claim('normal', 101, 0, '{task}', 4, 'w', 'n')";
    assert_ok(db_query(h->db, &explain, NULL, 0, &rows, &err), &err);
    while (db_next(&rows, &err) > 0) {
        const char *line = db_text(&rows, 0);

        if (strstr(line, "Seq Scan on"))
            fail_msg("%s", line);
        by_index |= strstr(line, "using ready_claim on ready") != NULL;
    }
    assert_true(by_index);
}

static void
test_queue_load_reads_what_was_claimed(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    int64_t first = submit_span(h, "task", 5);
    struct request requests[3];
    struct err err = {0};
    size_t count;

    assert_ok(
        queue_load(h->store, first + 1, first + 3, &arena, requests, &count, &err),
        &err);
    assert_int_equal(count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(requests[i].id, first + 1 + (int64_t)i);
        assert_string_equal(requests[i].job, "task");
        assert_string_equal(requests[i].given, "{}");
    }
}

static int
left_in(struct harness *h, const char *lane)
{
    static const char *const jobs[] = {"task"};
    struct claim_want want = {
        .worker = "w1", .lane = lane, .jobs = jobs, .n_jobs = 1, .max = 1};
    struct err err = {0};
    int r = queue_claim_left(h->store, &want, &err);

    assert_ok(r, &err);
    return r;
}

static void
test_what_a_claim_passed_by_is_told(struct harness *h)
{
    int64_t request_id = submit_one(h, "task");
    struct claim claims[1];
    size_t count;

    submit_one(h, "other");
    harness_sql(h, "BEGIN; SELECT * FROM pawl.ready WHERE first_id = %lld FOR UPDATE",
                (long long)request_id);
    assert_int_equal(claim_some(h, "w1", 1, claims, &count), 1); /* the other one */
    assert_int_equal(claim_some(h, "w1", 1, claims, &count), 0);
    assert_int_equal(left_in(h, "normal"), 1);
    assert_int_equal(left_in(h, "large"), 0);
    harness_sql(h, "ROLLBACK");
    assert_int_equal(claim_some(h, "w1", 1, claims, &count), 1);
    assert_int_equal(left_in(h, "normal"), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_A8_two_hundred_jobs_are_claimed_once_each_by_eight_workers),
        store_test_pg(test_A8_a_locked_row_is_passed_over_without_waiting),
        store_test_pg(test_what_a_claim_passed_by_is_told),
        store_test(test_B12_B13_one_id_offered_to_two_workers_has_one_winner),
        store_test(test_B21_what_was_queued_is_claimed_once_after_a_restart_of_all),
        store_test(test_highest_priority_first_then_the_order_of_entry),
        store_test(test_a_span_is_split_at_the_free_slots),
        store_test(test_what_has_expired_is_not_claimed),
        store_test(test_a_late_commit_of_a_lower_seq_is_found_by_the_sweep),
        store_test(test_the_cursor_goes_through_spans_and_down_the_priorities),
        store_test_pg(test_F5_no_plan_makes_the_claim_take_more_than_asked),
        store_test_pg(test_the_claim_reads_ready_by_index_though_analysed_empty),
        store_test(test_queue_load_reads_what_was_claimed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
