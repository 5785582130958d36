/*
 * Reading rules. The table says which key belongs to which types and how it is
 * read; rule_check.c applies them. To add a limit: a row here, its use in
 * rule_check.c, a line in docs/parameters.md and vectors in
 * tests/vectors/params.json.
 */
#include "base/rule.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/pattern.h"
#include "base/strs.h"

#include <float.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reading {
    struct rule *rule;
    const char *base; /* pointer of the object that is read: "" or "/items" */
    rule_fault_fn fault;
    void *arg;
    bool ok;
};

struct rule_key;
typedef void (*key_read_fn)(struct reading *reading, const struct rule_key *key,
                            const json_t *value);

struct rule_key {
    const char *name;
    unsigned types; /* bits of enum rule_type */
    key_read_fn read;
};

#define IN(type) (1u << (type))

static const char *const type_names[] = {
    [RULE_STRING] = "string", [RULE_INTEGER] = "integer",
    [RULE_NUMBER] = "number", [RULE_BOOLEAN] = "boolean",
    [RULE_DATE] = "date",     [RULE_TIMESTAMP] = "timestamp",
    [RULE_ENUM] = "enum",     [RULE_LIST] = "list",
};
static_assert_count(type_names, RULE_TYPE_COUNT);

static void read_pattern(struct reading *, const struct rule_key *, const json_t *);
static void read_count(struct reading *, const struct rule_key *, const json_t *);
static void read_limit(struct reading *, const struct rule_key *, const json_t *);
static void read_values(struct reading *, const struct rule_key *, const json_t *);
static void read_items(struct reading *, const struct rule_key *, const json_t *);

static const struct rule_key keys[] = {
    {"pattern", IN(RULE_STRING), read_pattern},
    {"min_length", IN(RULE_STRING), read_count},
    {"max_length", IN(RULE_STRING), read_count},
    {"min", IN(RULE_INTEGER) | IN(RULE_NUMBER), read_limit},
    {"max", IN(RULE_INTEGER) | IN(RULE_NUMBER), read_limit},
    {"values", IN(RULE_ENUM), read_values},
    {"items", IN(RULE_LIST), read_items},
    {"min_items", IN(RULE_LIST), read_count},
    {"max_items", IN(RULE_LIST), read_count},
};

/* Keys of a field that are no part of its rule. */
static const char *const field_keys[] = {"title", "required", "default", "confirm"};

const char *
rule_type_name(enum rule_type type)
{
    return type_names[type];
}

static void report(struct reading *reading, const char *key, const char *fmt, ...)
    printf_like(3, 4);

static void
report(struct reading *reading, const char *key, const char *fmt, ...)
{
    char pointer[192];
    char text[400];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    snprintf(pointer, sizeof(pointer), "%s%s%s", reading->base, *key ? "/" : "", key);
    reading->ok = false;
    reading->fault(reading->arg, pointer, text);
}

static void
read_pattern(struct reading *reading, const struct rule_key *key, const json_t *value)
{
    struct rule *rule = reading->rule;
    struct err err = {0};

    if (!json_is_string(value)) {
        report(reading, key->name, "pattern must be a text");
        return;
    }
    rule->pattern_text = json_string_value(value);
    if (pattern_new(rule->pattern_text, &rule->pattern, &err) < 0)
        report(reading, key->name, "%s", err.text);
}

static void
read_count(struct reading *reading, const struct rule_key *key, const json_t *value)
{
    struct rule *rule = reading->rule;
    bool list = rule->type == RULE_LIST;
    int64_t ceiling = list ? RULE_MAX_ITEMS : RULE_MAX_LENGTH;
    int64_t *min = list ? &rule->min_items : &rule->min_length;
    int64_t *max = list ? &rule->max_items : &rule->max_length;
    int64_t number = json_integer_value(value);

    if (!json_is_integer(value) || number < 0 || number > ceiling) {
        report(reading, key->name, "%s must be a whole number from 0 to %lld",
               key->name, (long long)ceiling);
        return;
    }
    *(str_starts_with(key->name, "min") ? min : max) = number;
}

