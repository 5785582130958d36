#include "io/http_spec.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/strs.h"
#include "io/call_text.h"
#include "io/option.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPLY_BYTES   (INT64_C(16) << 20)
#define REPLY_MAX     (INT64_C(64) << 20)
#define FETCH_BYTES   (INT64_C(1) << 30)
#define CONTENT_BYTES (INT64_C(5) << 20)
#define WHERE_MAX     80

/* clang-format off */
static const struct io_option outcome_options[] = {
    {"code", IO_OPTION_ANY, false, NULL, "path of a code in the reply, or a list of paths"},
    {"message", IO_OPTION_ANY, false, NULL, "path of its text for people, or a list"},
    {"codes", IO_OPTION_MAP, false, NULL, "code to outcome"},
    {"other", IO_OPTION_TEXT, false, NULL, "outcome of any other code"},
    {"absent", IO_OPTION_TEXT, false, NULL, "outcome of a reply without a code"},
    {"status", IO_OPTION_MAP, false, NULL, "HTTP status (429, 4xx, default) to outcome"},
};

static const struct io_option retry_options[] = {
    {"attempts", IO_OPTION_COUNT, false, NULL, "in all; default 3"},
    {"wait", IO_OPTION_DURATION, false, NULL, "before the second; default 500ms"},
    {"factor", IO_OPTION_COUNT, false, NULL, "growth of the wait; default 2"},
    {"max_wait", IO_OPTION_DURATION, false, NULL, "longest wait; default 30s"},
};

static const struct io_option rows_options[] = {
    {"json", IO_OPTION_TEXT, false, NULL, "path"},
    {"xml", IO_OPTION_TEXT, false, NULL, "path"},
};

static const struct io_option pages_options[] = {
    {"param", IO_OPTION_TEXT, true, NULL, "query parameter of the page number"},
    {"size_param", IO_OPTION_TEXT, false, NULL, "query parameter of the size"},
    {"size", IO_OPTION_COUNT, false, NULL, "rows of a page"},
    {"from", IO_OPTION_COUNT, false, NULL, "number of the first page; default 1"},
    {"step", IO_OPTION_ANY, false, NULL, "added for the next page; 1, or `size`"},
    {"total", IO_OPTION_TEXT, false, NULL, "path of the number of rows"},
    {"last", IO_OPTION_TEXT, false, NULL, "path of the number of pages"},
    {"max", IO_OPTION_COUNT, false, NULL, "most pages; default 1000"},
};

static const struct io_option content_options[] = {
    {"as", IO_OPTION_TEXT, true, NULL, "column"},
    {"zip", IO_OPTION_TEXT, false, NULL, "entry of the zip that the body is; * the first"},
    {"encoding", IO_OPTION_LIST, false, NULL, "tried in order; default utf-8"},
    {"max_bytes", IO_OPTION_SIZE, false, NULL, "of the text; default 5MiB"},
};
/* clang-format on */

static const char *const outcome_words[] = {
    [HTTP_OK] = "ok",       [HTTP_NO_DATA] = "no-data",
    [HTTP_LIMIT] = "limit", [HTTP_TRANSIENT] = "transient",
    [HTTP_FATAL] = "fatal", [HTTP_RENEW] = "renew",
    [HTTP_SKIP] = "skip",
};

bool
http_outcome_parse(const char *word, enum http_outcome *ret_outcome)
{
    static_assert_count(outcome_words, HTTP_OUTCOME_COUNT);
    for (size_t i = 0; i < HTTP_OUTCOME_COUNT; i++)
        if (str_eq(outcome_words[i], word)) {
            *ret_outcome = (enum http_outcome)i;
            return true;
        }
    return false;
}

/* --- parts --- */

static int
sub_check(const struct http_spec *spec, const char *name, const json_t *def,
          const struct io_option *options, size_t count, struct err *err)
{
    char where[WHERE_MAX];

    snprintf(where, sizeof(where), "%s.%s", spec->where, name);
    return io_options_check(where, def, options, count, err);
}

