/*
 * Each field becomes a set of bits; what depends on the month (L, W, #) stays
 * beside it and is looked at day by day. Seeking goes from day to day, with whole
 * months left out, and within a day from bit to bit.
 */
#include "schedule/cron.h"

#include "base/civil.h"
#include "base/err.h"
#include "base/strs.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define DAY_S       INT64_C(86400)
#define FIELDS_MIN  5
#define FIELDS_MAX  6
#define CYCLE_DAYS  146097 /* after 400 years the calendar repeats itself */
#define SATURDAY    6
#define DAY_MAX     31
#define NTH_MAX     5
#define MONTH_NAMES 12

/* --- the fields --- */

enum field_id { SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY, FIELD_COUNT };

struct field {
    const char *name;
    int min;
    int max;
    const char *const *names; /* in order, from first_name on */
    size_t n_names;
    int first_name;
};

static const char *const months[MONTH_NAMES] = {
    "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"};
static const char *const weekdays[] = {"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"};

static const struct field fields[] = {
    [SECOND] = {"second", 0, 59, NULL, 0, 0},
    [MINUTE] = {"minute", 0, 59, NULL, 0, 0},
    [HOUR] = {"hour", 0, 23, NULL, 0, 0},
    [DAY] = {"day", 1, DAY_MAX, NULL, 0, 0},
    [MONTH] = {"month", 1, 12, months, MONTH_NAMES, 1},
    [WEEKDAY] = {"weekday", 0, 7, weekdays, array_len(weekdays), 0},
};
static_assert_count(fields, FIELD_COUNT);

static const struct {
    const char *word;
    const char *rule;
} words[] = {
    {"@hourly", "0 * * * *"},   {"@daily", "0 0 * * *"},   {"@midnight", "0 0 * * *"},
    {"@weekly", "0 0 * * 0"},   {"@monthly", "0 0 1 * *"}, {"@yearly", "0 0 1 1 *"},
    {"@annually", "0 0 1 1 *"},
};

struct parsing {
    const char *text; /* for offsets */
    const char *at;
    const char *end; /* of the field */
    enum field_id id;
    const struct field *field;
    struct cron *cron;
    size_t bad_at;
    struct err *err;
};

static int complain(struct parsing *p, const char *at, const char *fmt, ...)
    printf_like(3, 4);

static int
complain(struct parsing *p, const char *at, const char *fmt, ...)
{
    char text[300];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    p->bad_at = (size_t)(at - p->text);
    return err_set(p->err, ERR_INVALID, "%s", text);
}

static bool
take(struct parsing *p, char c)
{
    if (p->at == p->end || toupper((unsigned char)*p->at) != c)
        return false;
    p->at++;
    return true;
}

static bool
at_digit(const struct parsing *p)
{
    return p->at < p->end && isdigit((unsigned char)*p->at);
}

/* At most three digits: all that any field can need. */
static int
take_number(struct parsing *p)
{
    int value = 0;

    for (int i = 0; at_digit(p) && i < 3; i++)
        value = value * 10 + (*p->at++ - '0');
    return value;
}

/* A number or a name of the field. */
static int
take_value(struct parsing *p, int *ret)
{
    const struct field *field = p->field;
    const char *start = p->at;

    for (size_t i = 0; i < field->n_names; i++)
        if (p->end - p->at >= 3 && strncasecmp(p->at, field->names[i], 3) == 0) {
            p->at += 3;
            *ret = field->first_name + (int)i;
            return 0;
        }
    if (!at_digit(p))
        return complain(
            p, start, "the %s must be %d to %d%s%s, not \"%.*s\"", field->name,
            field->min, field->max, field->n_names ? " or a name such as " : "",
            field->n_names ? field->names[1] : "", (int)(p->end - start), start);
    *ret = take_number(p);
    if (*ret < field->min || *ret > field->max || at_digit(p))
        return complain(p, start, "the %s must be %d to %d", field->name, field->min,
                        field->max);
    return 0;
}

