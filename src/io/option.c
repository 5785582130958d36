/*
 * Checking options. Messages name the key and what may stand there, because
 * they are read by people who have just written a job.
 */
#include "io/option.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/strs.h"
#include "io/charset.h"
#include "io/row.h"

#include <string.h>

#define OPTIONS_MAX 32

static const struct io_option *
option_find(const struct io_option *options, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq(options[i].name, name))
            return &options[i];
    }
    return NULL;
}

static int
unknown_key(const char *where, const char *key, const struct io_option *options,
            size_t count, struct err *err)
{
    const char *names[OPTIONS_MAX];
    const char *near;
    scoped(buf_release) struct buf list = {0};

    buf_init(&list, 0);
    for (size_t i = 0; i < count && i < OPTIONS_MAX; i++) {
        names[i] = options[i].name;
        buf_addf(&list, "%s%s", i ? ", " : "", options[i].name);
    }
    near = str_nearest(key, names, count < OPTIONS_MAX ? count : OPTIONS_MAX);
    if (near)
        return err_set(err, ERR_CONFIG, "%s: unknown key \"%s\"; did you mean \"%s\"?",
                       where, key, near);
    return err_set(err, ERR_CONFIG, "%s: unknown key \"%s\"; there are: %s", where, key,
                   buf_str(&list));
}

static bool
word_in(const char *words, const char *word)
{
    size_t len = strlen(word);

    for (const char *p = words; *p;) {
        size_t n = strcspn(p, " ");

        if (n == len && memcmp(p, word, n) == 0)
            return true;
        p += n;
        p += strspn(p, " ");
    }
    return false;
}

static const char type_words[] = "text integer decimal real boolean date timestamp";

static bool
types_ok(const json_t *value)
{
    const char *key;
    json_t *type;

    json_object_foreach((json_t *)(uintptr_t)value, key, type)
    {
        if (!json_is_string(type) || !word_in(type_words, json_string_value(type)))
            return false;
    }
    return true;
}

static bool
list_ok(const json_t *value)
{
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (str_empty(json_string_value(json_array_get(value, i))))
            return false;
    }
    return json_array_size(value) > 0;
}

static bool
char_ok(const char *text)
{
    return text && text[0] && !text[1] && (unsigned char)text[0] < 0x80 &&
           !strchr("\"\r\n", text[0]);
}

static bool
texts_ok(const json_t *value)
{
    const char *key;
    json_t *text;

    json_object_foreach((json_t *)(uintptr_t)value, key, text)
    {
        if (str_empty(key) || str_empty(json_string_value(text)))
            return false;
    }
    return json_object_size(value) > 0;
}

static int
unknown_charset(const char *where, const char *name, struct err *err)
{
    scoped(buf_release) struct buf list = {0};

    buf_init(&list, 0);
    charset_list(&list);
    return err_set(err, ERR_CONFIG, "%s.%s: must be one of: %s", where, name,
                   buf_str(&list));
}

/* A text with a unit, or for a size a bare number. */
static int
unit_check(const char *where, const struct io_option *option, const json_t *value,
           struct err *err)
{
    const char *text = json_string_value(value);
    int64_t ignored = 0;
    int r;

    if (option->type == IO_OPTION_SIZE && json_is_integer(value) &&
        json_integer_value(value) >= 0)
        return 0;
    if (!text)
        return err_set(err, ERR_CONFIG, "%s.%s: must be a text such as %s (%s)", where,
                       option->name, option->type == IO_OPTION_SIZE ? "5MiB" : "500ms",
                       option->help);
    r = option->type == IO_OPTION_SIZE
            ? parse_size(option->name, text, &ignored, err)
            : parse_duration_us(option->name, text, &ignored, err);
    if (r == 0)
        return 0;
    err->code = ERR_CONFIG;
    return err_prefix(err, "%s", where);
}