static int
outcome_check(const struct http_spec *spec, const char *name, const char *word,
              struct err *err)
{
    enum http_outcome ignored;

    if (word && http_outcome_parse(word, &ignored))
        return 0;
    return err_set(err, ERR_CONFIG,
                   "%s.outcomes.%s: must be one of: ok, no-data, limit, transient, "
                   "fatal, renew, skip",
                   spec->where, name);
}

static int
outcome_map_check(const struct http_spec *spec, const char *name, const json_t *map,
                  struct err *err)
{
    const char *key;
    json_t *word;

    json_object_foreach((json_t *)(uintptr_t)map, key, word)
    {
        int r = outcome_check(spec, name, json_string_value(word), err);

        if (r < 0)
            return err_prefix(err, "\"%s\"", key);
    }
    return 0;
}

/* A status is 100 to 599, a class 1xx to 5xx, or default. */
static int
status_check(const struct http_spec *spec, struct err *err)
{
    const char *key;
    json_t *word;

    json_object_foreach((json_t *)(uintptr_t)spec->status, key, word)
    {
        bool digits = strlen(key) == 3 && strspn(key, "0123456789") == 3;
        bool group =
            strlen(key) == 3 && strchr("12345", key[0]) && str_eq(key + 1, "xx");

        if (!digits && !group && !str_eq(key, "default"))
            return err_set(err, ERR_CONFIG,
                           "%s.outcomes.status: \"%s\" is no HTTP status; 429, 4xx or "
                           "default",
                           spec->where, key);
    }
    return outcome_map_check(spec, "status", spec->status, err);
}

static int
read_paths(const struct http_spec *spec, const char *name, const json_t *def,
           const char *ret_paths[HTTP_CODE_PATHS_MAX], size_t *ret_count,
           struct err *err)
{
    size_t count = json_is_array(def) ? json_array_size(def) : def ? 1 : 0;

    if (count > HTTP_CODE_PATHS_MAX)
        return err_set(err, ERR_CONFIG, "%s.%s: at most %d paths", spec->where, name,
                       HTTP_CODE_PATHS_MAX);
    for (size_t i = 0; i < count; i++) {
        const char *path =
            json_string_value(json_is_array(def) ? json_array_get(def, i) : def);
        int r = reply_path_check(name, path, err);

        if (r < 0)
            return err_prefix(err, "%s", spec->where);
        ret_paths[i] = path;
    }
    *ret_count = count;
    return 0;
}

static int
read_outcomes(struct http_spec *spec, struct err *err)
{
    const json_t *def = json_object_get(spec->def, "outcomes");
    const char *other = io_option_text(def, "other", "transient");
    const char *absent = io_option_text(def, "absent", "ok");
    int r = 0;

    spec->other = HTTP_TRANSIENT;
    spec->absent = HTTP_OK;
    if (!def)
        return 0;
    spec->codes = json_object_get(def, "codes");
    spec->status = json_object_get(def, "status");
    r = sub_check(spec, "outcomes", def, outcome_options, array_len(outcome_options),
                  err);
    if (r == 0)
        r = read_paths(spec, "outcomes.code", json_object_get(def, "code"),
                       spec->code_paths, &spec->n_code_paths, err);
    if (r == 0)
        r = read_paths(spec, "outcomes.message", json_object_get(def, "message"),
                       spec->message_paths, &spec->n_message_paths, err);
    if (r == 0)
        r = outcome_map_check(spec, "codes", spec->codes, err);
    if (r == 0)
        r = status_check(spec, err);
    if (r == 0)
        r = outcome_check(spec, "other", other, err);
    if (r == 0)
        r = outcome_check(spec, "absent", absent, err);
    if (r < 0)
        return r;
    (void)http_outcome_parse(other, &spec->other);
    (void)http_outcome_parse(absent, &spec->absent);
    if (spec->codes && spec->n_code_paths == 0)
        return err_set(err, ERR_CONFIG,
                       "%s.outcomes: \"codes\" needs \"code\", the path where they are",
                       spec->where);
    return 0;
}

