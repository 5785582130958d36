/* Budgets: one statement decides, by the calendar day of a zone, whoever asks. */
#include "tests/store/queue/common.h"

#include "base/zone.h"
#include "budget/budget.h"

#include <pthread.h>
#include <string.h>

struct taker {
    struct harness *h;
    struct zone *zone;
    struct budget_rule rule;
    struct budget_order order;
};

static void
taker_init(struct taker *taker, struct harness *h, int64_t per_day, const char *zone)
{
    struct err err = {0};
    int64_t request_id = submit_one(h, "task");
    struct claim claim = claim_one(h, "w1");

    *taker = (struct taker){.h = h};
    assert_ok(zone_load(zone, &taker->zone, &err), &err);
    taker->rule =
        (struct budget_rule){.name = "geo", .per_day = per_day, .zone = taker->zone};
    taker->order = (struct budget_order){.rule = &taker->rule,
                                         .request_id = request_id,
                                         .token = claim.token,
                                         .max_calls = -1};
}

static void
taker_release(struct taker *taker)
{
    zone_free(taker->zone);
}

static void
taker_zone(struct taker *taker, const char *zone)
{
    struct err err = {0};

    zone_free(taker->zone);
    taker->zone = NULL;
    assert_ok(zone_load(zone, &taker->zone, &err), &err);
    taker->rule.zone = taker->zone;
}

/* Has the day of UTC only just begun? */
static bool
young(struct harness *h)
{
    return harness_i64(h, "SELECT pawl_now()") % (24 * US_PER_HOUR) < US_PER_HOUR;
}

static int
take(struct taker *taker, struct budget_grant *grant)
{
    struct err err = {0};
    int r = budget_take(taker->h->store, &taker->order, grant, &err);

    assert_ok(r, &err);
    return r;
}

static void
test_A30_a_day_has_its_calls_and_no_more(struct harness *h)
{
    scoped(taker_release) struct taker taker;
    struct budget_grant grant = {0};

    taker_init(&taker, h, 3, "UTC");
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(take(&taker, &grant), BUDGET_TAKEN);
        assert_int_equal(grant.used, i);
    }
    assert_int_equal(take(&taker, &grant), BUDGET_SPENT);
    assert_int_equal(grant.used, 3);
    assert_false(grant.closed);
    assert_true(grant.day_end_us > HARNESS_NOW || h->kind != HARNESS_SQLITE);
}

static void
test_A30_a_budget_of_nothing_gives_nothing(struct harness *h)
{
    scoped(taker_release) struct taker taker;
    struct budget_grant grant = {0};

    taker_init(&taker, h, 0, "UTC");
    assert_int_equal(take(&taker, &grant), BUDGET_SPENT);
}

static void
test_A31_the_next_day_of_the_zone_begins_anew(struct harness *h)
{
    scoped(taker_release) struct taker taker;
    struct budget_grant grant = {0};

    taker_init(&taker, h, 1, "Asia/Seoul");
    assert_int_equal(take(&taker, &grant), BUDGET_TAKEN);
    assert_int_equal(take(&taker, &grant), BUDGET_SPENT);
    if (h->kind == HARNESS_SQLITE) {
        /* 2026-11-01T00:00Z is nine in the morning in Seoul. */
        harness_clock_set(h, HARNESS_NOW + 15 * US_PER_HOUR - 1);
        assert_int_equal(take(&taker, &grant), BUDGET_SPENT);
        assert_int_equal(grant.day_end_us, HARNESS_NOW + 15 * US_PER_HOUR);
        harness_clock_set(h, HARNESS_NOW + 15 * US_PER_HOUR);
    } else {
        harness_sql(h, "UPDATE pawl.budget SET day_start = day_start - 86400000000, "
                       "day_end = day_end - 86400000000");
    }
    assert_int_equal(take(&taker, &grant), BUDGET_TAKEN);
    assert_int_equal(grant.used, 1);
}

static void
test_A31_max_calls_bind_the_request_and_take_nothing_back(struct harness *h)
{
    scoped(taker_release) struct taker taker;
    struct budget_grant grant = {0};

    taker_init(&taker, h, 3, "UTC");
    taker.order.max_calls = 2;
    assert_int_equal(take(&taker, &grant), BUDGET_TAKEN);
    assert_int_equal(take(&taker, &grant), BUDGET_TAKEN);
    assert_int_equal(take(&taker, &grant), BUDGET_MAX_CALLS);
    assert_int_equal(harness_i64(h, "SELECT used FROM pawl.budget"), 2);
    /* Where the budget refuses, the request's count stays as it was. */
    taker.order.max_calls = 100;
    assert_int_equal(take(&taker, &grant), BUDGET_TAKEN);
    assert_int_equal(take(&taker, &grant), BUDGET_SPENT);
    assert_int_equal(harness_i64(h, "SELECT used FROM pawl.request_calls"), 3);
}

