/* Who is dead, what becomes of it, and what waits where nobody serves. */
#include "tests/store/worker/desk.h"

#include "batch/lost.h"
#include "batch/recovery.h"
#include "liveness/worker_row.h"

#define DEAD_AFTER (60 * US_PER_S)

static enum request_outcome
outcome_of(struct harness *h, int64_t request_id)
{
    scoped(arena_release) struct arena arena = {0};

    return get(h, &arena, request_id).outcome;
}

static enum request_status
status_of(struct harness *h, int64_t request_id)
{
    scoped(arena_release) struct arena arena = {0};

    return get(h, &arena, request_id).status;
}

static int64_t
has_row(struct harness *h, const char *id)
{
    return harness_i64(h, "SELECT count(*) FROM pawl.worker WHERE id = '%s'", id);
}

static void
test_A14_B22_B23_only_the_dead_workers_requests_are_closed(struct harness *h)
{
    scoped(desk_close) struct desk desk;
    struct request request;
    scoped(arena_release) struct arena arena = {0};
    int64_t of_dead, of_living;
    struct claim dead, living;

    desk_open(&desk, h);
    desk_neighbour(&desk, "w2", "{}"); /* the same host as all: it says nothing */
    desk_neighbour(&desk, "w3", "{}");
    of_dead = submit_one(h, "task");
    dead = claim_one(h, "w2");
    of_living = submit_one(h, "task");
    living = claim_one(h, "w3");
    desk_begin(&desk, of_dead, &dead, 1, "file");
    desk_make_part(&desk, of_dead, &dead);
    desk_make_part(&desk, of_living, &living);

    desk_pass(&desk, DEAD_AFTER);
    desk_beat(&desk, "w1");
    desk_beat(&desk, "w3");
    worker_reap(&desk.worker);
    assert_int_equal(status_of(h, of_dead), REQUEST_RUNNING); /* not a moment early */
    /* … and we come back for it right then, not a whole reap later. */
    assert_true(desk.worker.reap_at_us - worker_now_us(&desk.worker) <= 2 * US_PER_S);

    desk_pass(&desk, 1);
    worker_reap(&desk.worker);
    request = get(h, &arena, of_dead);
    assert_int_equal(request.status, REQUEST_FAILED);
    assert_int_equal(request.outcome, OUTCOME_WORKER_LOST);
    assert_non_null(strstr(request.detail, "Ask for it again"));
    assert_int_equal(has_row(h, "w2"), 0);
    assert_false(desk_has_part(&desk, of_dead, &dead));
    assert_int_equal(
        harness_i64(h, "SELECT count(*) FROM pawl.execution WHERE state = 'FAILED'"),
        1);

    assert_int_equal(status_of(h, of_living), REQUEST_RUNNING);
    assert_int_equal(has_row(h, "w3"), 1);
    assert_true(desk_has_part(&desk, of_living, &living));
    assert_consistent(h);
}

static void
test_A14_what_a_dead_worker_had_finished_is_completed(struct harness *h)
{
    scoped(desk_close) struct desk desk;
    int64_t id;
    struct claim claim;

    desk_open(&desk, h);
    desk_neighbour(&desk, "w2", "{}");
    id = submit_one(h, "task");
    claim = claim_one(h, "w2");
    desk_begin(&desk, id, &claim, 1, "file");
    desk_complete_step(&desk, id, &claim, 5);
    desk_publish(&desk, id, &claim, "a,b\n\n");
    desk_pass(&desk, DEAD_AFTER + 1);
    desk_beat(&desk, "w1");
    worker_reap(&desk.worker);
    assert_int_equal(outcome_of(h, id), OUTCOME_COMPLETED);
    assert_true(desk_has_result(&desk, id));
    assert_int_equal(has_row(h, "w2"), 0);
    assert_consistent(h);
}

/* The job was changed between the two runs: what only the old one had does not count.
 */
