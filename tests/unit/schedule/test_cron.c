/* The language of cron rules, as tables: what is meant, what is refused. */
#include "schedule/cron.h"

#include "base/civil.h"
#include "base/clock.h"
#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define YEAR_S (366 * INT64_C(86400))

static int64_t
seconds(const char *text)
{
    int64_t us;

    if (!civil_parse_local(text, strlen(text), &us))
        fail_msg("%s is no time", text);
    return us / US_PER_S;
}

static const char *
text_of(int64_t local_s, char *buf)
{
    civil_format_us(local_s * US_PER_S, 0, buf);
    buf[strlen(buf) - 1] = '\0';
    return buf;
}

static const struct {
    const char *rule;
    const char *from;
    const char *next[4]; /* the following ones, NULL = do not look */
} meant[] = {
    {"* * * * *",
     "2026-11-29T10:00:30",
     {"2026-11-29T10:01:00", "2026-11-29T10:02:00", "2026-11-29T10:03:00"}},
    {"0 0 * * *",
     "2026-11-29T00:00:00",
     {"2026-11-29T00:00:00", "2026-11-30T00:00:00"}},
    {"30 4 * * 5",
     "2026-11-29T00:00:00",
     {"2026-12-04T04:30:00", "2026-12-11T04:30:00"}},
    {"*/20 * * * * *",
     "2026-11-29T23:59:30",
     {"2026-11-29T23:59:40", "2026-11-30T00:00:00", "2026-11-30T00:00:20"}},
    {"59 59 23 31 12 *", "2026-01-01T00:00:00", {"2026-12-31T23:59:59"}},
    {"5,10-12,50/5 3 * * *",
     "2026-11-29T03:06:00",
     {"2026-11-29T03:10:00", "2026-11-29T03:11:00", "2026-11-29T03:12:00",
      "2026-11-29T03:50:00"}},
    {"0 8-18/5 * * mon-fri",
     "2026-11-27T14:00:00",
     {"2026-11-27T18:00:00", "2026-11-30T08:00:00", "2026-11-30T13:00:00"}},
    {"0 0 1 JAN,jul *",
     "2026-02-01T00:00:00",
     {"2026-07-01T00:00:00", "2027-01-01T00:00:00"}},
    {"0 0 * * 0", "2026-11-29T00:00:01", {"2026-12-06T00:00:00"}},
    {"0 0 * * 7", "2026-11-29T00:00:01", {"2026-12-06T00:00:00"}},
    {"0 0 * * FRI-SUN",
     "2026-11-27T00:00:00",
     {"2026-11-27T00:00:00", "2026-11-28T00:00:00", "2026-11-29T00:00:00",
      "2026-12-04T00:00:00"}},
    /* Day and weekday both given: one is enough. */
    {"0 0 13 * FRI",
     "2026-11-01T00:00:00",
     {"2026-11-06T00:00:00", "2026-11-13T00:00:00", "2026-11-20T00:00:00"}},
    {"0 0 1 * MON",
     "2026-12-01T00:00:00",
     {"2026-12-01T00:00:00", "2026-12-07T00:00:00"}},
    /* A star with a step is still a star: both must fit. */
    {"0 0 */2 * MON",
     "2026-11-01T00:00:00",
     {"2026-11-09T00:00:00", "2026-11-23T00:00:00"}},
    {"0 0 29 2 *",
     "2026-01-01T00:00:00",
     {"2028-02-29T00:00:00", "2032-02-29T00:00:00"}},
    {"0 0 31 * *",
     "2026-11-01T00:00:00",
     {"2026-12-31T00:00:00", "2027-01-31T00:00:00", "2027-03-31T00:00:00"}},
    {"0 0 L * *",
     "2028-01-31T00:00:01",
     {"2028-02-29T00:00:00", "2028-03-31T00:00:00"}},
    {"0 0 L-2 * *",
     "2027-02-01T00:00:00",
     {"2027-02-26T00:00:00", "2027-03-29T00:00:00"}},
    /* 31 January 2027 is a Sunday, 28 February too. */
    {"0 0 LW * *",
     "2027-01-01T00:00:00",
     {"2027-01-29T00:00:00", "2027-02-26T00:00:00"}},
    /* 15 August 2026 is a Saturday, 15 November 2026 a Sunday. */
    {"0 0 15W 8,11 *",
     "2026-01-01T00:00:00",
     {"2026-08-14T00:00:00", "2026-11-16T00:00:00"}},
    /* 1 August 2026 is a Saturday: never back into July. */
    {"0 0 1W 8 *", "2026-01-01T00:00:00", {"2026-08-03T00:00:00"}},
    {"0 0 31W 1,2,3 *",
     "2027-01-01T00:00:00",
     {"2027-01-29T00:00:00", "2027-03-31T00:00:00"}},
    {"0 0 * * 5L",
     "2026-11-01T00:00:00",
     {"2026-11-27T00:00:00", "2026-12-25T00:00:00"}},
    {"0 0 * * friL", "2026-11-28T00:00:00", {"2026-12-25T00:00:00"}},
    {"0 0 * * MON#1", "2026-11-03T00:00:00", {"2026-12-07T00:00:00"}},
    {"0 0 * * 1#5",
     "2026-11-01T00:00:00",
     {"2026-11-30T00:00:00", "2027-03-29T00:00:00"}},
    {"0 0 ? * 1",
     "2026-11-29T00:00:00",
     {"2026-11-30T00:00:00", "2026-12-07T00:00:00"}},
    {"@hourly", "2026-11-29T10:00:01", {"2026-11-29T11:00:00"}},
    {"@daily", "2026-11-29T10:00:01", {"2026-11-30T00:00:00"}},
    {"@midnight", "2026-11-29T10:00:01", {"2026-11-30T00:00:00"}},
    {"@weekly", "2026-11-29T10:00:01", {"2026-12-06T00:00:00"}},
    {"@monthly", "2026-11-29T10:00:01", {"2026-12-01T00:00:00"}},
    {"@yearly", "2026-11-29T10:00:01", {"2027-01-01T00:00:00", "2028-01-01T00:00:00"}},
    {"@annually", "2026-11-29T10:00:01", {"2027-01-01T00:00:00"}},
    {"\t0   0 * *\t1 ", "2026-11-29T00:00:00", {"2026-11-30T00:00:00"}},
};

