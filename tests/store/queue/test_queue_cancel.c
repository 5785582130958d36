/* Cancel and stop, waiting requests, expiry. */
#include "tests/store/queue/common.h"

#include <stdio.h>
#include <string.h>

static void
test_B27_a_queued_request_is_cancelled_at_once_and_never_claimed(struct harness *h)
{
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_REFUSE);
    struct submit_order order = order_of(&job);
    scoped(arena_release) struct arena arena = {0};
    int64_t id = submit_order(h, &order);
    struct request request;
    struct claim claims[2];
    struct err err = {0};
    size_t count;

    assert_int_equal(queue_cancel(h->store, id, "정민", &err), QUEUE_CANCELLED);
    request = get(h, &arena, id);
    assert_int_equal(request.status, REQUEST_FAILED);
    assert_int_equal(request.outcome, OUTCOME_CANCELLED);
    assert_int_equal(request.finished_at_us, HARNESS_NOW);
    assert_null(request.worker);
    assert_int_equal(claim_some(h, "w1", 2, claims, &count), 0);
    assert_int_equal(
        harness_i64(h,
                    "SELECT count(*) FROM pawl.audit WHERE act = 'cancel' AND "
                    "actor = '정민' AND subject = 'request %lld'",
                    (long long)id),
        1);
    submit_order(h, &order); /* its key is free */
    assert_consistent(h);
}

static void
test_B28_a_running_request_gets_a_flag_and_a_final_one_stays(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    int64_t id = submit_one(h, "task");
    struct claim claim = claim_one(h, "w1");
    struct request request;
    struct err err = {0};

    assert_int_equal(queue_cancel(h->store, id, "op", &err), QUEUE_CANCEL_REQUESTED);
    request = get(h, &arena, id);
    assert_int_equal(request.status, REQUEST_RUNNING);
    assert_true(request.cancel_asked);
    assert_false(request.stop_asked);
    assert_int_equal(queue_cancel(h->store, id, "op", &err), QUEUE_CANCEL_REQUESTED);
    finish_ok(h, id, &claim, OUTCOME_COMPLETED); /* it was faster */
    assert_int_equal(queue_cancel(h->store, id, "op", &err), -ERR_ALREADY_FINAL);
    err_clear(&err);
    assert_int_equal(queue_stop(h->store, id, "op", &err), -ERR_ALREADY_FINAL);
    err_clear(&err);
    assert_int_equal(queue_cancel(h->store, id + 1000, "op", &err), -ERR_NOT_FOUND);
    assert_int_equal(get(h, &arena, id).outcome, OUTCOME_COMPLETED);
    assert_int_equal(rows_in(h, "audit"), 2);
    assert_int_equal(rows_in(h, "flag"), 0);
}

static void
test_one_request_of_a_span_is_cancelled_and_the_rest_stays(struct harness *h)
{
    int64_t first = submit_span(h, "task", 5);
    struct claim claims[5];
    struct err err = {0};
    size_t count;

    assert_int_equal(queue_cancel(h->store, first + 2, "op", &err), QUEUE_CANCELLED);
    assert_int_equal(queue_cancel(h->store, first, "op", &err), QUEUE_CANCELLED);
    assert_int_equal(queue_cancel(h->store, first + 4, "op", &err), QUEUE_CANCELLED);
    assert_consistent(h);
    assert_int_equal(claim_some(h, "w1", 5, claims, &count), 2);
    assert_int_equal(claims[0].first_id, first + 1);
    assert_int_equal(claims[1].first_id, first + 3);
    /* and one that runs */
    assert_int_equal(queue_cancel(h->store, first + 3, "op", &err),
                     QUEUE_CANCEL_REQUESTED);
    assert_consistent(h);
}

static void
test_stop_asks_only_what_runs(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    int64_t id = submit_one(h, "task");
    struct claim claim;
    struct err err = {0};

    assert_int_equal(queue_stop(h->store, id, "op", &err), QUEUE_STOP_NOT_RUNNING);
    assert_int_equal(rows_in(h, "audit"), 0);
    claim = claim_one(h, "w1");
    assert_int_equal(queue_stop(h->store, id, "op", &err), QUEUE_STOP_REQUESTED);
    assert_true(get(h, &arena, id).stop_asked);
    assert_int_equal(
        harness_i64(h, "SELECT count(*) FROM pawl.audit WHERE act = 'stop'"), 1);
    finish_ok(h, id, &claim, OUTCOME_STOPPED);
    assert_int_equal(get(h, &arena, id).status, REQUEST_DONE);
}

