#include "test.h"

#include "base/civil.h"
#include "base/clock.h"

static void
test_dates_and_day_numbers_agree(void **state)
{
    static const struct {
        int year, month, day;
        int64_t days;
        int weekday;
    } rows[] = {
        {1970, 1, 1, 0, 4},       {1969, 12, 31, -1, 3},    {2000, 2, 29, 11016, 2},
        {2000, 3, 1, 11017, 3},   {1900, 2, 28, -25509, 3}, {1900, 3, 1, -25508, 4},
        {2026, 11, 29, 20786, 0}, {1, 1, 1, -719162, 1},    {9999, 12, 31, 2932896, 5},
        {2100, 2, 28, 47540, 0},  {2100, 3, 1, 47541, 1},
    };

    for (size_t i = 0; i < array_len(rows); i++) {
        int year;
        int month;
        int day;

        assert_int_equal(civil_days(rows[i].year, rows[i].month, rows[i].day),
                         rows[i].days);
        civil_from_days(rows[i].days, &year, &month, &day);
        assert_int_equal(year, rows[i].year);
        assert_int_equal(month, rows[i].month);
        assert_int_equal(day, rows[i].day);
        assert_int_equal(civil_weekday(rows[i].days), rows[i].weekday);
    }
}

static void
test_every_day_of_years_1_to_9999_goes_there_and_back(void **state)
{
    int64_t days = civil_days(1, 1, 1);

    for (int year = 1; year <= 9999; year++) {
        for (int month = 1; month <= 12; month++) {
            int length = civil_days_in_month(year, month);

            for (int day = 1; day <= length; day++, days++) {
                int y;
                int m;
                int d;

                civil_from_days(days, &y, &m, &d);
                if (y != year || m != month || d != day ||
                    civil_days(year, month, day) != days)
                    fail_msg("%04d-%02d-%02d", year, month, day);
            }
        }
    }
    assert_int_equal(days - 1, civil_days(9999, 12, 31));
}

struct time_row {
    const char *text;
    int64_t us; /* -1: refused */
};

static void
test_rfc_3339_times(void **state)
{
    static const struct time_row rows[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"1970-01-01t00:00:00z", 0},
        {"1970-01-01 00:00:01Z", 1000000},
        {"1970-01-01T00:00:00.5Z", 500000},
        {"1970-01-01T00:00:00.000001Z", 1},
        {"1970-01-01T00:00:00.0000010Z", 1},
        {"1970-01-01T00:00:00.0000011Z", -1},
        {"1970-01-01T09:00:00+09:00", 0},
        {"1969-12-31T23:00:00-01:00", 0},
        {"1970-01-01T23:59:00+23:59", 0},
        {"1970-01-01T00:00:00+24:00", -1},
        {"1970-01-01T00:00:00+00:60", -1},
        {"1970-01-01T00:00:00+0900", -1},
        {"1970-01-01T00:00:00+09", -1},
        {"1970-01-01T00:00:00", -1},
        {"1970-01-01T00:00Z", -1},
        {"1970-01-01T00:00:00.Z", -1},
        {"1970-01-01T00:00:00Z ", -1},
        {" 1970-01-01T00:00:00Z", -1},
        {"1970-01-01_00:00:00Z", -1},
        {"1970-01-01T23:59:59Z", INT64_C(86399000000)},
        {"1970-01-01T24:00:00Z", -1},
        {"1970-01-01T23:60:00Z", -1},
        {"1970-01-01T23:59:60Z", -1},
        {"2024-02-29T00:00:00Z", INT64_C(1709164800000000)},
        {"2023-02-29T00:00:00Z", -1},
        {"1970-00-01T00:00:00Z", -1},
        {"1970-13-01T00:00:00Z", -1},
        {"1970-01-00T00:00:00Z", -1},
        {"1970-01-32T00:00:00Z", -1},
        {"0000-01-01T00:00:00Z", -1},
        {"10000-01-01T00:00:00Z", -1},
        {"70-01-01T00:00:00Z", -1},
        {"1970-1-1T00:00:00Z", -1},
        {"", -1},
    };

    for (size_t i = 0; i < array_len(rows); i++) {
        int64_t us = -7;
        bool ok = civil_parse_time(rows[i].text, strlen(rows[i].text), &us);

        if (ok != (rows[i].us != -1))
            fail_msg("%s: %s", rows[i].text, ok ? "taken" : "refused");
        assert_int_equal(us, ok ? rows[i].us : -7);
    }
}