/* --- one item of a field's list --- */

static void
set_bits(struct parsing *p, int from, int to, int step)
{
    uint64_t bits = 0;

    for (int i = from; i <= to; i += step)
        bits |= UINT64_C(1) << i;
    switch (p->id) {
    case SECOND:
        p->cron->seconds |= bits;
        break;
    case MINUTE:
        p->cron->minutes |= bits;
        break;
    case HOUR:
        p->cron->hours |= (uint32_t)bits;
        break;
    case DAY:
        p->cron->days |= (uint32_t)bits;
        break;
    case MONTH:
        p->cron->months |= (uint32_t)bits;
        break;
    case WEEKDAY:
        /* 7 is Sunday too. */
        p->cron->weekdays |= (uint32_t)((bits & 0x7f) | (bits >> 7 & 1));
        break;
    case FIELD_COUNT:
        break;
    }
}

static int
take_step(struct parsing *p, int *ret)
{
    const char *start = p->at;
    int widest = p->field->max - p->field->min + 1;

    *ret = take_number(p);
    if (p->at == start || *ret < 1 || *ret > widest || at_digit(p))
        return complain(p, start, "the step of the %s must be 1 to %d", p->field->name,
                        widest);
    if (p->id <= HOUR)
        p->cron->interval = true;
    return 0;
}

/* L, L-3, LW */
static int
take_last_day(struct parsing *p)
{
    const char *start = p->at;
    int before = 0;

    if (take(p, 'W')) {
        p->cron->last_workday = true;
        return 0;
    }
    if (take(p, '-')) {
        start = p->at;
        before = take_number(p);
        if (p->at == start || before > DAY_MAX - 1)
            return complain(p, start, "L- takes 0 to 30 days before the last one");
    }
    p->cron->last_days |= UINT32_C(1) << before;
    return 0;
}

/* What may follow one value: 15W, 5L, 5#3. 1 = it was that. */
static int
take_suffix(struct parsing *p, int value)
{
    uint32_t weekday = UINT32_C(1) << value % 7;
    const char *start;
    int nth;

    if (p->id == DAY && take(p, 'W')) {
        p->cron->workdays |= UINT32_C(1) << value;
        return 1;
    }
    if (p->id == WEEKDAY && take(p, 'L')) {
        p->cron->last_weekdays |= weekday;
        return 1;
    }
    if (p->id != WEEKDAY || !take(p, '#'))
        return 0;
    start = p->at;
    nth = take_number(p);
    if (nth < 1 || nth > NTH_MAX)
        return complain(p, start, "behind # stands which one of the month: 1 to 5");
    p->cron->nth[nth] |= weekday;
    return 1;
}

/* a, a-b, a-b/n, a/n */
static int
take_range(struct parsing *p)
{
    const char *start = p->at;
    int step = 1;
    int from = 0;
    int to;
    int r = take_value(p, &from);

    if (r == 0)
        r = take_suffix(p, from);
    if (r != 0)
        return r < 0 ? r : 0;
    to = from;
    if (take(p, '-')) {
        r = take_value(p, &to);
        /* A week may end with its Sunday. */
        if (r == 0 && p->id == WEEKDAY && to == 0 && from > 0)
            to = 7;
        if (r == 0 && to < from)
            return complain(p, start,
                            "the range of the %s runs backwards; write two, such as "
                            "%d-%d,%d-%d",
                            p->field->name, from,
                            p->id == WEEKDAY ? SATURDAY : p->field->max, p->field->min,
                            to);
        if (r == 0 && take(p, '/'))
            r = take_step(p, &step);
    } else if (take(p, '/')) {
        to = p->id == WEEKDAY ? SATURDAY : p->field->max;
        r = take_step(p, &step);
    }
    if (r < 0)
        return r;
    set_bits(p, from, to, step);
    return 0;
}

