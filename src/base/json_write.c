#include "base/json.h"

#include "base/civil.h"
#include "base/utf8.h"

#include <assert.h>
#include <math.h>

void
json_out_init(struct json_out *out, struct buf *buf)
{
    memset(out, 0, sizeof(*out));
    out->buf = buf;
}

/* Comma where one is due; every value and every key begins here. */
static void
separate(struct json_out *out)
{
    if (out->depth == 0)
        return;
    if (out->levels[out->depth - 1].has_members)
        buf_add_char(out->buf, ',');
    out->levels[out->depth - 1].has_members = true;
}

static void
begin_value(struct json_out *out)
{
    if (out->after_key) {
        out->after_key = false;
        return;
    }
    assert(out->depth == 0 || !out->levels[out->depth - 1].object);
    separate(out);
}

static void
begin_level(struct json_out *out, bool object)
{
    begin_value(out);
    assert(out->depth < JSON_OUT_DEPTH_MAX);
    out->levels[out->depth].object = object;
    out->levels[out->depth].has_members = false;
    out->depth++;
    buf_add_char(out->buf, object ? '{' : '[');
}

static void
end_level(struct json_out *out, bool object)
{
    assert(out->depth > 0 && !out->after_key);
    out->depth--;
    assert(out->levels[out->depth].object == object);
    buf_add_char(out->buf, object ? '}' : ']');
}

void
json_begin_object(struct json_out *out)
{
    begin_level(out, true);
}

void
json_end_object(struct json_out *out)
{
    end_level(out, true);
}

void
json_begin_array(struct json_out *out)
{
    begin_level(out, false);
}

void
json_end_array(struct json_out *out)
{
    end_level(out, false);
}

void
json_key(struct json_out *out, const char *key)
{
    assert(out->depth > 0 && out->levels[out->depth - 1].object && !out->after_key);
    separate(out);
    json_escape(out->buf, key, strlen(key));
    buf_add_char(out->buf, ':');
    out->after_key = true;
}

static void
escape_byte(struct buf *buf, unsigned char byte)
{
    static const char letters[256] = {
        ['"'] = '"',  ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f',
        ['\n'] = 'n', ['\r'] = 'r',  ['\t'] = 't',
    };

    if (letters[byte]) {
        buf_add_char(buf, '\\');
        buf_add_char(buf, letters[byte]);
    } else {
        buf_addf(buf, "\\u%04x", byte);
    }
}

/* text is well-formed UTF-8. Runs without anything to escape go in one piece. */
static void
escape_valid(struct buf *buf, const char *text, size_t len)
{
    size_t start = 0;

    for (size_t at = 0; at < len; at++) {
        unsigned char byte = (unsigned char)text[at];

        if (byte >= 0x20 && byte != '"' && byte != '\\')
            continue;
        buf_add(buf, text + start, at - start);
        escape_byte(buf, byte);
        start = at + 1;
    }
    buf_add(buf, text + start, len - start);
}

void
json_escape(struct buf *buf, const char *value, size_t len)
{
    buf_add_char(buf, '"');
    if (utf8_valid(value, len)) {
        escape_valid(buf, value, len);
    } else {
        scoped(buf_release) struct buf repaired = {.max = buf->max};

        utf8_repair(value, len, &repaired);
        escape_valid(buf, buf_str(&repaired), repaired.len);
        buf->overflow |= repaired.overflow;
    }
    buf_add_char(buf, '"');
}

void
json_put_strn(struct json_out *out, const char *value, size_t len)
{
    if (!value) {
        json_put_null(out);
        return;
    }
    begin_value(out);
    json_escape(out->buf, value, len);
}

void
json_put_str(struct json_out *out, const char *value)
{
    json_put_strn(out, value, value ? strlen(value) : 0);
}

void
json_put_i64(struct json_out *out, int64_t value)
{
    begin_value(out);
    buf_add_i64(out->buf, value);
}

void
json_put_double(struct json_out *out, double value)
{
    char text[32];

    if (!isfinite(value)) {
        json_put_null(out);
        return;
    }
    begin_value(out);
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    buf_add_str(out->buf, text);
}

void
json_put_bool(struct json_out *out, bool value)
{
    json_put_raw(out, value ? "true" : "false");
}

void
json_put_null(struct json_out *out)
{
    json_put_raw(out, "null");
}

void
json_put_raw(struct json_out *out, const char *json)
{
    begin_value(out);
    buf_add_str(out->buf, json ? json : "null");
}

void
json_put_time_us(struct json_out *out, int64_t time_us)
{
    char text[CIVIL_TEXT_SIZE];

    if (time_us == 0) {
        json_put_null(out);
        return;
    }
    civil_format_us(time_us, 3, text);
    json_put_str(out, text);
}

static void
put_object(struct json_out *out, const json_t *value)
{
    /* jansson's iterators ask for a writable object, which they do not write. */
    json_t *object = (json_t *)(uintptr_t)value;
    void *at;

    json_begin_object(out);
    for (at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
        json_key(out, json_object_iter_key(at));
        json_put_value(out, json_object_iter_value(at));
    }
    json_end_object(out);
}

static void
put_array(struct json_out *out, const json_t *value)
{
    json_begin_array(out);
    for (size_t i = 0; i < json_array_size(value); i++)
        json_put_value(out, json_array_get(value, i));
    json_end_array(out);
}

void
json_put_value(struct json_out *out, const json_t *value)
{
    if (!value) {
        json_put_null(out);
        return;
    }
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        put_object(out, value);
        return;
    case JSON_ARRAY:
        put_array(out, value);
        return;
    case JSON_STRING:
        json_put_strn(out, json_string_value(value), json_string_length(value));
        return;
    case JSON_INTEGER:
        json_put_i64(out, json_integer_value(value));
        return;
    case JSON_REAL:
        json_put_double(out, json_real_value(value));
        return;
    case JSON_TRUE:
    case JSON_FALSE:
        json_put_bool(out, json_is_true(value));
        return;
    case JSON_NULL:
        json_put_null(out);
        return;
    }
}

void
json_kv_str(struct json_out *out, const char *key, const char *value)
{
    json_key(out, key);
    json_put_str(out, value);
}

void
json_kv_strn(struct json_out *out, const char *key, const char *value, size_t len)
{
    json_key(out, key);
    json_put_strn(out, value, len);
}

void
json_kv_i64(struct json_out *out, const char *key, int64_t value)
{
    json_key(out, key);
    json_put_i64(out, value);
}

void
json_kv_double(struct json_out *out, const char *key, double value)
{
    json_key(out, key);
    json_put_double(out, value);
}

void
json_kv_bool(struct json_out *out, const char *key, bool value)
{
    json_key(out, key);
    json_put_bool(out, value);
}

void
json_kv_null(struct json_out *out, const char *key)
{
    json_key(out, key);
    json_put_null(out);
}

void
json_kv_raw(struct json_out *out, const char *key, const char *json)
{
    json_key(out, key);
    json_put_raw(out, json);
}

void
json_kv_value(struct json_out *out, const char *key, const json_t *value)
{
    json_key(out, key);
    json_put_value(out, value);
}

void
json_kv_time_us(struct json_out *out, const char *key, int64_t time_us)
{
    json_key(out, key);
    json_put_time_us(out, time_us);
}
