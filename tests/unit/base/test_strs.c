#include "test.h"

#include "base/err.h"
#include "base/strs.h"

#define BAD (-1)

static void
test_comparing(void **state)
{
    assert_true(str_eq("a", "a"));
    assert_false(str_eq("a", "b"));
    assert_true(str_eq(NULL, NULL));
    assert_false(str_eq(NULL, ""));
    assert_true(str_empty(NULL) && str_empty("") && !str_empty(" "));
    assert_true(str_starts_with("abc", "ab") && str_starts_with("abc", ""));
    assert_false(str_starts_with("ab", "abc"));
    assert_true(str_ends_with("abc", "bc") && str_ends_with("abc", ""));
    assert_false(str_ends_with("bc", "abc"));
}

static void
test_str_copy_cuts_at_n_minus_1_n_and_n_plus_1(void **state)
{
    char ret[5];

    assert_true(str_copy(ret, sizeof(ret), "abc"));
    assert_true(str_copy(ret, sizeof(ret), "abcd"));
    assert_string_equal(ret, "abcd");
    assert_false(str_copy(ret, sizeof(ret), "abcde"));
    assert_string_equal(ret, "abcd");
    assert_false(str_copy(ret, sizeof(ret), "ab한"));
    assert_string_equal(ret, "ab");
    assert_false(str_copy(ret, 1, "x"));
    assert_string_equal(ret, "");
}

static void
test_whole_numbers_are_strict(void **state)
{
    static const struct {
        const char *text;
        bool ok;
        int64_t value;
    } rows[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"007", true, 7},
        {"9223372036854775806", true, INT64_MAX - 1},
        {"9223372036854775807", true, INT64_MAX},
        {"9223372036854775808", false, 0},
        {"-9223372036854775808", true, INT64_MIN},
        {"-9223372036854775809", false, 0},
        {"92233720368547758070", false, 0},
        {"", false, 0},
        {"-", false, 0},
        {"+1", false, 0},
        {" 1", false, 0},
        {"1 ", false, 0},
        {"0x1", false, 0},
        {"1.0", false, 0},
        {"--1", false, 0},
    };

    for (size_t i = 0; i < array_len(rows); i++) {
        int64_t value = 0;

        if (str_to_i64(rows[i].text, &value) != rows[i].ok)
            fail_msg("%s", rows[i].text);
        assert_int_equal(value, rows[i].value);
    }
}

static void
test_a_range_is_held_at_its_ends(void **state)
{
    static const struct {
        const char *text;
        bool ok;
    } rows[] = {{"-101", false}, {"-100", true}, {"-99", true}, {"99", true},
                {"100", true},   {"101", false}, {"x", false}};

    for (size_t i = 0; i < array_len(rows); i++) {
        struct err err = {0};
        int64_t value = 7;
        int r = parse_i64("priority", rows[i].text, -100, 100, &value, &err);

        assert_int_equal(r, rows[i].ok ? 0 : -ERR_INVALID);
        if (!rows[i].ok) {
            assert_int_equal(value, 7);
            assert_true(str_starts_with(err.text, "priority: "));
        }
    }
}

static void
test_doubles_are_plain_decimals(void **state)
{
    static const struct {
        const char *text;
        bool ok;
        double value;
    } rows[] = {
        {"0", true, 0},      {"1.5", true, 1.5}, {"-2e3", true, -2000},
        {"1E+2", true, 100}, {"1.", false, 0},   {".5", false, 0},
        {"inf", false, 0},   {"nan", false, 0},  {"0x10", false, 0},
        {"1e400", false, 0}, {"1e", false, 0},   {" 1", false, 0},
        {"1 ", false, 0},    {"", false, 0},     {"1e5x", false, 0},
    };

    for (size_t i = 0; i < array_len(rows); i++) {
        double value = 0;

        if (str_to_double(rows[i].text, &value) != rows[i].ok)
            fail_msg("%s", rows[i].text);
        assert_true(value == rows[i].value);
    }
}

struct quantity_row {
    const char *text;
    int64_t value; /* BAD: refused */
};