static int
read_retry(struct http_spec *spec, struct err *err)
{
    const json_t *def = json_object_get(spec->def, "retry");
    bool none = str_eq(json_string_value(def), "none");
    int r = 0;

    if (def && !none)
        r = sub_check(spec, "retry", def, retry_options, array_len(retry_options), err);
    if (r < 0)
        return r;
    spec->attempts = none ? 1 : (int)io_option_number(def, "attempts", 3);
    spec->wait_ms = io_option_ms(def, "wait", 500);
    spec->factor = io_option_number(def, "factor", 2);
    spec->max_wait_ms = io_option_ms(def, "max_wait", 30000);
    if (spec->attempts < 1 || spec->attempts > 100)
        return err_set(err, ERR_CONFIG, "%s.retry.attempts: must be 1 to 100",
                       spec->where);
    if (spec->factor < 1 || spec->factor > 10)
        return err_set(err, ERR_CONFIG, "%s.retry.factor: must be 1 to 10",
                       spec->where);
    if (spec->max_wait_ms < spec->wait_ms)
        spec->max_wait_ms = spec->wait_ms;
    return 0;
}

static int
read_rows(struct http_spec *spec, struct err *err)
{
    const json_t *def = json_object_get(spec->def, "rows");
    const char *json = io_option_text(def, "json", NULL);
    const char *xml = io_option_text(def, "xml", NULL);
    int r;

    spec->rows_format = xml ? REPLY_XML : REPLY_JSON;
    spec->rows_path = xml ? xml : json;
    spec->loose = xml != NULL;
    if (!def)
        return 0;
    r = sub_check(spec, "rows", def, rows_options, array_len(rows_options), err);
    if (r < 0)
        return r;
    if ((json == NULL) == (xml == NULL))
        return err_set(err, ERR_CONFIG, "%s.rows: needs either \"json\" or \"xml\"",
                       spec->where);
    r = reply_path_check("rows", spec->rows_path, err);
    return r < 0 ? err_prefix(err, "%s", spec->where) : 0;
}

static int
read_fields(struct http_spec *spec, struct err *err)
{
    const char *column;
    json_t *path;
    size_t i;
    int r = 0;

    spec->fields = json_object_get(spec->def, "fields");
    spec->columns = json_object_get(spec->def, "columns");
    if (json_is_array(spec->fields)) {
        json_array_foreach(spec->fields, i, path)
        {
            if (r == 0)
                r = reply_path_check("fields", json_string_value(path), err);
        }
    } else if (json_is_object(spec->fields)) {
        json_object_foreach((json_t *)(uintptr_t)spec->fields, column, path)
        {
            if (r == 0)
                r = reply_path_check("fields", json_string_value(path), err);
        }
    } else if (spec->fields) {
        return err_set(err, ERR_CONFIG,
                       "%s.fields: must map columns to paths, or be a list of names",
                       spec->where);
    }
    return r < 0 ? err_prefix(err, "%s", spec->where) : 0;
}

static int
read_alternatives(struct http_spec *spec, struct err *err)
{
    const json_t *def = json_object_get(spec->def, "alternatives");
    const char *name;
    json_t *values;
    size_t i;
    json_t *value;

    if (!def)
        return 0;
    if (json_object_size(def) != 1)
        return err_set(err, ERR_CONFIG,
                       "%s.alternatives: must be one name with its values, such as "
                       "{kind: [A, B]}",
                       spec->where);
    json_object_foreach((json_t *)(uintptr_t)def, name, values)
    {
        spec->alternative = name;
        spec->alternatives = values;
    }
    if (json_is_string(spec->alternatives))
        return 0;
    json_array_foreach(spec->alternatives, i, value)
    {
        if (!json_is_string(value))
            return err_set(err, ERR_CONFIG, "%s.alternatives: values must be texts",
                           spec->where);
    }
    if (json_array_size(spec->alternatives) == 0)
        return err_set(err, ERR_CONFIG, "%s.alternatives: there must be some values",
                       spec->where);
    return 0;
}

