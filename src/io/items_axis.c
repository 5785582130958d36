/*
 * The bounds of a range are texts until the parameters are filled in; then their
 * form says what is counted: numbers, days, or months.
 */
#include "io/items_axis.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/civil.h"
#include "base/err.h"
#include "base/json.h"
#include "base/strs.h"
#include "io/cell_text.h"
#include "io/io_ctx.h"
#include "io/option.h"
#include "io/read_sql.h"
#include "io/reader.h"
#include "io/template.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
static const struct io_option range_options[] = {
    {"from", IO_OPTION_ANY, true, NULL, "number, date (2026-03-01) or month (2026-03); {name} from the parameters"},
    {"to", IO_OPTION_ANY, true, NULL, "the last one"},
    {"step", IO_OPTION_ANY, false, NULL, "default 1; below zero goes down"},
    {"by", IO_OPTION_WORD, false, "number day month", "default by the form of the bounds; month also takes 202603"},
};

static const struct io_option query_options[] = {
    {"sql", IO_OPTION_TEXT, true, NULL, "a SELECT; :name is bound from the parameters"},
    {"database", IO_OPTION_TEXT, false, NULL, "name under databases; default main, the store's own"},
};

static const struct io_option param_options[] = {
    {"param", IO_OPTION_TEXT, true, NULL, "a parameter of the job: a list, or one value"},
};
/* clang-format on */

/* What a range counts. */
enum range_unit { RANGE_NUMBER, RANGE_DAY, RANGE_MONTH, RANGE_MONTH_PLAIN };

struct range {
    enum range_unit unit;
    int64_t from, to, step;
};

/* --- definition --- */

static bool
is_scalar(const json_t *value)
{
    return json_is_string(value) || json_is_number(value) || json_is_boolean(value);
}

static int
check_list(const char *where, const json_t *list, struct err *err)
{
    size_t i;
    json_t *value;

    json_array_foreach(list, i, value)
    {
        if (!is_scalar(value))
            return err_set(err, ERR_CONFIG,
                           "%s: value %zu is %s; a list holds texts, "
                           "numbers, true and false",
                           where, i + 1, json_type_word(value));
    }
    return 0;
}

static int
check_range(const char *where, const json_t *def, struct err *err)
{
    const json_t *step = json_object_get(def, "step");
    int r = io_options_check(where, def, range_options, array_len(range_options), err);

    if (r < 0)
        return r;
    if (!is_scalar(json_object_get(def, "from")) ||
        !is_scalar(json_object_get(def, "to")))
        return err_set(err, ERR_CONFIG,
                       "%s: from and to must be numbers, dates or months", where);
    if (step && (!json_is_integer(step) || json_integer_value(step) == 0))
        return err_set(err, ERR_CONFIG, "%s.step: must be a whole number but 0", where);
    return 0;
}

int
items_axis_check(const char *name, const json_t *def, struct err *err)
{
    char where[128];

    (void)snprintf(where, sizeof(where), "read.items.%.80s", name);
    if (json_is_array(def))
        return check_list(where, def, err);
    if (json_object_get(def, "sql"))
        return io_options_check(where, def, query_options, array_len(query_options),
                                err);
    if (json_object_get(def, "param"))
        return io_options_check(where, def, param_options, array_len(param_options),
                                err);
    if (json_object_get(def, "from") || json_object_get(def, "to"))
        return check_range(where, def, err);
    return err_set(err, ERR_CONFIG,
                   "%s: must be a list, or a map with from and to, with sql, or with "
                   "param",
                   where);
}

/* --- lists --- */

static int
too_many(const struct items_axis *axis, struct err *err)
{
    return err_set(err, ERR_TOO_LARGE,
                   "read.items.%s: more than %d values, or %zu MiB of them", axis->name,
                   AXIS_VALUES_MAX, AXIS_BYTES_MAX >> 20);
}

static int
add_text(struct items_axis *axis, const char *text, size_t len, struct err *err)
{
    return cell_set_text(&axis->rows, row_set_add(&axis->rows), CELL_TEXT, text, len,
                         axis->name, err);
}

static int
add_value(struct items_axis *axis, const json_t *value, const json_t *params,
          struct err *err)
{
    scoped(buf_release) struct buf text = {0};
    int r;

