/* What this worker claimed and does not carry is closed, and nothing else. */
#include "tests/store/worker/desk.h"

#include "run/prune.h"

#include <stdio.h>

static struct request
after_sweep(struct desk *desk, struct arena *arena, int64_t request_id)
{
    worker_reap(&desk->worker);
    return get(desk->h, arena, request_id);
}

static void
test_A36_what_is_held_is_never_swept(struct harness *h)
{
    scoped(desk_close) struct desk desk;
    scoped(arena_release) struct arena arena = {0};
    int64_t first;
    struct claim claims[4];
    size_t n;

    desk_open(&desk, h);
    first = submit_span(h, "task", 4);
    assert_int_equal(claim_some(h, "w1", 4, claims, &n), 4);
    for (int64_t id = first; id < first + 4; id++)
        if (id != first + 2)
            desk_hold(&desk, id);
    worker_reap(&desk.worker);
    for (int64_t id = first; id < first + 4; id++)
        assert_int_equal(get(h, &arena, id).status,
                         id == first + 2 ? REQUEST_FAILED : REQUEST_RUNNING);
    assert_int_equal(get(h, &arena, first + 2).outcome, OUTCOME_WORKER_LOST);
    assert_consistent(h);
}

static void
test_A35_work_that_is_whole_is_recorded_as_completed(struct harness *h)
{
    scoped(desk_close) struct desk desk;
    scoped(arena_release) struct arena arena = {0};
    struct request request;
    struct execution execution;
    struct claim claim;
    struct err err = {0};
    int64_t id, execution_id;

    desk_open(&desk, h);
    id = submit_one(h, "task");
    claim = claim_one(h, "w1");
    execution_id = desk_begin(&desk, id, &claim, 1, "file");
    desk_complete_step(&desk, id, &claim, 6);
    desk_publish(&desk, id, &claim, "a\n1\n2\n");
    request = after_sweep(&desk, &arena, id);
    assert_int_equal(request.status, REQUEST_DONE);
    assert_int_equal(request.outcome, OUTCOME_COMPLETED);
    assert_int_equal(request.execution_id, execution_id);
    assert_true(request.result.known);
    assert_string_equal(request.result.name, "x.csv");
    assert_string_equal(request.result.type, "text/csv; charset=utf-8");
    assert_int_equal(request.result.bytes, 6);
    assert_int_equal(request.result.rows, 3);
    assert_string_equal(
        request.result.sha256,
        "d4fa155a0784a2543c083ff5c36ec7a7d4810f08946220e5acf4c1f11006216e");
    assert_ok(batch_execution_get(h->store, execution_id, &arena, &execution, &err),
              &err);
    assert_int_equal(execution.state, EXECUTION_COMPLETED);
    assert_true(desk_has_result(&desk, id));
    assert_consistent(h);
}

static void
test_A35_a_job_without_a_file_is_whole_when_its_steps_are(struct harness *h)
{
    scoped(desk_close) struct desk desk;
    scoped(arena_release) struct arena arena = {0};
    struct claim claim;
    int64_t id;

    desk_open(&desk, h);
    id = submit_one(h, "other");
    claim = claim_one(h, "w1");
    desk_begin(&desk, id, &claim, 1, "transactional");
    desk_complete_step(&desk, id, &claim, 0);
    assert_int_equal(after_sweep(&desk, &arena, id).outcome, OUTCOME_COMPLETED);
}

static void
test_A35_a_step_that_never_began_is_missed(struct harness *h)
{
    scoped(desk_close) struct desk desk;
    scoped(arena_release) struct arena arena = {0};
    struct claim claim;
    int64_t id;

    desk_open(&desk, h);
    id = submit_one(h, "other");
    claim = claim_one(h, "w1");
    desk_begin(&desk, id, &claim, 2, "transactional");
    desk_complete_step(&desk, id, &claim, 0);
    assert_int_equal(after_sweep(&desk, &arena, id).outcome, OUTCOME_WORKER_LOST);
}

static void
test_A35_a_file_that_is_missing_or_damaged_is_no_result(struct harness *h)
{
    scoped(desk_close) struct desk desk;
    scoped(arena_release) struct arena arena = {0};
    struct claim claim;
    int64_t missing, damaged;

    desk_open(&desk, h);
    missing = submit_one(h, "task");
    claim = claim_one(h, "w1");
    desk_begin(&desk, missing, &claim, 1, "file");
    desk_complete_step(&desk, missing, &claim, 6);
    desk_make_part(&desk, missing, &claim); /* finished, never published */
    damaged = submit_one(h, "task");
    claim = claim_one(h, "w1");
    desk_begin(&desk, damaged, &claim, 1, "file");
    desk_complete_step(&desk, damaged, &claim, 6);
    desk_publish(&desk, damaged, &claim, "a\n1\n");
    assert_int_equal(after_sweep(&desk, &arena, missing).outcome, OUTCOME_WORKER_LOST);
    assert_int_equal(get(h, &arena, damaged).outcome, OUTCOME_WORKER_LOST);
    assert_false(desk_has_result(&desk, damaged));
    assert_consistent(h);
}