static void
test_rules_mean_what_the_page_says(void **state)
{
    for (size_t i = 0; i < array_len(meant); i++) {
        struct err err = {0};
        struct cron cron;
        int64_t at_s = seconds(meant[i].from);

        if (cron_parse(meant[i].rule, &cron, NULL, &err) < 0)
            fail_msg("%s: %s", meant[i].rule, err.text);
        for (size_t n = 0; n < array_len(meant[i].next) && meant[i].next[n]; n++) {
            char text[CIVIL_TEXT_SIZE];

            if (!cron_next(&cron, at_s, at_s + 9 * YEAR_S, &at_s))
                fail_msg("%s: nothing after %zu", meant[i].rule, n);
            if (strcmp(text_of(at_s, text), meant[i].next[n]) != 0)
                fail_msg("%s: %zu. is %s, not %s", meant[i].rule, n + 1, text,
                         meant[i].next[n]);
            at_s++;
        }
    }
}

static const struct {
    const char *rule;
    size_t at;
    const char *says;
} refused[] = {
    {"", 0, "five fields"},
    {"* * * *", 0, "this has 4"},
    {"* * * * * * *", 0, "this has 7"},
    {"60 * * * *", 0, "the minute must be 0 to 59"},
    {"* 24 * * *", 2, "the hour must be 0 to 23"},
    {"0 0 0 * *", 4, "the day must be 1 to 31"},
    {"0 0 32 * *", 4, "the day must be 1 to 31"},
    {"0 0 1 13 *", 6, "the month must be 1 to 12"},
    {"0 0 * * 8", 8, "the weekday must be 0 to 7"},
    {"0 0 * * MAN", 8, "a name such as MON"},
    {"0 0 * FEBR *", 9, "cannot stand in the month"},
    {"-1 * * * *", 0, "the minute must be"},
    {"1- * * * *", 2, "the minute must be"},
    {"1,,2 * * * *", 2, "the minute must be"},
    {"1, * * * *", 2, "the minute must be"},
    {"*/0 * * * *", 2, "the step of the minute must be 1 to 60"},
    {"*/61 * * * *", 2, "the step of the minute must be 1 to 60"},
    {"*/ * * * *", 2, "the step of the minute"},
    {"30-10 * * * *", 0, "runs backwards; write two, such as 30-59,0-10"},
    {"0 0 * * FRI-MON", 8, "runs backwards; write two, such as 5-6,0-1"},
    {"1000 * * * *", 0, "the minute must be 0 to 59"},
    {"0 0 * * L", 8, "write 5L"},
    {"0 0 * * 1#0", 10, "1 to 5"},
    {"0 0 * * 1#6", 10, "1 to 5"},
    {"0 0 L-31 * *", 6, "0 to 30"},
    {"0 0 15X * *", 6, "cannot stand in the day"},
    {"5L * * * *", 1, "cannot stand in the minute"},
    {"? * * * *", 0, "the minute must be"},
    {"0 0 30 2 *", 0, "never comes"},
    {"0 0 30W feb *", 0, "never comes"},
    {"0 0 31 2,4,6,9,11 ?", 0, "never comes"},
    {"@dayly", 0, "did you mean @daily"},
    {"@reboot", 0, "there are @hourly"},
    {"99999999999999999999 * * * *", 0, "the minute must be"},
};