    if (axis->rows.count == AXIS_VALUES_MAX || row_set_full(&axis->rows))
        return too_many(axis, err);
    if (json_is_integer(value)) {
        cell_set_i64(row_set_add(&axis->rows), CELL_INT, json_integer_value(value));
    } else if (json_is_real(value)) {
        cell_set_real(row_set_add(&axis->rows), json_real_value(value));
    } else if (json_is_boolean(value)) {
        cell_set_i64(row_set_add(&axis->rows), CELL_BOOL, json_is_true(value));
    } else if (json_is_string(value)) {
        buf_init(&text, CELL_MAX_BYTES);
        if (!params)
            return add_text(axis, json_string_value(value), json_string_length(value),
                            err);
        r = template_plain(json_string_value(value), params, &text, err);
        return r < 0 ? r : add_text(axis, buf_str(&text), text.len, err);
    }
    return 0;
}

/* params: to fill {name} in texts from; NULL: they are values already. */
static int
fill_list(struct items_axis *axis, const json_t *list, const json_t *params,
          struct err *err)
{
    size_t i;
    json_t *value;

    json_array_foreach(list, i, value)
    {
        int r = add_value(axis, value, params, err);

        if (r < 0)
            return r;
    }
    return 0;
}

static int
fill_param(struct items_axis *axis, const char *name, const json_t *params,
           struct err *err)
{
    const json_t *value = json_object_get(params, name);

    if (!value)
        return err_set(
            err, ERR_CONFIG,
            "read.items.%s: there is no parameter %s; declare it under params",
            axis->name, name);
    return json_is_array(value) ? fill_list(axis, value, NULL, err)
                                : add_value(axis, value, NULL, err);
}

/* --- ranges --- */

/* Months since year 0 of "2026-03", or plain "202603". */
static bool
parse_month(const char *text, bool plain, int64_t *ret_month)
{
    char date[16];
    int64_t days;
    int year, month, day;
    size_t len = strlen(text);

    if (len != (plain ? 6u : 7u))
        return false;
    (void)snprintf(date, sizeof(date), "%.4s-%.2s-01", text, text + len - 2);
    if ((!plain && text[4] != '-') || !text_parse_date(date, strlen(date), &days))
        return false;
    civil_from_days(days, &year, &month, &day);
    *ret_month = (int64_t)year * 12 + month - 1;
    return true;
}

static bool
parse_bound(const char *text, enum range_unit unit, int64_t *ret)
{
    switch (unit) {
    case RANGE_NUMBER:
        return text_parse_i64(text, strlen(text), ret);
    case RANGE_DAY:
        return text_parse_date(text, strlen(text), ret);
    case RANGE_MONTH:
        return parse_month(text, false, ret);
    case RANGE_MONTH_PLAIN:
        return parse_month(text, true, ret);
    }
    return false;
}

/* Which unit do both bounds have the form of? */
static bool
choose_unit(const char *by, const char *from, const char *to, struct range *range)
{
    static const struct {
        const char *by;
        bool by_form; /* also when `by` is not given */
        enum range_unit unit;
    } forms[] = {
        {"number", true, RANGE_NUMBER},
        {"day", true, RANGE_DAY},
        {"month", true, RANGE_MONTH},
        {"month", false, RANGE_MONTH_PLAIN},
    };

    for (size_t i = 0; i < array_len(forms); i++) {
        if (by ? !str_eq(by, forms[i].by) : !forms[i].by_form)
            continue;
        range->unit = forms[i].unit;
        if (parse_bound(from, range->unit, &range->from) &&
            parse_bound(to, range->unit, &range->to))
            return true;
    }
    return false;
}

static int
bound_text(const json_t *value, const json_t *params, struct buf *out, struct err *err)
{
    char number[CELL_TEXT_MAX];

    if (json_is_string(value))
        return template_plain(json_string_value(value), params, out, err);
    if (json_is_integer(value))
        buf_add(out, number, text_i64(number, json_integer_value(value)));
    return 0;
}

static int
read_range(const struct items_axis *axis, const json_t *def, const json_t *params,
           struct range *range, struct err *err)
{
    const json_t *step = json_object_get(def, "step");
    scoped(buf_release) struct buf from = {0};
    scoped(buf_release) struct buf to = {0};
    int r;

