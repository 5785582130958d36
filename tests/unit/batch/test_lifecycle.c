/* The table of executions: exactly these moves; what is ended stays. */
#include "batch/lifecycle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void
test_only_the_moves_of_the_design(void **state)
{
    static const bool may[EXECUTION_STATE_COUNT][EXECUTION_STATE_COUNT] = {
        [EXECUTION_STARTING] = {[EXECUTION_STARTED] = true, [EXECUTION_FAILED] = true},
        [EXECUTION_STARTED] = {[EXECUTION_COMPLETED] = true,
                               [EXECUTION_FAILED] = true,
                               [EXECUTION_STOPPING] = true},
        [EXECUTION_STOPPING] = {[EXECUTION_STOPPED] = true,
                                [EXECUTION_COMPLETED] = true,
                                [EXECUTION_FAILED] = true},
    };

    for (int from = 0; from < EXECUTION_STATE_COUNT; from++)
        for (int to = 0; to < EXECUTION_STATE_COUNT; to++)
            assert_int_equal(execution_may_move((enum execution_state)from,
                                                (enum execution_state)to),
                             may[from][to]);
}

static void
test_alive_is_what_can_still_move(void **state)
{
    for (int from = 0; from < EXECUTION_STATE_COUNT; from++) {
        bool moves = false;

        for (int to = 0; to < EXECUTION_STATE_COUNT; to++)
            moves |= execution_may_move((enum execution_state)from,
                                        (enum execution_state)to);
        assert_int_equal(execution_state_alive((enum execution_state)from), moves);
    }
}

static void
test_words_read_back(void **state)
{
    enum execution_state at;

    for (int i = 0; i < EXECUTION_STATE_COUNT; i++) {
        assert_true(
            execution_state_parse(execution_state_name((enum execution_state)i), &at));
        assert_int_equal(at, i);
    }
    assert_false(execution_state_parse("RUNNING", &at));
    assert_false(execution_state_parse(NULL, &at));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_the_moves_of_the_design),
        cmocka_unit_test(test_alive_is_what_can_still_move),
        cmocka_unit_test(test_words_read_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