static void
read_limit(struct reading *reading, const struct rule_key *key, const json_t *value)
{
    struct rule *rule = reading->rule;
    bool min = str_eq(key->name, "min");

    if (rule->type == RULE_INTEGER) {
        if (!json_is_integer(value)) {
            report(reading, key->name, "%s of an integer must be a whole number",
                   key->name);
            return;
        }
        *(min ? &rule->min_integer : &rule->max_integer) = json_integer_value(value);
        return;
    }
    if (!json_is_number(value)) {
        report(reading, key->name, "%s must be a number", key->name);
        return;
    }
    *(min ? &rule->min_number : &rule->max_number) = json_number_value(value);
}

static void
read_values(struct reading *reading, const struct rule_key *key, const json_t *value)
{
    size_t i;
    size_t j;

    if (!json_is_array(value) || json_array_size(value) == 0) {
        report(reading, key->name,
               "values must be a list of texts, such as [csv, xlsx]");
        return;
    }
    for (i = 0; i < json_array_size(value); i++) {
        const char *text = json_string_value(json_array_get(value, i));
        char place[64];

        snprintf(place, sizeof(place), "values/%zu", i);
        if (text == NULL) {
            report(reading, place,
                   "each of the values must be a text: put it in quotes");
            continue;
        }
        for (j = 0; j < i; j++) {
            if (str_eq(text, json_string_value(json_array_get(value, j))))
                report(reading, place, "\"%s\" is there twice", text);
        }
    }
    reading->rule->values = value;
}

static const struct rule_key *
key_find(const char *name)
{
    size_t i;

    for (i = 0; i < array_len(keys); i++) {
        if (str_eq(keys[i].name, name))
            return &keys[i];
    }
    return NULL;
}

static bool
is_field_key(const char *name)
{
    size_t i;

    for (i = 0; i < array_len(field_keys); i++) {
        if (str_eq(field_keys[i], name))
            return true;
    }
    return false;
}

/* A key that does not belong: is it misspelt, or a limit of another type? */
static void
report_key(struct reading *reading, const char *name, bool field)
{
    const char *words[array_len(keys) + array_len(field_keys) + 1] = {"type"};
    const char *type = type_names[reading->rule->type];
    const char *near;
    size_t count = 1;
    size_t i;

    if (key_find(name) != NULL) {
        report(reading, name, "%s is no limit of the type %s", name, type);
        return;
    }
    for (i = 0; i < array_len(keys); i++) {
        if (keys[i].types & IN(reading->rule->type))
            words[count++] = keys[i].name;
    }
    for (i = 0; field && i < array_len(field_keys); i++)
        words[count++] = field_keys[i];
    near = str_nearest(name, words, count);
    if (near != NULL)
        report(reading, name, "unknown key %s; did you mean %s?", name, near);
    else
        report(reading, name, "unknown key %s in a parameter of type %s", name, type);
}

static void
check_limits(struct reading *reading)
{
    const struct rule *rule = reading->rule;

    if (rule->min_length > rule->max_length)
        report(reading, "min_length", "min_length is greater than max_length");
    if (rule->min_integer > rule->max_integer || rule->min_number > rule->max_number)
        report(reading, "min", "min is greater than max");
    if (rule->min_items > rule->max_items)
        report(reading, "min_items", "min_items is greater than max_items");
    if (rule->type == RULE_ENUM && rule->values == NULL && reading->ok)
        report(reading, "", "an enum needs values, such as values: [csv, xlsx]");
    if (rule->type == RULE_LIST && rule->items == NULL && reading->ok)
        report(reading, "", "a list needs items, such as items: {type: integer}");
}

static bool
read_type(struct reading *reading, const json_t *json)
{
    const char *word = json_string_value(json_object_get(json, "type"));
    const char *near;
    int type;

    if (!json_is_object(json)) {
        report(reading, "", "must be a map such as {type: string}");
        return false;
    }
    if (word == NULL) {
        report(reading, json_object_get(json, "type") != NULL ? "type" : "",
               "needs a type: string, integer, number, boolean, date, timestamp, enum "
               "or list");
        return false;
    }
    for (type = 0; type < RULE_TYPE_COUNT; type++) {
        if (str_eq(type_names[type], word)) {
            reading->rule->type = (enum rule_type)type;
            return true;
        }
    }
    near = str_nearest(word, type_names, RULE_TYPE_COUNT);
    if (near != NULL)
        report(reading, "type", "unknown type %s; did you mean %s?", word, near);
    else
        report(
            reading, "type",
            "unknown type %s: string, integer, number, boolean, date, timestamp, enum "
            "and list are known",
            word);
    return false;
}

