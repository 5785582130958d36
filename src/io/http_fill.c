/* The texts of a call with their values: URL, headers, body. */
#include "io/http_talk_private.h"

#include "base/buf.h"
#include "base/err.h"
#include "io/call_text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool
is_empty_text(const json_t *text)
{
    return json_is_string(text) && json_string_length(text) == 0;
}

/* A single value of a map: a template, a number, a boolean. */
static int
fill_value(const struct http_attempt *attempt, const char *where, const json_t *value,
           enum call_place place, struct buf *out, struct err *err)
{
    char room[48];

    if (json_is_string(value))
        return call_text_fill(where, json_string_value(value), attempt->names, place,
                              out, err);
    buf_add_str(out, reply_text(value, room));
    return 0;
}

static void
add_pair(struct buf *url, const char *name, const struct buf *value)
{
    buf_add_char(url, strchr(buf_str(url), '?') ? '&' : '?');
    percent_encode(url, name, strlen(name));
    buf_add_char(url, '=');
    buf_add(url, value->data, value->len);
}

int
http_fill_url(const struct http_attempt *attempt, struct buf *url, struct err *err)
{
    const char *key;
    json_t *text;
    int r =
        call_text_fill("url", attempt->spec->url, attempt->names, CALL_URL, url, err);

    json_object_foreach((json_t *)(uintptr_t)attempt->spec->query, key, text)
    {
        scoped(buf_release) struct buf value = {0};

        buf_init(&value, CALL_URL_MAX_BYTES);
        if (r == 0)
            r = fill_value(attempt, key, text, CALL_QUERY, &value, err);
        if (r < 0)
            return r;
        if (value.len > 0 || is_empty_text(text))
            add_pair(url, key, &value);
    }
    for (size_t i = 0; attempt->extras && i < 2; i++)
        if (attempt->extras[i].name)
            buf_addf(url, "%c%s=%s", strchr(buf_str(url), '?') ? '&' : '?',
                     attempt->extras[i].name, attempt->extras[i].value);
    return r < 0 ? r : buf_check(url, "the URL with its query", err);
}

const struct http_sent *
http_sent_of(const struct http_attempt *attempt)
{
    const struct http_talk *talk = attempt->talk;

    return attempt->spec == talk->link->spec ? talk->sent : NULL;
}

static bool
has_field(const struct http_field *fields, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcasecmp(fields[i].name, name) == 0)
            return true;
    return false;
}

int
http_fill_headers(const struct http_attempt *attempt, struct http_field *fields,
                  size_t *ret_count, struct err *err)
{
    struct arena *arena = &attempt->talk->arena;
    const char *key;
    json_t *text;
    const struct http_sent *sent = http_sent_of(attempt);
    size_t count = 0;

    json_object_foreach((json_t *)(uintptr_t)attempt->spec->headers, key, text)
    {
        scoped(buf_release) struct buf value = {0};
        int r;

        if (count == CALL_FIELDS_MAX - 2)
            return err_set(err, ERR_CONFIG, "headers: at most %d", CALL_FIELDS_MAX - 2);
        buf_init(&value, CALL_URL_MAX_BYTES);
        r = fill_value(attempt, key, text, CALL_HEADER, &value, err);
        if (r < 0)
            return r;
        fields[count++] = (struct http_field){
            arena_strdup(arena, key), arena_strndup(arena, buf_str(&value), value.len)};
    }
    if (attempt->spec->json)
        fields[count++] = (struct http_field){"Content-Type", "application/json"};
    if (sent && sent->body && !has_field(fields, count, "Content-Type"))
        fields[count++] = (struct http_field){"Content-Type", sent->content_type};
    if (sent)
        fields[count++] = (struct http_field){sent->header, sent->value};
    *ret_count = count;
    return 0;
}

/* A copy of the value with all its texts filled. */
static int
fill_json(const struct http_attempt *attempt, const json_t *value, json_t **ret,
          struct err *err)
{
    scoped(buf_release) struct buf text = {0};
    const char *key;
    json_t *member;
    json_t *made = NULL;
    size_t i;
    int r = 0;

    *ret = NULL;
    if (json_is_string(value)) {
        buf_init(&text, CALL_BODY_MAX_BYTES);
        r = call_text_fill("json", json_string_value(value), attempt->names, CALL_PLAIN,
                           &text, err);
        made = r == 0 ? json_stringn(buf_str(&text), text.len) : NULL;
        if (r == 0 && !made)
            r = err_set(err, ERR_INVALID, "json: a value is not UTF-8");
    } else if (json_is_object(value)) {
        made = json_object();
        json_object_foreach((json_t *)(uintptr_t)value, key, member)
        {
            json_t *filled = NULL;

            if (r == 0)
                r = fill_json(attempt, member, &filled, err);
            if (r == 0)
                json_object_set_new(made, key, filled);
        }
    } else if (json_is_array(value)) {
        made = json_array();
        json_array_foreach(value, i, member)
        {
            json_t *filled = NULL;

            if (r == 0)
                r = fill_json(attempt, member, &filled, err);
            if (r == 0)
                json_array_append_new(made, filled);
        }
    } else {
        made = json_deep_copy(value);
    }
    if (r < 0) {
        json_decref(made);
        return r;
    }
    *ret = made;
    return 0;
}

int
http_fill_body(const struct http_attempt *attempt, struct buf *body, struct err *err)
{
    json_t *filled = NULL;
    char *text;
    int r;

    if (attempt->spec->body)
        return call_text_fill("body", attempt->spec->body, attempt->names, CALL_PLAIN,
                              body, err);
    if (!attempt->spec->json)
        return 0;
    r = fill_json(attempt, attempt->spec->json, &filled, err);
    if (r < 0)
        return r;
    text = json_dumps(filled, JSON_COMPACT | JSON_ENCODE_ANY);
    json_decref(filled);
    if (text)
        buf_add_str(body, text);
    free(text);
    return buf_check(body, "the body", err);
}
