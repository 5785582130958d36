#include "test.h"

#include "base/err.h"
#include "base/json.h"

#include <math.h>

struct refused_row {
    const char *text;
    size_t len;          /* 0: strlen */
    const char *message; /* part of it */
};

static void
test_what_is_not_strict_json_is_refused_with_its_place(void **state)
{
    static const struct refused_row rows[] = {
        {"", 0, "byte "},
        {"{} x", 0, "byte 4"},
        {"[1,]", 0, "byte 4"},
        {"{\"a\":1,\"a\":2}", 0, "duplicate object key"},
        {"\"a\\u0000b\"", 0, "\\u0000"},
        {"\"a\0b\"", 5, "byte "},
        {"{}\0", 3, "byte "},
        {"\"ab\xff\"", 0, "byte 3: not UTF-8"},
        {"\"\xed\xa0\x80\"", 0, "byte 1: not UTF-8"},
        {"\"\\ud800\"", 0, "byte "},
        {"9223372036854775808", 0, "byte "},
        {"-9223372036854775809", 0, "byte "},
        {"[1e400]", 0, "byte 1: the number 1e400 is out of range"},
        {"[ -1e400]", 0, "byte 2: the number"},
        {"1e-400", 0, "byte 0: the number 1e-400 is out of range"},
        {"0.0e-400x", 0, "byte "},
        {"'a'", 0, "byte "},
        {"01", 0, "byte "},
        {"+1", 0, "byte "},
        {"NaN", 0, "byte "},
        {"\"abc", 0, "byte "},
        {"\"abc\\", 0, "byte "},
        {"\xef\xbb\xbf{}", 0, "byte "},
    };

    for (size_t i = 0; i < array_len(rows); i++) {
        size_t len = rows[i].len ? rows[i].len : strlen(rows[i].text);
        struct err err = {0};
        json_t *json = NULL;

        if (json_parse(rows[i].text, len, 64, &json, &err) != -ERR_INVALID)
            fail_msg("row %zu was taken: %s", i, rows[i].text);
        assert_null(json);
        if (!strstr(err.text, rows[i].message))
            fail_msg("row %zu: %s", i, err.text);
    }
}

static void
test_what_is_strict_json_is_read(void **state)
{
    static const char *const rows[] = {
        "{}",
        " [1] ",
        "null",
        "\"\\\"]]]]\"",
        "9223372036854775807",
        "-9223372036854775808",
        "0.0e-400",
        "0e999",
        "1e308",
        "4.9e-324",
        "\"\xf0\x9f\x98\x80\"",
    };

    for (size_t i = 0; i < array_len(rows); i++) {
        scoped(json_drop) json_t *json = NULL;
        struct err err = {0};

        if (json_parse(rows[i], strlen(rows[i]), 64, &json, &err) != 0)
            fail_msg("%s: %s", rows[i], err.text);
        assert_non_null(json);
    }
}

static void
test_nesting_is_limited_at_n_minus_1_n_and_n_plus_1(void **state)
{
    static const int limits[] = {1, 2, 63, 64};

    for (size_t i = 0; i < array_len(limits); i++) {
        for (int depth = limits[i] - 1; depth <= limits[i] + 1; depth++) {
            scoped(json_drop) json_t *json = NULL;
            struct err err = {0};
            char text[200] = "1";

            if (depth > 0) {
                memset(text, '[', (size_t)depth);
                memset(text + depth, ']', (size_t)depth);
            }
            assert_int_equal(json_parse(text, strlen(text), limits[i], &json, &err),
                             depth > limits[i] ? -ERR_INVALID : 0);
        }
    }
}

static void
test_a_long_number_is_limited_at_400_characters(void **state)
{
    for (size_t len = 399; len <= 401; len++) {
        scoped(json_drop) json_t *json = NULL;
        struct err err = {0};
        char text[500] = "0.";

        memset(text + 2, '1', len - 2);
        assert_int_equal(json_parse(text, len, 64, &json, &err),
                         len > 400 ? -ERR_INVALID : 0);
    }
}

