/* Finishing: under the token only, once, out of order within a span, many at once. */
#include "tests/store/queue/common.h"

#include <string.h>

static void
test_a_finish_is_final_and_leaves_nothing_behind(struct harness *h)
{
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_REFUSE);
    struct submit_order order = order_of(&job);
    scoped(arena_release) struct arena arena = {0};
    int64_t id = submit_order(h, &order);
    struct claim claim = claim_one(h, "w1");
    struct request_result result = {
        .known = true,
        .path = "17/cities.xlsx",
        .name = "도시.xlsx",
        .type = "application/x",
        .bytes = 12345,
        .rows = 0,
        .sha256 = "ab",
    };
    struct finish_order finish = finish_of(id, &claim, OUTCOME_COMPLETED);
    struct queue_flags flags;
    struct request request;
    struct err err = {0};

    assert_ok(queue_progress(h->store, id, claim.token, 5, 10, "half", &flags, &err),
              &err);
    assert_ok(queue_cancel(h->store, id, "someone", &err), &err);
    harness_clock_advance(h, US_PER_MINUTE);
    finish.detail = "all of it";
    finish.execution_id = 42;
    finish.result = &result;
    assert_int_equal(queue_finish(h->store, &finish, &err), QUEUE_FINISHED);

    request = get(h, &arena, id);
    assert_int_equal(request.status, REQUEST_DONE);
    assert_int_equal(request.outcome, OUTCOME_COMPLETED);
    assert_int_equal(request.place, PLACE_OUTCOME);
    assert_string_equal(request.worker, "w1");
    assert_int_equal(request.token.number, claim.token.number);
    assert_int_equal(request.claimed_at_us, HARNESS_NOW);
    assert_int_equal(request.finished_at_us, HARNESS_NOW + US_PER_MINUTE);
    assert_string_equal(request.detail, "all of it");
    assert_int_equal(request.execution_id, 42);
    assert_true(request.result.known);
    assert_string_equal(request.result.name, "도시.xlsx");
    assert_int_equal(request.result.bytes, 12345);
    assert_int_equal(request.result.rows, 0);
    assert_false(request.progress.known);
    assert_int_equal(rows_in(h, "claim") + rows_in(h, "flag") + rows_in(h, "progress") +
                         rows_in(h, "active"),
                     0);
}

static void
test_another_token_finishes_nothing(struct harness *h)
{
    int64_t id = submit_one(h, "task");
    struct claim claim = claim_one(h, "w1");
    struct finish_order order = finish_of(id, &claim, OUTCOME_COMPLETED);
    struct err err = {0};

    order.token.number++;
    assert_int_equal(queue_finish(h->store, &order, &err), QUEUE_CLAIM_LOST);
    order = finish_of(id, &claim, OUTCOME_COMPLETED);
    order.token.nonce[0] ^= 1;
    assert_int_equal(queue_finish(h->store, &order, &err), QUEUE_CLAIM_LOST);
    order = finish_of(id + 1, &claim, OUTCOME_COMPLETED);
    assert_int_equal(queue_finish(h->store, &order, &err), QUEUE_CLAIM_LOST);
    assert_int_equal(rows_in(h, "outcome"), 0);
    assert_int_equal(queue_claim_holds(h->store, id, claim.token, &err), 1);
    finish_ok(h, id, &claim, OUTCOME_ERROR);
    assert_int_equal(queue_claim_holds(h->store, id, claim.token, &err), 0);
}

/* Saying it again is true again; saying something else is not. */
static void
test_the_same_finish_twice_is_one_and_another_is_lost(struct harness *h)
{
    int64_t id = submit_one(h, "task");
    struct claim claim = claim_one(h, "w1");
    struct finish_order order = finish_of(id, &claim, OUTCOME_ERROR);
    scoped(arena_release) struct arena arena = {0};
    struct err err = {0};

    finish_ok(h, id, &claim, OUTCOME_COMPLETED);
    finish_ok(h, id, &claim, OUTCOME_COMPLETED);
    assert_int_equal(queue_finish(h->store, &order, &err), QUEUE_CLAIM_LOST);
    assert_int_equal(get(h, &arena, id).outcome, OUTCOME_COMPLETED);
}

static void
test_a_span_finishes_out_of_order(struct harness *h)
{
    static const int order[] = {4, 0, 9, 5, 3, 8, 1, 2, 7, 6};
    int64_t first = submit_span(h, "task", 10);
    struct claim claims[10];
    size_t count;

    assert_int_equal(claim_some(h, "w1", 10, claims, &count), 10);
    assert_int_equal(count, 1);
    for (size_t i = 0; i < 10; i++) {
        finish_ok(h, first + order[i], &claims[0],
                  i % 2 ? OUTCOME_ERROR : OUTCOME_STOPPED);
        assert_consistent(h);
        assert_int_equal(rows_in(h, "outcome"), (int64_t)i + 1);
    }
    assert_int_equal(rows_in(h, "claim"), 0);
}

