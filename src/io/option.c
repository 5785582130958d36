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
is_text(const json_t *value)
{
    return !str_empty(json_string_value(value));
}

static bool
is_char(const json_t *value)
{
    const char *text = json_string_value(value);

    return text && text[0] && !text[1] && (unsigned char)text[0] < 0x80 &&
           !strchr("\"\r\n", text[0]);
}

static bool
is_bool(const json_t *value)
{
    return json_is_boolean(value);
}

static bool
is_count(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) >= 0;
}

static bool
is_number(const json_t *value)
{
    return is_count(value) && json_integer_value(value) > 0;
}

static bool
is_name(const json_t *value)
{
    return is_text(value) || is_number(value);
}

static bool
is_list(const json_t *value)
{
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (!is_text(json_array_get(value, i)))
            return false;
    }
    return json_array_size(value) > 0; /* 0 for what is no list */
}

static bool
is_one_or_list(const json_t *value)
{
    return is_text(value) || is_list(value);
}

static bool
is_map(const json_t *value)
{
    return json_object_size(value) > 0;
}

static bool
is_texts(const json_t *value)
{
    const char *key;
    json_t *text;

    json_object_foreach((json_t *)(uintptr_t)value, key, text)
    {
        if (str_empty(key) || !is_text(text))
            return false;
    }
    return is_map(value);
}

static bool
is_types(const json_t *value)
{
    const char *key;
    json_t *type;

    json_object_foreach((json_t *)(uintptr_t)value, key, type)
    {
        if (!json_is_string(type) || !word_in(type_words, json_string_value(type)))
            return false;
    }
    return json_is_object(value) || is_list(value);
}

static bool
is_anything(const json_t *value)
{
    (void)value;
    return true;
}

/* What stands behind `must`. */
enum tail { TAIL_NONE, TAIL_HELP, TAIL_TYPES };

/* Those without a row have words of their own: option_check.
 * clang-format off */
static const struct rule {
    bool (*ok)(const json_t *value);
    const char *must;
    enum tail tail;
} rules[] = {
    [IO_OPTION_TEXT] = {is_text, "must be a text", TAIL_HELP},
    [IO_OPTION_CHAR] = {is_char, "must be one ASCII character, no quote or line end",
                        TAIL_NONE},
    [IO_OPTION_BOOL] = {is_bool, "must be true or false", TAIL_NONE},
    [IO_OPTION_LIST] = {is_list, "must be a list of names", TAIL_HELP},
    [IO_OPTION_ONE_OR_LIST] = {is_one_or_list, "must be a text or a list of texts",
                               TAIL_HELP},
    [IO_OPTION_NUMBER] = {is_number, "must be a whole number from 1 on", TAIL_NONE},
    [IO_OPTION_NAME] = {is_name, "must be a name or a number from 1 on", TAIL_HELP},
    [IO_OPTION_TEXTS] = {is_texts, "must map names to texts", TAIL_HELP},
    [IO_OPTION_MAP] = {is_map, "must be a map", TAIL_HELP},
    [IO_OPTION_TYPES] = {is_types,
                         "must be a list of names, or map column names to types",
                         TAIL_TYPES},
    [IO_OPTION_ANY] = {is_anything, NULL, TAIL_NONE},
    [IO_OPTION_COUNT] = {is_count, "must be a whole number", TAIL_HELP},
    [IO_OPTION_SIZE] = {NULL, NULL, TAIL_NONE},
};
/* clang-format on */

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
    const struct rule *rule = &rules[option->type];
    const char *text = json_string_value(value);
    const char *tail;

    if (option->type == IO_OPTION_DURATION || option->type == IO_OPTION_SIZE)
        return unit_check(where, option, value, err);
    if (option->type == IO_OPTION_CHARSET)
        return text && charset_find(text) ? 0
                                          : unknown_charset(where, option->name, err);
    if (option->type == IO_OPTION_WORD)
        return text && word_in(option->words, text)
                   ? 0
                   : err_set(err, ERR_CONFIG, "%s.%s: must be one of: %s", where,
                             option->name, option->words);
    if (rule->ok(value))
        return 0;
    if (rule->tail == TAIL_NONE)
        return err_set(err, ERR_CONFIG, "%s.%s: %s", where, option->name, rule->must);
    tail = rule->tail == TAIL_HELP ? option->help : type_words;
    return err_set(err, ERR_CONFIG, "%s.%s: %s (%s)", where, option->name, rule->must,
                   tail);
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