static bool
rule_read(struct rule *rule, const json_t *json, const char *base, bool field,
          rule_fault_fn fault, void *arg)
{
    struct reading reading = {
        .rule = rule, .base = base, .fault = fault, .arg = arg, .ok = true};
    const char *name;
    json_t *value;
    json_t *object;

    *rule = (struct rule){.max_length = RULE_MAX_LENGTH,
                          .min_integer = INT64_MIN,
                          .max_integer = INT64_MAX,
                          .min_number = -DBL_MAX,
                          .max_number = DBL_MAX,
                          .max_items = RULE_MAX_ITEMS};
    if (!read_type(&reading, json))
        return false;
    object =
        (json_t *)(uintptr_t)json; /* the iterator wants it so; nothing is written */
    json_object_foreach(object, name, value)
    {
        const struct rule_key *key = key_find(name);

        if (str_eq(name, "type") || (field && is_field_key(name)))
            continue;
        if (key != NULL && (key->types & IN(rule->type)))
            key->read(&reading, key, value);
        else
            report_key(&reading, name, field);
    }
    check_limits(&reading);
    return reading.ok;
}

static void
read_items(struct reading *reading, const struct rule_key *key, const json_t *value)
{
    const char *type = json_string_value(json_object_get(value, "type"));

    if (str_eq(type, "list")) {
        report(reading, "items/type", "a list of lists is not possible");
        return;
    }
    reading->rule->items = xcalloc(1, sizeof(struct rule));
    if (!rule_read(reading->rule->items, value, "/items", false, reading->fault,
                   reading->arg))
        reading->ok = false;
}

bool
rule_init(struct rule *rule, const json_t *json, rule_fault_fn fault, void *arg)
{
    return rule_read(rule, json, "", false, fault, arg);
}

void
rule_release(struct rule *rule)
{
    if (rule == NULL)
        return;
    pattern_free(rule->pattern);
    if (rule->items != NULL)
        rule_release(rule->items);
    free(rule->items);
    memset(rule, 0, sizeof(*rule));
}

static void
read_flag(struct reading *reading, const json_t *json, const char *key, bool *ret)
{
    const json_t *value = json_object_get(json, key);

    if (value == NULL)
        return;
    if (json_is_boolean(value))
        *ret = json_is_true(value);
    else
        report(reading, key, "%s must be true or false", key);
}

/* A breach of the rule by the default value is a fault at the default. */
static void
report_default(void *arg, const char *pointer, const char *text)
{
    struct reading *reading = arg;
    char place[128];

    snprintf(place, sizeof(place), "default%s", pointer);
    report(reading, place, "the default %s", text);
}

static void
read_default(struct reading *reading, struct rule_field *field, const json_t *value)
{
    if (value == NULL)
        return;
    if (field->required) {
        report(reading, "default", "a required parameter cannot have a default");
    } else if (field->confirm) {
        report(reading, "default",
               "a confirmation cannot have a default: it is given "
               "anew with each request");
    } else if (reading->ok &&
               rule_check(&field->rule, value, report_default, reading)) {
        field->fallback = value;
    }
}

bool
rule_field_init(struct rule_field *field, const json_t *json, rule_fault_fn fault,
                void *arg)
{
    struct reading reading = {
        .rule = &field->rule, .base = "", .fault = fault, .arg = arg, .ok = true};
    const json_t *title;

    memset(field, 0, sizeof(*field));
    reading.ok = rule_read(&field->rule, json, "", true, fault, arg);
    if (!json_is_object(json))
        return false;
    title = json_object_get(json, "title");
    if (title != NULL && !json_is_string(title))
        report(&reading, "title", "title must be a text");
    field->title = json_string_value(title);
    read_flag(&reading, json, "required", &field->required);
    read_flag(&reading, json, "confirm", &field->confirm);
    read_default(&reading, field, json_object_get(json, "default"));
    return reading.ok;
}

void
rule_field_release(struct rule_field *field)
{
    if (field == NULL)
        return;
    rule_release(&field->rule);
    memset(field, 0, sizeof(*field));
}
