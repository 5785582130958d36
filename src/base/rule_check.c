/*
 * Rules applied: one small function per type says whether a value keeps it, and
 * one text per type says what would have been right. PostgreSQL's side
 * (pawl.submit) follows docs/parameters.md, as this does.
 */
#include "base/rule.h"

#include "base/buf.h"
#include "base/civil.h"
#include "base/json.h"
#include "base/pattern.h"
#include "base/strs.h"
#include "base/utf8.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 2^63: the first double beyond int64. */
#define INT64_END 9223372036854775808.0

typedef bool (*value_check_fn)(const struct rule *rule, const json_t *value);
typedef void (*rule_say_fn)(const struct rule *rule, struct buf *buf);

static bool
integer_of(const json_t *value, int64_t *ret)
{
    double number;

    if (json_is_integer(value)) {
        *ret = json_integer_value(value);
        return true;
    }
    if (!json_is_real(value))
        return false;
    number = json_real_value(value);
    if (number != floor(number) || number < -INT64_END || number >= INT64_END)
        return false;
    *ret = (int64_t)number;
    return true;
}

static bool
check_string(const struct rule *rule, const json_t *value)
{
    const char *text = json_string_value(value);
    size_t len = json_string_length(value);
    int64_t count;

    if (text == NULL)
        return false;
    count = (int64_t)utf8_count(text, len);
    if (count < rule->min_length || count > rule->max_length)
        return false;
    return rule->pattern == NULL || pattern_matches(rule->pattern, text, len);
}

static bool
check_integer(const struct rule *rule, const json_t *value)
{
    int64_t number;

    return integer_of(value, &number) && number >= rule->min_integer &&
           number <= rule->max_integer;
}

static bool
check_number(const struct rule *rule, const json_t *value)
{
    double number;

    if (!json_is_number(value))
        return false;
    number = json_number_value(value);
    return number >= rule->min_number && number <= rule->max_number;
}

static bool
check_boolean(const struct rule *rule, const json_t *value)
{
    return json_is_boolean(value);
}

static bool
check_date(const struct rule *rule, const json_t *value)
{
    int64_t days;

    return json_is_string(value) &&
           civil_parse_date(json_string_value(value), json_string_length(value), &days);
}

/* Of RFC 3339 only what PostgreSQL reads the same way: T and Z as capitals, at most
 * six digits of fraction, no leap second, offsets up to 14 hours. */
static bool
check_timestamp(const struct rule *rule, const json_t *value)
{
    const char *text = json_string_value(value);
    size_t len = json_string_length(value);
    int64_t us;

    if (text == NULL || !civil_parse_time(text, len, &us))
        return false;
    if (text[10] != 'T' || len > sizeof("2026-11-01T10:00:00.123456+14:00") - 1)
        return false;
    if (text[len - 1] == 'Z')
        return len <= sizeof("2026-11-01T10:00:00.123456Z") - 1;
    if (text[len - 6] != '+' && text[len - 6] != '-')
        return false;
    return strcmp(text + len - 5, "14:00") <= 0;
}

static bool
check_enum(const struct rule *rule, const json_t *value)
{
    size_t i;

    for (i = 0; json_is_string(value) && i < json_array_size(rule->values); i++) {
        if (json_equal(json_array_get(rule->values, i), value))
            return true;
    }
    return false;
}

static bool
check_list(const struct rule *rule, const json_t *value)
{
    int64_t count = (int64_t)json_array_size(value);

    return json_is_array(value) && count >= rule->min_items && count <= rule->max_items;
}

static void
say_string(const struct rule *rule, struct buf *buf)
{
    buf_add_str(buf, "a text");
    if (rule->min_length == rule->max_length)
        buf_addf(buf, " of %lld characters", (long long)rule->max_length);
    else if (rule->min_length > 0)
        buf_addf(buf, " of %lld to %lld characters", (long long)rule->min_length,
                 (long long)rule->max_length);
    else if (rule->max_length < RULE_MAX_LENGTH || rule->pattern == NULL)
        buf_addf(buf, " of at most %lld characters", (long long)rule->max_length);
    if (rule->pattern_text != NULL)
        buf_addf(buf, " that matches %s", rule->pattern_text);
}

static void
say_integer(const struct rule *rule, struct buf *buf)
{
    buf_add_str(buf, "a whole number");
    if (rule->min_integer != INT64_MIN && rule->max_integer != INT64_MAX)
        buf_addf(buf, " from %lld to %lld", (long long)rule->min_integer,
                 (long long)rule->max_integer);
    else if (rule->min_integer != INT64_MIN)
        buf_addf(buf, " of at least %lld", (long long)rule->min_integer);
    else if (rule->max_integer != INT64_MAX)
        buf_addf(buf, " of at most %lld", (long long)rule->max_integer);
    else
        buf_add_str(buf, " that fits 64 bits");
}

static void
say_number(const struct rule *rule, struct buf *buf)
{
    bool min = rule->min_number > -DBL_MAX;
    bool max = rule->max_number < DBL_MAX;

    buf_add_str(buf, "a number");
    if (min && max)
        buf_addf(buf, " from %.15g to %.15g", rule->min_number, rule->max_number);
    else if (min)
        buf_addf(buf, " of at least %.15g", rule->min_number);
    else if (max)
        buf_addf(buf, " of at most %.15g", rule->max_number);
}

static void
say_boolean(const struct rule *rule, struct buf *buf)
{
    buf_add_str(buf, "true or false");
}

