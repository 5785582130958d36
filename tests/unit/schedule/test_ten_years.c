/*
 * Ten simulated years, twice (one as the files say, one by the rule in their
 * footers), of eight zones: all that schedule_next gives, beside what follows from
 * the C library's own conversion. Each zone has a process of its own with TZ set.
 * The judge knows nothing of stretches: it lists a moment every 15 minutes with its
 * wall clock, and looks which wall clock times come twice, or not at all.
 */
#include "schedule/next.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/zone.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define STEP_S 900
#define YEARS  10

struct moment {
    int64_t local_s;
    int64_t most_before_s; /* the latest wall clock time shown before */
    int64_t least_behind_s;
    unsigned fits; /* a bit for each rule */
};

typedef bool (*fits_fn)(const struct tm *tm);

static bool
fits_half_past_two(const struct tm *tm)
{
    return tm->tm_hour == 2 && (tm->tm_min == 15 || tm->tm_min == 45);
}

static bool
fits_midnight(const struct tm *tm)
{
    return tm->tm_hour == 0 && tm->tm_min == 0;
}

static bool
fits_quarter_hours(const struct tm *tm)
{
    return true;
}

static bool
fits_hours_of_weekdays(const struct tm *tm)
{
    return tm->tm_min == 30 && tm->tm_wday >= 1 && tm->tm_wday <= 5;
}

static bool
fits_small_hours(const struct tm *tm)
{
    return (tm->tm_min == 0 || tm->tm_min == 30) && tm->tm_hour <= 3;
}

static bool
fits_thirtieth_or_sunday(const struct tm *tm)
{
    return tm->tm_hour == 23 && tm->tm_min == 45 &&
           (tm->tm_mday == 30 || tm->tm_wday == 0);
}

static const struct {
    const char *cron;
    fits_fn fits;
} rules[] = {
    {"15,45 2 * * *", fits_half_past_two},
    {"@daily", fits_midnight},
    {"*/15 * * * *", fits_quarter_hours},
    {"30 * * * 1-5", fits_hours_of_weekdays},
    {"0,30 0,1,2,3 * * *", fits_small_hours},
    {"45 23 30 * 0", fits_thirtieth_or_sunday},
};

static bool
fits(fits_fn fn, int64_t local_s)
{
    time_t time = (time_t)local_s;
    struct tm tm;

    gmtime_r(&time, &tm);
    return fn(&tm);
}

/* Does the rule fire at moments[i]? moments[i - 1] and moments[i + 1] are there. */
static bool
expected(const struct moment *m, size_t which, const struct schedule_rule *rule)
{
    bool again = m->local_s <= m->most_before_s;
    bool comes_again = m->local_s >= m->least_behind_s;
    bool here = m->fits >> which & 1;

    if (rule->cron.interval)
        return here;
    if (rule->gap == SCHEDULE_GAP_RUN_AFTER && !again)
        for (int64_t lost_s = m[-1].local_s + STEP_S; lost_s < m->local_s;
             lost_s += STEP_S)
            if (lost_s > m->most_before_s && fits(rules[which].fits, lost_s))
                return true;
    if (again && rule->overlap == SCHEDULE_OVERLAP_FIRST)
        return false;
    if (comes_again && rule->overlap == SCHEDULE_OVERLAP_SECOND)
        return false;
    return here;
}

static int
differ(const char *zone, const char *cron, int64_t at_s, const char *what)
{
    char text[64];
    struct tm tm;
    time_t time = (time_t)at_s;

    localtime_r(&time, &tm);
    strftime(text, sizeof(text), "%FT%T%z", &tm);
    fprintf(stderr, "%s, %s: %s at %s\n", zone, cron, what, text);
    return 1;
}

static int
check_rule(const char *name, const struct schedule_rule *rule, size_t which,
           const struct moment *moments, size_t count, int64_t start_s)
{
    struct slot_time slot = {.at_us = start_s * US_PER_S};
    int64_t fired = 0;

    if (!schedule_next(rule, slot.at_us, &slot))
        return differ(name, rules[which].cron, start_s, "nothing comes");
    for (size_t i = 1; i + 1 < count; i++) {
        int64_t at_s = start_s + (int64_t)i * STEP_S;
        int64_t before_us = slot.at_us;

        if (slot.at_us < at_s * US_PER_S)
            return differ(name, rules[which].cron, slot.at_us / US_PER_S, "stray slot");
        if ((slot.at_us == at_s * US_PER_S) != expected(&moments[i], which, rule))
            return differ(name, rules[which].cron, at_s,
                          slot.at_us == at_s * US_PER_S ? "one too many" : "missing");
        if (slot.at_us != at_s * US_PER_S)
            continue;
        fired++;
        if (slot.local_s != moments[i].local_s && slot.mark != SLOT_GAP)
            return differ(name, rules[which].cron, at_s, "wrong wall clock");
        if (!fits(rules[which].fits, slot.local_s))
            return differ(name, rules[which].cron, at_s, "the slot does not fit");
        if (!schedule_next(rule, slot.at_us, &slot) || slot.at_us <= before_us)
            return differ(name, rules[which].cron, at_s, "does not go on");
    }
    return fired < YEARS * 12 ? differ(name, rules[which].cron, start_s, "too few") : 0;
}

