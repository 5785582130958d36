#include "service/spread.h"

#include "base/arena.h"
#include "base/civil.h"
#include "base/err.h"
#include "base/strs.h"
#include "queue/job.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The forms of the ends of a range. */
enum form { FORM_NONE, FORM_INTEGER, FORM_DATE, FORM_DAY, FORM_MONTH, FORM_YYYYMM };

struct spread {
    const struct queue_job *job;
    size_t max;
    struct params_errors *errors;
    const char *name;          /* of the parameter */
    const struct param *param; /* NULL: not one of the job's */
    json_t *values;
};

static void
wrong(struct spread *spread, const char *text, const char *what)
{
    char pointer[160];

    snprintf(pointer, sizeof(pointer), "/params/%.140s", spread->name);
    params_errors_add(spread->errors, pointer, "%.80s %s", text, what);
}

/* --- the ends of a range as numbers --- */

static bool
digits(const char *text, size_t len)
{
    return len > 0 && strspn(text, "0123456789") >= len;
}

static bool
to_day(const char *year, const char *month, const char *day, int64_t *ret)
{
    char text[16];

    snprintf(text, sizeof(text), "%.4s-%.2s-%.2s", year, month, day);
    return civil_parse_date(text, strlen(text), ret);
}

static bool
to_month(const char *year, const char *month, int64_t *ret)
{
    int64_t day;

    if (!to_day(year, month, "01", &day))
        return false;
    *ret = (year[0] - '0') * 1000 + (year[1] - '0') * 100 + (year[2] - '0') * 10 +
           (year[3] - '0');
    *ret = *ret * 12 + (month[0] - '0') * 10 + (month[1] - '0') - 1;
    return true;
}

static enum form
form_of(const struct spread *spread, const char *text, size_t len, int64_t *ret)
{
    enum rule_type type =
        spread->param ? spread->param->field.rule.type : RULE_TYPE_COUNT;
    char copy[24];
    struct err ignored = {0};

    if (len == 0 || len >= sizeof(copy))
        return FORM_NONE;
    snprintf(copy, sizeof(copy), "%.*s", (int)len, text);
    if (type == RULE_INTEGER)
        return parse_i64("", copy, INT64_MIN, INT64_MAX, ret, &ignored) == 0
                   ? FORM_INTEGER
                   : FORM_NONE;
    if (type == RULE_DATE || (type == RULE_STRING && len == 10))
        return civil_parse_date(copy, len, ret) ? FORM_DATE : FORM_NONE;
    if (type != RULE_STRING)
        return FORM_NONE;
    if (len == 8 && digits(copy, 8) && to_day(copy, copy + 4, copy + 6, ret))
        return FORM_DAY;
    if (len == 7 && copy[4] == '-' && digits(copy, 4) && digits(copy + 5, 2) &&
        to_month(copy, copy + 5, ret))
        return FORM_MONTH;
    if (len == 6 && digits(copy, 6) && to_month(copy, copy + 4, ret))
        return FORM_YYYYMM;
    return FORM_NONE;
}

static json_t *
value_of(enum form form, int64_t at)
{
    char text[CIVIL_TEXT_SIZE];
    int year;
    int month;
    int day;

    switch (form) {
    case FORM_INTEGER:
        return json_integer(at);
    case FORM_DATE:
        civil_format_date(at, text);
        return json_string(text);
    case FORM_DAY:
        civil_from_days(at, &year, &month, &day);
        snprintf(text, sizeof(text), "%04d%02d%02d", year, month, day);
        return json_string(text);
    case FORM_MONTH:
    case FORM_YYYYMM:
        snprintf(text, sizeof(text), form == FORM_MONTH ? "%04d-%02d" : "%04d%02d",
                 (int)(at / 12), (int)(at % 12) + 1);
        return json_string(text);
    case FORM_NONE:
        break;
    }
    return NULL;
}

/* --- values --- */

static void
add_range(struct spread *spread, enum form form, int64_t from, int64_t to,
          const char *text)
{
    if (from > to) {
        wrong(spread, text, "goes backwards; write the smaller end first");
        return;
    }
    if ((uint64_t)to - (uint64_t)from >= spread->max) {
        wrong(spread, text, "has more values than a backfill may have items");
        return;
    }
    for (int64_t at = from; at <= to; at++) {
        json_array_append_new(spread->values, value_of(form, at));
        if (at == INT64_MAX)
            break;
    }
}