static void
say_date(const struct rule *rule, struct buf *buf)
{
    buf_add_str(buf, "a date such as \"2026-11-01\"");
}

static void
say_timestamp(const struct rule *rule, struct buf *buf)
{
    buf_add_str(buf, "a time such as \"2026-11-01T09:30:00+09:00\"");
}

static void
say_enum(const struct rule *rule, struct buf *buf)
{
    size_t i;

    buf_add_str(buf, "one of ");
    for (i = 0; i < json_array_size(rule->values); i++)
        buf_addf(buf, "%s%s", i > 0 ? ", " : "",
                 json_string_value(json_array_get(rule->values, i)));
}

static void
say_list(const struct rule *rule, struct buf *buf)
{
    buf_addf(buf, "a list of %lld to %lld items", (long long)rule->min_items,
             (long long)rule->max_items);
}

static const struct {
    value_check_fn check;
    rule_say_fn say;
} types[] = {
    [RULE_STRING] = {check_string, say_string},
    [RULE_INTEGER] = {check_integer, say_integer},
    [RULE_NUMBER] = {check_number, say_number},
    [RULE_BOOLEAN] = {check_boolean, say_boolean},
    [RULE_DATE] = {check_date, say_date},
    [RULE_TIMESTAMP] = {check_timestamp, say_timestamp},
    [RULE_ENUM] = {check_enum, say_enum},
    [RULE_LIST] = {check_list, say_list},
};
static_assert_count(types, RULE_TYPE_COUNT);

/* What was sent, shortened: long texts and nested things say little. */
static void
say_value(const json_t *value, struct buf *buf)
{
    const char *text = json_string_value(value);
    size_t len = json_string_length(value);

    if (text != NULL) {
        size_t cut = utf8_prefix(text, len, 40);

        json_escape(buf, text, cut);
        if (cut < len)
            buf_addf(buf, " (%zu characters)", utf8_count(text, len));
    } else if (json_is_integer(value)) {
        buf_add_i64(buf, json_integer_value(value));
    } else if (json_is_real(value)) {
        buf_addf(buf, "%.17g", json_real_value(value));
    } else if (json_is_boolean(value)) {
        buf_add_str(buf, json_is_true(value) ? "true" : "false");
    } else if (json_is_array(value)) {
        buf_addf(buf, "a list of %zu items", json_array_size(value));
    } else if (json_is_object(value)) {
        buf_add_str(buf, "an object");
    } else {
        buf_add_str(buf, "null");
    }
}

static void
breach(const struct rule *rule, const json_t *value, const char *pointer,
       rule_fault_fn fault, void *arg)
{
    scoped(buf_release) struct buf buf = {0};

    buf_init(&buf, 8192);
    buf_add_str(&buf, "must be ");
    types[rule->type].say(rule, &buf);
    buf_add_str(&buf, ", not ");
    say_value(value, &buf);
    fault(arg, pointer, buf_str(&buf));
}

bool
rule_check(const struct rule *rule, const json_t *value, rule_fault_fn fault, void *arg)
{
    bool ok = true;
    size_t i;

    if (!types[rule->type].check(rule, value)) {
        breach(rule, value, "", fault, arg);
        return false;
    }
    for (i = 0; rule->type == RULE_LIST && i < json_array_size(value); i++) {
        const json_t *item = json_array_get(value, i);
        char pointer[32];

        if (types[rule->items->type].check(rule->items, item))
            continue;
        snprintf(pointer, sizeof(pointer), "/%zu", i);
        breach(rule->items, item, pointer, fault, arg);
        ok = false;
    }
    return ok;
}

json_t *
rule_normal(const struct rule *rule, const json_t *value)
{
    int64_t number;
    json_t *list;
    size_t i;

    if (rule->type == RULE_INTEGER && integer_of(value, &number))
        return json_integer(number);
    if (rule->type != RULE_LIST)
        return json_deep_copy(value);
    list = json_array();
    for (i = 0; i < json_array_size(value); i++)
        json_array_append_new(list, rule_normal(rule->items, json_array_get(value, i)));
    return list;
}

static json_t *
list_from_text(const struct rule *rule, const char *text)
{
    json_t *list = json_array();
    const char *at = text;

    while (*text != '\0') {
        size_t len = strcspn(at, ",");
        char *item = strndup(at, len);
        json_t *value = item != NULL ? rule_from_text(rule->items, item) : NULL;

        free(item);
        if (value == NULL) {
            json_decref(list);
            return NULL;
        }
        json_array_append_new(list, value);
        at += len;
        if (*at == '\0')
            break;
        at++;
    }
    return list;
}

json_t *
rule_from_text(const struct rule *rule, const char *text)
{
    int64_t integer;
    double number;

    switch (rule->type) {
    case RULE_INTEGER:
    case RULE_NUMBER:
        if (str_to_i64(text, &integer))
            return json_integer(integer);
        if (str_to_double(text, &number))
            return json_real(number);
        return NULL;
    case RULE_BOOLEAN:
        if (str_eq(text, "true") || str_eq(text, "false"))
            return json_boolean(str_eq(text, "true"));
        return NULL;
    case RULE_LIST:
        return list_from_text(rule, text);
    case RULE_STRING:
    case RULE_DATE:
    case RULE_TIMESTAMP:
    case RULE_ENUM:
    case RULE_TYPE_COUNT:
        break;
    }
    return json_string(text);
}