    buf_init(&from, 256);
    buf_init(&to, 256);
    r = bound_text(json_object_get(def, "from"), params, &from, err);
    if (r == 0)
        r = bound_text(json_object_get(def, "to"), params, &to, err);
    if (r < 0)
        return err_prefix(err, "read.items.%s", axis->name);
    range->step = step ? json_integer_value(step) : 1;
    if (!choose_unit(io_option_text(def, "by", NULL), buf_str(&from), buf_str(&to),
                     range))
        return err_set(
            err, ERR_INVALID,
            "read.items.%s: \"%s\" to \"%s\": both must be whole numbers, "
            "dates (2026-03-01) or months (2026-03; 202603 with `by: month`)",
            axis->name, buf_str(&from), buf_str(&to));
    if (range->step > 0 ? range->from > range->to : range->from < range->to)
        return err_set(err, ERR_INVALID,
                       "read.items.%s: from %s to %s there is nothing; to go down give "
                       "`step: -1`",
                       axis->name, buf_str(&from), buf_str(&to));
    return 0;
}

static int
add_counted(struct items_axis *axis, enum range_unit unit, int64_t value,
            struct err *err)
{
    char text[32];

    if (unit == RANGE_NUMBER || unit == RANGE_DAY) {
        cell_set_i64(row_set_add(&axis->rows), unit == RANGE_DAY ? CELL_DATE : CELL_INT,
                     value);
        return 0;
    }
    (void)snprintf(text, sizeof(text), unit == RANGE_MONTH ? "%04d-%02d" : "%04d%02d",
                   (int)(value / 12), (int)(value % 12) + 1);
    return add_text(axis, text, strlen(text), err);
}

static int
fill_range(struct items_axis *axis, const json_t *def, const json_t *params,
           struct err *err)
{
    struct range range = {0};
    uint64_t count, span, step;
    int r = read_range(axis, def, params, &range, err);

    if (r < 0)
        return r;
    /* Without overflow, whatever the bounds are. */
    span = range.step > 0 ? (uint64_t)range.to - (uint64_t)range.from
                          : (uint64_t)range.from - (uint64_t)range.to;
    step = range.step > 0 ? (uint64_t)range.step : -(uint64_t)range.step;
    count = span / step;
    if (count >= AXIS_VALUES_MAX)
        return too_many(axis, err);
    for (uint64_t i = 0; r == 0 && i <= count; i++)
        r = add_counted(axis, range.unit,
                        (int64_t)((uint64_t)range.from + i * (uint64_t)range.step),
                        err);
    return r;
}

/* --- queries --- */

static int
fill_query(struct items_axis *axis, const json_t *def, struct io_ctx *io,
           struct arena *arena, struct err *err)
{
    const struct column *own;
    struct column *named;
    size_t width;
    int r = read_sql_new(io, def, &axis->query, err);

    if (r == 0)
        r = reader_open(axis->query, NULL, err);
    if (r == 0)
        r = reader_read_chunk(axis->query, AXIS_VALUES_MAX + 1, &axis->rows, err);
    if (r < 0)
        return err_prefix(err, "read.items.%s", axis->name);
    if (r != READER_END || axis->rows.count > AXIS_VALUES_MAX)
        return too_many(axis, err);
    own = reader_columns(axis->query, &width);
    if (width > 1) {
        axis->columns = own;
        return 0;
    }
    named = arena_new(arena, struct column); /* one column has the axis' name */
    *named = (struct column){.name = axis->name, .type = own->type};
    axis->columns = named;
    return 0;
}

static void
column_of_values(struct items_axis *axis, struct arena *arena)
{
    struct column *column = arena_new(arena, struct column);

    column->name = axis->name;
    column->type = axis->rows.count ? (enum cell_type)row_set_row(&axis->rows, 0)->type
                                    : CELL_NULL;
    for (size_t i = 1; i < axis->rows.count; i++) {
        if (row_set_row(&axis->rows, i)->type != column->type)
            column->type = CELL_NULL;
    }
    axis->columns = column;
}

int
items_axis_fill(struct items_axis *axis, const char *name, const json_t *def,
                struct io_ctx *io, struct arena *arena, struct err *err)
{
    const char *param = json_string_value(json_object_get(def, "param"));
    int r;

    *axis = (struct items_axis){.name = arena_strdup(arena, name)};
    row_set_init(&axis->rows, AXIS_BYTES_MAX);
    row_set_clear(&axis->rows, 1);
    if (json_object_get(def, "sql"))
        return fill_query(axis, def, io, arena, err);
    if (json_is_array(def))
        r = fill_list(axis, def, io->params, err);
    else if (param)
        r = fill_param(axis, param, io->params, err);
    else
        r = fill_range(axis, def, io->params, err);
    if (r == 0)
        column_of_values(axis, arena);
    return r;
}

void
items_axis_release(struct items_axis *axis)
{
    if (!axis)
        return;
    row_set_release(&axis->rows);
    reader_freep(&axis->query);
}
