/*
 * The canonical text: equal parameters give equal bytes, here and in the SQL
 * function of the PostgreSQL schema. The rule is docs/canonical-parameters.md,
 * the cases are tests/vectors/canonical.json; change all three or none.
 *
 * Reals are the hard part. 15 significant digits are what every double keeps of
 * a decimal number, and what PostgreSQL makes of a double when it becomes
 * numeric; a real that needs more has no canonical text. Reals from 10^15 on
 * have none either: jansson has rounded them by then, PostgreSQL has not.
 */
#include "base/json.h"

#include "base/arena.h"
#include "base/err.h"

#include <math.h>

#define REAL_DIGITS 15
#define REAL_LIMIT  1e15

static int canonical(const json_t *value, int depth, struct buf *buf, struct err *err);

/* digits (no trailing zeros) times 10^exponent, the first digit before the point,
 * written without exponent. */
static void
add_plain(struct buf *buf, const char *digits, int exponent)
{
    int count = (int)strlen(digits);

    if (exponent < 0) {
        buf_add_str(buf, "0.");
        for (int i = -1; i > exponent; i--)
            buf_add_char(buf, '0');
        buf_add_str(buf, digits);
        return;
    }
    for (int i = 0; i < count || i <= exponent; i++) {
        if (i == exponent + 1)
            buf_add_char(buf, '.');
        buf_add_char(buf, i < count ? digits[i] : '0');
    }
}

static int
add_real(double value, struct buf *buf, struct err *err)
{
    char text[40]; /* d.dddddddddddddde-ddd */
    char digits[REAL_DIGITS + 1];
    const char *exponent;
    size_t count = 0;

    if (!isfinite(value) || fabs(value) >= REAL_LIMIT)
        return err_set(err, ERR_INVALID,
                       "the number %.17g is too large: write whole numbers without "
                       "point and exponent",
                       value);
    snprintf(text, sizeof(text), "%.*e", REAL_DIGITS - 1, fabs(value));
    if (strtod(text, NULL) != fabs(value))
        return err_set(err, ERR_INVALID,
                       "the number %.17g has more than %d significant digits: give it "
                       "as a string",
                       value, REAL_DIGITS);
    exponent = strchr(text, 'e');
    for (const char *at = text; at < exponent; at++)
        if (*at != '.')
            digits[count++] = *at;
    while (count > 1 && digits[count - 1] == '0')
        count--;
    digits[count] = '\0';
    if (value < 0) /* not so -0.0, whose canonical text is 0 */
        buf_add_char(buf, '-');
    add_plain(buf, digits, (int)strtol(exponent + 1, NULL, 10));
    return 0;
}

static int
compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int
add_members(const json_t *object, const char **keys, size_t count, int depth,
            struct buf *buf, struct err *err)
{
    buf_add_char(buf, '{');
    for (size_t i = 0; i < count; i++) {
        int r;

        if (i > 0)
            buf_add_char(buf, ',');
        json_escape(buf, keys[i], strlen(keys[i]));
        buf_add_char(buf, ':');
        r = canonical(json_object_get(object, keys[i]), depth + 1, buf, err);
        if (r < 0)
            return r;
    }
    buf_add_char(buf, '}');
    return 0;
}

static int
add_object(const json_t *value, int depth, struct buf *buf, struct err *err)
{
    json_t *object = (json_t *)(uintptr_t)value; /* only read by the iterators */
    scoped(xfree_ptr) const char **keys =
        xcalloc(json_object_size(value), sizeof(*keys));
    size_t count = 0;

    for (void *at = json_object_iter(object); at;
         at = json_object_iter_next(object, at))
        keys[count++] = json_object_iter_key(at);
    qsort(keys, count, sizeof(*keys), compare_keys);
    return add_members(value, keys, count, depth, buf, err);
}

static int
add_array(const json_t *value, int depth, struct buf *buf, struct err *err)
{
    buf_add_char(buf, '[');
    for (size_t i = 0; i < json_array_size(value); i++) {
        int r;

        if (i > 0)
            buf_add_char(buf, ',');
        r = canonical(json_array_get(value, i), depth + 1, buf, err);
        if (r < 0)
            return r;
    }
    buf_add_char(buf, ']');
    return 0;
}

static int
canonical(const json_t *value, int depth, struct buf *buf, struct err *err)
{
    if ((json_is_object(value) || json_is_array(value)) && depth >= JSON_DEPTH_MAX)
        return err_set(err, ERR_INVALID, "nested deeper than %d levels",
                       JSON_DEPTH_MAX);
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return add_object(value, depth, buf, err);
    case JSON_ARRAY:
        return add_array(value, depth, buf, err);
    case JSON_STRING:
        json_escape(buf, json_string_value(value), json_string_length(value));
        return 0;
    case JSON_INTEGER:
        buf_add_i64(buf, json_integer_value(value));
        return 0;
    case JSON_REAL:
        return add_real(json_real_value(value), buf, err);
    case JSON_TRUE:
        buf_add_str(buf, "true");
        return 0;
    case JSON_FALSE:
        buf_add_str(buf, "false");
        return 0;
    case JSON_NULL:
        buf_add_str(buf, "null");
        return 0;
    }
    return err_set(err, ERR_INTERNAL, "a JSON value of unknown type");
}

int
json_canonical(const json_t *value, struct buf *buf, struct err *err)
{
    int r = canonical(value, 0, buf, err);

    return r < 0 ? r : buf_check(buf, "the canonical text of the parameters", err);
}
