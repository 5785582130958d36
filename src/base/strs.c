#include "base/strs.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/utf8.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

#define WORD_MAX 64 /* longer words are nobody's typing slip */

bool
str_eq(const char *a, const char *b)
{
    if (!a || !b)
        return a == b;
    return strcmp(a, b) == 0;
}

bool
str_empty(const char *str)
{
    return !str || *str == '\0';
}

bool
str_starts_with(const char *str, const char *start)
{
    return strncmp(str, start, strlen(start)) == 0;
}

bool
str_ends_with(const char *str, const char *end)
{
    size_t len = strlen(str);
    size_t end_len = strlen(end);

    return len >= end_len && memcmp(str + len - end_len, end, end_len) == 0;
}

bool
str_copy(char *ret, size_t size, const char *str)
{
    size_t len = strlen(str);
    size_t kept = utf8_cut(str, len, size - 1);

    memcpy(ret, str, kept);
    ret[kept] = '\0';
    return kept == len;
}

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool
str_to_i64(const char *text, int64_t *ret)
{
    const char *at = text + (*text == '-');
    int64_t value = 0;

    if (!is_digit(*at))
        return false;
    /* Built below zero, where there is room for the one value more. */
    for (; is_digit(*at); at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, *at - '0', &value))
            return false;
    if (*at != '\0' || (*text != '-' && value == INT64_MIN))
        return false;
    *ret = *text == '-' ? value : -value;
    return true;
}

static const char *
skip_digits(const char *at)
{
    while (is_digit(*at))
        at++;
    return at;
}

bool
str_to_double(const char *text, double *ret)
{
    const char *at = text + (*text == '-');
    char *end;
    double value;

    /* strtod also takes hexadecimal, "inf", blanks: only plain decimals pass here. */
    if (!is_digit(*at))
        return false;
    at = skip_digits(at);
    if (*at == '.') {
        if (!is_digit(at[1]))
            return false;
        at = skip_digits(at + 1);
    }
    if (*at == 'e' || *at == 'E') {
        at += at[1] == '+' || at[1] == '-' ? 2 : 1;
        if (!is_digit(*at))
            return false;
        at = skip_digits(at);
    }
    if (*at != '\0')
        return false;
    value = strtod(text, &end);
    if (end != at || !isfinite(value))
        return false;
    *ret = value;
    return true;
}

int
parse_i64(const char *what, const char *text, int64_t min, int64_t max, int64_t *ret,
          struct err *err)
{
    int64_t value;

    if (!str_to_i64(text, &value))
        return err_set(err, ERR_INVALID, "%s: \"%.80s\" is not a whole number", what,
                       text);
    if (value < min || value > max)
        return err_set(err, ERR_INVALID, "%s: %.80s is outside %" PRId64 " to %" PRId64,
                       what, text, min, max);
    *ret = value;
    return 0;
}

struct unit {
    const char *word;
    int64_t size;
};

/* Largest first: format_duration_us goes through it downwards. */
static const struct unit duration_units[] = {
    {"d", INT64_C(86400000000)},
    {"h", INT64_C(3600000000)},
    {"m", INT64_C(60000000)},
    {"s", 1000000},
    {"ms", 1000},
    {"us", 1},
};

static const struct unit size_units[] = {
    {"", 1},
    {"B", 1},
    {"K", INT64_C(1) << 10},
    {"M", INT64_C(1) << 20},
    {"G", INT64_C(1) << 30},
    {"T", INT64_C(1) << 40},
    {"KiB", INT64_C(1) << 10},
    {"MiB", INT64_C(1) << 20},
    {"GiB", INT64_C(1) << 30},
    {"TiB", INT64_C(1) << 40},
    {"kB", 1000},
    {"MB", 1000000},
    {"GB", INT64_C(1000000000)},
    {"TB", INT64_C(1000000000000)},
};

static const struct unit *
unit_of(const struct unit *units, size_t count, const char *word, size_t len)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(units[i].word) == len && memcmp(units[i].word, word, len) == 0)
            return &units[i];
    return NULL;
}