static int
take_star(struct parsing *p)
{
    int step = 1;
    int r = take(p, '/') ? take_step(p, &step) : 0;

    if (r < 0)
        return r;
    if (p->id <= HOUR)
        p->cron->interval = true;
    if (p->id == DAY)
        p->cron->any_day = true;
    if (p->id == WEEKDAY)
        p->cron->any_weekday = true;
    set_bits(p, p->field->min, p->id == WEEKDAY ? SATURDAY : p->field->max, step);
    return 0;
}

static int
take_item(struct parsing *p)
{
    if (take(p, '*'))
        return take_star(p);
    if ((p->id == DAY || p->id == WEEKDAY) && take(p, '?'))
        return take_star(p);
    if (p->id == DAY && take(p, 'L'))
        return take_last_day(p);
    if (p->id == WEEKDAY && p->end - p->at == 1 &&
        toupper((unsigned char)*p->at) == 'L')
        return complain(
            p, p->at,
            "L alone is for the day; for the last Friday of the month write "
            "5L, for Saturdays 6");
    return take_range(p);
}

static int
parse_field(struct parsing *p)
{
    do {
        int r = take_item(p);

        if (r < 0)
            return r;
    } while (take(p, ','));
    if (p->at != p->end)
        return complain(p, p->at, "\"%.*s\" cannot stand in the %s here",
                        (int)(p->end - p->at), p->at, p->field->name);
    return 0;
}

/* --- the whole --- */

static size_t
split(const char *text, const char **starts, const char **ends)
{
    size_t count = 0;

    for (;;) {
        text += strspn(text, " \t");
        if (*text == '\0')
            return count;
        if (count < FIELDS_MAX) {
            starts[count] = text;
            ends[count] = text + strcspn(text, " \t");
        }
        text += strcspn(text, " \t");
        count++;
    }
}

static int
parse_fields(struct parsing *p)
{
    const char *starts[FIELDS_MAX];
    const char *ends[FIELDS_MAX];
    size_t count = split(p->text, starts, ends);
    size_t first = FIELDS_MAX - count;

    if (count != FIELDS_MIN && count != FIELDS_MAX)
        return complain(p, p->text,
                        "a cron rule has five fields (minute hour day month weekday), "
                        "or six with the second in front; this has %zu",
                        count);
    p->cron->seconds = count == FIELDS_MAX ? 0 : 1;
    for (size_t i = 0; i < count; i++) {
        int r;

        p->id = (enum field_id)(first + i);
        p->field = &fields[p->id];
        p->at = starts[i];
        p->end = ends[i];
        r = parse_field(p);
        if (r < 0)
            return r;
    }
    return 0;
}

static int
replace_word(struct parsing *p)
{
    const char *names[array_len(words)];
    const char *nearest;

    for (size_t i = 0; i < array_len(words); i++) {
        if (str_eq(words[i].word, p->text)) {
            p->text = words[i].rule;
            return parse_fields(p);
        }
        names[i] = words[i].word;
    }
    nearest = str_nearest(p->text, names, array_len(words));
    return complain(p, p->text,
                    "%.40s is not known%s%s; there are @hourly, @daily, @weekly, "
                    "@monthly and @yearly",
                    p->text, nearest ? ": did you mean " : "", nearest ? nearest : "");
}

int
cron_parse(const char *text, struct cron *ret_cron, size_t *ret_at, struct err *err)
{
    struct cron cron = {0};
    struct parsing p = {.text = text, .cron = &cron, .err = err};
    int64_t at_s;
    int r = text[0] == '@' ? replace_word(&p) : parse_fields(&p);

    if (r == 0 && !cron_next(&cron, 0, CYCLE_DAYS * DAY_S, &at_s))
        r = complain(&p, p.text,
                     "this never comes: no year has such a day; look at day and month");
    if (r < 0) {
        if (ret_at)
            *ret_at = p.bad_at;
        return r;
    }
    *ret_cron = cron;
    return 0;
}

