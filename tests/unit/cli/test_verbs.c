#include "test.h"

#include "cli/command.h"

static void
test_every_verb_is_complete_and_named_once(void **state)
{
    size_t count = 0;
    const struct verb *list = verbs(&count);

    for (size_t i = 0; i < count; i++) {
        assert_non_null(list[i].run);
        assert_true(list[i].help[0] && list[i].args_min <= list[i].args_max);
        assert_ptr_equal(verb_find(list[i].name), &list[i]);
        assert_int_equal(list[i].args_max > 0, list[i].args[0] != '\0');
    }
}

static void
test_A4_each_role_is_a_verb(void **state)
{
    static const char *const roles[] = {"serve", "api", "worker"};

    for (size_t i = 0; i < array_len(roles); i++) {
        assert_non_null(verb_find(roles[i]));
        assert_ptr_equal(verb_find(roles[i])->run, verb_role);
    }
}

static void
test_a_verb_that_needs_a_backend_can_be_sent_to_a_server(void **state)
{
    size_t count = 0;
    const struct verb *list = verbs(&count);

    for (size_t i = 0; i < count; i++)
        assert_int_equal(list[i].need == NEED_BACKEND || list[i].need == NEED_WORKER,
                         (list[i].takes & OPTION_BIT(OPTION_SERVER)) != 0);
}

static void
test_a_slip_finds_the_verb(void **state)
{
    assert_string_equal(verb_nearest("sumbit"), "submit");
    assert_string_equal(verb_nearest("reqests"), "requests");
    assert_null(verb_nearest("frobnicate"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_verb_is_complete_and_named_once),
        cmocka_unit_test(test_A4_each_role_is_a_verb),
        cmocka_unit_test(test_a_verb_that_needs_a_backend_can_be_sent_to_a_server),
        cmocka_unit_test(test_a_slip_finds_the_verb),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
