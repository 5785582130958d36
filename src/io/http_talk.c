/*
 * The order of one attempt: token → fill the texts → take a call from the budget →
 * call → judge. The call is taken last before it is made, and counts from then on.
 *
 * Keys: a filled text lives only in the arena of the call. Messages name the call by
 * its host and the path as it is written in the job, so that a key in a path shows as
 * {key:NAME}; what a provider says is searched for the keys that were sent and they are
 * struck out, because some repeat them.
 */
#include "io/http_talk.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/retry.h"
#include "base/strs.h"
#include "io/call_text.h"
#include "net/http_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define URL_MAX_BYTES  (16 << 10)
#define BODY_MAX_BYTES (4 << 20)
#define FIELDS_MAX     32
#define SAYING_MAX     160
#define LOOK_BYTES     (256 << 10)
#define STRUCK_MIN     8

struct attempt {
    struct http_talk *talk;
    const struct http_spec *spec;
    struct call_names *names;
    const struct http_extra *extras;
    const struct http_sink *sink;
    struct http_said *said;
    struct http_reply reply;
    enum http_outcome outcome;
    int64_t retry_after_ms; /* what the provider asked for; 0 = nothing */
    int64_t token_round;
};

void
http_link_init(struct http_link *link, struct io_ctx *io, const struct http_spec *spec)
{
    *link = (struct http_link){.io = io, .spec = spec};
    pthread_mutex_init(&link->lock, NULL);
}

void
http_link_release(struct http_link *link)
{
    if (!link->spec)
        return;
    free(link->token);
    pthread_mutex_destroy(&link->lock);
    *link = (struct http_link){0};
}

static void
show_as(struct http_talk *talk, const struct http_spec *spec)
{
    snprintf(talk->shown, sizeof(talk->shown), "%.*s", (int)strcspn(spec->url, "?#"),
             spec->url);
}

int
http_talk_init(struct http_talk *talk, struct http_link *link, struct err *err)
{
    *talk = (struct http_talk){.link = link};
    show_as(talk, link->spec);
    return http_client_new(&talk->client, err);
}

void
http_talk_release(struct http_talk *talk)
{
    http_client_free(talk->client);
    arena_release(&talk->arena);
    *talk = (struct http_talk){0};
}

void
http_said_release(struct http_said *said)
{
    reply_tree_release(&said->tree);
    buf_release(&said->body);
}

/* --- keys do not get out --- */

struct striking {
    struct io_ctx *io;
    char *text;
};

/* Also the beginning of a secret: texts for messages are cut off somewhere. */
static void
strike(char *text, const char *secret)
{
    size_t len = strlen(secret);
    size_t least = len < STRUCK_MIN ? len : STRUCK_MIN;

    if (len < 4)
        return; /* striking out "1" everywhere would say more than it hides */
    while ((text = strchr(text, secret[0]))) {
        size_t same = 0;

        while (same < len && text[same] == secret[same])
            same++;
        if (same >= least)
            memset(text, '*', same);
        text += same >= least ? same : 1;
    }
}

/* As it is, as it stands in a query, and as some write it into JSON. */
static void
strike_forms(char *text, const char *secret)
{
    scoped(buf_release) struct buf encoded = {0};
    scoped(buf_release) struct buf escaped = {0};

    buf_init(&encoded, URL_MAX_BYTES);
    buf_init(&escaped, URL_MAX_BYTES);
    percent_encode(&encoded, secret, strlen(secret));
    for (const char *at = secret; *at; at++)
        buf_addf(&escaped, *at == '/' ? "\\%c" : "%c", *at);
    strike(text, secret);
    strike(text, buf_str(&encoded));
    strike(text, buf_str(&escaped));
}

static void
strike_key(void *arg, const char *name)
{
    struct striking *striking = arg;
    const char *value = striking->io->key(striking->io, name);

    if (value)
        strike_forms(striking->text, value);
}

