/*
 * Patterns: what is refused and where; matching is linear. What matches what is
 * in tests/vectors/params.json, which PostgreSQL runs too.
 */
#include "base/err.h"
#include "base/pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void
test_what_is_outside_of_the_subset_is_refused_with_its_place(void **state)
{
    static const struct {
        const char *pattern;
        const char *said; /* how the message begins, after "pattern" */
    } rows[] = {
        {"\\d+", ", character 2: a backslash may stand"},
        {"한글\\w", ", character 4: a backslash may stand"},
        {"a\\", ", character 3: a backslash at the end"},
        {"(a", ", character 3: '(' without ')'"},
        {"a)", ", character 2: ')' without '('"},
        {"[a", ", character 3: '[' without ']'"},
        {"[]", ", character 2: nothing between"},
        {"[^]", ", character 3: nothing between"},
        {"[[:alpha:]]", ", character 2: write \\["},
        {"[z-a]", ", character 5: the range"},
        {"*a", ", character 1: nothing to repeat"},
        {"a|*", ", character 3: nothing to repeat"},
        {"a**", ", character 3: one repetition upon another"},
        {"a+?", ", character 3: one repetition upon another"},
        {"a{2}{3}", ", character 5: one repetition upon another"},
        {"a{", ", character 3: a count is"},
        {"a{,3}", ", character 3: a count is"},
        {"a{3,2}", ", character 6: the second count"},
        {"a{256}", ", character 5: a count may be"},
        {"a{2", ", character 4: '{' without '}'"},
        {"(?:a)", ", character 2: (? is not known"},
        {"a^b", ", character 2: the whole text"},
        {"a$b", ", character 2: the whole text"},
        {"(^a)", ", character 2: the whole text"},
        {"a]", ", character 2: write \\ before a bracket"},
        {"a}", ", character 2: write \\ before a bracket"},
        {"", ", character 1: an empty alternative"},
        {"a|", ", character 3: an empty alternative"},
        {"(|a)", ", character 2: an empty alternative"},
        {"^$", ", character 2: an empty alternative"},
        {"((a{100}){100}){100}", ": its counts multiply"},
        {"(((((((((((((((((((((a)))))))))))))))))))))", ", character 22: more than 20"},
        {"\xff", ": not valid UTF-8"},
    };
    size_t i;

    for (i = 0; i < array_len(rows); i++) {
        struct pattern *pattern = NULL;
        struct err err = {0};

        assert_int_equal(pattern_new(rows[i].pattern, &pattern, &err), -ERR_INVALID);
        assert_null(pattern);
        if (strncmp(err.text + strlen("pattern"), rows[i].said, strlen(rows[i].said)))
            fail_msg("%s: %s", rows[i].pattern, err.text);
    }
}

static void
test_a_pattern_of_500_bytes_is_the_longest(void **state)
{
    struct pattern *pattern = NULL;
    struct err err = {0};
    char text[502];

    memset(text, 'a', sizeof(text));
    text[500] = '\0';
    assert_int_equal(pattern_new(text, &pattern, &err), 0);
    assert_true(pattern_matches(pattern, text, 500));
    assert_false(pattern_matches(pattern, text, 499));
    pattern_free(pattern);
    text[500] = 'a';
    text[501] = '\0';
    assert_int_equal(pattern_new(text, &pattern, &err), -ERR_INVALID);
}

/* With backtracking each of these takes longer than the universe lasts; the time
 * limit of the test is the assertion. */
static void
test_no_pattern_makes_a_match_slow(void **state)
{
    static const char *const patterns[] = {"(a*)*b", "(a|a)*b", "((a+)+)+b",
                                           "(a?){50}a{50}b", "(.*)*x(.*)*y"};
    static char text[10000];
    size_t i;

    memset(text, 'a', sizeof(text));
    for (i = 0; i < array_len(patterns); i++) {
        struct pattern *pattern = NULL;
        struct err err = {0};

        assert_int_equal(pattern_new(patterns[i], &pattern, &err), 0);
        assert_false(pattern_matches(pattern, text, sizeof(text)));
        pattern_free(pattern);
    }
}

static void
test_text_that_is_not_utf8_matches_nothing(void **state)
{
    struct pattern *pattern = NULL;
    struct err err = {0};

    assert_int_equal(pattern_new(".*", &pattern, &err), 0);
    assert_true(pattern_matches(pattern, "", 0));
    assert_true(pattern_matches(pattern, "a\0b", 3));
    assert_false(pattern_matches(pattern, "a\xff", 2));
    assert_false(pattern_matches(pattern, "\xed\x95", 2));
    pattern_free(pattern);
    pattern_free(NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_outside_of_the_subset_is_refused_with_its_place),
        cmocka_unit_test(test_a_pattern_of_500_bytes_is_the_longest),
        cmocka_unit_test(test_no_pattern_makes_a_match_slow),
        cmocka_unit_test(test_text_that_is_not_utf8_matches_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
