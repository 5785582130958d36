/*
 * Days and dates: the year is counted from March, so that the leap day is its
 * last, and in eras of 400 years, which all have 146,097 days. Then a date is
 * plain integer arithmetic, without tables or loops.
 */
#include "base/civil.h"

#include "base/clock.h"

#include <assert.h>

#define DAYS_PER_ERA   146097
#define DAYS_TO_1970   719468 /* from 0000-03-01 */
#define YEAR_MIN       1
#define YEAR_MAX       9999
#define EXCEL_1900_01  (-25567) /* 1900-01-01 */
#define EXCEL_1900_03  (-25508) /* 1900-03-01: the false leap day is behind us */
#define EXCEL_9999_END 2932896  /* 9999-12-31 */

static int64_t
floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* The part of the day; days * US_PER_DAY could overflow at the ends of int64. */
static int64_t
rest_of_day_us(int64_t us)
{
    int64_t rest = us % US_PER_DAY;

    return rest < 0 ? rest + US_PER_DAY : rest;
}

bool
civil_is_leap(int year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

int
civil_days_in_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    assert(month >= 1 && month <= 12);
    return month == 2 && civil_is_leap(year) ? 29 : days[month - 1];
}

bool
civil_valid(const struct civil *civil)
{
    return civil->year >= YEAR_MIN && civil->year <= YEAR_MAX && civil->month >= 1 &&
           civil->month <= 12 && civil->day >= 1 &&
           civil->day <= civil_days_in_month(civil->year, civil->month) &&
           civil->hour >= 0 && civil->hour <= 23 && civil->minute >= 0 &&
           civil->minute <= 59 && civil->second >= 0 && civil->second <= 59 &&
           civil->micros >= 0 && civil->micros <= 999999;
}

int64_t
civil_days(int year, int month, int day)
{
    int64_t march_year = (int64_t)year - (month <= 2);
    int64_t era = floor_div(march_year, 400);
    int64_t year_of_era = march_year - era * 400;
    int64_t day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    int64_t day_of_era =
        year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;

    return era * DAYS_PER_ERA + day_of_era - DAYS_TO_1970;
}

void
civil_from_days(int64_t days, int *ret_year, int *ret_month, int *ret_day)
{
    int64_t shifted = days + DAYS_TO_1970;
    int64_t era = floor_div(shifted, DAYS_PER_ERA);
    int64_t day_of_era = shifted - era * DAYS_PER_ERA;
    int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 -
                           day_of_era / (DAYS_PER_ERA - 1)) /
                          365;
    int64_t day_of_year =
        day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t march_month = (5 * day_of_year + 2) / 153;

    *ret_day = (int)(day_of_year - (153 * march_month + 2) / 5 + 1);
    *ret_month = (int)(march_month < 10 ? march_month + 3 : march_month - 9);
    *ret_year = (int)(year_of_era + era * 400 + (*ret_month <= 2));
}

int64_t
civil_to_us(const struct civil *civil)
{
    int64_t days = civil_days(civil->year, civil->month, civil->day);
    int64_t seconds = civil->hour * 3600 + civil->minute * 60 + civil->second;

    return days * US_PER_DAY + seconds * US_PER_S + civil->micros;
}

void
civil_from_us(int64_t us, struct civil *ret)
{
    int64_t days = floor_div(us, US_PER_DAY);
    int64_t rest = rest_of_day_us(us);

    civil_from_days(days, &ret->year, &ret->month, &ret->day);
    ret->hour = (int)(rest / US_PER_HOUR);
    ret->minute = (int)(rest / US_PER_MINUTE % 60);
    ret->second = (int)(rest / US_PER_S % 60);
    ret->micros = (int)(rest % US_PER_S);
}

int
civil_weekday(int64_t days)
{
    /* 1970-01-01 was a Thursday. */
    return (int)(days + 4 - floor_div(days + 4, 7) * 7);
}

/* Reading: a cursor that only moves when what is asked for is there. */
struct cursor {
    const char *at;
    const char *end;
};

static bool
take_char(struct cursor *cursor, const char *allowed)
{
    if (cursor->at == cursor->end || *cursor->at == '\0' ||
        !strchr(allowed, *cursor->at))
        return false;
    cursor->at++;
    return true;
}

static bool
take_digits(struct cursor *cursor, int count, int *ret)
{
    int value = 0;

    if (cursor->end - cursor->at < count)
        return false;
    for (int i = 0; i < count; i++) {
        char c = cursor->at[i];

        if (c < '0' || c > '9')
            return false;
        value = value * 10 + (c - '0');
    }
    cursor->at += count;
    *ret = value;
    return true;
}