static void
strike_keys_of(struct striking *striking, const struct http_spec *spec)
{
    const char *key;
    json_t *text;

    call_text_keys(spec->url, strike_key, striking);
    json_object_foreach((json_t *)(uintptr_t)spec->query, key, text)
    {
        if (json_is_string(text))
            call_text_keys(json_string_value(text), strike_key, striking);
    }
    json_object_foreach((json_t *)(uintptr_t)spec->headers, key, text)
    {
        if (json_is_string(text))
            call_text_keys(json_string_value(text), strike_key, striking);
    }
    if (spec->body)
        call_text_keys(spec->body, strike_key, striking);
    if (spec->json) {
        char *dump = json_dumps(spec->json, JSON_COMPACT | JSON_ENCODE_ANY);

        if (dump)
            call_text_keys(dump, strike_key, striking);
        free(dump);
    }
}

static void
strike_out(const struct attempt *attempt, char *text)
{
    struct striking striking = {attempt->talk->link->io, text};

    strike_keys_of(&striking, attempt->spec);
    if (attempt->names->token)
        strike_forms(text, attempt->names->token);
}

void
http_talk_strike(struct http_talk *talk, char *text)
{
    struct http_link *link = talk->link;
    struct striking striking = {link->io, text};

    strike_keys_of(&striking, link->spec);
    pthread_mutex_lock(&link->lock);
    if (link->token)
        strike_forms(text, link->token);
    pthread_mutex_unlock(&link->lock);
}

/* --- filling --- */

static bool
is_empty_text(const json_t *text)
{
    return json_is_string(text) && json_string_length(text) == 0;
}