static void
test_A31_a_limit_of_the_request_needs_no_budget(struct harness *h)
{
    scoped(taker_release) struct taker taker;
    struct budget_grant grant = {0};

    taker_init(&taker, h, 3, "UTC");
    taker.order.rule = NULL;
    taker.order.max_calls = 1;
    assert_int_equal(take(&taker, &grant), BUDGET_TAKEN);
    assert_int_equal(take(&taker, &grant), BUDGET_MAX_CALLS);
    taker.order.max_calls = -1;
    assert_int_equal(take(&taker, &grant), BUDGET_TAKEN);
}

static void
test_A30_what_the_provider_says_counts_until_the_day_ends(struct harness *h)
{
    scoped(taker_release) struct taker taker;
    struct budget_grant grant = {0};
    struct budget_state state = {0};
    struct err err = {0};

    taker_init(&taker, h, 100, "UTC");
    if (h->kind == HARNESS_SQLITE)
        harness_clock_set(h, HARNESS_NOW + US_PER_HOUR);
    else if (young(h)) /* by the clock on the wall it is just after midnight */
        taker_zone(&taker, "Asia/Seoul");
    assert_int_equal(take(&taker, &grant), BUDGET_TAKEN);
    assert_int_equal(budget_close(h->store, &taker.rule, &err), 1);
    assert_int_equal(take(&taker, &grant), BUDGET_SPENT);
    assert_true(grant.closed);
    assert_ok(budget_read(h->store, &taker.rule, &state, &err), &err);
    assert_int_equal(state.used, 1);
    assert_true(state.closed_at_us > 0);
    harness_sql(h, "UPDATE pawl.budget SET day_start = day_start - 86400000000, "
                   "day_end = day_end - 86400000000");
    assert_int_equal(take(&taker, &grant), BUDGET_TAKEN);
    assert_int_equal(grant.used, 1);
}

/* A call that began before midnight, or a provider whose clock is behind. */
static void
test_A30_a_limit_told_just_after_midnight_closes_no_day(struct harness *h)
{
    scoped(taker_release) struct taker taker;
    struct budget_grant grant = {0};
    struct err err = {0};

    taker_init(&taker, h, 100, "UTC");
    if (h->kind != HARNESS_SQLITE)
        return; /* its clock is the one on the wall; the rule is no matter of SQL */
    harness_clock_set(h, HARNESS_NOW - 1);
    assert_int_equal(take(&taker, &grant), BUDGET_TAKEN);
    harness_clock_set(h, HARNESS_NOW + US_PER_MINUTE);
    assert_int_equal(budget_close(h->store, &taker.rule, &err), 0);
    assert_int_equal(take(&taker, &grant), BUDGET_TAKEN);
    assert_int_equal(grant.used, 1);
    harness_clock_set(h, HARNESS_NOW + 6 * US_PER_MINUTE);
    assert_int_equal(budget_close(h->store, &taker.rule, &err), 1);
    assert_int_equal(take(&taker, &grant), BUDGET_SPENT);
}

/* Who waits for the row over midnight comes with a day that has passed. */
static void
test_A31_a_day_that_has_passed_takes_nothing_back(struct harness *h)
{
    scoped(taker_release) struct taker taker;
    struct budget_grant grant = {0};

    taker_init(&taker, h, 100, "UTC");
    assert_int_equal(take(&taker, &grant), BUDGET_TAKEN);
    assert_int_equal(take(&taker, &grant), BUDGET_TAKEN);
    /* As if the two had been of tomorrow, and this one still of today. */
    harness_sql(h, "UPDATE pawl.budget SET day_start = day_end, "
                   "day_end = day_end + 86400000000, next_at = day_end");
    assert_int_equal(take(&taker, &grant), BUDGET_TAKEN);
    assert_int_equal(grant.used, 3);
    assert_true(harness_i64(h, "SELECT day_start FROM pawl.budget") >
                harness_i64(h, "SELECT pawl_now()"));
}

