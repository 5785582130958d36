/* B9, the table itself: exactly the moves that the design allows, and no word twice. */
#include "queue/lifecycle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void
test_B9_only_queued_running_and_two_ends(void **state)
{
    /* from, to: the four arrows, and nothing else. */
    static const bool may[REQUEST_STATUS_COUNT][REQUEST_STATUS_COUNT] = {
        [REQUEST_QUEUED] = {[REQUEST_RUNNING] = true, [REQUEST_FAILED] = true},
        [REQUEST_RUNNING] = {[REQUEST_DONE] = true, [REQUEST_FAILED] = true},
    };
    bool seen[REQUEST_STATUS_COUNT][REQUEST_STATUS_COUNT] = {{false}};
    const struct request_move *moves;
    size_t count;

    moves = request_moves(&count);
    for (size_t i = 0; i < count; i++) {
        if (moves[i].entry) {
            assert_int_equal(moves[i].to, REQUEST_QUEUED);
            continue;
        }
        assert_true(may[moves[i].from][moves[i].to]);
        seen[moves[i].from][moves[i].to] = true;
        if (request_status_final(moves[i].to))
            assert_int_equal(moves[i].to, request_status_of(moves[i].outcome));
        else
            assert_int_equal(moves[i].outcome, OUTCOME_NONE);
    }
    assert_memory_equal(seen, may, sizeof(may));
}

static void
test_each_outcome_has_its_ways(void **state)
{
    static const struct {
        enum request_outcome outcome;
        bool queued;
        bool running;
    } rows[] = {
        {OUTCOME_COMPLETED, false, true}, {OUTCOME_STOPPED, false, true},
        {OUTCOME_ERROR, false, true},     {OUTCOME_CANCELLED, true, true},
        {OUTCOME_TIMEOUT, false, true},   {OUTCOME_WORKER_LOST, false, true},
        {OUTCOME_EXPIRED, true, false},   {OUTCOME_REFUSED, true, true},
    };

    assert_int_equal(array_len(rows), OUTCOME_COUNT - 1);
    for (size_t i = 0; i < array_len(rows); i++) {
        assert_int_equal(request_may_end(REQUEST_QUEUED, rows[i].outcome),
                         rows[i].queued);
        assert_int_equal(request_may_end(REQUEST_RUNNING, rows[i].outcome),
                         rows[i].running);
        assert_false(request_may_end(REQUEST_DONE, rows[i].outcome));
        assert_false(request_may_end(REQUEST_FAILED, rows[i].outcome));
    }
    assert_false(request_may_end(REQUEST_RUNNING, OUTCOME_NONE));
}

static void
test_words_read_back(void **state)
{
    enum request_status status;
    enum request_outcome outcome;
    enum request_source source;

    for (int i = 0; i < REQUEST_STATUS_COUNT; i++) {
        assert_true(
            request_status_parse(request_status_name((enum request_status)i), &status));
        assert_int_equal(status, i);
    }
    for (int i = OUTCOME_NONE + 1; i < OUTCOME_COUNT; i++) {
        assert_true(request_outcome_parse(request_outcome_name((enum request_outcome)i),
                                          &outcome));
        assert_int_equal(outcome, i);
    }
    for (int i = 0; i < SOURCE_COUNT; i++) {
        assert_true(
            request_source_parse(request_source_name((enum request_source)i), &source));
        assert_int_equal(source, i);
    }
    assert_null(request_outcome_name(OUTCOME_NONE));
    assert_false(request_status_parse("queued", &status));
    assert_false(request_status_parse(NULL, &status));
    assert_false(request_outcome_parse("", &outcome));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_B9_only_queued_running_and_two_ends),
        cmocka_unit_test(test_each_outcome_has_its_ways),
        cmocka_unit_test(test_words_read_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
