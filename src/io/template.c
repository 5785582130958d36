/*
 * One walk over the text hands out literal pieces and values; what differs
 * between places is the function that adds them.
 */
#include "io/template.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/utf8.h"
#include "io/cell_text.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#define NAME_MAX_BYTES 64

typedef void (*piece_fn)(struct buf *out, const void *text, size_t len);

bool
template_has_names(const char *text)
{
    return strchr(text, '{') != NULL;
}

/* The name behind '{' at *at; moves behind '}'. */
static int
take_name(const char *where, const char *text, const char **at,
          char ret_name[NAME_MAX_BYTES], struct err *err)
{
    const char *start = *at + 1;
    size_t len = strcspn(start, "}");

    if (start[len] != '}' || len == 0 || len >= NAME_MAX_BYTES)
        return err_set(err, ERR_CONFIG,
                       "%s: \"%s\": '{' at character %td begins no {name}", where, text,
                       *at - text + 1);
    for (size_t i = 0; i < len; i++) {
        if (!isalnum((unsigned char)start[i]) && start[i] != '_')
            return err_set(err, ERR_CONFIG,
                           "%s: \"%s\": {%.*s} is no name; letters, digits and _ only",
                           where, text, (int)len, start);
    }
    memcpy(ret_name, start, len);
    ret_name[len] = '\0';
    *at = start + len + 1;
    return 0;
}

int
template_check(const char *where, const char *text, struct err *err)
{
    char name[NAME_MAX_BYTES];
    const char *at = text;
    int r;

    while (*at) {
        if (*at == '{') {
            r = take_name(where, text, &at, name, err);
            if (r < 0)
                return r;
        } else if (*at++ == '}') {
            return err_set(err, ERR_CONFIG,
                           "%s: \"%s\": '}' at character %td has no '{'", where, text,
                           at - text);
        }
    }
    return 0;
}

static int
add_value(const char *text, const char *name, const json_t *value, struct buf *out,
          piece_fn add, struct err *err)
{
    char number[CELL_TEXT_MAX];

    if (json_is_string(value))
        add(out, json_string_value(value), json_string_length(value));
    else if (json_is_integer(value))
        add(out, number, text_i64(number, json_integer_value(value)));
    else if (json_is_real(value))
        add(out, number, text_real(number, json_real_value(value)));
    else if (json_is_boolean(value))
        add(out, json_is_true(value) ? "true" : "false", json_is_true(value) ? 4 : 5);
    else if (json_is_array(value) || json_is_object(value))
        return err_set(err, ERR_CONFIG,
                       "\"%s\": parameter %s is a list; only single values fit there",
                       text, name);
    return 0; /* null adds nothing */
}

static int
template_fill(const char *text, const json_t *params, struct buf *out, piece_fn literal,
              piece_fn value, struct err *err)
{
    char name[NAME_MAX_BYTES];
    const char *at = text;
    int r;

    while (*at) {
        size_t len = strcspn(at, "{");

        literal(out, at, len);
        at += len;
        if (!*at)
            break;
        r = take_name("template", text, &at, name, err);
        if (r < 0)
            return r;
        if (!json_object_get(params, name))
            return err_set(
                err, ERR_CONFIG,
                "\"%s\": there is no parameter {%s}; declare it under params", text,
                name);
        r = add_value(text, name, json_object_get(params, name), out, value, err);
        if (r < 0)
            return r;
    }
    return buf_check(out, text, err);
}

int
template_plain(const char *text, const json_t *params, struct buf *out, struct err *err)
{
    return template_fill(text, params, out, buf_add, buf_add, err);
}

static void
add_file_literal(struct buf *out, const void *data, size_t len)
{
    const char *text = data;

    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];

        buf_add_char(out,
                     c < 0x20 || c == 0x7F || strchr("/\\:*?\"<>|", c) ? '_' : (char)c);
    }
}

static void
add_file_value(struct buf *out, const void *data, size_t len)
{
    const char *text = data;

    while (len > 0) {
        uint32_t code = 0;
        size_t n = utf8_decode(text, len, &code);
        bool hangul = n == 3 && code >= 0xAC00 && code <= 0xD7A3;
        bool plain = n == 1 && (isalnum((unsigned char)*text) || *text == '.' ||
                                *text == '_' || *text == '-');

        if (hangul || plain)
            buf_add(out, text, n);
        else
            buf_add_char(out, '_');
        n = n ? n : 1;
        text += n;
        len -= n;
    }
}

/* A value can neither climb out of a folder nor name a hidden file. */
static void
add_path_value(struct buf *out, const void *data, size_t len)
{
    size_t start = out->len;

    add_file_value(out, data, len);
    if (out->len > start && out->data[start] == '.')
        out->data[start] = '_';
}

int
template_path(const char *text, const json_t *params, struct buf *out, struct err *err)
{
    return template_fill(text, params, out, buf_add, add_path_value, err);
}

/* Cut in the middle, so that .xlsx stays at the end. */
static void
add_cut(struct buf *out, const char *name, size_t len)
{
    const char *dot = memrchr(name, '.', len);
    size_t tail = dot ? (size_t)(name + len - dot) : 0;

    if (len > TEMPLATE_FILE_NAME_MAX_BYTES) {
        if (tail > 16)
            tail = 0;
        buf_add(out, name, utf8_cut(name, len, TEMPLATE_FILE_NAME_MAX_BYTES - tail));
        buf_add(out, name + len - tail, tail);
    } else {
        buf_add(out, name, len);
    }
}

int
template_file_name(const char *text, const json_t *params, struct buf *out,
                   struct err *err)
{
    scoped(buf_release) struct buf made = {0};
    scoped(buf_release) struct buf clean = {0};
    int r;

    buf_init(&made, 1 << 20);
    buf_init(&clean, 0);
    r = template_fill(text, params, &made, add_file_literal, add_file_value, err);
    if (r < 0)
        return r;
    utf8_repair(made.data ? made.data : "", made.len, &clean);
    if (clean.len == 0)
        buf_add_char(&clean, '_');
    if (clean.data[0] == '.')
        clean.data[0] = '_';
    add_cut(out, clean.data, clean.len);
    return buf_check(out, "file name", err);
}