static void
test_A30_a_call_that_waits_over_midnight_is_of_the_next_day(struct harness *h)
{
    scoped(taker_release) struct taker taker;
    struct budget_grant grant = {0};

    taker_init(&taker, h, 3, "UTC");
    taker.rule.spacing_us = 12 * US_PER_HOUR;
    for (int i = 0; i < 6; i++)
        assert_int_equal(take(&taker, &grant), BUDGET_TAKEN);
    assert_true(grant.wait_us > 2 * 24 * US_PER_HOUR);
    assert_in_range(grant.used, 1, 2);
}

/* Somebody gives the budget another zone: what was counted stays counted. */
static void
test_A30_another_zone_wins_no_calls(struct harness *h)
{
    scoped(taker_release) struct taker taker;
    struct budget_grant grant = {0};

    taker_init(&taker, h, 3, "UTC");
    for (int i = 0; i < 3; i++)
        assert_int_equal(take(&taker, &grant), BUDGET_TAKEN);
    taker_zone(&taker, "Asia/Kathmandu");
    assert_int_equal(take(&taker, &grant), BUDGET_SPENT);
    assert_int_equal(grant.used, 3);
}

static void
test_A30_a_claim_that_is_gone_takes_nothing(struct harness *h)
{
    scoped(taker_release) struct taker taker;
    struct budget_grant grant = {0};

    taker_init(&taker, h, 3, "UTC");
    taker.order.token.number++;
    assert_int_equal(take(&taker, &grant), BUDGET_LOST);
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.budget"), 0);
}

static void
test_A30_calls_are_handed_out_a_spacing_apart(struct harness *h)
{
    scoped(taker_release) struct taker taker;
    struct budget_grant grant = {0};

    taker_init(&taker, h, 100, "UTC");
    taker.rule.spacing_us = US_PER_HOUR;
    assert_int_equal(take(&taker, &grant), BUDGET_TAKEN);
    assert_int_equal(grant.wait_us, 0);
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(take(&taker, &grant), BUDGET_TAKEN);
        assert_in_range(grant.wait_us, i * US_PER_HOUR - US_PER_MINUTE,
                        i * US_PER_HOUR);
    }
}

#define THREADS 8
#define EACH    25

static void *
take_many(void *arg)
{
    struct taker *taker = arg;
    struct budget_grant grant = {0};
    struct err err = {0};
    int64_t taken = 0;

    for (int i = 0; i < EACH; i++)
        if (budget_take(taker->h->store, &taker->order, &grant, &err) == BUDGET_TAKEN)
            taken++;
    return (void *)(intptr_t)taken;
}

static void
take_side_by_side(struct harness *h, int64_t per_day, int64_t max_calls, int64_t expect)
{
    scoped(taker_release) struct taker taker;
    pthread_t threads[THREADS];
    int64_t taken = 0;

    taker_init(&taker, h, per_day, "UTC");
    taker.order.max_calls = max_calls;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_many, &taker), 0);
    for (int i = 0; i < THREADS; i++) {
        void *one = NULL;

        assert_int_equal(pthread_join(threads[i], &one), 0);
        taken += (int64_t)(intptr_t)one;
    }
    assert_int_equal(taken, expect);
    assert_int_equal(harness_i64(h, "SELECT used FROM pawl.budget"), expect);
}

static void
test_A30_a_budget_is_exact_whoever_asks_at_once(struct harness *h)
{
    take_side_by_side(h, 70, -1, 70);
}

static void
test_A31_max_calls_are_exact_under_concurrency(struct harness *h)
{
    take_side_by_side(h, 1000, 7, 7);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_A30_a_day_has_its_calls_and_no_more),
        store_test(test_A30_a_budget_of_nothing_gives_nothing),
        store_test(test_A31_the_next_day_of_the_zone_begins_anew),
        store_test(test_A31_max_calls_bind_the_request_and_take_nothing_back),
        store_test(test_A31_a_limit_of_the_request_needs_no_budget),
        store_test(test_A30_what_the_provider_says_counts_until_the_day_ends),
        store_test(test_A30_a_limit_told_just_after_midnight_closes_no_day),
        store_test(test_A31_a_day_that_has_passed_takes_nothing_back),
        store_test(test_A30_a_call_that_waits_over_midnight_is_of_the_next_day),
        store_test(test_A30_another_zone_wins_no_calls),
        store_test(test_A30_a_claim_that_is_gone_takes_nothing),
        store_test(test_A30_calls_are_handed_out_a_spacing_apart),
        store_test(test_A30_a_budget_is_exact_whoever_asks_at_once),
        store_test(test_A31_max_calls_are_exact_under_concurrency),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
