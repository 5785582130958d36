#include "test.h"

#include "base/clock.h"

static void
test_the_real_clock_goes_forward(void **state)
{
    int64_t wall_us = clock_wall_us(clock_real());
    int64_t mono_us = clock_mono_us(clock_real());

    assert_true(wall_us > INT64_C(1700000000) * US_PER_S);
    assert_true(clock_mono_us(clock_real()) >= mono_us);
}

static void
test_a_settable_clock_stands_still_until_told(void **state)
{
    struct clock_settable settable;
    const struct clock *clock = &settable.clock;
    int64_t mono_us;

    clock_settable_init(&settable, 1000);
    mono_us = clock_mono_us(clock);
    assert_true(mono_us > 0);
    assert_int_equal(clock_wall_us(clock), 1000);
    clock_advance(&settable, 50);
    assert_int_equal(clock_wall_us(clock), 1050);
    assert_int_equal(clock_mono_us(clock), mono_us + 50);
    clock_set_wall(&settable, 10);
    assert_int_equal(clock_wall_us(clock), 10);
    assert_int_equal(clock_mono_us(clock), mono_us + 50);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_real_clock_goes_forward),
        cmocka_unit_test(test_a_settable_clock_stands_still_until_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