/* One text: a range, or a value of the parameter's type. */
static void
add_text(struct spread *spread, const char *text)
{
    const char *dots = strstr(text, "..");
    enum rule_type type =
        spread->param ? spread->param->field.rule.type : RULE_TYPE_COUNT;
    json_t *value;

    if (dots) {
        int64_t from = 0;
        int64_t to = 0;
        enum form a = form_of(spread, text, (size_t)(dots - text), &from);
        enum form b = form_of(spread, dots + 2, strlen(dots + 2), &to);

        if (a != FORM_NONE && a == b) {
            add_range(spread, a, from, to, text);
            return;
        }
        if (type == RULE_INTEGER || type == RULE_DATE) {
            wrong(spread, text,
                  type == RULE_DATE ? "is no range of days that there are; write "
                                      "FROM..TO such as 2026-01-01..2026-03-31"
                                    : "is no range of whole numbers; write FROM..TO "
                                      "such as 1..12");
            return;
        }
    }
    value = spread->param ? rule_from_text(&spread->param->field.rule, text) : NULL;
    json_array_append_new(spread->values, value ? value : json_string(text));
}

static void
add_list(struct spread *spread, const char *text)
{
    for (;;) {
        size_t len = strcspn(text, ",");
        scoped(xfree_ptr) char *part = xmalloc(len + 1);

        memcpy(part, text, len);
        part[len] = '\0';
        add_text(spread, part);
        if (!text[len])
            return;
        text += len + 1;
    }
}

/* The values that one parameter stands for. */
static void
read_values(struct spread *spread, const json_t *given)
{
    bool is_list = spread->param && spread->param->field.rule.type == RULE_LIST;
    const json_t *one;
    size_t i;

    if (is_list || (!json_is_string(given) && !json_is_array(given))) {
        json_array_append(spread->values, (json_t *)(uintptr_t)given);
    } else if (json_is_string(given)) {
        add_list(spread, json_string_value(given));
    } else {
        json_array_foreach(given, i, one)
        {
            if (json_is_string(one))
                add_text(spread, json_string_value(one));
            else
                json_array_append(spread->values, (json_t *)(uintptr_t)one);
        }
        if (i == 0)
            wrong(spread, "[]:", "an empty list stands for nothing");
    }
}

/* Each item so far, with each of the values. */
static bool
multiply(struct spread *spread, json_t **items)
{
    size_t have = json_array_size(*items);
    size_t values = json_array_size(spread->values);
    json_t *more;
    const json_t *item;
    json_t *value;
    size_t i;
    size_t k;

    if (have * values > spread->max) {
        char what[80];

        snprintf(what, sizeof(what),
                 "more than %zu items in all; ask for less at a time", spread->max);
        wrong(spread, "makes", what);
        return false;
    }
    more = json_array();
    json_array_foreach(*items, i, item)
    {
        json_array_foreach(spread->values, k, value)
        {
            json_t *copy = json_copy((json_t *)(uintptr_t)item);

            json_object_set(copy, spread->name, value);
            json_array_append_new(more, copy);
        }
    }
    json_decref(*items);
    *items = more;
    return true;
}

int
spread_params(const struct queue_job *job, const json_t *params, size_t max,
              json_t **ret_items, struct params_errors *errors)
{
    struct spread spread = {.job = job, .max = max, .errors = errors};
    json_t *items = json_pack("[{}]");
    const char *name;
    json_t *given;
    bool fits = true;

    json_object_foreach((json_t *)(uintptr_t)params, name, given)
    {
        spread.name = name;
        spread.param = queue_job_param(job, name);
        spread.values = json_array();
        read_values(&spread, given);
        if (errors->count == 0)
            fits = multiply(&spread, &items);
        json_decref(spread.values);
        if (!fits)
            break;
    }
    if (errors->count > 0) {
        json_decref(items);
        return PARAMS_INVALID;
    }
    *ret_items = items;
    return PARAMS_OK;
}
