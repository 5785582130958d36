#include "test.h"

#include "base/arena.h"
#include "base/buf.h"
#include "cli/print.h"

#include <stdlib.h>

static void
test_controls_and_marks_that_turn_text_are_escaped(void **state)
{
    static const struct {
        const char *text;
        const char *wanted;
    } cases[] = {
        {"plain \xed\x95\x9c\xea\xb8\x80", "plain \xed\x95\x9c\xea\xb8\x80"},
        {"\033]0;x\a", "\\x1b]0;x\\x07"},
        {"a\tb\nc", "a\\x09b\\x0ac"},
        {"\x7f", "\\x7f"},
        {"\xe2\x80\xae!", "\\u202e!"},
        {"\xe2\x80\xa8", "\\u2028"},
        {"bad \xff\xc0", "bad \\xff\\xc0"},
    };

    for (size_t i = 0; i < array_len(cases); i++) {
        scoped(buf_release) struct buf buf = {0};

        buf_init(&buf, 256);
        print_escape(&buf, cases[i].text);
        assert_string_equal(buf_str(&buf), cases[i].wanted);
    }
}

static void
test_numbers_are_grouped(void **state)
{
    static const struct {
        int64_t count;
        const char *wanted;
    } cases[] = {{0, "0"},
                 {999, "999"},
                 {1000, "1,000"},
                 {-1000, "-1,000"},
                 {-100, "-100"},
                 {1048576, "1,048,576"},
                 {INT64_MAX, "9,223,372,036,854,775,807"}};
    scoped(arena_release) struct arena arena = {0};

    for (size_t i = 0; i < array_len(cases); i++)
        assert_string_equal(print_count(&arena, cases[i].count), cases[i].wanted);
    assert_string_equal(print_bytes(&arena, 1023), "1023 bytes");
    assert_string_equal(print_bytes(&arena, 1536), "1.5 KiB");
    assert_string_equal(print_bytes(&arena, INT64_C(5) << 40), "5.0 TiB");
    assert_string_equal(print_span(&arena, 59), "0:59");
    assert_string_equal(print_span(&arena, 3600), "1:00:00");
}

static void
test_wide_characters_count_two_columns(void **state)
{
    assert_int_equal(print_width("abc"), 3);
    assert_int_equal(print_width("\xed\x95\x9c\xea\xb8\x80"), 4);
    assert_int_equal(print_width("\xc3\xa9"), 1);
}

static void
test_a_table_is_aligned(void **state)
{
    static const struct table_column columns[] = {{"NAME", false}, {"N", true}};
    scoped(arena_release) struct arena arena = {0};
    struct table table = {.arena = &arena, .columns = columns, .n_columns = 2};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    table_add(&table, "\xed\x95\x9c\xea\xb8\x80x");
    table_add(&table, "1");
    table_add(&table, "");
    table_add(&table, "1,000");
    table_print(&table, out);
    fclose(out);
    assert_string_equal(text, "NAME       N\n"
                              "\xed\x95\x9c\xea\xb8\x80x      1\n"
                              "-      1,000\n");
    free(text);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_controls_and_marks_that_turn_text_are_escaped),
        cmocka_unit_test(test_numbers_are_grouped),
        cmocka_unit_test(test_wide_characters_count_two_columns),
        cmocka_unit_test(test_a_table_is_aligned),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