static void
test_A22_steps_that_the_job_has_no_more_do_not_make_a_run_whole(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    scoped(desk_close) struct desk desk;
    struct batch_start_order order = {
        .job = "other", .identity = "{}", .params = "{}", .steps = 2};
    struct batch_step_order old = {.name = "old", .ordinal = 1};
    struct checkpoint done = {
        .point = {.chunk = 1, .position = "{}", .writer_state = "{}"}, .last = true};
    struct batch_step_started step = {0};
    struct batch_started started = {0};
    struct finish_order finish;
    struct claim claim;
    struct err err = {0};

    desk_open(&desk, h);
    desk_neighbour(&desk, "w2", "{}");
    order.request_id = submit_one(h, "other");
    claim = claim_one(h, "w2");
    order.token = claim.token;
    assert_int_equal(batch_start(h->store, &order, &arena, &started, &err), BATCH_OK);
    old.execution_id = done.execution_id = started.execution_id;
    old.request_id = done.request_id = order.request_id;
    old.token = done.token = claim.token;
    assert_int_equal(batch_step_start(h->store, &old, &arena, &step, &err), BATCH_OK);
    done.step_id = step.step_id;
    assert_int_equal(batch_checkpoint(h->store, &done, &err), BATCH_OK);
    finish = finish_of(order.request_id, &claim, OUTCOME_ERROR);
    assert_int_equal(batch_finish(h->store, started.execution_id, EXECUTION_FAILED,
                                  NULL, &finish, &err),
                     BATCH_OK);

    order.go_on = BATCH_GO_ON_OF;
    order.of = order.request_id;
    order.steps = 1; /* "one", which is not begun */
    order.request_id = submit_one(h, "other");
    claim = claim_one(h, "w2");
    order.token = claim.token;
    assert_int_equal(batch_start(h->store, &order, &arena, &started, &err), BATCH_OK);
    assert_true(started.resumed);
    desk_pass(&desk, DEAD_AFTER + 1);
    desk_beat(&desk, "w1");
    worker_reap(&desk.worker);
    assert_int_equal(outcome_of(h, order.request_id), OUTCOME_WORKER_LOST);
    assert_consistent(h);
}

static void
test_A14_a_beat_before_the_closing_keeps_a_worker(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    scoped(desk_close) struct desk desk;
    const char **ids;
    struct err err = {0};
    size_t count;
    int64_t id;

    desk_open(&desk, h);
    desk_neighbour(&desk, "w2", "{}");
    id = submit_one(h, "task");
    claim_one(h, "w2");
    desk_pass(&desk, DEAD_AFTER + 1);
    desk_beat(&desk, "w1");
    assert_ok(worker_dead(h->store, DEAD_AFTER, &arena, &ids, &count, &err), &err);
    assert_int_equal(count, 1);
    desk_beat(&desk, "w2"); /* it was only slow */
    worker_reap(&desk.worker);
    assert_int_equal(status_of(h, id), REQUEST_RUNNING);
    assert_int_equal(has_row(h, "w2"), 1);
}

/* RELIABILITY row 11. */
static void
test_A14_after_an_outage_nobody_is_dead_for_one_whole_dead_after(struct harness *h)
{
    scoped(desk_close) struct desk desk;
    int64_t id;

    desk_open(&desk, h);
    desk_neighbour(&desk, "w2", "{}");
    id = submit_one(h, "task");
    claim_one(h, "w2");
    desk_pass(&desk, 3 * DEAD_AFTER); /* the store was away for all */
    desk_beat(&desk, "w1");
    desk.worker.link_since_us = 0; /* a beat has failed */
    worker_reap(&desk.worker);
    assert_int_equal(status_of(h, id), REQUEST_RUNNING);

    desk_trusted_for(&desk, 0); /* and the first has arrived */
    desk_pass(&desk, DEAD_AFTER - 1);
    desk_beat(&desk, "w1");
    worker_reap(&desk.worker);
    assert_int_equal(status_of(h, id), REQUEST_RUNNING);
    assert_true(desk.worker.reap_at_us <= worker_now_us(&desk.worker) + 1);

    desk_pass(&desk, 1);
    worker_reap(&desk.worker);
    assert_int_equal(outcome_of(h, id), OUTCOME_WORKER_LOST);
}

