/* Backfills: the next item is let in by the end of the one before. */
#include "tests/store/queue/common.h"

#include "queue/backfill.h"

#include <string.h>

static const char *const three[] = {"{\"n\":1}", "{\"n\":2}", "{\"n\":3}"};

static const struct queue_job *
define(struct harness *h, const char *duplicates, int attempts)
{
    return define_job(h, &(struct job_text){.name = "task",
                                            .duplicates = duplicates,
                                            .attempts = attempts,
                                            .on = attempts ? "\"ERROR\"" : NULL,
                                            .params = "{\"n\":{\"type\":\"integer\"}}",
                                            .param_order = "[\"n\"]"});
}

static int64_t
begin(struct harness *h, const struct queue_job *job, int64_t parallel, bool hold)
{
    struct backfill_order order = {.job = job,
                                   .requester = "tester",
                                   .given = "{}",
                                   .parallel = parallel,
                                   .hold_on_failure = hold,
                                   .items = three,
                                   .count = 3,
                                   .passed_over = 2};
    struct err err = {0};
    int64_t id = 0;

    assert_ok(queue_backfill(h->store, &order, &id, &err), &err);
    return id;
}

static struct backfill
look(struct harness *h, struct arena *arena, int64_t id)
{
    struct backfill backfill = {0};
    struct err err = {0};

    assert_ok(queue_backfill_get(h->store, id, arena, &backfill, &err), &err);
    return backfill;
}

static void
assert_state(struct harness *h, int64_t id, const char *state, int64_t waiting,
             int64_t open, int64_t completed)
{
    scoped(arena_release) struct arena arena = {0};
    struct backfill backfill = look(h, &arena, id);

    assert_string_equal(backfill.state, state);
    assert_int_equal(backfill.waiting, waiting);
    assert_int_equal(backfill.open, open);
    assert_int_equal(backfill.completed, completed);
    assert_int_equal(backfill.passed_over, 2);
}

/* The one request that can be claimed, with these parameters, ends so. */
static int64_t
carry_out(struct harness *h, const char *given, enum request_outcome outcome)
{
    scoped(arena_release) struct arena arena = {0};
    struct claim claim = claim_one(h, "w1");

    assert_string_equal(get(h, &arena, claim.first_id).given, given);
    finish_ok(h, claim.first_id, &claim, outcome);
    return claim.first_id;
}

static void
test_backfill_items_of_a_refusing_job_run_one_after_the_other(struct harness *h)
{
    int64_t id = begin(h, define(h, "refuse", 0), 1, false);

    assert_state(h, id, "RUNNING", 2, 1, 0);
    carry_out(h, three[0], OUTCOME_COMPLETED);
    assert_state(h, id, "RUNNING", 1, 1, 1);
    carry_out(h, three[1], OUTCOME_ERROR);
    assert_state(h, id, "RUNNING", 0, 1, 1);
    carry_out(h, three[2], OUTCOME_COMPLETED);
    assert_state(h, id, "DONE", 0, 0, 2);
    assert_int_equal(rows_in(h, "ready"), 0);
    assert_int_equal(rows_in(h, "active"), 0);
    assert_consistent(h);
}

static void
test_backfill_a_failure_holds_the_group_that_asked_for_it(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    int64_t id = begin(h, define(h, "refuse", 0), 1, true);
    struct err err = {0};

    carry_out(h, three[0], OUTCOME_COMPLETED);
    carry_out(h, three[1], OUTCOME_ERROR);
    assert_state(h, id, "HELD", 1, 0, 1);
    assert_non_null(strstr(look(h, &arena, id).why, "item 2"));
    assert_int_equal(rows_in(h, "ready"), 0);
    assert_ok(queue_backfill_hold(h->store, id, false, "ann", &err), &err);
    carry_out(h, three[1], OUTCOME_COMPLETED); /* the same item once more */
    carry_out(h, three[2], OUTCOME_COMPLETED);
    assert_state(h, id, "DONE", 0, 0, 3);
}

static void
test_backfill_a_stopped_item_holds_the_group_and_is_done_again(struct harness *h)
{
    int64_t id = begin(h, define(h, "refuse", 0), 1, false);
    struct err err = {0};

    carry_out(h, three[0], OUTCOME_STOPPED);
    assert_state(h, id, "HELD", 2, 0, 0);
    assert_ok(queue_backfill_hold(h->store, id, false, "ann", &err), &err);
    carry_out(h, three[0], OUTCOME_COMPLETED);
    assert_state(h, id, "RUNNING", 1, 1, 1);
}

