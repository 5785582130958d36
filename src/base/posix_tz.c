#include "base/posix_tz.h"

#include "base/civil.h"

#include <ctype.h>
#include <string.h>

#define HOUR_S       3600
#define DAY_S        86400
#define HOURS_MAX    167 /* version 3 of TZif allows a week either way */
#define DEFAULT_S    (2 * HOUR_S)
#define NAME_LEN_MIN 3

struct cursor {
    const char *at;
    const char *end;
};

static bool
take(struct cursor *cursor, char c)
{
    if (cursor->at == cursor->end || *cursor->at != c)
        return false;
    cursor->at++;
    return true;
}

static bool
take_number(struct cursor *cursor, int min, int max, int *ret)
{
    const char *start = cursor->at;
    int value = 0;

    while (cursor->at < cursor->end && isdigit((unsigned char)*cursor->at) &&
           cursor->at - start < 4)
        value = value * 10 + (*cursor->at++ - '0');
    if (cursor->at == start || value < min || value > max)
        return false;
    *ret = value;
    return true;
}

/* "CET" or "<+0845>" */
static bool
take_name(struct cursor *cursor)
{
    const char *start = cursor->at;

    if (take(cursor, '<')) {
        while (cursor->at < cursor->end && *cursor->at != '>')
            cursor->at++;
        return take(cursor, '>');
    }
    while (cursor->at < cursor->end && isalpha((unsigned char)*cursor->at))
        cursor->at++;
    return cursor->at - start >= NAME_LEN_MIN;
}

/* [+-]hhh[:mm[:ss]] */
static bool
take_time(struct cursor *cursor, int *ret_s)
{
    int sign = 1;
    int hours;
    int minutes = 0;
    int seconds = 0;

    if (take(cursor, '-'))
        sign = -1;
    else
        (void)take(cursor, '+');
    if (!take_number(cursor, 0, HOURS_MAX, &hours))
        return false;
    if (take(cursor, ':') && !take_number(cursor, 0, 59, &minutes))
        return false;
    if (take(cursor, ':') && !take_number(cursor, 0, 59, &seconds))
        return false;
    *ret_s = sign * (hours * HOUR_S + minutes * 60 + seconds);
    return true;
}

static bool
take_day(struct cursor *cursor, struct posix_day *day)
{
    if (take(cursor, 'J')) {
        day->kind = POSIX_DAY_JULIAN;
        if (!take_number(cursor, 1, 365, &day->day))
            return false;
    } else if (take(cursor, 'M')) {
        day->kind = POSIX_DAY_MONTH;
        if (!take_number(cursor, 1, 12, &day->month) || !take(cursor, '.') ||
            !take_number(cursor, 1, 5, &day->week) || !take(cursor, '.') ||
            !take_number(cursor, 0, 6, &day->weekday))
            return false;
    } else {
        day->kind = POSIX_DAY_ZERO;
        if (!take_number(cursor, 0, 365, &day->day))
            return false;
    }
    day->time_s = DEFAULT_S;
    return !take(cursor, '/') || take_time(cursor, &day->time_s);
}

bool
posix_tz_parse(const char *text, size_t len, struct posix_tz *ret)
{
    struct cursor cursor = {text, text + len};
    struct posix_tz tz = {0};
    int west_s;

    /* POSIX counts west of Greenwich as positive. */
    if (!take_name(&cursor) || !take_time(&cursor, &west_s))
        return false;
    tz.standard_s = -west_s;
    if (cursor.at < cursor.end) {
        tz.has_summer = true;
        tz.summer_s = tz.standard_s + HOUR_S;
        if (!take_name(&cursor))
            return false;
        if (cursor.at < cursor.end && *cursor.at != ',') {
            if (!take_time(&cursor, &west_s))
                return false;
            tz.summer_s = -west_s;
        }
        if (!take(&cursor, ',') || !take_day(&cursor, &tz.begin) ||
            !take(&cursor, ',') || !take_day(&cursor, &tz.end))
            return false;
    }
    if (cursor.at != cursor.end)
        return false;
    *ret = tz;
    return true;
}

static int64_t
day_of_year(const struct posix_day *day, int year)
{
    int64_t first;
    int64_t at;

    switch (day->kind) {
    case POSIX_DAY_JULIAN:
        /* Day 60 is 1 March in every year. */
        return civil_days(year, 1, 1) + day->day - 1 +
               (day->day >= 60 && civil_is_leap(year));
    case POSIX_DAY_ZERO:
        return civil_days(year, 1, 1) + day->day;
    case POSIX_DAY_MONTH:
        break;
    }
    first = civil_days(year, day->month, 1);
    at = first + (day->weekday - civil_weekday(first) + 7) % 7 + 7 * (day->week - 1);
    if (at >= first + civil_days_in_month(year, day->month))
        at -= 7;
    return at;
}

void
posix_tz_year(const struct posix_tz *tz, int year, int64_t *ret_begin_s,
              int64_t *ret_end_s)
{
    *ret_begin_s =
        day_of_year(&tz->begin, year) * DAY_S + tz->begin.time_s - tz->standard_s;
    *ret_end_s = day_of_year(&tz->end, year) * DAY_S + tz->end.time_s - tz->summer_s;
}