/* RELIABILITY row 32: everybody looks dead, we too. */
static void
test_A14_a_store_clock_set_forward_kills_nobody(struct harness *h)
{
    scoped(desk_close) struct desk desk;
    int64_t id;

    desk_open(&desk, h);
    desk_neighbour(&desk, "w2", "{}");
    id = submit_one(h, "task");
    claim_one(h, "w2");
    harness_clock_advance(h, US_PER_HOUR);
    worker_reap(&desk.worker);
    assert_int_equal(status_of(h, id), REQUEST_RUNNING);
}

static void
test_a_beat_tells_how_long_ago_the_last_one_was(struct harness *h)
{
    scoped(desk_close) struct desk desk;
    struct err err = {0};
    int64_t gap_us = -1;

    desk_open(&desk, h);
    desk_pass(&desk, 7 * US_PER_S);
    assert_int_equal(worker_beat_gap(h->store, "w1", "{}", &gap_us, &err),
                     WORKER_BEAT_OK);
    assert_int_equal(gap_us, 7 * US_PER_S);
    assert_int_equal(worker_beat_gap(h->store, "w9", "{}", &gap_us, &err),
                     WORKER_BEAT_GONE);
}

/* A flagged request of a dead worker is closed as what was asked. */
static void
test_A14_a_cancel_asked_of_a_dead_worker_is_kept(struct harness *h)
{
    scoped(desk_close) struct desk desk;
    int64_t id;

    desk_open(&desk, h);
    desk_neighbour(&desk, "w2", "{}");
    id = submit_one(h, "task");
    claim_one(h, "w2");
    harness_sql(h,
                "INSERT INTO pawl.flag (request_id, stop, cancel, asked_by, asked_at) "
                "VALUES (%lld, 0, 1, 'x', 1)",
                (long long)id);
    desk_pass(&desk, DEAD_AFTER + 1);
    desk_beat(&desk, "w1");
    worker_reap(&desk.worker);
    assert_int_equal(outcome_of(h, id), OUTCOME_CANCELLED);
}

/* Asked over an api, whose role may not. The judge needs no trust: a person decided. */
static void
test_A39_what_is_asked_for_by_hand_is_ended_by_a_worker(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    scoped(desk_close) struct desk desk;
    struct request request;
    struct err err = {0};
    struct claim claim;
    int64_t execution;
    int64_t id;

    desk_open(&desk, h);
    desk_neighbour(&desk, "w2", "{}");
    id = submit_one(h, "task");
    claim = claim_one(h, "w2");
    execution = desk_begin(&desk, id, &claim, 1, "file");
    desk.worker.link_since_us = 0;

    assert_ok(batch_recovery_ask(h->store, execution, "anna", &err), &err);
    assert_int_equal(batch_recovery_waits(h->store, execution, &err), 1);
    worker_reap(&desk.worker);
    assert_int_equal(status_of(h, id), REQUEST_RUNNING); /* it lives */
    assert_int_equal(batch_recovery_waits(h->store, execution, &err), 0);

    desk_pass(&desk, DEAD_AFTER);
    desk_beat(&desk, "w1");
    worker_reap(&desk.worker);
    assert_int_equal(status_of(h, id), REQUEST_RUNNING); /* nobody asks any more */
    assert_ok(batch_recovery_ask(h->store, execution, "kim", &err), &err);
    assert_ok(batch_recovery_ask(h->store, execution, "anna", &err), &err);
    assert_ok(batch_recovery_ask(h->store, 4711, "anna", &err), &err);
    worker_reap(&desk.worker);
    request = get(h, &arena, id);
    assert_int_equal(request.outcome, OUTCOME_WORKER_LOST);
    assert_non_null(strstr(request.detail, "administrator anna"));
    assert_int_equal(rows_in(h, "recovery"), 0);
    assert_consistent(h);
}