static void
test_backfill_an_item_is_open_until_its_last_try_has_ended(struct harness *h)
{
    int64_t id = begin(h, define(h, "refuse", 2), 1, false);
    scoped(arena_release) struct arena arena = {0};

    carry_out(h, three[0], OUTCOME_ERROR);
    assert_state(h, id, "RUNNING", 2, 1, 0);
    assert_int_equal(look(h, &arena, id).failed, 0);
    carry_out(h, three[0], OUTCOME_COMPLETED); /* the second try */
    carry_out(h, three[1], OUTCOME_COMPLETED);
    assert_state(h, id, "RUNNING", 0, 1, 2);
}

static void
test_backfill_as_many_items_as_wanted_are_open_at_once(struct harness *h)
{
    int64_t id = begin(h, define(h, "allow", 0), 2, false);

    assert_state(h, id, "RUNNING", 1, 2, 0);
    carry_out(h, three[0], OUTCOME_COMPLETED);
    assert_state(h, id, "RUNNING", 0, 2, 1);
    carry_out(h, three[1], OUTCOME_COMPLETED);
    assert_state(h, id, "RUNNING", 0, 1, 2);
    carry_out(h, three[2], OUTCOME_COMPLETED);
    assert_state(h, id, "DONE", 0, 0, 3);
}

static void
test_backfill_an_item_waits_while_somebody_else_has_the_job(struct harness *h)
{
    const struct queue_job *job = define(h, "refuse", 0);
    struct submit_order other = order_of(job);
    struct err err = {0};
    int64_t moved = 0;
    int64_t id;

    submit_order(h, &other);
    id = begin(h, job, 1, false);
    assert_state(h, id, "RUNNING", 2, 1, 0);
    assert_ok(queue_promote(h->store, &moved, &err), &err);
    assert_int_equal(moved, 0);
    assert_state(h, id, "RUNNING", 2, 1, 0); /* not refused */
    carry_out(h, "{}", OUTCOME_COMPLETED);
    harness_clock_advance(h, INT64_C(10000000));
    if (h->kind != HARNESS_SQLITE) /* whose clock cannot be moved */
        harness_sql(h, "UPDATE pawl.later SET not_before = 1");
    assert_ok(queue_promote(h->store, &moved, &err), &err);
    assert_int_equal(moved, 1);
    carry_out(h, three[0], OUTCOME_COMPLETED);
    assert_state(h, id, "RUNNING", 1, 1, 1);
}

static void
test_backfill_a_cancel_ends_the_group_and_what_is_open(struct harness *h)
{
    int64_t id = begin(h, define(h, "allow", 0), 2, false);
    struct claim claim = claim_one(h, "w1");
    scoped(arena_release) struct arena arena = {0};
    struct err err = {0};

    assert_ok(queue_backfill_cancel(h->store, id, "ann", &err), &err);
    assert_state(h, id, "CANCELLED", 0, 1, 0);
    assert_true(get(h, &arena, claim.first_id).cancel_asked);
    finish_ok(h, claim.first_id, &claim, OUTCOME_CANCELLED);
    assert_state(h, id, "CANCELLED", 0, 0, 0);
    assert_int_equal(look(h, &arena, id).cancelled, 3);
    assert_int_equal(rows_in(h, "ready"), 0);
    assert_int_equal(queue_backfill_hold(h->store, id, false, "ann", &err),
                     -ERR_ALREADY_FINAL);
}

static void
test_backfill_an_item_that_fits_the_job_no_more_fails_and_is_told(struct harness *h)
{
    int64_t id = begin(h, define(h, "refuse", 0), 1, false);
    scoped(arena_release) struct arena arena = {0};
    struct backfill backfill;

    harness_sql(h, "UPDATE pawl.job_definition SET definition = "
                   "replace(definition, '{\"type\":\"integer\"}', "
                   "'{\"type\":\"integer\",\"min\":3}')");
    carry_out(h, three[0], OUTCOME_COMPLETED);
    backfill = look(h, &arena, id);
    assert_int_equal(backfill.failed, 1);
    assert_non_null(strstr(backfill.items[0].detail, "/params/n"));
    carry_out(h, three[2], OUTCOME_COMPLETED);
    assert_state(h, id, "DONE", 0, 0, 2);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_backfill_items_of_a_refusing_job_run_one_after_the_other),
        store_test(test_backfill_a_failure_holds_the_group_that_asked_for_it),
        store_test(test_backfill_a_stopped_item_holds_the_group_and_is_done_again),
        store_test(test_backfill_an_item_is_open_until_its_last_try_has_ended),
        store_test(test_backfill_as_many_items_as_wanted_are_open_at_once),
        store_test(test_backfill_an_item_waits_while_somebody_else_has_the_job),
        store_test(test_backfill_a_cancel_ends_the_group_and_what_is_open),
        store_test(test_backfill_an_item_that_fits_the_job_no_more_fails_and_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
