/*
 * A cron rule: which wall clock times are meant. Five fields (minute, hour, day,
 * month, weekday), six with seconds in front, or a word such as @daily; the
 * language is written down in docs/schedules.md. Plain data; any thread.
 */
#ifndef SCHEDULE_CRON_H
#define SCHEDULE_CRON_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

/* Bit n stands for the value n. */
struct cron {
    uint64_t seconds;
    uint64_t minutes;
    uint32_t hours;
    uint32_t days; /* 1-31 */
    uint32_t months;
    uint32_t weekdays;      /* 0-6, 0 = Sunday */
    uint32_t last_days;     /* L-n: n days before the last of the month */
    uint32_t workdays;      /* nW: the weekday nearest to day n */
    bool last_workday;      /* LW */
    uint32_t last_weekdays; /* dL: the last one of the month */
    uint32_t nth[6];        /* d#n: nth[n] holds the weekdays */
    bool any_day;           /* the day begins with a star (or is ?) */
    bool any_weekday;
    bool interval; /* a star or a step in second, minute or hour */
};

/*
 * Read a rule. -ERR_INVALID says what is wrong and what may stand there, also
 * where it names no day at all (30 February); *ret_at (may be NULL) is then the
 * byte in text that it is about.
 */
int cron_parse(const char *text, struct cron *ret_cron, size_t *ret_at,
               struct err *err) must_check;

/* Is this day meant? */
bool cron_matches_day(const struct cron *cron, int year, int month, int day);

/*
 * The first wall clock time from_s <= time < until_s that is meant, in seconds
 * since 1970 of that clock; false: none.
 */
bool cron_next(const struct cron *cron, int64_t from_s, int64_t until_s,
               int64_t *ret_s);

#endif
