/* Which stretch of time a calendar day is, also where clocks are changed. */
#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/zone.h"
#include "budget/budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct day {
    const char *zone;
    int64_t now_s;
    int64_t start_s;
    int64_t hours_x10;
};

static const struct day days[] = {
    {"UTC", 0, 0, 240},
    {"UTC", -1, -86400, 240},
    {"Asia/Seoul", 1793491200, 1793458800, 240},    /* 2026-11-01T09:00+09:00 */
    {"Europe/Berlin", 1774742400, 1774738800, 230}, /* 2026-03-29: clocks forward */
    {"Europe/Berlin", 1792886400, 1792879200, 250}, /* 2026-10-25: clocks back */
};

static void
test_A30_a_day_is_what_the_clocks_of_its_zone_show(void **state)
{
    for (size_t i = 0; i < array_len(days); i++) {
        scoped(zone_free_ptr) struct zone *zone = NULL;
        struct err err = {0};
        int64_t start_us = 0;
        int64_t end_us = 0;

        assert_int_equal(zone_load(days[i].zone, &zone, &err), 0);
        budget_day(zone, days[i].now_s * US_PER_S, &start_us, &end_us);
        assert_int_equal(start_us, days[i].start_s * US_PER_S);
        assert_int_equal(end_us - start_us, days[i].hours_x10 * US_PER_HOUR / 10);
    }
}

/* In São Paulo clocks were put forward at midnight: 2018-11-04 has no 00:00. */
static void
test_A30_a_day_may_begin_after_its_midnight(void **state)
{
    scoped(zone_free_ptr) struct zone *zone = NULL;
    struct err err = {0};
    int64_t start_us = 0;
    int64_t end_us = 0;

    assert_int_equal(zone_load("America/Sao_Paulo", &zone, &err), 0);
    budget_day(zone, INT64_C(1541332800) * US_PER_S, &start_us, &end_us);
    assert_int_equal(start_us, INT64_C(1541300400) * US_PER_S);
    assert_int_equal(end_us - start_us, 23 * US_PER_HOUR);
    budget_day(zone, start_us - 1, &start_us, &end_us);
    assert_int_equal(end_us, INT64_C(1541300400) * US_PER_S);
    assert_int_equal(end_us - start_us, 24 * US_PER_HOUR);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_A30_a_day_is_what_the_clocks_of_its_zone_show),
        cmocka_unit_test(test_A30_a_day_may_begin_after_its_midnight),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
