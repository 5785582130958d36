/* Reading: one request, pages, counts, definitions, the list of jobs. */
#include "tests/store/queue/common.h"

#include "queue/definition.h"

#include <stdio.h>
#include <string.h>

static void
test_B10_a_request_reads_the_same_from_any_store_handle(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    struct store_options options = h->options;
    int64_t id = submit_one(h, "task");
    struct claim claim = claim_one(h, "w1");
    struct queue_flags flags;
    struct request here, there;
    struct err err = {0};

    assert_ok(queue_progress(h->store, id, claim.token, 1, 4, "m", &flags, &err), &err);
    here = get(h, &arena, id);
    if (h->kind == HARNESS_SQLITE) {
        harness_reopen(h); /* one process owns it; restarted */
        there = get(h, &arena, id);
    } else {
        scoped(store_closep) struct store *other = NULL;

        assert_ok(store_open(&options, &other, &err), &err);
        assert_ok(queue_get(other, id, &arena, &there, &err), &err);
    }
    assert_int_equal(there.status, REQUEST_RUNNING);
    assert_int_equal(there.token.number, here.token.number);
    assert_string_equal(there.token.nonce, ""); /* who only reads does not learn it */
    assert_string_equal(there.worker, here.worker);
    assert_int_equal(there.progress.done, 1);
    assert_int_equal(there.progress.total, 4);
    err_clear(&err);
    assert_int_equal(queue_get(h->store, id + 7, &arena, &there, &err), -ERR_NOT_FOUND);
}

static size_t
count_all(struct harness *h, struct list_filter filter, const int64_t *expected,
          size_t n_expected)
{
    scoped(arena_release) struct arena arena = {0};
    struct request_page page;
    struct err err = {0};
    size_t n = 0;

    do {
        assert_ok(queue_list(h->store, &filter, &arena, &page, &err), &err);
        assert_true(page.count <= (size_t)filter.limit);
        for (size_t i = 0; i < page.count; i++, n++) {
            assert_true(n < n_expected);
            assert_int_equal(page.requests[i].id, expected[n]);
            if (filter.has_status)
                assert_int_equal(page.requests[i].status, filter.status);
        }
        filter.after = page.next_after;
    } while (page.next_after);
    return n;
}

static void
test_pages_are_keyset_newest_first_and_filtered(struct harness *h)
{
    struct queue_job task = job_of("task", QUEUE_DUPLICATES_ALLOW);
    struct queue_job other = job_of("other", QUEUE_DUPLICATES_ALLOW);
    struct submit_order order = order_of(&task);
    int64_t ids[12], expected[12];
    struct claim claims[12];
    size_t count, n;
    struct err err = {0};

    for (size_t i = 0; i < 12; i++) {
        order = order_of(i % 3 == 0 ? &other : &task);
        order.requester = i % 2 ? "odd" : "even";
        ids[i] = submit_order(h, &order);
    }
    assert_int_equal(claim_some(h, "w1", 6, claims, &count), 6);
    for (size_t i = 0; i < 4; i++) {
        struct finish_order finish = finish_of(
            claims[i].first_id, &claims[i], i < 2 ? OUTCOME_COMPLETED : OUTCOME_ERROR);

        assert_int_equal(queue_finish(h->store, &finish, &err), QUEUE_FINISHED);
    }
    for (size_t i = 0; i < 12; i++)
        expected[i] = ids[11 - i];
    assert_int_equal(count_all(h, (struct list_filter){.limit = 5}, expected, 12), 12);
    assert_int_equal(count_all(h, (struct list_filter){.limit = 12}, expected, 12), 12);

    n = 0;
    for (size_t i = 12; i-- > 0;)
        if (i % 3 != 0 && i % 2)
            expected[n++] = ids[i];
    assert_int_equal(
        count_all(h,
                  (struct list_filter){.limit = 2, .job = "task", .requester = "odd"},
                  expected, n),
        n);
    n = 0;
    for (size_t i = 12; i-- > 0;)
        if (i % 2 == 0)
            expected[n++] = ids[i];
    assert_int_equal(count_all(h, (struct list_filter){.limit = 4, .requester = "even"},
                               expected, n),
                     n);
    for (size_t i = 0; i < 6; i++)
        expected[i] = ids[11 - i];
    assert_int_equal(count_all(h,
                               (struct list_filter){.limit = 4,
                                                    .has_status = true,
                                                    .status = REQUEST_QUEUED},
                               expected, 6),
                     6);
    expected[0] = ids[5];
    expected[1] = ids[4];
    assert_int_equal(count_all(h,
                               (struct list_filter){.limit = 1,
                                                    .has_status = true,
                                                    .status = REQUEST_RUNNING},
                               expected, 2),
                     2);
    expected[0] = ids[3];
    expected[1] = ids[2];
    assert_int_equal(count_all(h,
                               (struct list_filter){.limit = 1,
                                                    .has_status = true,
                                                    .status = REQUEST_FAILED},
                               expected, 2),
                     2);
    expected[0] = ids[0];
    assert_int_equal(count_all(h,
                               (struct list_filter){.limit = 1,
                                                    .job = "other",
                                                    .has_status = true,
                                                    .status = REQUEST_DONE},
                               expected, 1),
                     1);
}