static void
test_local_times_have_no_zone(void **state)
{
    int64_t us = 0;

    assert_true(civil_parse_local("1970-01-02 00:00:00.25", 22, &us));
    assert_int_equal(us, US_PER_DAY + 250000);
    assert_false(civil_parse_local("1970-01-02 00:00:00Z", 20, &us));
}

static void
test_dates_are_strict(void **state)
{
    static const struct {
        const char *text;
        bool ok;
    } rows[] = {
        {"2026-11-29", true},   {"0001-01-01", true},  {"9999-12-31", true},
        {"2000-02-29", true},   {"1900-02-29", false}, {"2026-11-31", false},
        {"2026-11-29 ", false}, {"2026-1-29", false},  {"20261129", false},
        {"0000-12-31", false},  {"+026-11-29", false}, {"2026-11-2x", false},
    };

    for (size_t i = 0; i < array_len(rows); i++) {
        char text[CIVIL_TEXT_SIZE];
        int64_t days;
        bool ok = civil_parse_date(rows[i].text, strlen(rows[i].text), &days);

        assert_int_equal(ok, rows[i].ok);
        if (!ok)
            continue;
        civil_format_date(days, text);
        assert_string_equal(text, rows[i].text);
    }
}

static void
test_times_are_written_with_0_3_or_6_digits(void **state)
{
    static const struct {
        int64_t us;
        int digits;
        const char *text;
    } rows[] = {
        {0, 0, "1970-01-01T00:00:00Z"},
        {INT64_C(1764444485123999), 3, "2025-11-29T19:28:05.123Z"},
        {INT64_C(1764444485123999), 6, "2025-11-29T19:28:05.123999Z"},
        {-1, 6, "1969-12-31T23:59:59.999999Z"},
        {-1, 0, "1969-12-31T23:59:59Z"},
    };
    char text[CIVIL_TEXT_SIZE];

    for (size_t i = 0; i < array_len(rows); i++) {
        civil_format_us(rows[i].us, rows[i].digits, text);
        assert_string_equal(text, rows[i].text);
    }
    civil_format_us(INT64_MIN, 6, text); /* far outside, but within the array */
    civil_format_us(INT64_MAX, 6, text);
}

static void
test_excel_serials(void **state)
{
    static const struct {
        const char *date;
        int64_t serial; /* 0: refused */
    } rows[] = {
        {"1899-12-31", 0},  {"1900-01-01", 1},     {"1900-02-28", 59},
        {"1900-03-01", 61}, {"2008-01-01", 39448}, {"9999-12-31", 2958465},
    };
    double serial = 0;

    for (size_t i = 0; i < array_len(rows); i++) {
        int64_t days;
        int64_t got = 0;

        assert_true(civil_parse_date(rows[i].date, 10, &days));
        assert_int_equal(civil_excel_date(days, &got), rows[i].serial != 0);
        assert_int_equal(got, rows[i].serial);
    }
    assert_false(civil_excel_date(civil_days(9999, 12, 31) + 1, &(int64_t){0}));
    assert_true(civil_excel_time(12 * US_PER_HOUR, &serial));
    assert_true(serial == 25569.5);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dates_and_day_numbers_agree),
        cmocka_unit_test(test_every_day_of_years_1_to_9999_goes_there_and_back),
        cmocka_unit_test(test_rfc_3339_times),
        cmocka_unit_test(test_local_times_have_no_zone),
        cmocka_unit_test(test_dates_are_strict),
        cmocka_unit_test(test_times_are_written_with_0_3_or_6_digits),
        cmocka_unit_test(test_excel_serials),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
