/* Numbers, dates and times as text, and back. */
#include "io_test.h"

#include "io/cell_text.h"

#include <math.h>

#define DAY_US INT64_C(86400000000)

static void
expect(const char *want, const char *got, size_t len)
{
    if (strlen(want) != len || memcmp(want, got, len) != 0)
        fail_msg("wanted %s, got %.*s", want, (int)len, got);
}

static void
test_integers_keep_all_digits(void **state)
{
    char out[CELL_TEXT_MAX];

    expect("0", out, text_i64(out, 0));
    expect("-1", out, text_i64(out, -1));
    expect("9223372036854775807", out, text_i64(out, INT64_MAX));
    expect("-9223372036854775808", out, text_i64(out, INT64_MIN));
}

static void
test_reals_are_the_shortest_text_that_reads_back(void **state)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0.0, "0"},
        {-0.0, "-0"},
        {1.5, "1.5"},
        {0.1, "0.1"},
        {100.25, "100.25"},
        {1e15, "1000000000000000"},
        {1e300, "1e+300"},
        {123456.789012, "123456.789012"},
        {0.30000000000000004, "0.30000000000000004"},
        {-12.34, "-12.34"},
        {1e-7, "1e-07"},
        {(double)NAN, "NaN"},
        {(double)INFINITY, "Infinity"},
        {-(double)INFINITY, "-Infinity"},
    };
    char out[CELL_TEXT_MAX];

    for (size_t i = 0; i < array_len(cases); i++)
        expect(cases[i].text, out, text_real(out, cases[i].value));
}

static void
test_reals_read_back_as_the_same_double(void **state)
{
    uint64_t bits = 88172645463325252u;
    char out[CELL_TEXT_MAX + 1];

    for (int i = 0; i < 200000; i++) {
        double value, back;

        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        if (i % 2)
            value = (double)(int64_t)(bits >> 20) / 1000.0;
        else
            memcpy(&value, &bits, sizeof(value));
        if (!isfinite(value))
            continue;
        out[text_real(out, value)] = '\0';
        back = strtod(out, NULL);
        if (memcmp(&value, &back, sizeof(back)) != 0)
            fail_msg("%.17g became %s", value, out);
    }
}

static void
test_dates_and_times_are_iso(void **state)
{
    char out[CELL_TEXT_MAX];

    expect("1970-01-01", out, text_date(out, 0));
    expect("1969-12-31", out, text_date(out, -1));
    expect("2024-02-29", out, text_date(out, 19782));
    expect("0001-01-01", out, text_date(out, -719162));
    expect("1970-01-01T00:00:00Z", out, text_timestamp(out, 0, false, 'T'));
    expect("1969-12-31T23:59:59.999999Z", out, text_timestamp(out, -1, false, 'T'));
    expect("1970-01-02 00:00:01.5", out,
           text_timestamp(out, DAY_US + 1500000, true, ' '));
}

static void
test_timestamps_of_both_databases_are_read(void **state)
{
    static const struct {
        const char *text;
        int64_t us;
        bool zoneless;
    } cases[] = {
        {"1970-01-01 00:00:00", 0, true},
        {"1970-01-01T00:00:00Z", 0, false},
        {"1970-01-01 09:00:00+09", 0, false},
        {"1970-01-01 05:30:00.25+05:30", 250000, false},
        {"1969-12-31 19:00:00-0500", 0, false},
        {"1970-01-01 00:01", 60000000, true},
        {"1970-01-02 00:00:00.000001", DAY_US + 1, true},
    };

    for (size_t i = 0; i < array_len(cases); i++) {
        int64_t us = -7;
        bool zoneless = !cases[i].zoneless;

        assert_true(
            text_parse_timestamp(cases[i].text, strlen(cases[i].text), &us, &zoneless));
        assert_int_equal(us, cases[i].us);
        assert_int_equal(zoneless, cases[i].zoneless);
    }
}

static void
test_what_is_no_date_or_number_is_refused(void **state)
{
    static const struct {
        enum cell_type type;
        const char *text;
    } cases[] = {
        {CELL_DATE, "2023-02-29"},
        {CELL_DATE, "infinity"},
        {CELL_DATE, "2024-1-1"},
        {CELL_DATE, "12024-01-01"},
        {CELL_DATE, "2024-01-01 BC"},
        {CELL_DATE, ""},
        {CELL_TIMESTAMP, "2024-01-01"},
        {CELL_TIMESTAMP, "2024-01-01 24:00:00"},
        {CELL_TIMESTAMP, "2024-01-01 10:00:00.1234567"},
        {CELL_TIMESTAMP, "2024-01-01 10:00:00 KST"},
        {CELL_INT, "9223372036854775808"},
        {CELL_INT, "1.0"},
        {CELL_INT, ""},
        {CELL_INT, "-"},
        {CELL_DECIMAL, "1e5"},
        {CELL_DECIMAL, "1."},
        {CELL_DECIMAL, "-007"},
        {CELL_DECIMAL, "NaN"},
        {CELL_REAL, "1,5"},
        {CELL_REAL, "0x10"},
        {CELL_BOOL, "yes"},
    };

    for (size_t i = 0; i < array_len(cases); i++) {
        struct cell cell = {0};

        if (cell_parse(&cell, cases[i].type, cases[i].text, strlen(cases[i].text)))
            fail_msg("%s was taken for a %s", cases[i].text,
                     cell_type_name(cases[i].type));
    }
}

static void
test_the_ends_of_int64_are_read(void **state)
{
    int64_t value = 0;

    assert_true(text_parse_i64("9223372036854775807", 19, &value));
    assert_true(value == INT64_MAX);
    assert_true(text_parse_i64("-9223372036854775808", 20, &value));
    assert_true(value == INT64_MIN);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers_keep_all_digits),
        cmocka_unit_test(test_reals_are_the_shortest_text_that_reads_back),
        cmocka_unit_test(test_reals_read_back_as_the_same_double),
        cmocka_unit_test(test_dates_and_times_are_iso),
        cmocka_unit_test(test_timestamps_of_both_databases_are_read),
        cmocka_unit_test(test_what_is_no_date_or_number_is_refused),
        cmocka_unit_test(test_the_ends_of_int64_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