static void
test_limits_are_clamped(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    struct list_filter filter = {.limit = 100000};
    struct request_page page;
    struct err err = {0};

    assert_ok(queue_list(h->store, &filter, &arena, &page, &err), &err);
    assert_int_equal(page.count, 0);
    assert_int_equal(page.next_after, 0);
    submit_span(h, "task", QUEUE_LIST_MAX + 5);
    assert_ok(queue_list(h->store, &filter, &arena, &page, &err), &err);
    assert_int_equal(page.count, QUEUE_LIST_MAX);
    filter.limit = 0;
    assert_ok(queue_list(h->store, &filter, &arena, &page, &err), &err);
    assert_int_equal(page.count, QUEUE_LIST_DEFAULT);
    filter.limit = -3;
    assert_ok(queue_list(h->store, &filter, &arena, &page, &err), &err);
    assert_int_equal(page.count, 1);
}

static void
test_counts_per_lane(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_ALLOW);
    struct submit_order order = order_of(&job);
    struct lane_count *counts;
    struct claim claims[4];
    struct err err = {0};
    size_t count, n;

    submit_span(h, "task", 10);
    assert_int_equal(claim_some(h, "w1", 4, claims, &n), 4);
    order.lane = "large";
    order.not_before_us = HARNESS_NOW + 1;
    submit_order(h, &order);
    assert_ok(queue_count_lanes(h->store, &arena, &counts, &count, &err), &err);
    assert_int_equal(count, 2);
    assert_string_equal(counts[0].lane, "large");
    assert_int_equal(counts[0].later, 1);
    assert_int_equal(counts[0].oldest_ready_us, 0);
    assert_string_equal(counts[1].lane, "normal");
    assert_int_equal(counts[1].ready, 6);
    assert_int_equal(counts[1].running, 4);
    assert_int_equal(counts[1].oldest_ready_us, HARNESS_NOW);
}

/* --- definitions --- */

static struct publish_counts
publish(struct harness *h, int64_t version, const struct job_definition *definitions,
        size_t count)
{
    struct publish_counts counts;
    struct err err = {0};

    assert_ok(queue_publish(h->store, definitions, count, version, &counts, &err),
              &err);
    return counts;
}

static void
test_a_newer_definition_wins_and_an_older_file_changes_nothing(struct harness *h)
{
    struct job_definition v1[] = {{.name = "a", .hash = "1", .definition = "{\"v\":1}"},
                                  {.name = "b", .hash = "1", .definition = "{}"}};
    struct job_definition v2[] = {
        {.name = "a", .hash = "2", .definition = "{\"v\":2}"}};
    scoped(arena_release) struct arena arena = {0};
    struct job_definition *all;
    struct publish_counts counts;
    struct err err = {0};
    size_t count;

    counts = publish(h, 1, v1, 2);
    assert_int_equal(counts.published, 2);
    counts = publish(h, 1, v1, 2);
    assert_int_equal(counts.unchanged, 2);
    counts = publish(h, 2, v2, 1);
    assert_int_equal(counts.published, 1);
    assert_int_equal(counts.withdrawn, 1);
    counts = publish(h, 1, v1, 2); /* the older file of another machine */
    assert_int_equal(counts.published, 0);
    assert_int_equal(counts.kept, 2);
    assert_ok(queue_definitions(h->store, &arena, &all, &count, &err), &err);
    assert_int_equal(count, 2);
    assert_string_equal(all[0].name, "a");
    assert_string_equal(all[0].definition, "{\"v\":2}");
    assert_int_equal(all[0].version, 2);
    assert_int_equal(all[0].withdrawn_at_us, 0);
    assert_int_equal(all[1].withdrawn_at_us, HARNESS_NOW);
    counts = publish(h, 3, v1, 2); /* named again by a newer one */
    assert_int_equal(counts.published, 2);
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.job_definition"
                                    " WHERE withdrawn_at IS NULL"),
                     2);
}

