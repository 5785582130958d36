/*
 * Cells as text: what the file writers share, so that a date or a number reads
 * the same in every format; and the way back, from text to a typed cell.
 */
#ifndef IO_CELL_TEXT_H
#define IO_CELL_TEXT_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cell;

/* Room for any of the texts below. */
#define CELL_TEXT_MAX 48

/* All write into out (CELL_TEXT_MAX bytes, no NUL) and return the length. */
size_t text_i64(char *out, int64_t value);
/* The shortest text that reads back as the same double; NaN, Infinity, -Infinity. */
size_t text_real(char *out, double value);
size_t text_date(char *out, int64_t days); /* 2031-12-24; -0044-03-15 */
/* 2031-12-24T10:11:12.5Z; without Z when zoneless; separator 'T' or ' ' */
size_t text_timestamp(char *out, int64_t us, bool zoneless, char separator);

/* Ways back; false = not of that form, *ret is untouched then. */
bool text_parse_i64(const char *text, size_t len, int64_t *ret_value);
bool text_parse_real(const char *text, size_t len, double *ret_value);
bool text_is_decimal(const char *text, size_t len); /* [-]digits[.digits] */
bool text_parse_date(const char *text, size_t len, int64_t *ret_days);
/* Date, 'T' or space, hh:mm[:ss[.ffffff]], then nothing, Z, or ±hh[[:]mm]. */
bool text_parse_timestamp(const char *text, size_t len, int64_t *ret_us,
                          bool *ret_zoneless);

/* Fills a cell of a date, timestamp, integer, decimal, real or boolean type from
 * text; false: the text is not one. Decimals keep pointing at text. */
bool cell_parse(struct cell *cell, int type, const char *text, size_t len);

#endif