struct act {
    struct harness *h;
    int64_t id;
    bool cancels;
    struct err err;
    struct claim claims[8];
    size_t count;
    int r;
};

static void *
act(void *arg)
{
    static const char *const jobs[] = {"task"};
    struct act *one = (struct act *)arg;
    struct claim_want want = {
        .worker = "w1", .lane = "normal", .jobs = jobs, .n_jobs = 1, .max = 3};
    struct arena arena = {0};

    if (one->cancels)
        one->r = queue_cancel(one->h->store, one->id, "op", &one->err);
    else
        one->r = queue_claim(one->h->store, &want, &arena, one->claims, &one->count,
                             &one->err);
    arena_release(&arena);
    return NULL;
}

/* Claims cut the span from the left while cancels cut it in the middle. */
static void
test_cancel_races_with_the_claim_and_one_of_them_wins(struct harness *h)
{
    for (int round = 0; round < 10; round++) {
        int64_t first = submit_span(h, "task", 8);
        struct act acts[6] = {0};
        int64_t cancelled = 0, flagged = 0;

        for (size_t i = 0; i < 6; i++)
            acts[i] = (struct act){.h = h, .id = first + (int64_t)i, .cancels = i >= 2};
        in_parallel(6, act, acts, sizeof(acts[0]));
        for (size_t i = 0; i < 6; i++) {
            assert_ok(acts[i].r, &acts[i].err);
            if (acts[i].cancels && acts[i].r == QUEUE_CANCELLED)
                cancelled++;
            else if (acts[i].cancels)
                flagged++;
        }
        assert_int_equal(cancelled + flagged, 4);
        assert_int_equal(rows_in(h, "outcome"), cancelled);
        assert_int_equal(rows_in(h, "flag"), flagged);
        assert_consistent(h);
        harness_sql(h, "DELETE FROM pawl.outcome; DELETE FROM pawl.flag;"
                       "DELETE FROM pawl.claim; DELETE FROM pawl.ready;"
                       "DELETE FROM pawl.request");
    }
}

/* --- later --- */

static void
test_requests_wait_until_their_time_and_then_enter_in_its_order(struct harness *h)
{
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_ALLOW);
    struct submit_order order = order_of(&job);
    scoped(arena_release) struct arena arena = {0};
    int64_t second, first, past, due_us, now_us, moved;
    struct claim claims[4];
    struct err err = {0};
    size_t count;

    assert_ok(queue_next_due(h->store, &due_us, &now_us, &err), &err);
    assert_int_equal(due_us, 0);
    assert_int_equal(now_us, HARNESS_NOW);
    order.not_before_us = HARNESS_NOW + 20 * US_PER_S;
    second = submit_order(h, &order);
    order.not_before_us = HARNESS_NOW + 10 * US_PER_S;
    first = submit_order(h, &order);
    order.not_before_us = HARNESS_NOW; /* not in the future: at once */
    past = submit_order(h, &order);
    assert_int_equal(get(h, &arena, first).place, PLACE_LATER);
    assert_string_equal(get(h, &arena, first).later_reason, "time");
    assert_int_equal(get(h, &arena, first).status, REQUEST_QUEUED);
    assert_int_equal(claim_one(h, "w1").first_id, past);

    assert_ok(queue_next_due(h->store, &due_us, &now_us, &err), &err);
    assert_int_equal(due_us, HARNESS_NOW + 10 * US_PER_S);
    harness_clock_advance(h, 10 * US_PER_S - 1);
    assert_ok(queue_promote(h->store, &moved, &err), &err);
    assert_int_equal(moved, 0);
    harness_clock_advance(h, 15 * US_PER_S);
    assert_ok(queue_promote(h->store, &moved, &err), &err);
    assert_int_equal(moved, 2);
    assert_int_equal(get(h, &arena, first).ready_since_us,
                     HARNESS_NOW + 25 * US_PER_S - 1);
    assert_int_equal(claim_some(h, "w1", 4, claims, &count), 2);
    assert_int_equal(claims[0].first_id, first);
    assert_int_equal(claims[1].first_id, second);
    assert_consistent(h);
}

