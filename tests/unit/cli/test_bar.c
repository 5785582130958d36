#include "test.h"

#include "base/buf.h"
#include "base/json.h"
#include "cli/bar.h"
#include "cli/print.h"

#define NOT_KNOWN .percent = -1, .done = -1, .total = -1, .eta_s = -1

static void
check_line(const struct bar_view *view, int width, const char *wanted)
{
    scoped(buf_release) struct buf buf = {0};

    buf_init(&buf, 4096);
    bar_line(view, width, &buf);
    assert_string_equal(buf_str(&buf), wanted);
}

static void
test_the_bar_shows_percent_rows_and_time_left(void **state)
{
    struct bar_view view = {.status = "RUNNING",
                            .where = "export",
                            .percent = 50,
                            .done = 40000,
                            .total = 80000,
                            .eta_s = 65,
                            .elapsed_s = 64};

    check_line(&view, 200,
               "[############>-----------]  50%  40,000 of 80,000 rows  1:04  ETA "
               "1:05  export");
    view.percent = 100;
    view.eta_s = -1;
    view.ending = true;
    check_line(&view, 200,
               "[########################] 100%  40,000 of 80,000 rows  1:04  ending  "
               "export");
}

static void
test_what_is_not_known_is_left_out(void **state)
{
    struct bar_view view = {.status = "RUNNING", .where = "", NOT_KNOWN};

    check_line(&view, 200, "running  0:00");
    view.done = 7;
    check_line(&view, 200, "7 rows  0:00");
}

static void
test_waiting_names_the_lane(void **state)
{
    struct bar_view view = {
        .status = "QUEUED", .where = "large", NOT_KNOWN, .elapsed_s = 3661};

    check_line(&view, 200, "waiting in lane large  1:01:01");
}

static void
test_a_line_never_is_wider_than_the_terminal(void **state)
{
    struct bar_view view = {.status = "RUNNING",
                            .where = "\xea\xb0\x80\xeb\x82\x98\xeb\x8b\xa4 wide words",
                            .percent = 3,
                            .done = 1,
                            .total = 33,
                            .eta_s = 9};

    for (int width = 20; width < 90; width++) {
        scoped(buf_release) struct buf buf = {0};

        buf_init(&buf, 4096);
        bar_line(&view, width, &buf);
        assert_true(print_width(buf_str(&buf)) <= (size_t)width);
    }
}

static void
test_a_message_cannot_steer_the_terminal(void **state)
{
    struct bar_view view = {
        .status = "RUNNING", .where = "a\033[2Jb\r\n\xc2\x9b", NOT_KNOWN};

    check_line(&view, 200, "running  0:00  a\\x1b[2Jb\\x0d\\x0a\\x9b");
}

static void
test_the_view_is_taken_from_the_answer(void **state)
{
    scoped(json_drop) json_t *request =
        json_pack("{s:s, s:s, s:b, s:{s:i, s:n, s:i, s:s}}", "status", "RUNNING",
                  "lane", "large", "cancelRequested", 1, "progress", "done", 5, "total",
                  "percent", 9, "message", "m");
    struct bar_view view = bar_view_of(request, 2);

    assert_int_equal(view.done, 5);
    assert_int_equal(view.total, -1);
    assert_int_equal(view.percent, 9);
    assert_int_equal(view.eta_s, -1);
    assert_string_equal(view.where, "m");
    assert_true(view.ending);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_bar_shows_percent_rows_and_time_left),
        cmocka_unit_test(test_what_is_not_known_is_left_out),
        cmocka_unit_test(test_waiting_names_the_lane),
        cmocka_unit_test(test_a_line_never_is_wider_than_the_terminal),
        cmocka_unit_test(test_a_message_cannot_steer_the_terminal),
        cmocka_unit_test(test_the_view_is_taken_from_the_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
