#include "io/cast.h"

#include "base/civil.h"
#include "base/strs.h"
#include "io/call_text.h"
#include "io/cell_text.h"
#include "io/row.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define NUMBER_MAX 64

static const struct {
    const char *word;
    enum cell_type type;
} types[] = {
    {"text", CELL_TEXT},           {"integer", CELL_INT},  {"decimal", CELL_DECIMAL},
    {"real", CELL_REAL},           {"boolean", CELL_BOOL}, {"date", CELL_DATE},
    {"timestamp", CELL_TIMESTAMP},
};

static bool
pattern_known(const char *pattern)
{
    return strstr(pattern, "yy") && strstr(pattern, "MM") && strstr(pattern, "dd");
}

bool
cast_known(const char *type)
{
    if (!type)
        return false;
    if (str_starts_with(type, "date:"))
        return pattern_known(type + 5);
    for (size_t i = 0; i < array_len(types); i++)
        if (str_eq(types[i].word, type))
            return true;
    return false;
}

int
cast_type(const char *type)
{
    for (size_t i = 0; i < array_len(types); i++)
        if (str_eq(types[i].word, type))
            return types[i].type;
    return CELL_DATE;
}

static void
trim(const char **text, size_t *len)
{
    while (*len > 0 && isspace((unsigned char)**text)) {
        (*text)++;
        (*len)--;
    }
    while (*len > 0 && isspace((unsigned char)(*text)[*len - 1]))
        (*len)--;
}

bool
cell_is_blank(const struct cell *cell)
{
    const char *text = cell->text;
    size_t len = cell->len;

    if (cell->type == CELL_NULL)
        return true;
    if (cell->type != CELL_TEXT)
        return false;
    trim(&text, &len);
    return len == 0;
}

/* Digits in groups of three, as in 1,234,567.8: written without commas into out. */
static bool
without_commas(const char *text, size_t len, char out[NUMBER_MAX], size_t *ret_len)
{
    size_t n = 0;
    size_t group = 0;
    bool grouped = false;
    bool fraction = false;

    if (len >= NUMBER_MAX)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == ',') {
            if (fraction || group == 0 || group > 3 || (grouped && group != 3))
                return false;
            grouped = true;
            group = 0;
            continue;
        }
        if (text[i] == '.') {
            if (grouped && group != 3)
                return false;
            fraction = true;
        } else if (isdigit((unsigned char)text[i]) && !fraction) {
            group++;
        }
        out[n++] = text[i];
    }
    if (grouped && !fraction && group != 3)
        return false;
    *ret_len = n;
    return true;
}

static bool
take_digits(const char **text, size_t *len, size_t count, int64_t *ret)
{
    int64_t value = 0;

    if (*len < count)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!isdigit((unsigned char)(*text)[i]))
            return false;
        value = value * 10 + ((*text)[i] - '0');
    }
    *text += count;
    *len -= count;
    *ret = value;
    return true;
}

/* By a pattern of yyyy or yy, MM, dd and what stands between them. */
static bool
date_by_pattern(const char *pattern, const char *text, size_t len, int64_t *ret_days)
{
    int64_t year = -1, month = -1, day = -1;
    char iso[40]; /* room for any three ints */
    bool ok = true;

    while (*pattern && ok) {
        if (strncmp(pattern, "yyyy", 4) == 0) {
            ok = take_digits(&text, &len, 4, &year);
            pattern += 4;
        } else if (strncmp(pattern, "yy", 2) == 0) {
            ok = take_digits(&text, &len, 2, &year);
            year += 2000;
            pattern += 2;
        } else if (strncmp(pattern, "MM", 2) == 0) {
            ok = take_digits(&text, &len, 2, &month);
            pattern += 2;
        } else if (strncmp(pattern, "dd", 2) == 0) {
            ok = take_digits(&text, &len, 2, &day);
            pattern += 2;
        } else {
            ok = len > 0 && *text == *pattern;
            text++;
            len--;
            pattern++;
        }
    }
    if (!ok || len > 0)
        return false;
    snprintf(iso, sizeof(iso), "%04d-%02d-%02d", (int)year, (int)month, (int)day);
    return text_parse_date(iso, strlen(iso), ret_days);
}

static bool
bool_of(const char *text, size_t len, int64_t *ret)
{
    static const char *const yes[] = {"true", "t", "yes", "y", "1"};
    static const char *const no[] = {"false", "f", "no", "n", "0"};

    for (size_t i = 0; i < array_len(yes); i++) {
        if (len == strlen(yes[i]) && strncasecmp(text, yes[i], len) == 0) {
            *ret = 1;
            return true;
        }
        if (len == strlen(no[i]) && strncasecmp(text, no[i], len) == 0) {
            *ret = 0;
            return true;
        }
    }
    return false;
}

static void
keep_text(struct row_set *rows, struct cell *cell, enum cell_type type,
          const char *text, size_t len)
{
    char *copy = row_set_bytes(rows, len);

    if (len)
        memcpy(copy, text, len);
    *cell = (struct cell){.type = (uint8_t)type, .len = (uint32_t)len, .text = copy};
}

static bool
from_text(const char *type, const char *text, size_t len, struct row_set *rows,
          struct cell *cell)
{
    enum cell_type made = (enum cell_type)cast_type(type);
    char number[NUMBER_MAX];
    int64_t value = 0;

    if (made == CELL_TEXT) {
        keep_text(rows, cell, CELL_TEXT, text, len);
        return true;
    }
    if (str_starts_with(type, "date:")) {
        if (!date_by_pattern(type + 5, text, len, &value))
            return false;
        cell_set_i64(cell, CELL_DATE, value);
        return true;
    }
    if (made == CELL_BOOL) {
        if (!bool_of(text, len, &value))
            return false;
        cell_set_i64(cell, CELL_BOOL, value);
        return true;
    }
    if (made == CELL_INT || made == CELL_DECIMAL || made == CELL_REAL) {
        if (!without_commas(text, len, number, &len))
            return false;
        text = number;
    }
    if (made == CELL_DECIMAL) {
        if (!text_is_decimal(text, len))
            return false;
        keep_text(rows, cell, CELL_DECIMAL, text, len);
        return true;
    }
    return cell_parse(cell, (int)made, text, len);
}

bool
cast_cell(const char *type, struct row_set *rows, struct cell *cell)
{
    enum cell_type made = (enum cell_type)cast_type(type);
    char room[CELL_TEXT_MAX];
    const char *text;
    size_t len;

    if (cell->type == made && made != CELL_TEXT)
        return true;
    if (cell->type == CELL_REAL && made == CELL_INT) {
        if (!(cell->real >= -9.0e15 && cell->real <= 9.0e15) ||
            cell->real != floor(cell->real))
            return false;
        cell_set_i64(cell, CELL_INT, (int64_t)cell->real);
        return true;
    }
    cell_as_text(cell, room, &text, &len);
    trim(&text, &len);
    if (len == 0) {
        *cell = (struct cell){0};
        return true;
    }
    return from_text(type, text, len, rows, cell);
}