static int
list_moments(const char *name, const struct zone *zone, int64_t start_s,
             struct moment *moments, size_t count)
{
    int64_t most_s = INT64_MIN;
    int64_t least_s = INT64_MAX;

    for (size_t i = 0; i < count; i++) {
        time_t time = (time_t)(start_s + (int64_t)i * STEP_S);
        struct zone_span span = zone_span_at(zone, time);
        struct tm tm;

        localtime_r(&time, &tm);
        if (span.offset_s != tm.tm_gmtoff || span.start_s > time || span.end_s <= time)
            return differ(name, "offset", time, "not the C library's");
        moments[i].local_s = time + tm.tm_gmtoff;
        moments[i].most_before_s = most_s;
        for (size_t n = 0; n < array_len(rules); n++)
            moments[i].fits |= (unsigned)rules[n].fits(&tm) << n;
        if (moments[i].local_s > most_s)
            most_s = moments[i].local_s;
    }
    for (size_t i = count; i-- > 0;) {
        moments[i].least_behind_s = least_s;
        if (moments[i].local_s < least_s)
            least_s = moments[i].local_s;
    }
    return 0;
}

static int
check_decade(const char *name, const struct zone *zone, int64_t start_s)
{
    size_t count = (size_t)(YEARS * INT64_C(31557600) / STEP_S);
    struct moment *moments = calloc(count, sizeof(*moments));
    int bad = list_moments(name, zone, start_s, moments, count);

    for (size_t i = 0; !bad && i < array_len(rules); i++)
        for (int way = 0; !bad && way < 6; way++) {
            struct schedule_rule rule = {.zone = zone,
                                         .gap = (enum schedule_gap)(way % 2),
                                         .overlap = (enum schedule_overlap)(way / 2)};
            struct err err = {0};

            if (cron_parse(rules[i].cron, &rule.cron, NULL, &err) < 0)
                bad = differ(name, rules[i].cron, start_s, err.text);
            else if (!rule.cron.interval || way == 0)
                bad = check_rule(name, &rule, i, moments, count, start_s);
        }
    free(moments);
    return bad;
}

static void
check_zone(const char *name)
{
    pid_t pid = fork();
    int status = 0;

    assert_true(pid >= 0);
    if (pid == 0) {
        struct zone *zone = NULL;
        struct err err = {0};
        int bad;

        setenv("TZ", name, 1);
        tzset();
        if (zone_load(name, &zone, &err) < 0) {
            fprintf(stderr, "%s\n", err.text);
            _exit(1);
        }
        bad = check_decade(name, zone, 1199145600);        /* 2008 */
        bad = bad || check_decade(name, zone, 2524608000); /* 2050 */
        zone_free(zone);
        _exit(bad);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (status != 0)
        fail_msg("%s: see above", name);
}

#define ZONE_TEST(id, name)                                                            \
    static void test_##id(void **state)                                                \
    {                                                                                  \
        check_zone(name);                                                              \
    }

ZONE_TEST(new_york, "America/New_York")
ZONE_TEST(berlin, "Europe/Berlin")
ZONE_TEST(cairo_changes_at_midnight, "Africa/Cairo")
ZONE_TEST(lord_howe_changes_by_half_an_hour, "Australia/Lord_Howe")
ZONE_TEST(seoul_never_changes, "Asia/Seoul")
ZONE_TEST(sao_paulo_changed_at_midnight, "America/Sao_Paulo")
ZONE_TEST(asuncion_changed_at_midnight, "America/Asuncion")
ZONE_TEST(kathmandu_has_quarter_hours, "Asia/Kathmandu")
ZONE_TEST(apia_left_out_a_day, "Pacific/Apia")

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new_york),
        cmocka_unit_test(test_berlin),
        cmocka_unit_test(test_cairo_changes_at_midnight),
        cmocka_unit_test(test_lord_howe_changes_by_half_an_hour),
        cmocka_unit_test(test_seoul_never_changes),
        cmocka_unit_test(test_sao_paulo_changed_at_midnight),
        cmocka_unit_test(test_asuncion_changed_at_midnight),
        cmocka_unit_test(test_kathmandu_has_quarter_hours),
        cmocka_unit_test(test_apia_left_out_a_day),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
