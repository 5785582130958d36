/*
 * Calendar without time zones tables: the proleptic Gregorian calendar, years
 * 1 .. 9999, and its texts (ISO 8601 / RFC 3339). Days count from 1970-01-01,
 * times are microseconds since then, UTC. No state; any thread. Leap seconds
 * (":60") are refused, as PostgreSQL and SQLite cannot keep them.
 */
#ifndef BASE_CIVIL_H
#define BASE_CIVIL_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

struct civil {
    int year;  /* 1 .. 9999 */
    int month; /* 1 .. 12 */
    int day;   /* 1 .. 31 */
    int hour;
    int minute;
    int second;
    int micros;
};

bool civil_is_leap(int year);
int civil_days_in_month(int year, int month);
/* Is it a date and time that exists? */
bool civil_valid(const struct civil *civil);

/* The date must be valid. */
int64_t civil_days(int year, int month, int day);
int64_t civil_to_us(const struct civil *civil);
/* Any int64 gives a date; years outside 1 .. 9999 are then possible. */
void civil_from_days(int64_t days, int *ret_year, int *ret_month, int *ret_day);
void civil_from_us(int64_t us, struct civil *ret);
/* 0 = Sunday .. 6 = Saturday. */
int civil_weekday(int64_t days);

/* Strict "YYYY-MM-DD". All of text (len bytes) must be used; false if not. */
bool civil_parse_date(const char *text, size_t len, int64_t *ret_days);

/*
 * "YYYY-MM-DD" + "T", "t" or one blank + "hh:mm:ss" + up to 6 digits of fraction
 * (more only if zeros) + zone: "Z", "z", "+hh:mm", "-hh:mm". PostgreSQL's "+hh"
 * and SQLite's "hh:mm" are not RFC 3339 and are refused.
 */
bool civil_parse_time(const char *text, size_t len, int64_t *ret_us);

/* The same without any zone: a wall clock time, taken as if it were UTC. */
bool civil_parse_local(const char *text, size_t len, int64_t *ret_us);

#define CIVIL_TEXT_SIZE 40
/* "2026-11-29T19:28:05.123456Z"; digits of fraction 0, 3 or 6 (cut, not rounded). */
void civil_format_us(int64_t us, int digits, char ret[CIVIL_TEXT_SIZE]);
/* "2026-11-29" */
void civil_format_date(int64_t days, char ret[CIVIL_TEXT_SIZE]);

/*
 * Excel's day number (1900 system, with its 29 February 1900): 1 is 1900-01-01.
 * False for what Excel cannot show: before 1900-01-01, after 9999-12-31.
 */
bool civil_excel_date(int64_t days, int64_t *ret_serial);
bool civil_excel_time(int64_t us, double *ret_serial);

#endif