static void
test_many_finish_at_once_and_each_is_judged_alone(struct harness *h)
{
    int64_t first = submit_span(h, "task", 20);
    int64_t single = submit_one(h, "other");
    struct finish_order orders[12];
    struct claim claims[21];
    bool lost[12];
    struct err err = {0};
    size_t count;

    assert_int_equal(claim_some(h, "w1", 21, claims, &count), 21);
    assert_int_equal(count, 2);
    /* every second one of the span, from the end; then the single one */
    for (size_t i = 0; i < 10; i++)
        orders[i] = finish_of(first + 18 - 2 * (int64_t)i, &claims[0], OUTCOME_ERROR);
    orders[10] = finish_of(single, &claims[1], OUTCOME_COMPLETED);
    orders[11] =
        finish_of(first + 1, &claims[1], OUTCOME_COMPLETED); /* not its token */
    assert_ok(queue_finish_many(h->store, orders, 12, lost, &err), &err);
    for (size_t i = 0; i < 11; i++)
        assert_false(lost[i]);
    assert_true(lost[11]);
    assert_int_equal(rows_in(h, "outcome"), 11);
    assert_int_equal(rows_in(h, "claim"), 10);
    assert_consistent(h);
    assert_ok(queue_finish_many(h->store, orders, 11, NULL, &err), &err);
    assert_int_equal(rows_in(h, "outcome"), 11);
}

struct finisher {
    struct harness *h;
    struct claim *claim;
    int64_t id;
    int64_t step;
    int64_t last;
    struct err err;
    int r;
};

static void *
finish_every(void *arg)
{
    struct finisher *finisher = (struct finisher *)arg;

    for (int64_t id = finisher->id; id <= finisher->last && finisher->r == 0;
         id += finisher->step) {
        struct finish_order order = finish_of(id, finisher->claim, OUTCOME_COMPLETED);

        finisher->r = queue_finish(finisher->h->store, &order, &finisher->err);
    }
    return NULL;
}

/* Neighbours of one span finish at the same moment: none may believe it has lost. */
static void
test_neighbours_of_a_span_finish_side_by_side(struct harness *h)
{
    int64_t first = submit_span(h, "task", 60);
    struct finisher finishers[4];
    struct claim claims[60];
    size_t count;

    assert_int_equal(claim_some(h, "w1", 60, claims, &count), 60);
    for (size_t i = 0; i < 4; i++)
        finishers[i] = (struct finisher){.h = h,
                                         .claim = &claims[0],
                                         .id = first + (int64_t)i,
                                         .step = 4,
                                         .last = first + 59};
    in_parallel(4, finish_every, finishers, sizeof(finishers[0]));
    for (size_t i = 0; i < 4; i++) {
        assert_ok(finishers[i].r, &finishers[i].err);
        assert_int_equal(finishers[i].r, QUEUE_FINISHED);
    }
    assert_int_equal(rows_in(h, "outcome"), 60);
    assert_int_equal(rows_in(h, "claim"), 0);
}

static void *
report_on_last(void *arg)
{
    struct finisher *finisher = (struct finisher *)arg;
    struct queue_flags flags;

    for (int i = 0; i < 60 && finisher->r == 0; i++)
        finisher->r =
            queue_progress(finisher->h->store, finisher->last, finisher->claim->token,
                           i, 60, NULL, &flags, &finisher->err);
    return NULL;
}

static void *
finish_or_report(void *arg)
{
    return ((struct finisher *)arg)->step ? finish_every(arg) : report_on_last(arg);
}

/* Its claim row goes and comes back cut, again and again: that is not losing it. */
static void
test_a_run_keeps_its_claim_while_neighbours_of_its_span_finish(struct harness *h)
{
    int64_t first = submit_span(h, "task", 61);
    struct finisher finishers[4];
    struct claim claims[61];
    size_t count;

    assert_int_equal(claim_some(h, "w1", 61, claims, &count), 61);
    for (size_t i = 0; i < 4; i++)
        finishers[i] = (struct finisher){.h = h,
                                         .claim = &claims[0],
                                         .id = first + (int64_t)i,
                                         .step = i == 3 ? 0 : 3,
                                         .last = first + 59 + (i == 3)};
    in_parallel(4, finish_or_report, finishers, sizeof(finishers[0]));
    for (size_t i = 0; i < 4; i++) {
        assert_ok(finishers[i].r, &finishers[i].err);
        assert_int_equal(finishers[i].r, 0);
    }
    assert_int_equal(rows_in(h, "claim"), 1);
    assert_consistent(h);
}

