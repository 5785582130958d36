/* The rule for the days on which clocks change: the table of docs/schedules.md. */
#include "schedule/next.h"

#include "base/civil.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/zone.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define AFTER  SCHEDULE_GAP_RUN_AFTER
#define SKIP   SCHEDULE_GAP_SKIP
#define FIRST  SCHEDULE_OVERLAP_FIRST
#define SECOND SCHEDULE_OVERLAP_SECOND
#define BOTH   SCHEDULE_OVERLAP_BOTH

static const struct {
    const char *zone;
    const char *cron;
    enum schedule_gap gap;
    enum schedule_overlap overlap;
    const char *after; /* UTC */
    struct {
        const char *at; /* UTC */
        enum slot_mark mark;
    } next[3];
} cases[] = {
    /* Berlin, 2027-03-28: 02:00 becomes 03:00. */
    {"Europe/Berlin",
     "30 2 * * *",
     AFTER,
     FIRST,
     "2027-03-27T02:00:00Z",
     {{"2027-03-28T01:00:00Z", SLOT_GAP}, {"2027-03-29T00:30:00Z", SLOT_PLAIN}}},
    {"Europe/Berlin",
     "30 2 * * *",
     SKIP,
     FIRST,
     "2027-03-27T02:00:00Z",
     {{"2027-03-29T00:30:00Z", SLOT_PLAIN}}},
    /* Several that are left out, and one that is not, are one run. */
    {"Europe/Berlin",
     "0,15,30 2,3 * * *",
     AFTER,
     FIRST,
     "2027-03-28T00:00:00Z",
     {{"2027-03-28T01:00:00Z", SLOT_GAP},
      {"2027-03-28T01:15:00Z", SLOT_PLAIN},
      {"2027-03-28T01:30:00Z", SLOT_PLAIN}}},
    /* Interval-like: real moments only. */
    {"Europe/Berlin",
     "*/30 * * * *",
     AFTER,
     FIRST,
     "2027-03-28T00:30:00Z",
     {{"2027-03-28T01:00:00Z", SLOT_PLAIN}, {"2027-03-28T01:30:00Z", SLOT_PLAIN}}},
    {"Europe/Berlin",
     "*/30 2 * * *",
     AFTER,
     FIRST,
     "2027-03-27T02:00:00Z",
     {{"2027-03-29T00:00:00Z", SLOT_PLAIN}}},
    /* Berlin, 2027-10-31: 03:00 becomes 02:00. */
    {"Europe/Berlin",
     "30 2 * * *",
     AFTER,
     FIRST,
     "2027-10-30T12:00:00Z",
     {{"2027-10-31T00:30:00Z", SLOT_FIRST}, {"2027-11-01T01:30:00Z", SLOT_PLAIN}}},
    {"Europe/Berlin",
     "30 2 * * *",
     AFTER,
     SECOND,
     "2027-10-30T12:00:00Z",
     {{"2027-10-31T01:30:00Z", SLOT_SECOND}, {"2027-11-01T01:30:00Z", SLOT_PLAIN}}},
    {"Europe/Berlin",
     "30 2 * * *",
     AFTER,
     BOTH,
     "2027-10-30T12:00:00Z",
     {{"2027-10-31T00:30:00Z", SLOT_FIRST},
      {"2027-10-31T01:30:00Z", SLOT_SECOND},
      {"2027-11-01T01:30:00Z", SLOT_PLAIN}}},
    {"Europe/Berlin",
     "30 * * * *",
     AFTER,
     FIRST,
     "2027-10-31T00:00:00Z",
     {{"2027-10-31T00:30:00Z", SLOT_FIRST},
      {"2027-10-31T01:30:00Z", SLOT_SECOND},
      {"2027-10-31T02:30:00Z", SLOT_PLAIN}}},
    /* The borders of what comes twice: 02:00 does, 03:00 does not. */
    {"Europe/Berlin",
     "0 2,3 * * *",
     AFTER,
     FIRST,
     "2027-10-30T12:00:00Z",
     {{"2027-10-31T00:00:00Z", SLOT_FIRST}, {"2027-10-31T02:00:00Z", SLOT_PLAIN}}},
    /* Cairo, 2027-04-30: midnight becomes 01:00; the day is not lost. */
    {"Africa/Cairo",
     "@daily",
     AFTER,
     FIRST,
     "2027-04-28T22:00:00Z",
     {{"2027-04-29T22:00:00Z", SLOT_GAP}, {"2027-04-30T21:00:00Z", SLOT_PLAIN}}},
    {"Africa/Cairo",
     "@daily",
     SKIP,
     FIRST,
     "2027-04-28T22:00:00Z",
     {{"2027-04-30T21:00:00Z", SLOT_PLAIN}}},
    /* Lord Howe, 2027-10-03: 02:00 becomes 02:30; 2027-04-04: 02:00 becomes 01:30. */
    {"Australia/Lord_Howe",
     "15 2 * * *",
     AFTER,
     FIRST,
     "2027-10-02T12:00:00Z",
     {{"2027-10-02T15:30:00Z", SLOT_GAP}, {"2027-10-03T15:15:00Z", SLOT_PLAIN}}},
    {"Australia/Lord_Howe",
     "45 1 * * *",
     AFTER,
     SECOND,
     "2027-04-03T12:00:00Z",
     {{"2027-04-03T15:15:00Z", SLOT_SECOND}}},
    /* Apia had no 30 December 2011. */
    {"Pacific/Apia",
     "30 4 * * *",
     AFTER,
     FIRST,
     "2011-12-29T15:00:00Z",
     {{"2011-12-30T10:00:00Z", SLOT_GAP}, {"2011-12-30T14:30:00Z", SLOT_PLAIN}}},
    {"Pacific/Apia",
     "30 4 * * *",
     SKIP,
     FIRST,
     "2011-12-29T15:00:00Z",
     {{"2011-12-30T14:30:00Z", SLOT_PLAIN}}},
    {"Asia/Kathmandu",
     "0 0 * * *",
     AFTER,
     FIRST,
     "2027-01-01T00:00:00Z",
     {{"2027-01-01T18:15:00Z", SLOT_PLAIN}}},
    /* Strictly later than now, to the microsecond; before 1970 too. */
    {"UTC",
     "0 0 * * *",
     AFTER,
     FIRST,
     "2027-01-01T00:00:00Z",
     {{"2027-01-02T00:00:00Z", SLOT_PLAIN}}},
    {"UTC",
     "0 0 * * *",
     AFTER,
     FIRST,
     "2026-12-31T23:59:59.999999Z",
     {{"2027-01-01T00:00:00Z", SLOT_PLAIN}}},
    {"UTC",
     "* * * * * *",
     AFTER,
     FIRST,
     "1969-12-31T23:59:57.5Z",
     {{"1969-12-31T23:59:58Z", SLOT_PLAIN}, {"1969-12-31T23:59:59Z", SLOT_PLAIN}}},
    {"UTC",
     "0 0 29 2 *",
     AFTER,
     FIRST,
     "2097-01-01T00:00:00Z",
     {{"2104-02-29T00:00:00Z", SLOT_PLAIN}}},
    /* Long after the last change any file lists. */
    {"America/New_York",
     "30 2 * 3 *",
     AFTER,
     FIRST,
     "3026-03-11T12:00:00Z",
     {{"3026-03-12T07:00:00Z", SLOT_GAP}}},
};