static void
test_members_are_found_absent_or_of_the_wrong_type(void **state)
{
    static const char text[] = "{\"s\":\"x\",\"i\":7,\"b\":true,\"d\":1.5,\"n\":null,"
                               "\"o\":{},\"a\":[]}";
    scoped(json_drop) json_t *json = NULL;
    const char *str = "kept";
    int64_t i64 = 5;
    bool flag = false;
    double real = 0;
    json_t *part = NULL;
    struct err err = {0};

    assert_int_equal(json_parse(text, strlen(text), 64, &json, &err), 0);
    assert_int_equal(json_get_str(json, "n", &str, &err), JSON_ABSENT);
    assert_int_equal(json_get_str(json, "zz", &str, &err), JSON_ABSENT);
    assert_string_equal(str, "kept");
    assert_int_equal(json_get_str(json, "s", &str, &err), JSON_FOUND);
    assert_string_equal(str, "x");
    assert_int_equal(json_get_i64(json, "i", &i64, &err), JSON_FOUND);
    assert_int_equal(i64, 7);
    assert_int_equal(json_get_bool(json, "b", &flag, &err), JSON_FOUND);
    assert_true(flag);
    assert_int_equal(json_get_double(json, "d", &real, &err), JSON_FOUND);
    assert_true(real == 1.5);
    assert_int_equal(json_get_double(json, "i", &real, &err), JSON_FOUND);
    assert_true(real == 7);
    assert_int_equal(json_get_object(json, "o", &part, &err), JSON_FOUND);
    assert_int_equal(json_get_array(json, "a", &part, &err), JSON_FOUND);
    assert_int_equal(json_get_i64(json, "d", &i64, &err), -ERR_INVALID);
    assert_string_equal(err.text, "\"d\": expected integer, got number");
    assert_int_equal(json_get_object(json, "a", &part, &err), -ERR_INVALID);
    assert_int_equal(json_get_array(json, "o", &part, &err), -ERR_INVALID);
    assert_int_equal(json_get_bool(json, "i", &flag, &err), -ERR_INVALID);
    assert_int_equal(json_get_str(json, "i", &str, &err), -ERR_INVALID);
    assert_int_equal(json_get_double(json, "s", &real, &err), -ERR_INVALID);
}

static void
test_writer_puts_commas_and_keys(void **state)
{
    scoped(buf_release) struct buf buf = {0};
    struct json_out out;

    json_out_init(&out, &buf);
    json_begin_object(&out);
    json_kv_str(&out, "s", "a\"b\n");
    json_kv_str(&out, "none", NULL);
    json_kv_strn(&out, "cut", "abcdef", 3);
    json_kv_i64(&out, "i", INT64_MIN);
    json_kv_bool(&out, "t", true);
    json_kv_null(&out, "n");
    json_kv_raw(&out, "r", "[1]");
    json_kv_time_us(&out, "at", INT64_C(1764444485123456));
    json_kv_time_us(&out, "never", 0);
    json_key(&out, "a");
    json_begin_array(&out);
    json_begin_object(&out);
    json_end_object(&out);
    json_begin_array(&out);
    json_end_array(&out);
    json_put_i64(&out, 1);
    json_put_str(&out, "x");
    json_end_array(&out);
    json_kv_bool(&out, "f", false);
    json_end_object(&out);
    assert_string_equal(buf_str(&buf),
                        "{\"s\":\"a\\\"b\\n\",\"none\":null,\"cut\":\"abc\","
                        "\"i\":-9223372036854775808,\"t\":true,\"n\":null,\"r\":[1],"
                        "\"at\":\"2025-11-29T19:28:05.123Z\",\"never\":null,"
                        "\"a\":[{},[],1,\"x\"],\"f\":false}");
}