/* The whole number at *at times its unit; *at moves behind both. */
static bool
take_quantity(const char **at, const struct unit *units, size_t count, int64_t *ret)
{
    const char *word;
    const struct unit *unit;
    int64_t value = 0;

    if (!is_digit(**at))
        return false;
    for (word = *at; is_digit(*word); word++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *word - '0', &value))
            return false;
    *at = word;
    while (**at != '\0' && !is_digit(**at))
        (*at)++;
    unit = unit_of(units, count, word, (size_t)(*at - word));
    return unit && !__builtin_mul_overflow(value, unit->size, ret);
}

static bool
to_duration(const char *text, int64_t *ret_us)
{
    const char *at = text;
    int64_t total = 0;

    if (strcmp(text, "0") == 0) {
        *ret_us = 0;
        return true;
    }
    do {
        int64_t part;

        if (!take_quantity(&at, duration_units, array_len(duration_units), &part) ||
            __builtin_add_overflow(total, part, &total))
            return false;
    } while (*at != '\0');
    *ret_us = total;
    return true;
}

int
parse_duration_us(const char *what, const char *text, int64_t *ret_us, struct err *err)
{
    if (to_duration(text, ret_us))
        return 0;
    return err_set(err, ERR_INVALID,
                   "%s: \"%.80s\" is not a duration; write it like 250ms, 45s, 30m, "
                   "2h, 7d or 1h30m",
                   what, text);
}

int
parse_size(const char *what, const char *text, int64_t *ret_bytes, struct err *err)
{
    const char *at = text;
    int64_t value;

    if (take_quantity(&at, size_units, array_len(size_units), &value) && *at == '\0') {
        *ret_bytes = value;
        return 0;
    }
    return err_set(err, ERR_INVALID,
                   "%s: \"%.80s\" is not a size; write bytes, or a number with K, M, "
                   "G, T (1024) or kB, MB, GB, TB (1000)",
                   what, text);
}

void
format_duration_us(int64_t us, char ret[DURATION_TEXT_SIZE])
{
    size_t used = 0;

    if (us <= 0) {
        snprintf(ret, DURATION_TEXT_SIZE, "0");
        return;
    }
    for (size_t i = 0; i < array_len(duration_units); i++) {
        int64_t count = us / duration_units[i].size;

        if (count == 0)
            continue;
        us -= count * duration_units[i].size;
        used += (size_t)snprintf(ret + used, DURATION_TEXT_SIZE - used, "%" PRId64 "%s",
                                 count, duration_units[i].word);
    }
}

static size_t
min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/*
 * Optimal string alignment over three rows: a swap of neighbours looks two rows
 * back. Rows: row[j] is the cost of making the first j bytes of b.
 */
static size_t
distance(const char *a, size_t a_len, const char *b, size_t b_len, size_t *rows)
{
    size_t width = b_len + 1;
    size_t *before = rows;
    size_t *last = rows + width;
    size_t *row = rows + 2 * width;

    for (size_t j = 0; j <= b_len; j++)
        last[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t *reused = before;

        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t cost = min_size(last[j] + 1, row[j - 1] + 1);

            cost = min_size(cost, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                cost = min_size(cost, before[j - 2] + 1);
            row[j] = cost;
        }
        before = last;
        last = row;
        row = reused;
    }
    return last[b_len];
}

size_t
str_distance(const char *a, const char *b)
{
    size_t b_len = strlen(b);
    size_t *rows = xcalloc(3 * (b_len + 1), sizeof(*rows));
    size_t result = distance(a, strlen(a), b, b_len, rows);

    free(rows);
    return result;
}

const char *
str_nearest(const char *word, const char *const *candidates, size_t count)
{
    size_t len = strlen(word);
    const char *best = NULL;
    size_t best_distance;

    if (len == 0 || len > WORD_MAX)
        return NULL;
    /* A third of the word may be wrong, at least one letter and at most three. */
    best_distance = len / 3 < 1 ? 1 : min_size(len / 3, 3);
    best_distance++;
    for (size_t i = 0; i < count; i++) {
        size_t d;

        if (!candidates[i] || strlen(candidates[i]) > WORD_MAX)
            continue;
        d = str_distance(word, candidates[i]);
        if (d < best_distance && d < strlen(candidates[i])) {
            best = candidates[i];
            best_distance = d;
        }
    }
    return best;
}