static bool
take_date(struct cursor *cursor, struct civil *civil)
{
    return take_digits(cursor, 4, &civil->year) && take_char(cursor, "-") &&
           take_digits(cursor, 2, &civil->month) && take_char(cursor, "-") &&
           take_digits(cursor, 2, &civil->day);
}

/* ".5" is 500000; digits past the sixth must be zeros: nothing is rounded away. */
static bool
take_fraction(struct cursor *cursor, int *ret_micros)
{
    int unit = 100000;
    int digit;

    *ret_micros = 0;
    if (!take_char(cursor, "."))
        return true;
    if (!take_digits(cursor, 1, &digit))
        return false;
    do {
        if (unit == 0 && digit != 0)
            return false;
        *ret_micros += digit * unit;
        unit /= 10;
    } while (take_digits(cursor, 1, &digit));
    return true;
}

static bool
take_date_time(struct cursor *cursor, struct civil *civil)
{
    return take_date(cursor, civil) && take_char(cursor, "Tt ") &&
           take_digits(cursor, 2, &civil->hour) && take_char(cursor, ":") &&
           take_digits(cursor, 2, &civil->minute) && take_char(cursor, ":") &&
           take_digits(cursor, 2, &civil->second) &&
           take_fraction(cursor, &civil->micros) && civil_valid(civil);
}

static bool
take_zone(struct cursor *cursor, int64_t *ret_offset_us)
{
    bool west;
    int hours;
    int minutes;

    if (take_char(cursor, "Zz")) {
        *ret_offset_us = 0;
        return true;
    }
    west = cursor->at != cursor->end && *cursor->at == '-';
    if (!take_char(cursor, "+-") || !take_digits(cursor, 2, &hours) ||
        !take_char(cursor, ":") || !take_digits(cursor, 2, &minutes) || hours > 23 ||
        minutes > 59)
        return false;
    *ret_offset_us = (hours * 60 + minutes) * (west ? -US_PER_MINUTE : US_PER_MINUTE);
    return true;
}

bool
civil_parse_date(const char *text, size_t len, int64_t *ret_days)
{
    struct cursor cursor = {text, text + len};
    struct civil civil = {0};

    if (!take_date(&cursor, &civil) || cursor.at != cursor.end || !civil_valid(&civil))
        return false;
    *ret_days = civil_days(civil.year, civil.month, civil.day);
    return true;
}

bool
civil_parse_time(const char *text, size_t len, int64_t *ret_us)
{
    struct cursor cursor = {text, text + len};
    struct civil civil = {0};
    int64_t offset_us;

    if (!take_date_time(&cursor, &civil) || !take_zone(&cursor, &offset_us) ||
        cursor.at != cursor.end)
        return false;
    *ret_us = civil_to_us(&civil) - offset_us;
    return true;
}

bool
civil_parse_local(const char *text, size_t len, int64_t *ret_us)
{
    struct cursor cursor = {text, text + len};
    struct civil civil = {0};

    if (!take_date_time(&cursor, &civil) || cursor.at != cursor.end)
        return false;
    *ret_us = civil_to_us(&civil);
    return true;
}

void
civil_format_us(int64_t us, int digits, char ret[CIVIL_TEXT_SIZE])
{
    struct civil civil;
    int len;

    assert(digits == 0 || digits == 3 || digits == 6);
    civil_from_us(us, &civil);
    len = snprintf(ret, CIVIL_TEXT_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d", civil.year,
                   civil.month, civil.day, civil.hour, civil.minute, civil.second);
    if (digits == 3)
        len += snprintf(ret + len, CIVIL_TEXT_SIZE - (size_t)len, ".%03d",
                        civil.micros / 1000);
    else if (digits == 6)
        len +=
            snprintf(ret + len, CIVIL_TEXT_SIZE - (size_t)len, ".%06d", civil.micros);
    snprintf(ret + len, CIVIL_TEXT_SIZE - (size_t)len, "Z");
}

void
civil_format_date(int64_t days, char ret[CIVIL_TEXT_SIZE])
{
    int year;
    int month;
    int day;

    civil_from_days(days, &year, &month, &day);
    snprintf(ret, CIVIL_TEXT_SIZE, "%04d-%02d-%02d", year, month, day);
}

bool
civil_excel_date(int64_t days, int64_t *ret_serial)
{
    if (days < EXCEL_1900_01 || days > EXCEL_9999_END)
        return false;
    *ret_serial = days - EXCEL_1900_01 + 1 + (days >= EXCEL_1900_03);
    return true;
}

bool
civil_excel_time(int64_t us, double *ret_serial)
{
    int64_t days = floor_div(us, US_PER_DAY);
    int64_t serial;

    if (!civil_excel_date(days, &serial))
        return false;
    *ret_serial = (double)serial + (double)rest_of_day_us(us) / (double)US_PER_DAY;
    return true;
}