/* --- takeover --- */

static int64_t
submit_in(struct harness *h, const char *lane)
{
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_ALLOW);
    struct submit_order order = order_of(&job);

    order.lane = lane;
    return submit_order(h, &order);
}

static int64_t
claimable(struct harness *h)
{
    return harness_i64(h, "SELECT count(*) FROM pawl.ready WHERE lane = 'normal'");
}

static void
reap_after(struct desk *desk, int64_t us)
{
    desk_pass(desk, us);
    desk_beat(desk, "w1");
    worker_reap(&desk->worker);
}

static void
test_B24_after_two_hours_an_unserved_lane_is_taken_over(struct harness *h)
{
    scoped(desk_close) struct desk desk;
    scoped(arena_release) struct arena arena = {0};
    int64_t id;

    desk_open(&desk, h);
    desk.worker.lanes[0].empty = true;
    id = submit_in(h, "gone");
    reap_after(&desk, US_PER_HOUR + 59 * US_PER_MINUTE);
    assert_int_equal(claimable(h), 0);
    reap_after(&desk, 2 * US_PER_MINUTE);
    assert_int_equal(claimable(h), 1);
    assert_false(desk.worker.lanes[0].empty); /* the claim looks at once */
    claim_one(h, "w1");
    assert_int_equal(status_of(h, id), REQUEST_RUNNING);
    /* Counted where it runs; what was asked for stays. */
    assert_int_equal(
        harness_i64(h, "SELECT count(*) FROM pawl.claim WHERE lane = 'normal'"), 1);
    assert_string_equal(get(h, &arena, id).lane, "gone");
}

static void
test_B24_a_lane_that_a_live_worker_serves_is_left_to_it(struct harness *h)
{
    scoped(desk_close) struct desk desk;

    desk_open(&desk, h);
    desk_neighbour(&desk, "w2", "{\"gone\":1}");
    submit_in(h, "gone");
    desk_pass(&desk, 3 * US_PER_HOUR);
    desk_beat(&desk, "w2");
    reap_after(&desk, 0);
    assert_int_equal(claimable(h), 0);
    reap_after(&desk, DEAD_AFTER + 1); /* it died */
    assert_int_equal(claimable(h), 1);
}

static void
test_B24_nothing_is_taken_over_that_cannot_run_here(struct harness *h)
{
    scoped(desk_close) struct desk desk;

    desk_open(&desk, h);
    submit_in(h, "gone");
    desk.worker.lanes[0].in_use = 4; /* no slot is free */
    reap_after(&desk, 3 * US_PER_HOUR);
    assert_int_equal(claimable(h), 0);
    desk.worker.lanes[0].in_use = 0;
    desk.worker.jobs[0] = "another"; /* and a job that we have not */
    reap_after(&desk, 0);
    assert_int_equal(claimable(h), 0);
    desk.worker.jobs[0] = "task";
    reap_after(&desk, 0);
    assert_int_equal(claimable(h), 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_A14_B22_B23_only_the_dead_workers_requests_are_closed),
        store_test(test_A14_what_a_dead_worker_had_finished_is_completed),
        store_test(test_A22_steps_that_the_job_has_no_more_do_not_make_a_run_whole),
        store_test(test_A14_a_beat_before_the_closing_keeps_a_worker),
        store_test(test_A14_after_an_outage_nobody_is_dead_for_one_whole_dead_after),
        store_test(test_A14_a_store_clock_set_forward_kills_nobody),
        store_test(test_a_beat_tells_how_long_ago_the_last_one_was),
        store_test(test_A14_a_cancel_asked_of_a_dead_worker_is_kept),
        store_test(test_A39_what_is_asked_for_by_hand_is_ended_by_a_worker),
        store_test(test_B24_after_two_hours_an_unserved_lane_is_taken_over),
        store_test(test_B24_a_lane_that_a_live_worker_serves_is_left_to_it),
        store_test(test_B24_nothing_is_taken_over_that_cannot_run_here),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
