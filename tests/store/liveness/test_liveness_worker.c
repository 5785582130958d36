/* Worker rows, and the cleaning of what the earlier boots of a seat held. */
#include "tests/store/queue/common.h"

#include "batch/execution.h"
#include "batch/lost.h"
#include "liveness/worker_row.h"

#include <string.h>

static void
worker_up(struct harness *h, const char *id, const char *seat)
{
    struct worker_row row = {
        .id = id,
        .seat = seat,
        .host = "samehost", /* B23: it says nothing about who is who */
        .pid = 1,
        .boot_id = "b",
        .lanes = "{\"normal\":4}",
        .in_use = "{}",
        .keys = "[\"DART_API_KEY\"]",
        .jobs = "[\"task\"]",
        .version = "1",
    };
    struct err err = {0};

    assert_ok(worker_register(h->store, &row, &err), &err);
}

static void
test_a_worker_beats_is_listed_and_leaves(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    struct worker_row *rows;
    struct err err = {0};
    int64_t now_us;
    size_t count;

    worker_up(h, "w1", "s1");
    worker_up(h, "w2", "s2");
    harness_clock_advance(h, 10 * US_PER_S);
    assert_int_equal(worker_beat(h->store, "w1", "{\"normal\":3}", &err),
                     WORKER_BEAT_OK);
    assert_ok(worker_list(h->store, &arena, &rows, &count, &now_us, &err), &err);
    assert_int_equal(count, 2);
    assert_int_equal(now_us, HARNESS_NOW + 10 * US_PER_S);
    assert_string_equal(rows[0].id, "w1");
    assert_int_equal(rows[0].started_at_us, HARNESS_NOW);
    assert_int_equal(rows[0].beat_at_us, HARNESS_NOW + 10 * US_PER_S);
    assert_string_equal(rows[0].in_use, "{\"normal\":3}");
    assert_string_equal(rows[0].keys, "[\"DART_API_KEY\"]");
    assert_int_equal(rows[1].beat_at_us, HARNESS_NOW);
    assert_ok(worker_remove(h->store, "w1", &err), &err);
    assert_ok(worker_remove(h->store, "w1", &err), &err);
    assert_int_equal(worker_beat(h->store, "w1", "{}", &err), WORKER_BEAT_GONE);
}

static void
test_who_is_dead_is_decided_by_the_clock_of_the_store(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    const char **ids;
    struct err err = {0};
    size_t count;

    worker_up(h, "w1", "s1");
    worker_up(h, "w2", "s2");
    submit_one(h, "task");
    claim_one(h, "w0"); /* of a worker that has no row at all */
    harness_clock_advance(h, 60 * US_PER_S);
    assert_int_equal(worker_beat(h->store, "w2", "{}", &err), WORKER_BEAT_OK);
    assert_ok(worker_dead(h->store, 60 * US_PER_S, &arena, &ids, &count, &err), &err);
    assert_int_equal(count, 1);
    assert_string_equal(ids[0], "w0");
    harness_clock_advance(h, 1);
    assert_ok(worker_dead(h->store, 60 * US_PER_S, &arena, &ids, &count, &err), &err);
    assert_int_equal(count, 2);
}

