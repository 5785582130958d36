/* What `pawl check` says of schedules, with the place in the file. */
#include "schedule/check.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fsio.h"
#include "config/config.h"
#include "config/errors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char head[] = "store: sqlite:./x.db\n"
                           "jobs: {j: {steps: [{name: s, read: {sql: \"SELECT 1 AS "
                           "a\", database: main}, write: "
                           "{file: x.csv, format: csv}}]}}\n"
                           "schedules:\n";

/* Problems as "line:column: text", one a line. */
static void
check(const char *schedules, struct config_errors *errors)
{
    scoped(config_free_ptr) struct config *config = NULL;
    scoped(buf_release) struct buf text = {0};
    char folder[] = "/tmp/pawl-check-XXXXXX";
    char path[64];
    struct err err = {0};

    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/pawl.yaml", folder);
    buf_init(&text, 0);
    buf_addf(&text, "%s%s", head, schedules);
    assert_int_equal(fs_replace_file(path, text.data, text.len, 0600, &err), 0);
    if (config_load(path, NULL, NULL, &config, errors, &err) < 0)
        fail_msg("%s", err.text);
    fs_remove_tree_quietly(folder);
    schedule_check(config, errors);
    config_errors_sort(errors);
}

static void
test_bad_rules_and_zones_are_told_all_at_once_with_line_and_column(void **state)
{
    static const struct {
        unsigned line;
        unsigned column;
        const char *says;
    } expected[] = {
        {4, 24, "schedules.a.cron: the hour must be 0 to 23"},
        {5, 29, "schedules.b.cron: the weekday must be 0 to 7"},
        {6, 37, "schedules.c.zone: there is no time zone Europe/Berln"},
        {8, 12, "schedules.d.cron: @dayly is not known: did you mean @daily"},
    };
    scoped(config_errors_release) struct config_errors errors = {0};

    check(
        "  a: {job: j, cron: \"0 24 * * *\"}\n"
        "  b: {job: j, cron: 0 0 * * 9}\n"
        "  c: {job: j, cron: \"@daily\", zone: Europe/Berln}\n"
        "  d:\n"
        "    cron: '@dayly'\n"
        "    job: j\n"
        "  fine: {job: j, cron: \"30 4 L * ?\", zone: Asia/Seoul, gap: skip, overlap: "
        "both}\n",
        &errors);
    assert_int_equal(errors.count, array_len(expected));
    for (size_t i = 0; i < array_len(expected); i++)
        if (errors.list[i].line != expected[i].line ||
            errors.list[i].column != expected[i].column ||
            !strstr(errors.list[i].text, expected[i].says))
            fail_msg("%u:%u: %s", errors.list[i].line, errors.list[i].column,
                     errors.list[i].text);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_bad_rules_and_zones_are_told_all_at_once_with_line_and_column),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
