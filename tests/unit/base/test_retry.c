#include "test.h"

#include "base/retry.h"

static uint64_t
lowest(void)
{
    return 0;
}

static uint64_t
highest(void)
{
    return UINT64_MAX;
}

static void
check(struct backoff backoff, const int64_t *expected, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_int_equal(backoff_next_ms(&backoff), expected[i]);
}

static void
test_waits_grow_by_the_factor_up_to_the_longest(void **state)
{
    static const int64_t doubled[] = {100, 200, 400, 800, 1000, 1000};
    static const int64_t tripled[] = {10, 30, 90, 270, 500};
    static const int64_t steady[] = {7, 7, 7};

    check((struct backoff){.base_ms = 100, .max_ms = 1000}, doubled, 6);
    check((struct backoff){.base_ms = 10, .max_ms = 500, .factor = 3}, tripled, 5);
    check((struct backoff){.base_ms = 7, .max_ms = 900, .factor = 1}, steady, 3);
}

static void
test_jitter_shortens_down_to_its_share_and_never_to_nothing(void **state)
{
    static const int64_t whole[] = {100, 200};
    static const int64_t halved[] = {51, 101};
    static const int64_t least[] = {1, 1};
    struct backoff backoff = {.base_ms = 100, .max_ms = 1000, .jitter = 0.5};

    backoff.rand_u64 = lowest;
    check(backoff, whole, 2);
    backoff.rand_u64 = highest;
    check(backoff, halved, 2);
    backoff.jitter = 1;
    check(backoff, least, 2);
    backoff.rand_u64 = NULL;
    for (int i = 0; i < 1000; i++)
        assert_in_range(backoff_next_ms(&backoff), 1, 1000);
}

static void
test_reset_starts_over(void **state)
{
    struct backoff backoff = {.base_ms = 5, .max_ms = INT64_MAX};

    for (int i = 0; i < 200; i++)
        assert_true(backoff_next_ms(&backoff) >= 5);
    backoff_reset(&backoff);
    assert_int_equal(backoff_next_ms(&backoff), 5);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits_grow_by_the_factor_up_to_the_longest),
        cmocka_unit_test(test_jitter_shortens_down_to_its_share_and_never_to_nothing),
        cmocka_unit_test(test_reset_starts_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
