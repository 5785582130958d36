/*
 * The rule at the end of a TZif file, in the words of POSIX: "CET-1CEST,M3.5.0,
 * M10.5.0/3". Inside of zone.c only. No state.
 */
#ifndef BASE_POSIX_TZ_H
#define BASE_POSIX_TZ_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A day of each year, and the wall clock time on it. */
struct posix_day {
    enum { POSIX_DAY_JULIAN, POSIX_DAY_ZERO, POSIX_DAY_MONTH } kind;
    int day;   /* JULIAN 1-365, 29 February never counts; ZERO 0-365 */
    int month; /* MONTH: 1-12 */
    int week;  /* 1-5, 5 = the last one */
    int weekday;
    int time_s; /* may be negative, or beyond a day */
};

struct posix_tz {
    int standard_s; /* offset: wall clock = UTC + offset */
    bool has_summer;
    int summer_s;
    struct posix_day begin; /* of summer time, by the clock of standard time */
    struct posix_day end;   /* by the clock of summer time */
};

/* False: not such a rule. */
bool posix_tz_parse(const char *text, size_t len, struct posix_tz *ret);

/* When summer time begins and ends in that year, seconds since 1970 UTC. */
void posix_tz_year(const struct posix_tz *tz, int year, int64_t *ret_begin_s,
                   int64_t *ret_end_s);

#endif