static int
option_check(const char *where, const struct io_option *option, const json_t *value,
             struct err *err)
{
    switch (option->type) {
    case IO_OPTION_TEXT:
        if (!str_empty(json_string_value(value)))
            return 0;
        return err_set(err, ERR_CONFIG, "%s.%s: must be a text (%s)", where,
                       option->name, option->help);
    case IO_OPTION_CHAR:
        if (char_ok(json_string_value(value)))
            return 0;
        return err_set(err, ERR_CONFIG,
                       "%s.%s: must be one ASCII character, no quote or line end",
                       where, option->name);
    case IO_OPTION_BOOL:
        if (json_is_boolean(value))
            return 0;
        return err_set(err, ERR_CONFIG, "%s.%s: must be true or false", where,
                       option->name);
    case IO_OPTION_WORD:
        if (json_is_string(value) && word_in(option->words, json_string_value(value)))
            return 0;
        return err_set(err, ERR_CONFIG, "%s.%s: must be one of: %s", where,
                       option->name, option->words);
    case IO_OPTION_LIST:
        if (json_is_array(value) && list_ok(value))
            return 0;
        return err_set(err, ERR_CONFIG, "%s.%s: must be a list of names (%s)", where,
                       option->name, option->help);
    case IO_OPTION_CHARSET:
        if (charset_find(json_is_string(value) ? json_string_value(value) : ""))
            return 0;
        return unknown_charset(where, option->name, err);
    case IO_OPTION_NUMBER:
        if (json_is_integer(value) && json_integer_value(value) > 0)
            return 0;
        return err_set(err, ERR_CONFIG, "%s.%s: must be a whole number from 1 on",
                       where, option->name);
    case IO_OPTION_NAME:
        if (!str_empty(json_string_value(value)) ||
            (json_is_integer(value) && json_integer_value(value) > 0))
            return 0;
        return err_set(err, ERR_CONFIG,
                       "%s.%s: must be a name or a number from 1 on (%s)", where,
                       option->name, option->help);
    case IO_OPTION_TEXTS:
        if (json_is_object(value) && texts_ok(value))
            return 0;
        return err_set(err, ERR_CONFIG, "%s.%s: must map names to texts (%s)", where,
                       option->name, option->help);
    case IO_OPTION_MAP:
        if (json_is_object(value) && json_object_size(value) > 0)
            return 0;
        return err_set(err, ERR_CONFIG, "%s.%s: must be a map (%s)", where,
                       option->name, option->help);
    case IO_OPTION_ONE_OR_LIST:
        if (!str_empty(json_string_value(value)) ||
            (json_is_array(value) && list_ok(value)))
            return 0;
        return err_set(err, ERR_CONFIG, "%s.%s: must be a text or a list of texts (%s)",
                       where, option->name, option->help);
    case IO_OPTION_TYPES:
        if ((json_is_object(value) && types_ok(value)) ||
            (json_is_array(value) && list_ok(value)))
            return 0;
        return err_set(err, ERR_CONFIG,
                       "%s.%s: must map column names to types (%s), or be a list of "
                       "names",
                       where, option->name, type_words);
    case IO_OPTION_ANY:
        return 0;
    case IO_OPTION_COUNT:
        if (json_is_integer(value) && json_integer_value(value) >= 0)
            return 0;
        return err_set(err, ERR_CONFIG, "%s.%s: must be a whole number (%s)", where,
                       option->name, option->help);
    case IO_OPTION_DURATION:
    case IO_OPTION_SIZE:
        return unit_check(where, option, value, err);
    }
    return 0;
}

int
io_options_check(const char *where, const json_t *def, const struct io_option *options,
                 size_t count, struct err *err)
{
    const char *key;
    json_t *value;
    int r;

    if (!json_is_object(def))
        return err_set(err, ERR_CONFIG, "%s: must be a map of keys and values", where);
    json_object_foreach((json_t *)(uintptr_t)def, key, value)
    {
        const struct io_option *option = option_find(options, count, key);

        if (!option)
            return unknown_key(where, key, options, count, err);
        r = option_check(where, option, value, err);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < count; i++) {
        if (options[i].required && !json_object_get(def, options[i].name))
            return err_set(err, ERR_CONFIG, "%s: \"%s\" is missing (%s)", where,
                           options[i].name, options[i].help);
    }
    return 0;
}

const char *
io_option_text(const json_t *def, const char *name, const char *fallback)
{
    const char *text = json_string_value(json_object_get(def, name));

    return text ? text : fallback;
}

bool
io_option_bool(const json_t *def, const char *name)
{
    return json_is_true(json_object_get(def, name));
}

int64_t
io_option_number(const json_t *def, const char *name, int64_t fallback)
{
    const json_t *value = json_object_get(def, name);

    return json_is_integer(value) ? json_integer_value(value) : fallback;
}

int64_t
io_option_ms(const json_t *def, const char *name, int64_t fallback_ms)
{
    const char *text = json_string_value(json_object_get(def, name));
    struct err ignored = {0};
    int64_t us = 0;

    if (!text || parse_duration_us(name, text, &us, &ignored) < 0)
        return fallback_ms;
    return (us + 999) / 1000;
}

int64_t
io_option_size(const json_t *def, const char *name, int64_t fallback)
{
    const json_t *value = json_object_get(def, name);
    struct err ignored = {0};
    int64_t bytes = 0;

    if (json_is_integer(value))
        return json_integer_value(value);
    if (!json_is_string(value) ||
        parse_size(name, json_string_value(value), &bytes, &ignored) < 0)
        return fallback;
    return bytes;
}

char
io_option_char(const json_t *def, const char *name, char fallback)
{
    const char *text = json_string_value(json_object_get(def, name));

    return text ? text[0] : fallback;
}
