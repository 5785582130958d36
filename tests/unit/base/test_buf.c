#include "test.h"

#include "base/buf.h"
#include "base/err.h"

static void
test_empty_buf_is_an_empty_string(void **state)
{
    struct buf buf = {0};
    struct err err = {0};

    assert_string_equal(buf_str(&buf), "");
    assert_int_equal(buf_check(&buf, "it", &err), 0);
    buf_release(&buf);
    buf_release(NULL);
}

static void
test_every_append_ends_with_nul(void **state)
{
    scoped(buf_release) struct buf buf;

    buf_init(&buf, 0);
    buf_add(&buf, "ab", 2);
    buf_add_char(&buf, 'c');
    buf_add_str(&buf, "de");
    buf_add_i64(&buf, INT64_MIN);
    buf_addf(&buf, "|%s|%d", "x", 7);
    buf_add(&buf, "", 0);
    assert_string_equal(buf_str(&buf), "abcde-9223372036854775808|x|7");
    assert_int_equal(buf.len, strlen(buf.data));
    buf_clear(&buf);
    assert_string_equal(buf_str(&buf), "");
    assert_int_equal(buf.len, 0);
}

static void
test_ceiling_holds_at_n_minus_1_n_and_n_plus_1(void **state)
{
    static const size_t ceilings[] = {1, 2, 255, 256, 257, 511, 512, 513, 5000};

    for (size_t i = 0; i < array_len(ceilings); i++) {
        for (int more = -1; more <= 1; more++) {
            scoped(buf_release) struct buf by_char = {.max = ceilings[i]};
            scoped(buf_release) struct buf at_once = {.max = ceilings[i]};
            size_t len = ceilings[i] + (size_t)more;
            struct err err = {0};
            char text[5002];

            memset(text, 'x', sizeof(text));
            for (size_t n = 0; n < len; n++)
                buf_add_char(&by_char, 'x');
            buf_add(&at_once, text, len);
            assert_int_equal(by_char.overflow, more > 0);
            assert_int_equal(at_once.overflow, more > 0);
            assert_int_equal(by_char.len, more > 0 ? ceilings[i] : len);
            assert_int_equal(at_once.len, more > 0 ? 0 : len);
            assert_int_equal(buf_check(&at_once, "the body", &err),
                             more > 0 ? -ERR_TOO_LARGE : 0);
        }
    }
}

static void
test_overflow_adds_nothing_and_names_the_thing(void **state)
{
    scoped(buf_release) struct buf buf = {.max = 4};
    struct err err = {0};

    buf_add_str(&buf, "abc");
    buf_addf(&buf, "%s", "de");
    assert_string_equal(buf_str(&buf), "abc");
    assert_null(buf_reserve(&buf, SIZE_MAX));
    assert_int_equal(buf_check(&buf, "the comment", &err), -ERR_TOO_LARGE);
    assert_string_equal(err.text, "the comment is larger than the limit of 4 bytes");
    buf_clear(&buf);
    assert_false(buf.overflow);
}

static void
test_reserved_room_is_filled_by_the_caller(void **state)
{
    scoped(buf_release) struct buf buf = {0};
    char *at = buf_reserve(&buf, 1000);

    assert_non_null(at);
    memset(at, 'r', 1000);
    buf.len += 1000;
    buf_add_char(&buf, '!');
    assert_int_equal(buf.len, 1001);
    assert_int_equal(buf.data[1000], '!');
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty_buf_is_an_empty_string),
        cmocka_unit_test(test_every_append_ends_with_nul),
        cmocka_unit_test(test_ceiling_holds_at_n_minus_1_n_and_n_plus_1),
        cmocka_unit_test(test_overflow_adds_nothing_and_names_the_thing),
        cmocka_unit_test(test_reserved_room_is_filled_by_the_caller),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
