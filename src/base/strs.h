/* Small things done with text: comparing, strict numbers, durations, sizes, and
 * the nearest word for "did you mean". No state; any thread. */
#ifndef BASE_STRS_H
#define BASE_STRS_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

struct err;

/* NULL equals only NULL. */
bool str_eq(const char *a, const char *b);
bool str_empty(const char *str); /* NULL or "" */
bool str_starts_with(const char *str, const char *start);
bool str_ends_with(const char *str, const char *end);
/* Copy with an end; false if it was cut (at a code point). size > 0. */
bool str_copy(char *ret, size_t size, const char *str);

/* Only -?[0-9]+ within int64, nothing before or behind; false if not. */
bool str_to_i64(const char *text, int64_t *ret);
/* A JSON-like decimal number, finite; false if not. */
bool str_to_double(const char *text, double *ret);

/* As str_to_i64, within min..max; -ERR_INVALID says what, the text and the range. */
int parse_i64(const char *what, const char *text, int64_t min, int64_t max,
              int64_t *ret, struct err *err) must_check;

/* "250us" "250ms" "45s" "30m" "2h" "7d", also joined ("1h30m"), whole numbers, and "0";
 * a bare number else is refused, for its unit is a guess. -ERR_INVALID. */
int parse_duration_us(const char *what, const char *text, int64_t *ret_us,
                      struct err *err) must_check;

/* "4096", "64K" "64KiB" (1024), "10kB" "10MB" (1000); K M G T. Bytes. -ERR_INVALID. */
int parse_size(const char *what, const char *text, int64_t *ret_bytes,
               struct err *err) must_check;

#define DURATION_TEXT_SIZE 48
/* The shortest text parse_duration_us reads back as the same: "1h30m", "250ms". us >= 0
 */
void format_duration_us(int64_t us, char ret[DURATION_TEXT_SIZE]);

/* Insertions, deletions, replacements and swaps of neighbours; bytes. */
size_t str_distance(const char *a, const char *b);

/* The candidate a person may have meant by word; NULL when none is near enough. */
const char *str_nearest(const char *word, const char *const *candidates, size_t count);

#endif