static int
read_pages(struct http_spec *spec, struct err *err)
{
    const json_t *def = json_object_get(spec->def, "pages");
    const json_t *step = json_object_get(def, "step");
    struct http_pages *pages = &spec->pages;
    int r;

    if (!def)
        return 0;
    r = sub_check(spec, "pages", def, pages_options, array_len(pages_options), err);
    if (r < 0)
        return r;
    pages->param = io_option_text(def, "param", NULL);
    pages->size_param = io_option_text(def, "size_param", NULL);
    pages->size = io_option_number(def, "size", 0);
    pages->from = io_option_number(def, "from", 1);
    pages->step = str_eq(json_string_value(step), "size") ? pages->size
                  : json_is_integer(step)                 ? json_integer_value(step)
                  : step                                  ? 0
                                                          : 1;
    pages->max = io_option_number(def, "max", 1000);
    pages->total = io_option_text(def, "total", NULL);
    pages->last = io_option_text(def, "last", NULL);
    if (pages->step < 1)
        return err_set(
            err, ERR_CONFIG,
            "%s.pages.step: must be a number from 1, or `size` (with a size)",
            spec->where);
    if (!spec->rows_path)
        return err_set(err, ERR_CONFIG, "%s.pages: pages need \"rows\"", spec->where);
    if (pages->size_param && pages->size < 1)
        return err_set(err, ERR_CONFIG, "%s.pages: \"size_param\" needs \"size\"",
                       spec->where);
    return 0;
}

static int
read_content(struct http_spec *spec, struct err *err)
{
    const json_t *def = json_object_get(spec->def, "content");
    int r;

    if (!def)
        return 0;
    r = sub_check(spec, "content", def, content_options, array_len(content_options),
                  err);
    if (r < 0)
        return r;
    spec->content = (struct http_content){
        .column = io_option_text(def, "as", NULL),
        .zip = io_option_text(def, "zip", NULL),
        .encodings = json_object_get(def, "encoding"),
        .max_bytes = io_option_size(def, "max_bytes", CONTENT_BYTES),
    };
    if (spec->content.zip)
        r = call_text_check_plain("content.zip", spec->content.zip, err);
    if (r < 0)
        return err_prefix(err, "%s", spec->where);
    if (spec->rows_path)
        return err_set(err, ERR_CONFIG,
                       "%s: \"content\" is one row, it does not go with \"rows\"",
                       spec->where);
    return 0;
}

static int
read_token(struct http_spec *spec, struct err *err)
{
    const json_t *def = json_object_get(spec->def, "token");

    if (!def)
        return 0;
    spec->token = xcalloc(1, sizeof(*spec->token));
    return http_spec_read(def, "token", HTTP_USE_TOKEN, spec->token, err);
}

/* --- the call itself --- */

static int
templates_check(const struct http_spec *spec, const char *name, const json_t *map,
                struct err *err)
{
    const char *key;
    json_t *text;

    json_object_foreach((json_t *)(uintptr_t)map, key, text)
    {
        int r = 0;

        if (json_is_string(text))
            r = call_text_check(key, json_string_value(text), err);
        else if (!json_is_number(text) && !json_is_boolean(text))
            r = err_set(err, ERR_CONFIG, "\"%s\" must be a single value", key);
        if (r < 0)
            return err_prefix(err, "%s.%s", spec->where, name);
    }
    return 0;
}