/* A single value of a map: a template, a number, a boolean. */
static int
fill_value(const struct attempt *attempt, const char *where, const json_t *value,
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

static int
fill_url(const struct attempt *attempt, struct buf *url, struct err *err)
{
    const char *key;
    json_t *text;
    int r =
        call_text_fill("url", attempt->spec->url, attempt->names, CALL_URL, url, err);

    json_object_foreach((json_t *)(uintptr_t)attempt->spec->query, key, text)
    {
        scoped(buf_release) struct buf value = {0};

        buf_init(&value, URL_MAX_BYTES);
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

static int
fill_headers(const struct attempt *attempt, struct http_field *fields,
             size_t *ret_count, struct err *err)
{
    struct arena *arena = &attempt->talk->arena;
    const char *key;
    json_t *text;
    size_t count = 0;

    json_object_foreach((json_t *)(uintptr_t)attempt->spec->headers, key, text)
    {
        scoped(buf_release) struct buf value = {0};
        int r;

        if (count == FIELDS_MAX - 1)
            return err_set(err, ERR_CONFIG, "headers: at most %d", FIELDS_MAX - 1);
        buf_init(&value, URL_MAX_BYTES);
        r = fill_value(attempt, key, text, CALL_HEADER, &value, err);
        if (r < 0)
            return r;
        fields[count++] = (struct http_field){
            arena_strdup(arena, key), arena_strndup(arena, buf_str(&value), value.len)};
    }
    if (attempt->spec->json)
        fields[count++] = (struct http_field){"Content-Type", "application/json"};
    *ret_count = count;
    return 0;
}

/* A copy of the value with all its texts filled. */
static int
fill_json(const struct attempt *attempt, const json_t *value, json_t **ret,
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
        buf_init(&text, BODY_MAX_BYTES);
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

static int
fill_body(const struct attempt *attempt, struct buf *body, struct err *err)
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

/* --- judging --- */

static const char *
code_of(const struct attempt *attempt, const struct reply_tree *tree, char room[48])
{
    for (size_t i = 0; i < attempt->spec->n_code_paths; i++) {
        const json_t *found = reply_scalar(tree->root, attempt->spec->code_paths[i],
                                           tree->format == REPLY_XML);

        if (found)
            return reply_text(found, room);
    }
    return NULL;
}

static bool
outcome_of_code(const struct http_spec *spec, const char *code,
                enum http_outcome *ret_outcome)
{
    return http_outcome_parse(json_string_value(json_object_get(spec->codes, code)),
                              ret_outcome);
}

/* true: the status decides. false: 2xx, look at the body. */
static bool
outcome_of_status(const struct http_spec *spec, int status,
                  enum http_outcome *ret_outcome)
{
    char key[16];
    const char *word;

    snprintf(key, sizeof(key), "%d", status);
    word = json_string_value(json_object_get(spec->status, key));
    if (!word) {
        snprintf(key, sizeof(key), "%dxx", status / 100);
        word = json_string_value(json_object_get(spec->status, key));
    }
    if (!word && (status < 200 || status > 299))
        word = json_string_value(json_object_get(spec->status, "default"));
    if (word)
        return http_outcome_parse(word, ret_outcome) && *ret_outcome != HTTP_OK;
    if (status >= 200 && status <= 299)
        return false;
    *ret_outcome =
        status == 408 || status == 429 || status >= 500 ? HTTP_TRANSIENT : HTTP_FATAL;
    return true;
}

/* What the provider says about it, made safe for a message. */
static void
saying_of(const struct attempt *attempt, const struct reply_tree *tree,
          char saying[SAYING_MAX])
{
    char room[48];

    saying[0] = '\0';
    for (size_t i = 0; i < attempt->spec->n_message_paths && !saying[0]; i++) {
        const json_t *found = reply_scalar(tree->root, attempt->spec->message_paths[i],
                                           tree->format == REPLY_XML);
        scoped(xfree_ptr) char *text = NULL;

        if (!found)
            continue;
        text = xstrdup(reply_text(found, room));
        strike_out(attempt, text);
        for (char *at = text; *at; at++)
            if ((unsigned char)*at < 0x20)
                *at = ' ';
        (void)str_copy(saying, SAYING_MAX, text);
    }
}

static int
note_failure(struct attempt *attempt, const struct reply_tree *tree, const char *code,
             struct err *err)
{
    char saying[SAYING_MAX] = "";

    if (tree->root)
        saying_of(attempt, tree, saying);
    if (!code)
        return err_set(err, ERR_PROTOCOL, "%s answered HTTP %d%s%s",
                       attempt->talk->shown, attempt->reply.status,
                       saying[0] ? ": " : "", saying);
    return err_set(err, ERR_PROTOCOL, "%s answered with code %.40s (HTTP %d)%s%s",
                   attempt->talk->shown, code, attempt->reply.status,
                   saying[0] ? ": " : "", saying);
}

static bool
wants_tree(const struct attempt *attempt)
{
    return !attempt->spec->content.column && !attempt->sink;
}

/* Judge by a tree that is there. */
static void
judge_tree(struct attempt *attempt, const struct reply_tree *tree, const char *code,
           struct err *err)
{
    const struct http_spec *spec = attempt->spec;
    enum http_outcome outcome = HTTP_OK;

    if (code)
        (void)str_copy(attempt->said->code, sizeof(attempt->said->code), code);
    if (code && outcome_of_code(spec, code, &outcome))
        attempt->outcome = outcome;
    else if (outcome_of_status(spec, attempt->reply.status, &outcome))
        attempt->outcome = outcome;
    else if (code && spec->codes)
        attempt->outcome = spec->other;
    else if (spec->n_code_paths > 0 && !code)
        attempt->outcome = spec->rows_path && tree->format != spec->rows_format
                               ? HTTP_TRANSIENT
                               : spec->absent;
    else
        attempt->outcome = HTTP_OK;
    if (attempt->outcome == HTTP_OK && spec->rows_path &&
        tree->format != spec->rows_format) {
        attempt->outcome = HTTP_TRANSIENT;
        (void)err_set(err, ERR_PROTOCOL, "%s answered %s where %s was expected",
                      attempt->talk->shown, tree->format == REPLY_XML ? "XML" : "JSON",
                      spec->rows_format == REPLY_XML ? "XML" : "JSON");
        return;
    }
    if (attempt->outcome != HTTP_OK && attempt->outcome != HTTP_NO_DATA)
        (void)note_failure(attempt, tree, code, err);
}

/* A body that is no tree: right for a document, else only the status is left. */
static void
judge_bytes(struct attempt *attempt, const struct err *why, struct err *err)
{
    const struct reply_tree none = {0};
    enum http_outcome outcome;

    if (outcome_of_status(attempt->spec, attempt->reply.status, &outcome)) {
        attempt->outcome = outcome;
        (void)note_failure(attempt, &none, NULL, err);
    } else if (!wants_tree(attempt) || str_eq(attempt->spec->method, "HEAD") ||
               (attempt->spec->use == HTTP_USE_STEP &&
                attempt->spec->n_code_paths == 0)) {
        attempt->outcome = HTTP_OK;
    } else {
        attempt->outcome = HTTP_TRANSIENT;
        (void)err_set(err, ERR_PROTOCOL, "%s: %s", attempt->talk->shown, why->text);
    }
}

static void
judge(struct attempt *attempt, struct err *err)
{
    struct http_reply *reply = &attempt->reply;
    struct reply_tree tree = {0};
    struct err why = {0};
    const char *retry_after = http_reply_field(reply, "Retry-After");
    int64_t seconds = 0;
    char room[48];
    bool document = !wants_tree(attempt);

    if (retry_after && str_to_i64(retry_after, &seconds) && seconds > 0)
        attempt->retry_after_ms = seconds > 86400 ? 86400000 : seconds * 1000;
    if (reply_tree_parse(buf_str(&reply->body), reply->body.len, &tree, &why) < 0) {
        judge_bytes(attempt, &why, err);
    } else {
        const char *code = code_of(attempt, &tree, room);
        enum http_outcome known;

        if (document && !(code && outcome_of_code(attempt->spec, code, &known)))
            judge_bytes(attempt, &why, err); /* a document that looks like data */
        else
            judge_tree(attempt, &tree, code, err);
    }
    if (attempt->outcome == HTTP_OK && document) {
        attempt->said->body = reply->body;
        reply->body = (struct buf){0};
    } else if (attempt->outcome == HTTP_OK) {
        attempt->said->tree = tree;
        tree.root = NULL;
    }
    attempt->said->bytes = reply->body_bytes;
    strike_out(attempt, err->text); /* some repeat the key, in whatever they send */
    strike_out(attempt, attempt->said->code);
    reply_tree_release(&tree);
}

/* --- a call --- */

static int
on_progress(void *arg, int64_t done_bytes, int64_t total_bytes)
{
    struct io_ctx *io = arg;

    return io->cut(io);
}

static int
empty_sink(const struct http_sink *sink, struct err *err)
{
    if (lseek(sink->fd, 0, SEEK_SET) < 0 || ftruncate(sink->fd, 0) < 0)
        return err_set(err, ERR_IO, "cannot empty the file that is fetched");
    return 0;
}

/* A small file may be no file but a reply that tells a code: have a look at it. */
static void
look_into_sink(struct attempt *attempt)
{
    struct http_reply *reply = &attempt->reply;
    size_t len = (size_t)reply->body_bytes;
    char *room;
    ssize_t n;

    if (reply->status < 200 || reply->status > 299 || len == 0 || len > LOOK_BYTES ||
        attempt->spec->n_code_paths == 0)
        return;
    buf_clear(&reply->body);
    room = buf_reserve(&reply->body, len);
    n = room ? pread(attempt->sink->fd, room, len, 0) : -1;
    if (n > 0)
        reply->body.len += (size_t)n;
    if (n > 0)
        reply->body.data[reply->body.len] = '\0';
}

/* What went wrong below HTTP: tried again, but for what lies in the job or here. */
static int
failed_call(struct attempt *attempt, int r, struct err *err)
{
    if (r == -ERR_CANCELLED) {
        err_clear(err);
        attempt->said->end = HTTP_END_CUT;
        return 1;
    }
    strike_out(attempt, err->text);
    if (r == -ERR_TOO_LARGE) { /* it would be the next time too */
        err_prefix(err, "%s (max_bytes)", attempt->talk->shown);
        attempt->said->end = HTTP_END_UPSTREAM;
        return 1;
    }
    if (r != -ERR_CONNECT && r != -ERR_TIMEOUT && r != -ERR_PROTOCOL)
        return r;
    attempt->outcome = HTTP_TRANSIENT;
    return 0;
}

/* 0: judged, 1: said->end is set, < 0. */
static int
call_once(struct attempt *attempt, struct err *err)
{
    const struct http_spec *spec = attempt->spec;
    struct io_ctx *io = attempt->talk->link->io;
    scoped(buf_release) struct buf url = {0};
    scoped(buf_release) struct buf body = {0};
    struct http_field fields[FIELDS_MAX];
    struct http_call call = {.method = spec->method,
                             .shown = attempt->talk->shown,
                             .fields = fields,
                             .connect_timeout_ms = spec->connect_ms,
                             .timeout_ms = spec->timeout_ms,
                             .stall_ms = spec->timeout_ms,
                             .reply_max = (size_t)spec->max_bytes,
                             .on_progress = on_progress,
                             .on_progress_arg = io};
    int r;

    buf_init(&url, URL_MAX_BYTES);
    buf_init(&body, BODY_MAX_BYTES);
    r = fill_url(attempt, &url, err);
    if (r == 0)
        r = fill_headers(attempt, fields, &call.field_count, err);
    if (r == 0)
        r = fill_body(attempt, &body, err);
    if (r == 0 && attempt->sink)
        r = empty_sink(attempt->sink, err);
    if (r < 0)
        return r;
    r = io->take_call(io, spec->budget, attempt->said->why, err);
    if (r != IO_TAKE_GO) {
        attempt->said->end = r == IO_TAKE_END ? HTTP_END_CUT : HTTP_END_STOP;
        return r < 0 ? r : 1;
    }
    call.url = buf_str(&url);
    if (spec->body || spec->json) {
        call.body = buf_str(&body);
        call.body_len = body.len;
    }
    if (attempt->sink) {
        call.to_fd = true;
        call.fd = attempt->sink->fd;
        call.fd_max = spec->max_bytes;
        call.reply_max = 1 << 20;
    }
    r = http_client_call(attempt->talk->client, &call, &attempt->talk->arena,
                         &attempt->reply, err);
    if (r < 0)
        return failed_call(attempt, r, err);
    if (attempt->sink)
        look_into_sink(attempt);
    judge(attempt, err);
    http_reply_release(&attempt->reply);
    return 0;
}

/* --- attempts --- */

static int
limit_reached(struct attempt *attempt, struct err *err)
{
    struct io_ctx *io = attempt->talk->link->io;
    struct http_said *said = attempt->said;
    char told[SAYING_MAX * 2];
    int r = 0;

    (void)str_copy(told, sizeof(told), err->text);
    err_clear(err);
    said->end = HTTP_END_LIMIT;
    if (attempt->spec->budget)
        r = io->close_budget(io, attempt->spec->budget, said->why, err);
    if (r < 0)
        return r;
    if (!said->why[0])
        snprintf(said->why, sizeof(said->why),
                 "the provider allows no more calls for now: %s; ask again later",
                 told);
    return 0;
}

/* 1: go on trying, 0: said->end is set, < 0. */
static int
after_failure(struct attempt *attempt, struct backoff *backoff, struct err *err)
{
    struct io_ctx *io = attempt->talk->link->io;
    int64_t wait_ms;

    if (backoff->attempts + 1 >= attempt->spec->attempts) {
        attempt->said->end = HTTP_END_UPSTREAM;
        if (attempt->spec->attempts > 1)
            err_prefix(err, "after %d attempts", attempt->spec->attempts);
        return 0;
    }
    wait_ms = backoff_next_ms(backoff);
    if (attempt->retry_after_ms > wait_ms)
        wait_ms = attempt->retry_after_ms > attempt->spec->max_wait_ms
                      ? attempt->spec->max_wait_ms
                      : attempt->retry_after_ms;
    attempt->retry_after_ms = 0;
    io->wait_ms(io, wait_ms);
    if (io->cut(io)) {
        err_clear(err);
        attempt->said->end = HTTP_END_CUT;
        return 0;
    }
    return 1;
}

static int token_get(struct attempt *attempt, bool renew, struct err *err);

/* 1: go on trying, 0: said->end is set, < 0. */
static int
after_attempt(struct attempt *attempt, struct backoff *backoff, bool *renewed,
              struct err *err)
{
    int r;

    switch (attempt->outcome) {
    case HTTP_OK:
        attempt->said->end = HTTP_END_OK;
        return 0;
    case HTTP_NO_DATA:
        attempt->said->end = HTTP_END_NO_DATA;
        return 0;
    case HTTP_SKIP:
        attempt->said->end = HTTP_END_REJECTED;
        return 0;
    case HTTP_LIMIT:
        return limit_reached(attempt, err);
    case HTTP_TRANSIENT:
        return after_failure(attempt, backoff, err);
    case HTTP_RENEW:
        if (!*renewed && attempt->spec->token) {
            *renewed = true;
            err_clear(err);
            r = token_get(attempt, true, err);
            return r == 0 ? 1 : r == 1 ? 0 : r;
        }
        break;
    case HTTP_FATAL:
    case HTTP_OUTCOME_COUNT:
        break;
    }
    err->code = ERR_FORBIDDEN;
    return -ERR_FORBIDDEN;
}

static int
run_attempts(struct attempt *attempt, struct err *err)
{
    struct backoff backoff = {
        .base_ms = attempt->spec->wait_ms ? attempt->spec->wait_ms : 1,
        .max_ms = attempt->spec->max_wait_ms ? attempt->spec->max_wait_ms : 1,
        .factor = (double)attempt->spec->factor,
        .jitter = 0.2};
    bool renewed = false;
    int r;

    do {
        err_clear(err);
        attempt->said->code[0] = '\0';
        arena_clear(&attempt->talk->arena);
        r = call_once(attempt, err);
        if (r != 0)
            return r < 0 ? r : 0;
        r = after_attempt(attempt, &backoff, &renewed, err);
    } while (r == 1);
    return r;
}

/* --- the token --- */

/* Under the link's lock. 0: link->token is there, 1: said->end is set, < 0. */
static int
token_fetch(struct attempt *attempt, struct err *err)
{
    struct http_link *link = attempt->talk->link;
    const struct http_spec *spec = attempt->spec->token;
    struct call_names names = {.io = link->io, .budget = spec->budget};
    struct attempt call = {
        .talk = attempt->talk, .spec = spec, .names = &names, .said = attempt->said};
    const json_t *found;
    char shown[sizeof(attempt->talk->shown)];
    char room[48];
    int r;

    memcpy(shown, attempt->talk->shown, sizeof(shown));
    show_as(attempt->talk, spec);
    r = run_attempts(&call, err);
    memcpy(attempt->talk->shown, shown, sizeof(shown));
    if (r < 0)
        return err_prefix(err, "the token");
    if (attempt->said->end == HTTP_END_OK) {
        found = reply_scalar(attempt->said->tree.root, spec->token_path,
                             attempt->said->tree.format == REPLY_XML);
        if (!found) {
            http_said_release(attempt->said);
            return err_set(err, ERR_FORBIDDEN, "the token: the reply has nothing at %s",
                           spec->token_path);
        }
        free(link->token);
        link->token = xstrdup(reply_text(found, room));
        link->token_round++;
        http_said_release(attempt->said);
        *attempt->said = (struct http_said){0};
        return 0;
    }
    if (attempt->said->end == HTTP_END_UPSTREAM ||
        attempt->said->end == HTTP_END_REJECTED)
        err_prefix(err, "the token");
    if (attempt->said->end == HTTP_END_NO_DATA)
        return err_set(err, ERR_FORBIDDEN, "the token: the reply says no data");
    return 1;
}

/* Of threads that find the token too old at once, the first fetches for all. */
static int
token_get(struct attempt *attempt, bool renew, struct err *err)
{
    struct http_link *link = attempt->talk->link;
    int r = 0;

    if (!attempt->spec->token)
        return 0;
    pthread_mutex_lock(&link->lock);
    if (!link->token || (renew && link->token_round == attempt->token_round))
        r = token_fetch(attempt, err);
    if (r == 0) {
        attempt->token_round = link->token_round;
        /* A copy: another thread may renew it while this one fills its texts. */
        free((char *)(uintptr_t)attempt->names->token);
        attempt->names->token = xstrdup(link->token);
    }
    pthread_mutex_unlock(&link->lock);
    return r;
}

int
http_talk_call(struct http_talk *talk, struct call_names *names,
               const struct http_extra extras[2], const struct http_sink *sink,
               struct http_said *ret_said, struct err *err)
{
    struct http_said said = {0};
    struct attempt attempt = {.talk = talk,
                              .spec = talk->link->spec,
                              .names = names,
                              .extras = extras,
                              .sink = sink,
                              .said = &said};
    int r;

    names->budget = talk->link->spec->budget;
    names->token = NULL;
    r = token_get(&attempt, false, err);
    if (r == 0)
        r = run_attempts(&attempt, err);
    free((char *)(uintptr_t)names->token);
    names->token = NULL;
    if (r < 0) {
        http_said_release(&said);
        return r;
    }
    *ret_said = said;
    return 0;
}
