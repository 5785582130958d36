/*
 * jansson checks the grammar; what it lets pass is caught by a walk over the
 * bytes before it: nesting (its own limit is 2048), and reals that would
 * silently become zero.
 */
#include "base/json.h"

#include "base/err.h"
#include "base/utf8.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

#define NUMBER_MAX 400 /* bytes of one number that are looked at as a whole */

void
json_drop(json_t **json)
{
    json_decref(*json);
    *json = NULL;
}

static bool
is_number_byte(char c)
{
    return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' ||
           c == 'E';
}

/* Length of the number at text; -ERR_INVALID if a double cannot hold it. Whether
 * it is well-formed, and whole numbers, are left to jansson. */
static int
check_number(const char *text, size_t len, size_t at, size_t *ret_len, struct err *err)
{
    char copy[NUMBER_MAX + 1];
    bool is_real = false;
    bool is_zero = true;
    bool in_exponent = false;
    double value;
    size_t n;

    for (n = 0; at + n < len && is_number_byte(text[at + n]); n++) {
        char c = text[at + n];

        if (c == 'e' || c == 'E')
            in_exponent = true;
        is_real |= c == '.' || in_exponent;
        is_zero &= in_exponent || c < '1' || c > '9';
        if (n < NUMBER_MAX)
            copy[n] = c;
    }
    *ret_len = n;
    if (n > NUMBER_MAX)
        return err_set(err, ERR_INVALID,
                       "byte %zu: a number of more than %d characters", at, NUMBER_MAX);
    if (!is_real)
        return 0;
    copy[n] = '\0';
    value = strtod(copy, NULL);
    if (!isfinite(value) || (value == 0 && !is_zero))
        return err_set(err, ERR_INVALID, "byte %zu: the number %.40s is out of range",
                       at, copy);
    return 0;
}

/* Behind the closing quote; text[at] is the opening one. */
static size_t
skip_string(const char *text, size_t len, size_t at)
{
    for (at++; at < len && text[at] != '"'; at++)
        if (text[at] == '\\')
            at++;
    return at < len ? at + 1 : len;
}

static int
check_limits(const char *text, size_t len, int max_depth, struct err *err)
{
    int depth = 0;
    size_t at = 0;

    while (at < len) {
        char c = text[at];
        size_t used = 1;
        int r = 0;

        if (c == '"')
            used = skip_string(text, len, at) - at;
        else if (c == '[' || c == '{')
            depth++;
        else if (c == ']' || c == '}')
            depth--;
        else if (is_number_byte(c))
            r = check_number(text, len, at, &used, err);
        if (r < 0)
            return r;
        if (depth > max_depth)
            return err_set(err, ERR_INVALID, "byte %zu: nested deeper than %d levels",
                           at, max_depth);
        at += used;
    }
    return 0;
}

int
json_parse(const char *text, size_t len, int max_depth, json_t **ret, struct err *err)
{
    size_t good = utf8_valid_prefix(text, len);
    json_error_t error;
    json_t *json;
    int r;

    assert(max_depth >= 0 && max_depth <= JSON_DEPTH_MAX);
    if (good < len)
        return err_set(err, ERR_INVALID, "byte %zu: not UTF-8", good);
    r = check_limits(text, len, max_depth, err);
    if (r < 0)
        return r;
    json = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (!json)
        return err_set(err, ERR_INVALID, "byte %d: %s", error.position, error.text);
    *ret = json;
    return 0;
}

const char *
json_type_word(const json_t *json)
{
    if (!json)
        return "nothing";
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        return "object";
    case JSON_ARRAY:
        return "array";
    case JSON_STRING:
        return "string";
    case JSON_INTEGER:
        return "integer";
    case JSON_REAL:
        return "number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    case JSON_NULL:
        return "null";
    }
    return "nothing";
}

/* The member if it is there and not null. */
static const json_t *
member(const json_t *object, const char *key)
{
    const json_t *json = json_object_get(object, key);

    return json_is_null(json) ? NULL : json;
}

static int
wrong_type(const char *key, const char *expected, const json_t *json, struct err *err)
{
    return err_set(err, ERR_INVALID, "\"%.80s\": expected %s, got %s", key, expected,
                   json_type_word(json));
}

int
json_get_str(const json_t *object, const char *key, const char **ret, struct err *err)
{
    const json_t *json = member(object, key);

    if (!json)
        return JSON_ABSENT;
    if (!json_is_string(json))
        return wrong_type(key, "string", json, err);
    *ret = json_string_value(json);
    return JSON_FOUND;
}

int
json_get_i64(const json_t *object, const char *key, int64_t *ret, struct err *err)
{
    const json_t *json = member(object, key);

    if (!json)
        return JSON_ABSENT;
    if (!json_is_integer(json))
        return wrong_type(key, "integer", json, err);
    *ret = json_integer_value(json);
    return JSON_FOUND;
}

int
json_get_bool(const json_t *object, const char *key, bool *ret, struct err *err)
{
    const json_t *json = member(object, key);

    if (!json)
        return JSON_ABSENT;
    if (!json_is_boolean(json))
        return wrong_type(key, "true or false", json, err);
    *ret = json_is_true(json);
    return JSON_FOUND;
}

int
json_get_double(const json_t *object, const char *key, double *ret, struct err *err)
{
    const json_t *json = member(object, key);

    if (!json)
        return JSON_ABSENT;
    if (!json_is_number(json))
        return wrong_type(key, "number", json, err);
    *ret = json_number_value(json);
    return JSON_FOUND;
}

int
json_get_object(const json_t *object, const char *key, json_t **ret_borrowed,
                struct err *err)
{
    const json_t *json = member(object, key);

    if (!json)
        return JSON_ABSENT;
    if (!json_is_object(json))
        return wrong_type(key, "object", json, err);
    *ret_borrowed = json_object_get(object, key);
    return JSON_FOUND;
}

int
json_get_array(const json_t *object, const char *key, json_t **ret_borrowed,
               struct err *err)
{
    const json_t *json = member(object, key);

    if (!json)
        return JSON_ABSENT;
    if (!json_is_array(json))
        return wrong_type(key, "array", json, err);
    *ret_borrowed = json_object_get(object, key);
    return JSON_FOUND;
}