static void
test_waiting_requests_can_be_cancelled_out_of_their_span(struct harness *h)
{
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_ALLOW);
    struct submit_order orders[5];
    struct submit_answer answers[5];
    struct err err = {0};
    int64_t moved;

    for (size_t i = 0; i < 5; i++) {
        orders[i] = order_of(&job);
        orders[i].not_before_us = HARNESS_NOW + US_PER_HOUR;
    }
    assert_ok(queue_submit_many(h->store, orders, 5, answers, NULL, &err), &err);
    assert_int_equal(rows_in(h, "later"), 1);
    assert_int_equal(queue_cancel(h->store, answers[1].request_id, "op", &err),
                     QUEUE_CANCELLED);
    assert_int_equal(queue_stop(h->store, answers[2].request_id, "op", &err),
                     QUEUE_STOP_NOT_RUNNING);
    assert_int_equal(rows_in(h, "later"), 2);
    assert_consistent(h);
    harness_clock_advance(h, US_PER_HOUR);
    assert_ok(queue_promote(h->store, &moved, &err), &err);
    assert_int_equal(moved, 4);
    assert_consistent(h);
}

static void
test_what_nobody_started_in_time_expires(struct harness *h)
{
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_REFUSE);
    struct queue_job free_job = job_of("other", QUEUE_DUPLICATES_ALLOW);
    struct submit_order order = order_of(&job);
    struct submit_order waits = order_of(&free_job);
    scoped(arena_release) struct arena arena = {0};
    int64_t ready, later, running, expired, due_us, now_us;
    struct claim claim;
    struct err err = {0};

    job.expire_after_us = US_PER_HOUR;
    ready = submit_order(h, &order);
    waits.expires_at_us = HARNESS_NOW + 2 * US_PER_HOUR;
    waits.not_before_us = HARNESS_NOW + 3 * US_PER_HOUR;
    later = submit_order(h, &waits);
    waits.not_before_us = 0;
    waits.lane = "normal";
    running = submit_order(h, &waits);
    harness_sql(h, "DELETE FROM pawl.ready WHERE first_id = %lld", (long long)ready);
    claim = claim_one(h, "w1");
    assert_int_equal(claim.first_id, running);
    harness_sql(h,
                "INSERT INTO pawl.ready (first_id, last_id, job, lane, priority, seq,"
                " ready_since, expires_at) VALUES (%lld, %lld, 'task', 'normal', 0, 99,"
                " 1, %lld)",
                (long long)ready, (long long)ready,
                (long long)(HARNESS_NOW + US_PER_HOUR));

    assert_ok(queue_next_due(h->store, &due_us, &now_us, &err), &err);
    assert_int_equal(due_us, HARNESS_NOW + US_PER_HOUR);
    assert_ok(queue_expire(h->store, &expired, &err), &err);
    assert_int_equal(expired, 0);
    harness_clock_advance(h, 2 * US_PER_HOUR);
    assert_ok(queue_expire(h->store, &expired, &err), &err);
    assert_int_equal(expired, 2);
    assert_int_equal(get(h, &arena, ready).outcome, OUTCOME_EXPIRED);
    assert_int_equal(get(h, &arena, ready).status, REQUEST_FAILED);
    assert_int_equal(get(h, &arena, ready).finished_at_us,
                     HARNESS_NOW + 2 * US_PER_HOUR);
    assert_int_equal(get(h, &arena, later).outcome, OUTCOME_EXPIRED);
    assert_int_equal(get(h, &arena, running).status, REQUEST_RUNNING);
    assert_int_equal(rows_in(h, "active"), 0);
    assert_consistent(h);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_B27_a_queued_request_is_cancelled_at_once_and_never_claimed),
        store_test(test_B28_a_running_request_gets_a_flag_and_a_final_one_stays),
        store_test(test_one_request_of_a_span_is_cancelled_and_the_rest_stays),
        store_test(test_stop_asks_only_what_runs),
        store_test(test_cancel_races_with_the_claim_and_one_of_them_wins),
        store_test(test_requests_wait_until_their_time_and_then_enter_in_its_order),
        store_test(test_waiting_requests_can_be_cancelled_out_of_their_span),
        store_test(test_what_nobody_started_in_time_expires),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