static void
test_A35_a_cancel_that_was_asked_decides(struct harness *h)
{
    scoped(desk_close) struct desk desk;
    scoped(arena_release) struct arena arena = {0};
    struct execution execution;
    struct claim claim;
    struct err err = {0};
    int64_t id, execution_id;

    desk_open(&desk, h);
    id = submit_one(h, "task");
    claim = claim_one(h, "w1");
    execution_id = desk_begin(&desk, id, &claim, 1, "file");
    harness_sql(h,
                "INSERT INTO pawl.flag (request_id, stop, cancel, asked_by, asked_at) "
                "VALUES (%lld, 0, 1, 'x', 1)",
                (long long)id);
    assert_int_equal(after_sweep(&desk, &arena, id).outcome, OUTCOME_CANCELLED);
    assert_ok(batch_execution_get(h->store, execution_id, &arena, &execution, &err),
              &err);
    assert_int_equal(execution.state, EXECUTION_FAILED);
    assert_int_equal(rows_in(h, "flag"), 0);
}

static void
test_A35_what_somebody_else_has_closed_is_not_overwritten(struct harness *h)
{
    scoped(desk_close) struct desk desk;
    scoped(arena_release) struct arena arena = {0};
    struct claim claim;
    struct err err = {0};
    int64_t id;

    desk_open(&desk, h);
    id = submit_one(h, "task");
    claim = claim_one(h, "w1");
    desk_begin(&desk, id, &claim, 1, "file");
    desk_complete_step(&desk, id, &claim, 2);
    desk_publish(&desk, id, &claim, "a\n");
    finish_ok(h, id, &claim, OUTCOME_ERROR);
    assert_int_equal(run_record_whole(&desk.worker.env, id, claim.token, &err),
                     RUN_NOT_WHOLE);
    assert_int_equal(after_sweep(&desk, &arena, id).outcome, OUTCOME_ERROR);
}

/* RELIABILITY row 1: whoever wakes late finds its work recorded, or is refused, and
 * takes no result away that belongs to an outcome. */
static void
test_A14_a_late_writer_is_refused_and_removes_nothing_that_counts(struct harness *h)
{
    scoped(desk_close) struct desk desk;
    struct claim whole, half;
    struct err err = {0};
    int64_t whole_id, half_id;

    desk_open(&desk, h);
    whole_id = submit_one(h, "task");
    whole = claim_one(h, "w1");
    desk_begin(&desk, whole_id, &whole, 1, "file");
    desk_complete_step(&desk, whole_id, &whole, 2);
    desk_publish(&desk, whole_id, &whole, "a\n");
    half_id = submit_one(h, "task");
    half = claim_one(h, "w1");
    desk_begin(&desk, half_id, &half, 1, "file");
    worker_reap(&desk.worker); /* while both sleep */

    for (int i = 0; i < 2; i++) {
        const struct claim *claim = i ? &half : &whole;
        struct request_result result = {.known = true,
                                        .path = "files/1/x.csv",
                                        .name = "x.csv",
                                        .type = "text/csv",
                                        .bytes = 2,
                                        .rows = 1,
                                        .sha256 = "0"};
        struct finish_order order = {.request_id = i ? half_id : whole_id,
                                     .token = claim->token,
                                     .outcome = OUTCOME_COMPLETED,
                                     .result = &result};

        assert_int_equal(run_record_once(h->store, &order, &err),
                         i ? BATCH_LOST : BATCH_OK);
    }
    desk_publish(&desk, half_id, &half, "late\n");
    run_discard_files(&desk.worker.env, whole_id);
    run_discard_files(&desk.worker.env, half_id);
    assert_true(desk_has_result(&desk, whole_id));
    assert_false(desk_has_result(&desk, half_id));
    assert_consistent(h);
}

/* Whoever closed the request died before it could remove the part. */
static void
test_B20_a_part_without_a_claim_goes_and_one_with_a_claim_stays(struct harness *h)
{
    scoped(desk_close) struct desk desk;
    struct claim closed, running;
    struct err err = {0};
    int64_t closed_id, running_id;

    desk_open(&desk, h);
    desk_neighbour(&desk, "w2", "{}");
    closed_id = submit_one(h, "task");
    closed = claim_one(h, "w2");
    running_id = submit_one(h, "other");
    running = claim_one(h, "w2");
    desk_make_part(&desk, closed_id, &closed);
    desk_make_part(&desk, running_id, &running);
    assert_ok(worker_drop_leavings(&desk.worker, &err), &err);
    assert_true(desk_has_part(&desk, closed_id, &closed));

    harness_sql(h, "DELETE FROM pawl.claim WHERE job = 'task'");
    assert_ok(worker_drop_leavings(&desk.worker, &err), &err);
    assert_false(desk_has_part(&desk, closed_id, &closed));
    assert_true(desk_has_part(&desk, running_id, &running));
}