/* B20 B22 B23 A29: at start the own seat is cleaned, and only that. */
static void
test_A29_B20_B22_B23_a_boot_closes_what_its_seat_held_before_and_no_more(
    struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    int64_t first = submit_span(h, "task", 3);
    int64_t foreign = submit_one(h, "other");
    struct batch_started started;
    struct batch_start_order start;
    struct claim claims[4], others[4];
    struct lost_request *lost;
    struct execution execution;
    struct request request;
    const char **ids;
    struct err err = {0};
    struct batch_step_order step_order;
    struct batch_step_started step;
    size_t count, n;

    worker_up(h, "1@samehost#aa", "seat-1"); /* dead by now */
    worker_up(h, "1@samehost#bb", "seat-2"); /* another, alive */
    assert_int_equal(claim_some(h, "1@samehost#aa", 3, claims, &n), 3);
    assert_int_equal(claim_some(h, "1@samehost#bb", 3, others, &n), 1);
    start = (struct batch_start_order){.job = "task",
                                       .request_id = first,
                                       .token = claims[0].token,
                                       .identity = "{}",
                                       .params = "{}"};
    assert_int_equal(batch_start(h->store, &start, &arena, &started, &err), BATCH_OK);
    step_order = (struct batch_step_order){.execution_id = started.execution_id,
                                           .request_id = first,
                                           .token = claims[0].token,
                                           .name = "export",
                                           .ordinal = 1,
                                           .effect = "file"};
    assert_int_equal(batch_step_start(h->store, &step_order, &arena, &step, &err),
                     BATCH_OK);
    assert_ok(queue_cancel(h->store, first + 1, "op", &err), &err);

    worker_up(h, "1@samehost#cc", "seat-1"); /* the new boot */
    assert_ok(worker_earlier_boots(h->store, "seat-1", "1@samehost#cc", &arena, &ids,
                                   &count, &err),
              &err);
    assert_int_equal(count, 1);
    assert_string_equal(ids[0], "1@samehost#aa");
    assert_ok(batch_close_lost(h->store, ids[0], "its worker was restarted", &arena,
                               &lost, &count, &err),
              &err);
    assert_ok(worker_remove(h->store, ids[0], &err), &err);

    assert_int_equal(count, 3);
    assert_int_equal(lost[0].request_id, first);
    assert_int_equal(lost[0].execution_id, started.execution_id);
    assert_int_equal(lost[0].token.number, claims[0].token.number);
    request = get(h, &arena, first);
    assert_int_equal(request.outcome, OUTCOME_WORKER_LOST);
    assert_string_equal(request.detail, "its worker was restarted");
    assert_int_equal(request.execution_id, started.execution_id);
    assert_int_equal(get(h, &arena, first + 1).outcome, OUTCOME_CANCELLED);
    assert_int_equal(get(h, &arena, first + 2).outcome, OUTCOME_WORKER_LOST);
    assert_ok(
        batch_execution_get(h->store, started.execution_id, &arena, &execution, &err),
        &err);
    assert_int_equal(execution.state, EXECUTION_FAILED);
    assert_int_not_equal(execution.ended_at_us, 0);
    assert_int_equal(execution.steps[0].state, EXECUTION_FAILED);

    assert_int_equal(get(h, &arena, foreign).status, REQUEST_RUNNING);
    finish_ok(h, foreign, &others[0], OUTCOME_COMPLETED);
    assert_consistent(h);
    submit_one(h, "task"); /* B20: asking again works */

    /* Cleaning twice finds nothing. */
    assert_ok(batch_close_lost(h->store, "1@samehost#aa", "again", &arena, &lost,
                               &count, &err),
              &err);
    assert_int_equal(count, 0);
}

static int
gate_opens(struct db *db, const char *worker, void *arg, struct err *err)
{
    (void)db, (void)worker, (void)arg, (void)err;
    return 1;
}

/* The gate saw no row; then the worker came back, and claimed. */
static void
test_a_worker_that_came_back_behind_the_gate_keeps_its_claim(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    const struct queue_gate gate = {.fn = gate_opens};
    int64_t id = submit_one(h, "task");
    struct lost_request *lost;
    struct claim claim;
    struct err err = {0};
    size_t count, n;

    worker_up(h, "w1", "seat-1");
    assert_int_equal(claim_some(h, "w1", 1, &claim, &n), 1);
    assert_ok(
        batch_close_lost_if(h->store, "w1", gate, "dead", &arena, &lost, &count, &err),
        &err);
    assert_int_equal(count, 0);
    assert_int_equal(get(h, &arena, id).status, REQUEST_RUNNING);

    assert_ok(worker_remove(h->store, "w1", &err), &err);
    assert_ok(
        batch_close_lost_if(h->store, "w1", gate, "dead", &arena, &lost, &count, &err),
        &err);
    assert_int_equal(count, 1);
    assert_int_equal(get(h, &arena, id).outcome, OUTCOME_WORKER_LOST);
    assert_consistent(h);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_a_worker_beats_is_listed_and_leaves),
        store_test(test_who_is_dead_is_decided_by_the_clock_of_the_store),
        store_test(
            test_A29_B20_B22_B23_a_boot_closes_what_its_seat_held_before_and_no_more),
        store_test(test_a_worker_that_came_back_behind_the_gate_keeps_its_claim),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