static void *
finish_one(void *arg)
{
    struct finisher *finisher = (struct finisher *)arg;
    struct finish_order order =
        finish_of(finisher->id, finisher->claim,
                  finisher->step ? OUTCOME_COMPLETED : OUTCOME_ERROR);

    finisher->r = queue_finish(finisher->h->store, &order, &finisher->err);
    return NULL;
}

static void
test_two_different_ends_of_one_request_have_one_winner(struct harness *h)
{
    for (int round = 0; round < 20; round++) {
        int64_t id = submit_one(h, "task");
        struct claim claim = claim_one(h, "w1");
        struct finisher finishers[2] = {
            {.h = h, .claim = &claim, .id = id, .step = 0},
            {.h = h, .claim = &claim, .id = id, .step = 1},
        };

        in_parallel(2, finish_one, finishers, sizeof(finishers[0]));
        assert_ok(finishers[0].r, &finishers[0].err);
        assert_ok(finishers[1].r, &finishers[1].err);
        assert_int_equal(finishers[0].r + finishers[1].r,
                         QUEUE_FINISHED + QUEUE_CLAIM_LOST);
    }
    assert_int_equal(rows_in(h, "outcome"), 20);
}

static void
test_the_table_has_no_way_from_running_to_expired(struct harness *h)
{
    int64_t id = submit_one(h, "task");
    struct claim claim = claim_one(h, "w1");
    struct finish_order order = finish_of(id, &claim, OUTCOME_EXPIRED);
    struct err err = {0};

    assert_int_equal(queue_finish(h->store, &order, &err), -ERR_INTERNAL);
    assert_int_equal(rows_in(h, "outcome"), 0);
    assert_int_equal(rows_in(h, "claim"), 1);
}

static void
test_progress_shows_flags_and_a_lost_claim(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    int64_t first = submit_span(h, "task", 3);
    struct queue_flags flags = {0};
    struct queue_flagged flagged[4];
    struct claim claims[3];
    struct request request;
    struct err err = {0};
    size_t count;

    assert_int_equal(claim_some(h, "w1", 3, claims, &count), 3);
    assert_ok(
        queue_progress(h->store, first + 1, claims[0].token, 3, -1, "셋", &flags, &err),
        &err);
    assert_false(flags.cancel || flags.stop);
    request = get(h, &arena, first + 1);
    assert_true(request.progress.known);
    assert_int_equal(request.progress.done, 3);
    assert_int_equal(request.progress.total, -1);
    assert_string_equal(request.progress.message, "셋");
    assert_int_equal(get(h, &arena, first).progress.total, -1);

    assert_int_equal(queue_stop(h->store, first + 1, "op", &err), QUEUE_STOP_REQUESTED);
    assert_int_equal(queue_cancel(h->store, first + 1, "op", &err),
                     QUEUE_CANCEL_REQUESTED);
    assert_int_equal(queue_stop(h->store, first + 2, "op", &err), QUEUE_STOP_REQUESTED);
    assert_ok(
        queue_progress(h->store, first + 1, claims[0].token, 4, 8, NULL, &flags, &err),
        &err);
    assert_true(flags.cancel && flags.stop);
    assert_ok(queue_look_flags(h->store, first + 2, claims[0].token, &flags, &err),
              &err);
    assert_true(flags.stop && !flags.cancel);
    assert_ok(queue_flags_of_worker(h->store, "w1", 4, flagged, &count, &err), &err);
    assert_int_equal(count, 2);
    assert_int_equal(flagged[0].request_id, first + 1);
    assert_true(flagged[0].flags.cancel);
    assert_int_equal(flagged[1].request_id, first + 2);
    assert_ok(queue_flags_of_worker(h->store, "w2", 4, flagged, &count, &err), &err);
    assert_int_equal(count, 0);

    finish_ok(h, first + 1, &claims[0], OUTCOME_CANCELLED);
    assert_int_equal(
        queue_progress(h->store, first + 1, claims[0].token, 5, 8, NULL, &flags, &err),
        QUEUE_PROGRESS_LOST);
    assert_int_equal(
        queue_look_flags(h->store, first + 1, claims[0].token, &flags, &err),
        QUEUE_PROGRESS_LOST);
    assert_consistent(h);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_a_finish_is_final_and_leaves_nothing_behind),
        store_test(test_another_token_finishes_nothing),
        store_test(test_the_same_finish_twice_is_one_and_another_is_lost),
        store_test(test_a_span_finishes_out_of_order),
        store_test(test_many_finish_at_once_and_each_is_judged_alone),
        store_test(test_neighbours_of_a_span_finish_side_by_side),
        store_test(test_a_run_keeps_its_claim_while_neighbours_of_its_span_finish),
        store_test(test_two_different_ends_of_one_request_have_one_winner),
        store_test(test_the_table_has_no_way_from_running_to_expired),
        store_test(test_progress_shows_flags_and_a_lost_claim),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