/* --- retention --- */

/* A COMPLETED request with a file. */
static int64_t
with_result(struct desk *desk)
{
    struct harness *h = desk->h;
    int64_t id = submit_one(h, "task");
    struct claim claim = claim_one(h, "w1");
    struct finish_order order = finish_of(id, &claim, OUTCOME_COMPLETED);
    struct request_result result;
    struct err err = {0};
    char path[64];

    desk_publish(desk, id, &claim, "a,b\n");
    snprintf(path, sizeof(path), "files/%lld/x.csv", (long long)id);
    result = (struct request_result){
        .known = true, .path = path, .name = "x.csv", .type = "text/csv", .bytes = 4};
    order.result = &result;
    assert_ok(queue_finish(h->store, &order, &err), &err);
    return id;
}

static int64_t
gone_at(struct harness *h, int64_t id)
{
    return harness_i64(h,
                       "SELECT coalesce(result_gone_at, 0) FROM pawl.outcome"
                       " WHERE id = %lld",
                       (long long)id);
}

static void
test_results_and_keys_go_when_retention_is_over(struct harness *h)
{
    scoped(desk_close) struct desk desk;
    struct err err = {0};
    int64_t first, young;

    desk_open(&desk, h);
    desk.config.retention.results_us = 7 * US_PER_DAY;
    desk.config.retention.idempotency_us = US_PER_DAY;
    harness_sql(h,
                "INSERT INTO pawl.idempotency (subject, job, key, digest, request_id,"
                " created_at) VALUES ('s', 'task', 'old', 'd', 1, %lld),"
                " ('s', 'task', 'young', 'd', 1, %lld)",
                (long long)HARNESS_NOW, (long long)(HARNESS_NOW + 7 * US_PER_DAY));
    first = with_result(&desk);
    for (int i = 0; i < PRUNE_PAGE; i++)
        with_result(&desk);
    desk_pass(&desk, 1);
    young = with_result(&desk);

    desk_pass(&desk, 7 * US_PER_DAY - 1);
    assert_ok(worker_prune(&desk.worker, &err), &err);
    assert_int_equal(gone_at(h, first), 0); /* not a moment early */
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.idempotency"), 1);
    assert_true(desk.worker.prune_at_us == worker_now_us(&desk.worker) + US_PER_HOUR);

    desk_pass(&desk, 1);
    do /* pages, as many as a moment lets it */
        assert_ok(worker_prune(&desk.worker, &err), &err);
    while (desk.worker.prune_at_us <= worker_now_us(&desk.worker) + US_PER_S);
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.outcome"
                                    " WHERE result_gone_at IS NULL"),
                     1);
    assert_int_equal(gone_at(h, first), HARNESS_NOW + 7 * US_PER_DAY + 1);
    assert_false(desk_has_result(&desk, first));
    assert_int_equal(gone_at(h, young), 0);
    assert_true(desk_has_result(&desk, young));
    assert_consistent(h);
}

static void
test_results_stay_for_ever_where_retention_says_so(struct harness *h)
{
    scoped(desk_close) struct desk desk;
    struct err err = {0};
    int64_t id;

    desk_open(&desk, h);
    id = with_result(&desk);
    desk_pass(&desk, 1000 * US_PER_DAY);
    assert_ok(worker_prune(&desk.worker, &err), &err);
    assert_int_equal(gone_at(h, id), 0);
    assert_true(desk_has_result(&desk, id));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_A36_what_is_held_is_never_swept),
        store_test(test_A35_work_that_is_whole_is_recorded_as_completed),
        store_test(test_A35_a_job_without_a_file_is_whole_when_its_steps_are),
        store_test(test_A35_a_step_that_never_began_is_missed),
        store_test(test_A35_a_file_that_is_missing_or_damaged_is_no_result),
        store_test(test_A35_a_cancel_that_was_asked_decides),
        store_test(test_A35_what_somebody_else_has_closed_is_not_overwritten),
        store_test(test_B20_a_part_without_a_claim_goes_and_one_with_a_claim_stays),
        store_test(test_A14_a_late_writer_is_refused_and_removes_nothing_that_counts),
        store_test(test_results_and_keys_go_when_retention_is_over),
        store_test(test_results_stay_for_ever_where_retention_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