static int64_t
micros(const char *text)
{
    int64_t us;

    if (!civil_parse_time(text, strlen(text), &us))
        fail_msg("%s is no time", text);
    return us;
}

static void
test_gaps_and_overlaps_follow_the_table(void **state)
{
    for (size_t i = 0; i < array_len(cases); i++) {
        scoped(zone_free_ptr) struct zone *zone = NULL;
        struct schedule_rule rule = {.gap = cases[i].gap, .overlap = cases[i].overlap};
        struct slot_time slot = {.at_us = micros(cases[i].after)};
        struct err err = {0};

        if (zone_load(cases[i].zone, &zone, &err) < 0 ||
            cron_parse(cases[i].cron, &rule.cron, NULL, &err) < 0)
            fail_msg("%s", err.text);
        rule.zone = zone;
        for (size_t n = 0; n < array_len(cases[i].next) && cases[i].next[n].at; n++) {
            char text[CIVIL_TEXT_SIZE];

            assert_true(schedule_next(&rule, slot.at_us, &slot));
            civil_format_us(slot.at_us, 0, text);
            if (strcmp(text, cases[i].next[n].at) != 0 ||
                slot.mark != cases[i].next[n].mark)
                fail_msg("%s %s after %s: %zu. is %s (mark %d), not %s (mark %d)",
                         cases[i].zone, cases[i].cron, cases[i].after, n + 1, text,
                         slot.mark, cases[i].next[n].at, cases[i].next[n].mark);
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gaps_and_overlaps_follow_the_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