static int
json_templates_check(const json_t *value, struct err *err)
{
    const char *key;
    json_t *member;
    size_t i;
    int r = 0;

    if (json_is_string(value))
        return call_text_check("json", json_string_value(value), err);
    if (json_is_object(value)) {
        json_object_foreach((json_t *)(uintptr_t)value, key, member)
        {
            if (r == 0)
                r = json_templates_check(member, err);
        }
    } else if (json_is_array(value)) {
        json_array_foreach(value, i, member)
        {
            if (r == 0)
                r = json_templates_check(member, err);
        }
    }
    return r;
}

static int
read_call(struct http_spec *spec, struct err *err)
{
    const json_t *def = spec->def;
    bool has_body;
    int r;

    spec->url = io_option_text(def, "url", "");
    spec->query = json_object_get(def, "query");
    spec->headers = json_object_get(def, "headers");
    spec->body = io_option_text(def, "body", NULL);
    spec->json = json_object_get(def, "json");
    spec->budget = io_option_text(def, "budget", NULL);
    spec->connect_ms = io_option_ms(def, "connect_timeout", 10000);
    spec->timeout_ms = io_option_ms(def, "timeout", 60000);
    spec->max_bytes = io_option_size(
        def, "max_bytes", spec->use == HTTP_USE_FETCH ? FETCH_BYTES : REPLY_BYTES);
    has_body = spec->body || spec->json;
    has_body = has_body || spec->use == HTTP_USE_WRITE;
    spec->method = io_option_text(def, "method", has_body ? "POST" : "GET");
    if (!str_starts_with(spec->url, "http://") &&
        !str_starts_with(spec->url, "https://"))
        return err_set(err, ERR_CONFIG,
                       "%s.url: must begin with http:// or https:// (the host is no "
                       "place for a {name})",
                       spec->where);
    if (spec->body && spec->json)
        return err_set(err, ERR_CONFIG, "%s: has both \"body\" and \"json\"",
                       spec->where);
    if (spec->max_bytes < 1 ||
        (spec->use != HTTP_USE_FETCH && spec->max_bytes > REPLY_MAX))
        return err_set(err, ERR_CONFIG, "%s.max_bytes: must be 1 to 64MiB",
                       spec->where);
    r = call_text_check("url", spec->url, err);
    if (r == 0 && spec->body)
        r = call_text_check("body", spec->body, err);
    if (r == 0)
        r = json_templates_check(spec->json, err);
    if (r < 0)
        return err_prefix(err, "%s", spec->where);
    r = templates_check(spec, "query", spec->query, err);
    return r == 0 ? templates_check(spec, "headers", spec->headers, err) : r;
}

int
http_spec_read(const json_t *def, const char *where, enum http_use use,
               struct http_spec *ret_spec, struct err *err)
{
    scoped(http_spec_release) struct http_spec spec = {
        .def = def, .where = where, .use = use};
    size_t count = 0;
    const struct io_option *options = http_options(use, &count);
    int r = io_options_check(where, def, options, count, err);

    if (r == 0)
        r = read_call(&spec, err);
    if (r == 0)
        r = read_outcomes(&spec, err);
    if (r == 0)
        r = read_retry(&spec, err);
    if (r == 0)
        r = read_rows(&spec, err);
    if (r == 0)
        r = read_fields(&spec, err);
    if (r == 0)
        r = read_alternatives(&spec, err);
    if (r == 0)
        r = read_pages(&spec, err);
    if (r == 0)
        r = read_content(&spec, err);
    if (r == 0 && use != HTTP_USE_TOKEN)
        r = read_token(&spec, err);
    if (r < 0)
        return r;
    spec.token_path = io_option_text(def, "path", NULL);
    *ret_spec = spec;
    spec.token = NULL; /* handed over */
    return 0;
}

void
http_spec_release(struct http_spec *spec)
{
    if (spec->token)
        http_spec_release(spec->token);
    free(spec->token);
    spec->token = NULL;
}