/* --- matching --- */

static bool
has(uint64_t bits, int n)
{
    return bits >> n & 1;
}

/* The day from Monday to Friday nearest to day, without leaving the month. */
static int
nearest_workday(int day, int weekday, int length)
{
    if (weekday == SATURDAY)
        return day > 1 ? day - 1 : day + 2;
    if (weekday == 0)
        return day < length ? day + 1 : day - 2;
    return day;
}

static bool
matches_day(const struct cron *cron, int day, int weekday, int length)
{
    int last_weekday = (weekday + length - day) % 7;

    if (has(cron->days, day) || has(cron->last_days, length - day))
        return true;
    if (cron->last_workday && nearest_workday(length, last_weekday, length) == day)
        return true;
    /* The day that was meant is at most two away. */
    for (int meant = day - 2; cron->workdays && meant <= day + 2; meant++)
        if (meant >= 1 && meant <= length && has(cron->workdays, meant) &&
            nearest_workday(meant, (weekday + meant - day + 7) % 7, length) == day)
            return true;
    return false;
}

static bool
matches_weekday(const struct cron *cron, int day, int weekday, int length)
{
    return has(cron->weekdays, weekday) ||
           (has(cron->last_weekdays, weekday) && day + 7 > length) ||
           has(cron->nth[(day - 1) / 7 + 1], weekday);
}

bool
cron_matches_day(const struct cron *cron, int year, int month, int day)
{
    int length = civil_days_in_month(year, month);
    int weekday = civil_weekday(civil_days(year, month, day));
    bool by_day;
    bool by_weekday;

    if (!has(cron->months, month))
        return false;
    by_day = matches_day(cron, day, weekday, length);
    by_weekday = matches_weekday(cron, day, weekday, length);
    /* As cron does it: where both are given, one of them is enough. */
    if (cron->any_day || cron->any_weekday)
        return by_day && by_weekday;
    return by_day || by_weekday;
}

/* The lowest bit at or above n; -1: none. */
static int
next_bit(uint64_t bits, int n)
{
    bits = n < 64 ? bits & (UINT64_MAX << n) : 0;
    return bits ? __builtin_ctzll(bits) : -1;
}

/* The first second of a day at or behind second; -1: none is left. */
static int
next_second(const struct cron *cron, int second)
{
    int first_minute = next_bit(cron->minutes, 0) * 60 + next_bit(cron->seconds, 0);
    int hour = second / 3600;
    int minute = second / 60 % 60;
    int next;

    if (has(cron->hours, hour)) {
        if (has(cron->minutes, minute)) {
            next = next_bit(cron->seconds, second % 60);
            if (next >= 0)
                return hour * 3600 + minute * 60 + next;
        }
        next = next_bit(cron->minutes, minute + 1);
        if (next >= 0)
            return hour * 3600 + next * 60 + next_bit(cron->seconds, 0);
    }
    next = next_bit(cron->hours, hour + 1);
    return next >= 0 ? next * 3600 + first_minute : -1;
}

bool
cron_next(const struct cron *cron, int64_t from_s, int64_t until_s, int64_t *ret_s)
{
    int64_t days = from_s / DAY_S - (from_s % DAY_S < 0);
    int second = (int)(from_s - days * DAY_S);

    while (days * DAY_S < until_s) {
        int year;
        int month;
        int day;

        civil_from_days(days, &year, &month, &day);
        if (!has(cron->months, month)) {
            days += civil_days_in_month(year, month) - day + 1;
            second = 0;
            continue;
        }
        if (cron_matches_day(cron, year, month, day)) {
            int at = next_second(cron, second);

            if (at >= 0) {
                *ret_s = days * DAY_S + at;
                return *ret_s < until_s;
            }
        }
        days++;
        second = 0;
    }
    return false;
}