/* Several processes with one file start at once: they do not wait for each other. */
static void
test_a_file_that_changes_nothing_locks_nothing(struct harness *h)
{
    struct job_definition same[] = {{.name = "a", .hash = "1", .definition = "{}"},
                                    {.name = "b", .hash = "1", .definition = "{}"}};
    static const char lockers[] = "SELECT sum(CAST(CAST(xmax AS text) AS bigint))"
                                  " FROM pawl.job_definition";
    struct publish_counts counts;

    for (int64_t version = 0; version < 2; version++) {
        int64_t before;

        publish(h, version, same, 2);
        before = harness_i64(h, lockers);
        counts = publish(h, version, same, 2);
        assert_int_equal(counts.unchanged, 2);
        assert_int_equal(harness_i64(h, lockers), before);
    }
}

static void
test_files_without_version_replace_each_other(struct harness *h)
{
    struct job_definition one[] = {
        {.name = "a", .hash = "1", .definition = "{\"v\":1}"},
        {.name = "b", .hash = "1", .definition = "{}"}};
    struct job_definition two[] = {
        {.name = "a", .hash = "2", .definition = "{\"v\":2}"}};
    struct publish_counts counts;

    publish(h, 0, one, 2);
    counts = publish(h, 0, two, 1);
    assert_int_equal(counts.published, 1);
    /* Alone on the store its file is all there is; else others have theirs. */
    assert_int_equal(counts.withdrawn, h->kind == HARNESS_SQLITE ? 1 : 0);
    counts = publish(h, 0, one, 2);
    assert_int_equal(counts.published, h->kind == HARNESS_SQLITE ? 2 : 1);
}

/* A40: however many jobs, one statement (the function runs exactly one). A41: the last
 * execution is the newest one of the newest instance, STOPPING runs, and a step may be
 * fresher than its execution. */
static void
test_A40_A41_the_list_of_jobs(struct harness *h)
{
    struct job_definition defs[] = {{.name = "batch", .hash = "1", .definition = "{}"},
                                    {.name = "idle", .hash = "1", .definition = "{}"},
                                    {.name = "task", .hash = "1", .definition = "{}"}};
    struct queue_job batch = job_of("batch", QUEUE_DUPLICATES_REFUSE);
    struct submit_order order = order_of(&batch);
    scoped(arena_release) struct arena arena = {0};
    struct job_state *jobs;
    struct claim claims[2];
    struct err err = {0};
    int64_t active;
    size_t count, n;

    publish(h, 1, defs, 3);
    active = submit_order(h, &order);
    submit_span(h, "task", 10);
    assert_int_equal(claim_some(h, "w1", 2, claims, &n), 2);
    harness_sql(
        h, "INSERT INTO pawl.instance (id, job, number, identity, params) VALUES"
           " (101, 'batch', 1, '{}', '{}'), (102, 'batch', 2, '{}', '{}');"
           "INSERT INTO pawl.execution (id, instance_id, job, request_id, token,"
           " state, params, started_at, ended_at, last_updated) VALUES"
           " (5, 101, 'batch', 1, 1, 'COMPLETED', '{}', 50, 60, 60),"
           " (3, 102, 'batch', 2, 2, 'STOPPING', '{}', 30, NULL, 40);"
           "INSERT INTO pawl.step_execution (id, execution_id, name, ordinal, state,"
           " started_at, last_updated) VALUES (9, 3, 's', 1, 'STOPPING', 30, 45);");
    assert_ok(queue_jobs(h->store, &arena, &jobs, &count, &err), &err);
    assert_int_equal(count, 3);
    assert_string_equal(jobs[0].job, "batch");
    assert_int_equal(jobs[0].queued, 1);
    assert_int_equal(jobs[0].active_request_id, active);
    assert_int_equal(jobs[0].last_request_id, active);
    assert_int_equal(jobs[0].last_instance_id, 102);
    assert_int_equal(jobs[0].last_execution_id, 3);
    assert_string_equal(jobs[0].last_state, "STOPPING");
    assert_int_equal(jobs[0].last_ended_at_us, 0);
    assert_int_equal(jobs[0].last_updated_us, 45);
    assert_string_equal(jobs[1].job, "idle");
    assert_int_equal(jobs[1].last_request_id, 0);
    assert_null(jobs[1].last_state);
    assert_int_equal(jobs[2].queued, 8);
    assert_int_equal(jobs[2].running, 2);
    assert_int_equal(jobs[2].active_request_id, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_B10_a_request_reads_the_same_from_any_store_handle),
        store_test(test_pages_are_keyset_newest_first_and_filtered),
        store_test(test_limits_are_clamped),
        store_test(test_counts_per_lane),
        store_test(test_a_newer_definition_wins_and_an_older_file_changes_nothing),
        store_test_pg(test_a_file_that_changes_nothing_locks_nothing),
        store_test(test_files_without_version_replace_each_other),
        store_test(test_A40_A41_the_list_of_jobs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
