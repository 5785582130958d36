#include "test.h"

#include "base/arena.h"
#include "base/err.h"
#include "cli/options.h"

#define WORDS_MAX 12

static int
parse(const char *const *words, struct arena *arena, struct options *ret,
      struct err *err)
{
    char *argv[WORDS_MAX + 2] = {(char *)(uintptr_t) "pawl"};
    int argc = 1;

    for (; words[argc - 1]; argc++)
        argv[argc] = (char *)(uintptr_t)words[argc - 1];
    return options_parse(argc, argv, arena, ret, err);
}

static void
test_words_and_options_may_stand_in_any_order(void **state)
{
    const char *const words[] = {"--json", "submit", "-p",        "a=1", "nightly",
                                 "-pb=2",  "-qw",    "--limit=3", NULL};
    scoped(arena_release) struct arena arena = {0};
    struct options options;
    struct err err = {0};

    assert_int_equal(parse(words, &arena, &options, &err), 0);
    assert_int_equal(options.word_count, 2);
    assert_string_equal(options.words[0], "submit");
    assert_string_equal(options.words[1], "nightly");
    assert_int_equal(options.param_count, 2);
    assert_string_equal(options.params[0], "a=1");
    assert_string_equal(options.params[1], "b=2");
    assert_string_equal(options.value[OPTION_LIMIT], "3");
    assert_true(option_given(&options, OPTION_JSON));
    assert_true(option_given(&options, OPTION_QUIET));
    assert_true(option_given(&options, OPTION_WAIT));
    assert_false(option_given(&options, OPTION_OUTPUT));
}

static void
test_two_dashes_end_the_options(void **state)
{
    const char *const words[] = {"show", "--", "--json", "-p", NULL};
    scoped(arena_release) struct arena arena = {0};
    struct options options;
    struct err err = {0};

    assert_int_equal(parse(words, &arena, &options, &err), 0);
    assert_int_equal(options.word_count, 3);
    assert_string_equal(options.words[1], "--json");
    assert_false(option_given(&options, OPTION_JSON));
}

static void
test_an_empty_value_and_one_that_looks_like_an_option_are_values(void **state)
{
    const char *const words[] = {"submit", "--requester=", "--output", "--odd", NULL};
    scoped(arena_release) struct arena arena = {0};
    struct options options;
    struct err err = {0};

    assert_int_equal(parse(words, &arena, &options, &err), 0);
    assert_string_equal(options.value[OPTION_REQUESTER], "");
    assert_string_equal(options.value[OPTION_OUTPUT], "--odd");
}

static void
test_what_cannot_be_read_says_what_to_do(void **state)
{
    static const struct {
        const char *words[4];
        const char *says;
    } cases[] = {
        {{"--outptu", "x"}, "did you mean --output?"},
        {{"--zzzzzzzz"}, "`pawl help VERB` lists"},
        {{"-x"}, "there is no option -x"},
        {{"--output"}, "--output needs a value: --output FILE"},
        {{"-p"}, "--param needs a value"},
        {{"--json=yes"}, "--json takes no value"},
        {{"--limit=1", "--limit=2"}, "--limit was given twice"},
    };

    for (size_t i = 0; i < array_len(cases); i++) {
        scoped(arena_release) struct arena arena = {0};
        struct options options;
        struct err err = {0};

        assert_int_equal(parse(cases[i].words, &arena, &options, &err), -ERR_USAGE);
        if (!strstr(err.text, cases[i].says))
            fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i].says);
    }
}

static void
test_a_verb_refuses_options_it_does_not_take(void **state)
{
    const char *const words[] = {"jobs", "--wait", NULL};
    scoped(arena_release) struct arena arena = {0};
    struct options options;
    struct err err = {0};

    assert_int_equal(parse(words, &arena, &options, &err), 0);
    assert_int_equal(options_allow(&options, OPTION_BIT(OPTION_WAIT), "submit", &err),
                     0);
    assert_int_equal(options_allow(&options, OPTION_BIT(OPTION_JSON), "jobs", &err),
                     -ERR_USAGE);
    assert_non_null(strstr(err.text, "`pawl jobs` takes no --wait"));
}

static void
test_every_option_has_a_name_and_a_help_and_no_letter_twice(void **state)
{
    for (int i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = option_row((enum option)i);

        assert_non_null(row->name);
        assert_true(row->help && row->help[0]);
        for (int k = 0; k < i; k++) {
            assert_string_not_equal(row->name, option_row((enum option)k)->name);
            if (row->letter)
                assert_int_not_equal(row->letter, option_row((enum option)k)->letter);
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_and_options_may_stand_in_any_order),
        cmocka_unit_test(test_two_dashes_end_the_options),
        cmocka_unit_test(
            test_an_empty_value_and_one_that_looks_like_an_option_are_values),
        cmocka_unit_test(test_what_cannot_be_read_says_what_to_do),
        cmocka_unit_test(test_a_verb_refuses_options_it_does_not_take),
        cmocka_unit_test(test_every_option_has_a_name_and_a_help_and_no_letter_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
