#include "test.h"

#include "base/buf.h"
#include "base/utf8.h"

#define FFFD "\xEF\xBF\xBD"

static void
test_every_code_point_goes_there_and_back(void **state)
{
    for (uint32_t code = 0; code <= 0x110001; code++) {
        bool real = code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
        char text[4];
        uint32_t back = 0;
        size_t len = utf8_encode(code, text);

        if ((len > 0) != real)
            fail_msg("U+%X", code);
        if (real && (utf8_decode(text, len, &back) != len || back != code ||
                     utf8_decode(text, len - 1, &back) != 0))
            fail_msg("U+%X", code);
    }
}

static void
test_ill_formed_text_is_found_and_repaired(void **state)
{
    static const struct {
        const char *text;
        size_t good; /* bytes before the first bad one */
        const char *repaired;
    } rows[] = {
        {"", 0, ""},
        {"abc", 3, "abc"},
        {"abcdefgh한ijklmnopq", 20, "abcdefgh한ijklmnopq"},
        {"abcdefgh\xff", 8, "abcdefgh" FFFD},
        {"\x80", 0, FFFD},
        {"\xc0\xaf", 0, FFFD FFFD}, /* overlong / */
        {"\xc1\xbf", 0, FFFD FFFD},
        {"\xc2", 0, FFFD},
        {"\xc2\x41", 0, FFFD "A"},
        {"\xe0\x80\xaf", 0, FFFD FFFD FFFD}, /* overlong */
        {"\xe0\x9f\xbf", 0, FFFD FFFD FFFD},
        {"\xe0\xa0\x80", 3, "\xe0\xa0\x80"},
        {"\xed\x9f\xbf", 3, "\xed\x9f\xbf"},
        {"\xed\xa0\x80", 0, FFFD FFFD FFFD}, /* surrogate */
        {"\xf0\x8f\xbf\xbf", 0, FFFD FFFD FFFD FFFD},
        {"\xf0\x90\x80\x80", 4, "\xf0\x90\x80\x80"},
        {"\xf4\x8f\xbf\xbf", 4, "\xf4\x8f\xbf\xbf"},
        {"\xf4\x90\x80\x80", 0, FFFD FFFD FFFD FFFD}, /* past the end */
        {"\xf5\x80", 0, FFFD FFFD},
        {"x\xe2\x82y", 1, "x" FFFD "y"}, /* a cut one counts once */
        {"x\xf0\x9f\x98", 1, "x" FFFD},
    };

    for (size_t i = 0; i < array_len(rows); i++) {
        scoped(buf_release) struct buf buf = {0};
        size_t len = strlen(rows[i].text);

        assert_int_equal(utf8_valid_prefix(rows[i].text, len), rows[i].good);
        assert_int_equal(utf8_valid(rows[i].text, len), rows[i].good == len);
        utf8_repair(rows[i].text, len, &buf);
        assert_string_equal(buf_str(&buf), rows[i].repaired);
        assert_true(utf8_valid(buf_str(&buf), buf.len));
    }
}

static void
test_cutting_never_splits_a_code_point(void **state)
{
    static const char text[] =
        "a\xc3\xa9\xed\x95\x9c\xf0\x9f\x98\x80z"; /* a é 한 😀 z */
    static const size_t cuts[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};
    static const size_t prefixes[] = {0, 1, 3, 6, 10, 11, 11};

    for (size_t max = 0; max < array_len(cuts); max++)
        assert_int_equal(utf8_cut(text, 11, max), cuts[max]);
    for (size_t points = 0; points < array_len(prefixes); points++)
        assert_int_equal(utf8_prefix(text, 11, points), prefixes[points]);
    assert_int_equal(utf8_count(text, 11), 5);
    assert_int_equal(utf8_count("\xff\xff", 2), 2);
    assert_int_equal(utf8_cut("\x80\x80\x80\x80\x80", 5, 4), 4); /* broken: as it is */
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_code_point_goes_there_and_back),
        cmocka_unit_test(test_ill_formed_text_is_found_and_repaired),
        cmocka_unit_test(test_cutting_never_splits_a_code_point),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