static void
test_strings_are_escaped_and_repaired(void **state)
{
    static const struct {
        const char *text;
        size_t len;
        const char *escaped;
    } rows[] = {
        {"", 0, "\"\""},
        {"a/b", 3, "\"a/b\""},
        {"\b\f\n\r\t\"\\", 7, "\"\\b\\f\\n\\r\\t\\\"\\\\\""},
        {"\0\x01\x1f\x7f", 4, "\"\\u0000\\u0001\\u001f\x7f\""},
        {"a\xff\x01", 3, "\"a\xef\xbf\xbd\\u0001\""},
        {"\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xe2\x82", 2, "\"\xef\xbf\xbd\""},
        {"한", 3, "\"한\""},
    };

    for (size_t i = 0; i < array_len(rows); i++) {
        scoped(buf_release) struct buf buf = {0};

        json_escape(&buf, rows[i].text, rows[i].len);
        assert_string_equal(buf_str(&buf), rows[i].escaped);
    }
}

static void
test_doubles_have_the_fewest_digits_that_read_back(void **state)
{
    static const struct {
        double value;
        const char *text;
    } rows[] = {
        {0.1, "0.1"},    {100, "100"},
        {-0.0, "-0"},    {0.1 + 0.2, "0.30000000000000004"},
        {1e22, "1e+22"}, {1.0 / 3, "0.3333333333333333"},
        {NAN, "null"},   {INFINITY, "null"},
    };

    for (size_t i = 0; i < array_len(rows); i++) {
        scoped(buf_release) struct buf buf = {0};
        struct json_out out;

        json_out_init(&out, &buf);
        json_put_double(&out, rows[i].value);
        assert_string_equal(buf_str(&buf), rows[i].text);
    }
}

static void
test_a_value_of_full_depth_fits_into_an_envelope(void **state)
{
    scoped(json_drop) json_t *json = NULL;
    scoped(buf_release) struct buf buf = {0};
    struct json_out out;
    struct err err = {0};
    char text[129];
    char expected[200];

    memset(text, '[', 64);
    memset(text + 64, ']', 64);
    text[128] = '\0';
    assert_int_equal(json_parse(text, 128, 64, &json, &err), 0);
    json_out_init(&out, &buf);
    json_begin_object(&out);
    json_kv_value(&out, "v", json);
    json_end_object(&out);
    snprintf(expected, sizeof(expected), "{\"v\":%s}", text);
    assert_string_equal(buf_str(&buf), expected);
}

static void
test_put_value_keeps_order_and_types(void **state)
{
    static const char text[] =
        "{\"z\":[1,2.5,true,false,null,\"x\\u0001\"],\"a\":{\"b\":{}}}";
    scoped(json_drop) json_t *json = NULL;
    scoped(buf_release) struct buf buf = {0};
    struct json_out out;
    struct err err = {0};

    assert_int_equal(json_parse(text, strlen(text), 64, &json, &err), 0);
    json_out_init(&out, &buf);
    json_put_value(&out, json);
    assert_string_equal(buf_str(&buf), text);
}

static void
test_a_writer_over_the_ceiling_shows_in_the_buf(void **state)
{
    for (size_t max = 7; max <= 9; max++) {
        scoped(buf_release) struct buf buf = {.max = max};
        struct json_out out;
        struct err err = {0};

        json_out_init(&out, &buf);
        json_begin_array(&out);
        json_put_str(&out, "1234"); /* ["1234"] is eight bytes */
        json_end_array(&out);
        assert_int_equal(buf_check(&buf, "x", &err), max < 8 ? -ERR_TOO_LARGE : 0);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_not_strict_json_is_refused_with_its_place),
        cmocka_unit_test(test_what_is_strict_json_is_read),
        cmocka_unit_test(test_nesting_is_limited_at_n_minus_1_n_and_n_plus_1),
        cmocka_unit_test(test_a_long_number_is_limited_at_400_characters),
        cmocka_unit_test(test_members_are_found_absent_or_of_the_wrong_type),
        cmocka_unit_test(test_writer_puts_commas_and_keys),
        cmocka_unit_test(test_strings_are_escaped_and_repaired),
        cmocka_unit_test(test_doubles_have_the_fewest_digits_that_read_back),
        cmocka_unit_test(test_a_value_of_full_depth_fits_into_an_envelope),
        cmocka_unit_test(test_put_value_keeps_order_and_types),
        cmocka_unit_test(test_a_writer_over_the_ceiling_shows_in_the_buf),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
