/*
 * A number is a date only by the style of its cell. Excel keeps 17 digits of a
 * double, so a number is read as the double and shown in its shortest form:
 * 0.1 does not become 0.10000000000000001.
 */
#include "io/xlsx_cell.h"

#include "base/civil.h"
#include "base/err.h"
#include "base/strs.h"
#include "base/utf8.h"
#include "io/cell_text.h"
#include "io/columns.h"
#include "io/row.h"
#include "io/xlsx_book.h"

#include <math.h>
#include <string.h>

#define DAY_US INT64_C(86400000000)

int
xlsx_column_of(const char *ref, size_t len)
{
    int column = 0;
    size_t i = 0;

    for (; i < len && ref[i] >= 'A' && ref[i] <= 'Z'; i++) {
        column = column * 26 + (ref[i] - 'A' + 1);
        if (column > XLSX_COLUMNS_MAX)
            return -1;
    }
    return i > 0 && i < len && ref[i] >= '0' && ref[i] <= '9' ? column - 1 : -1;
}

const char *
xlsx_column_name(size_t column, char ret[4])
{
    char name[4];
    int n = 0, k = 0;

    for (size_t left = column + 1; left > 0 && n < 3; left = (left - 1) / 26)
        name[n++] = (char)('A' + (left - 1) % 26);
    while (n > 0)
        ret[k++] = name[--n];
    ret[k] = '\0';
    return ret;
}

static bool
kind_is(const struct xlsx_raw *raw, const char *kind)
{
    return raw->kind_len == strlen(kind) && memcmp(raw->kind, kind, raw->kind_len) == 0;
}

/* Days since 1970 of a serial; day 60, which 1900 did not have, counts as 1 March. */
static int64_t
serial_days(const struct xlsx_book *book, int64_t serial)
{
    if (book->from_1904)
        return serial + civil_days(1904, 1, 1);
    return serial + civil_days(1899, 12, 30) + (serial < 60);
}

static enum xlsx_style
style_of(const struct xlsx_book *book, const struct xlsx_raw *raw)
{
    int64_t i = 0;

    if (!text_parse_i64(raw->style, raw->style_len, &i) || i < 0 ||
        (uint64_t)i >= book->n_styles)
        return XLSX_NUMBER;
    return (enum xlsx_style)book->styles[i];
}

/* A serial as text of the form that cell_parse reads; 0: it is out of range. */
static size_t
serial_text(const struct xlsx_book *book, enum xlsx_style style, double serial,
            struct cell *ret_cell, char out[CELL_TEXT_MAX])
{
    double whole = floor(serial);
    int64_t us, days;

    if (!(serial >= 0 && serial < 2958466)) /* to 9999-12-31 */
        return 0;
    days = serial_days(book, (int64_t)whole);
    /* To milliseconds: a double holds no more of a time in such numbers. */
    us = (int64_t)((serial - whole) * 86400000.0 + 0.5) * 1000;
    if (style == XLSX_DATE && us < 1000) {
        *ret_cell = (struct cell){.type = CELL_DATE, .i = days};
        return text_date(out, days);
    }
    *ret_cell = (struct cell){
        .type = CELL_TIMESTAMP, .zoneless = true, .i = days * DAY_US + us};
    return text_timestamp(out, ret_cell->i, true, 'T');
}

/* A time of day; more than a day of it stays a number. */
static size_t
time_text(double serial, char out[CELL_TEXT_MAX])
{
    char text[CELL_TEXT_MAX];
    size_t len;

    if (!(serial >= 0 && serial < 1))
        return 0;
    len = text_timestamp(text, (int64_t)(serial * 86400000.0 + 0.5) * 1000, true, 'T');
    if (text[9] != '1') /* 1970-01-01T…: rounded up to the next day */
        return 0;
    memcpy(out, text + 11, len - 11);
    return len - 11;
}

static int
put_number(struct xlsx_book *book, const struct column *column,
           const struct xlsx_raw *raw, struct row_set *rows, struct cell *cell,
           struct err *err)
{
    enum xlsx_style style = style_of(book, raw);
    char text[CELL_TEXT_MAX];
    struct cell made = {0};
    double number = 0;
    int64_t whole;
    size_t len = 0;

    if (!text_parse_real(raw->value, raw->value_len, &number) || !isfinite(number))
        return err_set(err, ERR_INVALID, "\"%.*s\" is no number",
                       (int)utf8_cut(raw->value, raw->value_len, 40), raw->value);
    if (style == XLSX_TIME)
        len = time_text(number, text);
    else if (style != XLSX_NUMBER)
        len = serial_text(book, style, number, &made, text);
    if (len > 0) {
        if (column->type != CELL_NULL || made.type == CELL_NULL)
            return column_put(column, rows, cell, text, len, err);
        *cell = made;
        return 0;
    }
    if (text_parse_i64(raw->value, raw->value_len, &whole)) {
        if (column->type != CELL_NULL)
            return column_put(column, rows, cell, raw->value, raw->value_len, err);
        cell_set_i64(cell, CELL_INT, whole);
        return 0;
    }
    len = text_real(text, number);
    if (column->type != CELL_NULL)
        return column_put(column, rows, cell, text, len, err);
    cell_set_real(cell, number);
    return 0;
}

static int
put_text(struct xlsx_book *book, const struct column *column,
         const struct xlsx_raw *raw, struct row_set *rows, struct cell *cell,
         struct err *err)
{
    const char *text = raw->value;
    size_t len = raw->value_len;
    int64_t index = -1;
    int r = 0;

    if (kind_is(raw, "s")) {
        if (!text_parse_i64(raw->value, raw->value_len, &index) || index < 0)
            return err_set(err, ERR_INVALID, "it names no shared text");
        r = xlsx_book_text(book, (uint64_t)index, &text, &len, err);
    } else if (len > 0 && memchr(text, '_', len)) {
        char *copy = row_set_bytes(rows, len);

        memcpy(copy, text, len);
        len = xlsx_unescape(copy, len);
        text = copy;
    }
    if (r < 0 || len == 0)
        return r;
    return column_put(column, rows, cell, text, len, err);
}

int
xlsx_cell_put(struct xlsx_book *book, const struct column *column,
              const struct xlsx_raw *raw, struct row_set *rows, struct cell *cell,
              struct err *err)
{
    struct cell parsed;

    if (!raw->has_value)
        return 0;
    if (kind_is(raw, "s") || kind_is(raw, "str") || kind_is(raw, "inlineStr"))
        return put_text(book, column, raw, rows, cell, err);
    if (raw->value_len == 0)
        return 0;
    if (kind_is(raw, "e"))
        return err_set(err, ERR_INVALID, "the cell holds the error %.*s",
                       (int)utf8_cut(raw->value, raw->value_len, 40), raw->value);
    if (kind_is(raw, "b")) {
        bool yes = raw->value[0] == '1' || raw->value[0] == 't';

        if (column->type != CELL_NULL)
            return column_put(column, rows, cell, yes ? "true" : "false", yes ? 4 : 5,
                              err);
        cell_set_i64(cell, CELL_BOOL, yes);
        return 0;
    }
    if (kind_is(raw, "d") && column->type == CELL_NULL &&
        (cell_parse(&parsed, CELL_DATE, raw->value, raw->value_len) ||
         cell_parse(&parsed, CELL_TIMESTAMP, raw->value, raw->value_len))) {
        *cell = parsed;
        return 0;
    }
    if (kind_is(raw, "d"))
        return column_put(column, rows, cell, raw->value, raw->value_len, err);
    return put_number(book, column, raw, rows, cell, err);
}