static void
test_what_is_no_rule_is_refused_at_its_place(void **state)
{
    for (size_t i = 0; i < array_len(refused); i++) {
        struct err err = {0};
        struct cron cron;
        size_t at = 999;
        int r = cron_parse(refused[i].rule, &cron, &at, &err);

        if (r != -ERR_INVALID)
            fail_msg("\"%s\" is taken (%d)", refused[i].rule, r);
        if (!strstr(err.text, refused[i].says) || at != refused[i].at)
            fail_msg("\"%s\" at %zu: %s", refused[i].rule, at, err.text);
    }
}

static void
test_a_star_or_a_step_in_the_time_makes_it_interval_like(void **state)
{
    static const struct {
        const char *rule;
        bool interval;
    } cases[] = {
        {"0 2 * * *", false},      {"* 2 * * *", true},
        {"0 * * * *", true},       {"*/15 2 * * *", true},
        {"0-59/15 2 * * *", true}, {"0,15,30,45 2 * * *", false},
        {"0 0-23 * * *", false},   {"0 1/6 * * *", true},
        {"0 2 */2 * *", false},    {"0 0 2 * * *", false},
        {"* 0 2 * * *", true},     {"*/5 0 2 * * *", true},
        {"@hourly", true},         {"@daily", false},
    };

    for (size_t i = 0; i < array_len(cases); i++) {
        struct err err = {0};
        struct cron cron;

        assert_int_equal(cron_parse(cases[i].rule, &cron, NULL, &err), 0);
        if (cron.interval != cases[i].interval)
            fail_msg("%s", cases[i].rule);
    }
}

/* Seeking leaves out months and days; trying each minute does not. */
static void
test_seeking_finds_what_trying_each_minute_finds(void **state)
{
    static const char *const rules[] = {
        "7 3 * 2-4 *", "0 12 L * *",     "30 */7 15W * *", "5 5 5 * 3",
        "0 0 LW * *",  "1-4 22 * 12 2L", "59 23 * * 4#3",  "*/45 1,13 */3 */5 *",
    };
    int64_t start_s = seconds("2027-11-01T00:00:00");

    for (size_t i = 0; i < array_len(rules); i++) {
        struct err err = {0};
        struct cron cron;
        int64_t next_s;

        assert_int_equal(cron_parse(rules[i], &cron, NULL, &err), 0);
        assert_true(cron_next(&cron, start_s, start_s + YEAR_S, &next_s));
        for (int64_t at_s = start_s; at_s < start_s + YEAR_S; at_s += 60) {
            struct civil c;
            bool meets;

            civil_from_us(at_s * US_PER_S, &c);
            meets = (cron.minutes >> c.minute & 1) && (cron.hours >> c.hour & 1) &&
                    cron_matches_day(&cron, c.year, c.month, c.day);
            if (meets != (at_s == next_s))
                fail_msg("%s: differs at %lld", rules[i], (long long)at_s);
            if (meets && !cron_next(&cron, at_s + 1, start_s + YEAR_S, &next_s))
                next_s = INT64_MAX;
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules_mean_what_the_page_says),
        cmocka_unit_test(test_what_is_no_rule_is_refused_at_its_place),
        cmocka_unit_test(test_a_star_or_a_step_in_the_time_makes_it_interval_like),
        cmocka_unit_test(test_seeking_finds_what_trying_each_minute_finds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