static void
test_durations(void **state)
{
    static const struct quantity_row rows[] = {
        {"0", 0},
        {"0s", 0},
        {"250us", 250},
        {"250ms", 250000},
        {"45s", 45000000},
        {"30m", INT64_C(1800000000)},
        {"2h", INT64_C(7200000000)},
        {"7d", INT64_C(604800000000)},
        {"1h30m", INT64_C(5400000000)},
        {"1m1ms", 60001000},
        {"9223372036854775807us", INT64_MAX},
        {"9223372036854775808us", BAD},
        {"106751991d", INT64_C(106751991) * 86400000000},
        {"106751992d", BAD},
        {"9223372036854775807us1us", BAD},
        {"30", BAD},
        {"", BAD},
        {"s", BAD},
        {"-1s", BAD},
        {"1.5h", BAD},
        {"1 h", BAD},
        {"1h ", BAD},
        {"1H", BAD},
        {"1w", BAD},
        {"1h30", BAD},
    };

    for (size_t i = 0; i < array_len(rows); i++) {
        struct err err = {0};
        int64_t value = BAD;
        int r = parse_duration_us("timeout", rows[i].text, &value, &err);

        if (r != (rows[i].value == BAD ? -ERR_INVALID : 0))
            fail_msg("%s: %d", rows[i].text, r);
        assert_int_equal(value, rows[i].value);
    }
}

static void
test_durations_written_read_back(void **state)
{
    static const struct {
        int64_t us;
        const char *text;
    } rows[] = {
        {0, "0"},
        {1, "1us"},
        {250000, "250ms"},
        {INT64_C(5400000000), "1h30m"},
        {INT64_C(90061001001), "1d1h1m1s1ms1us"},
        {INT64_MAX, "106751991d4h54s775ms807us"},
    };

    for (size_t i = 0; i < array_len(rows); i++) {
        char text[DURATION_TEXT_SIZE];
        struct err err = {0};
        int64_t back = BAD;

        format_duration_us(rows[i].us, text);
        assert_string_equal(text, rows[i].text);
        assert_int_equal(parse_duration_us("x", text, &back, &err), 0);
        assert_int_equal(back, rows[i].us);
    }
}

static void
test_sizes(void **state)
{
    static const struct quantity_row rows[] = {
        {"0", 0},          {"4096", 4096},
        {"64K", 65536},    {"64KiB", 65536},
        {"10kB", 10000},   {"10MB", 10000000},
        {"1M", 1048576},   {"2G", INT64_C(2) << 30},
        {"7B", 7},         {"8388607T", INT64_C(8388607) << 40},
        {"8388608T", BAD}, {"1k", BAD},
        {"1Kb", BAD},      {"-1", BAD},
        {"", BAD},         {"1M1", BAD},
        {"1.5M", BAD},     {"K", BAD},
    };

    for (size_t i = 0; i < array_len(rows); i++) {
        struct err err = {0};
        int64_t value = BAD;
        int r = parse_size("limit", rows[i].text, &value, &err);

        if (r != (rows[i].value == BAD ? -ERR_INVALID : 0))
            fail_msg("%s: %d", rows[i].text, r);
        assert_int_equal(value, rows[i].value);
    }
}

static void
test_distances(void **state)
{
    static const struct {
        const char *a, *b;
        size_t distance;
    } rows[] = {
        {"", "", 0},
        {"a", "", 1},
        {"", "abc", 3},
        {"abc", "abc", 0},
        {"abc", "abd", 1},
        {"abc", "acb", 1},
        {"kitten", "sitting", 3},
        {"ca", "abc", 3},
        {"stepz", "steps", 1},
    };

    for (size_t i = 0; i < array_len(rows); i++) {
        assert_int_equal(str_distance(rows[i].a, rows[i].b), rows[i].distance);
        assert_int_equal(str_distance(rows[i].b, rows[i].a), rows[i].distance);
    }
}

static void
test_did_you_mean(void **state)
{
    static const char *const words[] = {"steps", "timeout", "lane", "estimate", NULL};
    static const struct {
        const char *word;
        const char *meant;
    } rows[] = {
        {"step", "steps"},
        {"setps", "steps"},
        {"tiemout", "timeout"},
        {"lanes", "lane"},
        {"xyz", NULL},
        {"", NULL},
        {"l", NULL},
        {"estmiate", "estimate"},
        {"eat", NULL},
    };
    char longest[66];

    for (size_t i = 0; i < array_len(rows); i++) {
        const char *meant = str_nearest(rows[i].word, words, array_len(words));

        if (!str_eq(meant, rows[i].meant))
            fail_msg("%s: %s", rows[i].word, meant ? meant : "nothing");
    }
    memset(longest, 'q', 65);
    longest[65] = '\0';
    for (size_t len = 63; len <= 65; len++) {
        const char *candidates[] = {longest + 65 - len};

        assert_int_equal(!!str_nearest(longest + 65 - len, candidates, 1), len <= 64);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_comparing),
        cmocka_unit_test(test_str_copy_cuts_at_n_minus_1_n_and_n_plus_1),
        cmocka_unit_test(test_whole_numbers_are_strict),
        cmocka_unit_test(test_a_range_is_held_at_its_ends),
        cmocka_unit_test(test_doubles_are_plain_decimals),
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_durations_written_read_back),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_distances),
        cmocka_unit_test(test_did_you_mean),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
