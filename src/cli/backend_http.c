/* A pawl server, over TCP or its Unix socket. */
#include "cli/backend.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/strs.h"
#include "cli/interrupt.h"
#include "net/http_client.h"
#include "net/http_uri.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ALIVE_MS    2000
#define ANSWER_MS   60000
#define URL_MAX     8192
#define REPLY_MAX   ((size_t)64 << 20)
#define JSON_DEPTH  JSON_DEPTH_MAX
#define UNIX_PREFIX "unix:"
#define SOCKET_HOST "http://localhost"

struct http_backend {
    struct backend base;
    struct http_client *client;
    struct arena arena;    /* what lives as long as we */
    const char *base_url;  /* without a slash at its end */
    const char *unix_path; /* NULL = TCP */
};

struct ask {
    const char *method;
    const char *path;
    const json_t *body; /* NULL = none */
    const char *idempotency_key;
    int wait_ms; /* the server may take so long on purpose */
};

static struct http_backend *
self_of(struct backend *backend)
{
    return container_of(backend, struct http_backend, base);
}

/* --- failures --- */

static enum err_code
code_of_word(const char *word)
{
    for (int code = 1; code < ERR_COUNT; code++)
        if (str_eq(err_word((enum err_code)code), word))
            return (enum err_code)code;
    return ERR_PROTOCOL;
}

static const char *
place_of(const struct http_backend *self)
{
    return self->unix_path ? self->unix_path : self->base_url;
}

/* From a problem document, or from whatever stands in its place. */
static int
refused(const struct http_backend *self, const struct http_reply *reply,
        struct err *err)
{
    scoped(json_drop) json_t *problem = NULL;
    const char *code = NULL;
    const char *detail = NULL;
    struct err note = {0};

    if (json_parse(buf_str(&reply->body), reply->body.len, JSON_DEPTH, &problem,
                   &note) == 0) {
        code = json_string_value(json_object_get(problem, "code"));
        detail = json_string_value(json_object_get(problem, "detail"));
    }
    if (!code || !detail)
        return err_set(err, ERR_PROTOCOL,
                       "%s answered %d but not as pawl does; is this the address of a "
                       "pawl server?",
                       place_of(self), reply->status);
    if (json_is_integer(json_object_get(problem, "activeRequestId")))
        snprintf(err->detail, sizeof(err->detail), "%" JSON_INTEGER_FORMAT,
                 json_integer_value(json_object_get(problem, "activeRequestId")));
    if (json_is_string(json_object_get(problem, "traceId")) && reply->status >= 500)
        return err_set(err, code_of_word(code), "%s (trace %.60s)", detail,
                       json_string_value(json_object_get(problem, "traceId")));
    return err_set(err, code_of_word(code), "%s", detail);
}

/* --- one call --- */

static int
send_ask(struct http_backend *self, const struct ask *ask, struct arena *arena,
         struct http_call *call, struct http_reply *ret_reply, struct err *err)
{
    scoped(buf_release) struct buf body = {0};
    struct http_field fields[3] = {{"Accept", "application/json"}};
    struct json_out out;

    call->method = ask->method;
    call->url = arena_printf(arena, "%s%s", self->base_url, ask->path);
    call->unix_path = self->unix_path;
    call->fields = fields;
    call->field_count = 1;
    if (ask->body) {
        buf_init(&body, 0);
        json_out_init(&out, &body);
        json_put_value(&out, ask->body);
        if (buf_check(&body, "the body", err) < 0)
            return -(int)err->code;
        call->body = buf_str(&body);
        call->body_len = body.len;
        fields[call->field_count++] =
            (struct http_field){"Content-Type", "application/json"};
    }
    if (ask->idempotency_key)
        fields[call->field_count++] =
            (struct http_field){"Idempotency-Key", ask->idempotency_key};
    return http_client_call(self->client, call, arena, ret_reply, err);
}

static int
ask_json(struct http_backend *self, const struct ask *ask, json_t **ret_json,
         struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    scoped(http_reply_release) struct http_reply reply = {0};
    struct http_call call = {.timeout_ms = ANSWER_MS + ask->wait_ms,
                             .reply_max = REPLY_MAX};
    int r = send_ask(self, ask, &arena, &call, &reply, err);

    if (r < 0)
        return r;
    if (reply.status < 200 || reply.status > 299)
        return refused(self, &reply, err);
    r = json_parse(buf_str(&reply.body), reply.body.len, JSON_DEPTH, ret_json, err);
    if (r < 0)
        return err_prefix(err, "answer of %s", place_of(self));
    return 0;
}

/* --- the face --- */

static int
http_submit(struct backend *backend, const char *job, const json_t *body,
            const char *idempotency_key, json_t **ret_json, struct err *err)
{
    scoped(buf_release) struct buf path = {0};
    struct ask ask = {
        .method = "POST", .body = body, .idempotency_key = idempotency_key};

    buf_init(&path, URL_MAX);
    buf_add_str(&path, "/api/v1/jobs/");
    http_uri_escape(&path, job);
    buf_add_str(&path, "/requests");
    ask.path = buf_str(&path);
    return ask_json(self_of(backend), &ask, ret_json, err);
}

static int
http_show(struct backend *backend, int64_t request_id, int wait_ms, json_t **ret_json,
          struct err *err)
{
    char path[128];
    struct ask ask = {.method = "GET", .path = path, .wait_ms = wait_ms};

    if (wait_ms > 0)
        snprintf(path, sizeof(path), "/api/v1/requests/%" PRId64 "?wait=%dms",
                 request_id, wait_ms);
    else
        snprintf(path, sizeof(path), "/api/v1/requests/%" PRId64, request_id);
    return ask_json(self_of(backend), &ask, ret_json, err);
}

static void
add_query(struct buf *path, const char *name, const char *value)
{
    if (!value)
        return;
    buf_add_char(path, strchr(buf_str(path), '?') ? '&' : '?');
    buf_add_str(path, name);
    buf_add_char(path, '=');
    http_uri_escape(path, value);
}

static int
http_list(struct backend *backend, const struct backend_filter *filter,
          json_t **ret_json, struct err *err)
{
    scoped(buf_release) struct buf path = {0};
    struct ask ask = {.method = "GET"};

    buf_init(&path, URL_MAX);
    buf_add_str(&path, "/api/v1/requests");
    add_query(&path, "job", filter->job);
    add_query(&path, "status", filter->status);
    add_query(&path, "requester", filter->requester);
    add_query(&path, "limit", filter->limit);
    add_query(&path, "after", filter->after);
    ask.path = buf_str(&path);
    return ask_json(self_of(backend), &ask, ret_json, err);
}

static int
http_act(struct backend *backend, enum backend_act act, int64_t id, json_t **ret_json,
         struct err *err)
{
    static const char *const words[] = {
        [BACKEND_CANCEL] = "cancel",          [BACKEND_STOP] = "stop",
        [BACKEND_RESTART] = "restart",        [BACKEND_RECOVER] = "recover",
        [BACKEND_CANCEL_BACKFILL] = "cancel",
    };
    char path[128];
    struct ask ask = {.method = "POST", .path = path};

    static_assert_count(words, BACKEND_ACT_COUNT);
    snprintf(path, sizeof(path), "/api/v1/%s/%" PRId64 "/%s",
             act == BACKEND_RECOVER           ? "executions"
             : act == BACKEND_CANCEL_BACKFILL ? "backfills"
                                              : "requests",
             id, words[act]);
    return ask_json(self_of(backend), &ask, ret_json, err);
}

static int
http_jobs(struct backend *backend, json_t **ret_json, struct err *err)
{
    struct ask ask = {.method = "GET", .path = "/api/v1/jobs"};

    return ask_json(self_of(backend), &ask, ret_json, err);
}

static int
http_workers(struct backend *backend, json_t **ret_json, struct err *err)
{
    struct ask ask = {.method = "GET", .path = "/api/v1/workers"};

    return ask_json(self_of(backend), &ask, ret_json, err);
}

static int
http_job(struct backend *backend, const char *job, json_t **ret_json, struct err *err)
{
    scoped(buf_release) struct buf path = {0};
    struct ask ask = {.method = "GET"};

    buf_init(&path, URL_MAX);
    buf_add_str(&path, "/api/v1/jobs/");
    http_uri_escape(&path, job);
    ask.path = buf_str(&path);
    return ask_json(self_of(backend), &ask, ret_json, err);
}

static int
http_schedules(struct backend *backend, int next, json_t **ret_json, struct err *err)
{
    char path[64];
    struct ask ask = {.method = "GET", .path = path};

    snprintf(path, sizeof(path), "/api/v1/schedules?next=%d", next);
    return ask_json(self_of(backend), &ask, ret_json, err);
}

static int
http_budgets(struct backend *backend, json_t **ret_json, struct err *err)
{
    struct ask ask = {.method = "GET", .path = "/api/v1/budgets"};

    return ask_json(self_of(backend), &ask, ret_json, err);
}

static int
http_lanes(struct backend *backend, json_t **ret_json, struct err *err)
{
    struct ask ask = {.method = "GET", .path = "/api/v1/lanes"};

    return ask_json(self_of(backend), &ask, ret_json, err);
}

static int
http_hold(struct backend *backend, const char *what, const char *name, bool pause,
          json_t **ret_json, struct err *err)
{
    scoped(buf_release) struct buf path = {0};
    struct ask ask = {.method = "POST"};

    buf_init(&path, URL_MAX);
    buf_addf(&path, "/api/v1/%ss/", what);
    http_uri_escape(&path, name);
    buf_add_str(&path, pause ? "/pause" : "/resume");
    ask.path = buf_str(&path);
    return ask_json(self_of(backend), &ask, ret_json, err);
}

static int
http_backfill(struct backend *backend, const char *job, const json_t *body,
              json_t **ret_json, struct err *err)
{
    scoped(buf_release) struct buf path = {0};
    struct ask ask = {.method = "POST", .body = body};

    buf_init(&path, URL_MAX);
    buf_add_str(&path, "/api/v1/jobs/");
    http_uri_escape(&path, job);
    buf_add_str(&path, "/backfills");
    ask.path = buf_str(&path);
    return ask_json(self_of(backend), &ask, ret_json, err);
}

static int
http_backfills(struct backend *backend, int64_t backfill_id, json_t **ret_json,
               struct err *err)
{
    char path[64] = "/api/v1/backfills";
    struct ask ask = {.method = "GET", .path = path};

    if (backfill_id)
        snprintf(path, sizeof(path), "/api/v1/backfills/%" PRId64, backfill_id);
    return ask_json(self_of(backend), &ask, ret_json, err);
}

static int
http_execution(struct backend *backend, int64_t execution_id, json_t **ret_json,
               struct err *err)
{
    char path[128];
    struct ask ask = {.method = "GET", .path = path};

    snprintf(path, sizeof(path), "/api/v1/executions/%" PRId64, execution_id);
    return ask_json(self_of(backend), &ask, ret_json, err);
}

static int
http_why(struct backend *backend, int64_t request_id, json_t **ret_json,
         struct err *err)
{
    char path[128];
    struct ask ask = {.method = "GET", .path = path};

    snprintf(path, sizeof(path), "/api/v1/requests/%" PRId64 "/why", request_id);
    return ask_json(self_of(backend), &ask, ret_json, err);
}

static int
on_progress(void *arg, int64_t done_bytes, int64_t total_bytes)
{
    struct interrupt *interrupt = arg;

    (void)done_bytes;
    (void)total_bytes;
    return interrupt_came(interrupt, 0);
}

static int
http_result(struct backend *backend, int64_t request_id,
            const struct backend_download *download, struct err *err)
{
    struct http_backend *self = self_of(backend);
    scoped(arena_release) struct arena arena = {0};
    scoped(http_reply_release) struct http_reply reply = {0};
    struct http_call call = {
        .on_body = download->piece,
        .on_body_arg = download->arg,
        .on_progress = download->interrupt ? on_progress : NULL,
        .on_progress_arg = download->interrupt,
    };
    char path[128];
    struct ask ask = {.method = "GET", .path = path};
    int r;

    snprintf(path, sizeof(path), "/api/v1/requests/%" PRId64 "/result", request_id);
    r = send_ask(self, &ask, &arena, &call, &reply, err);
    if (r < 0)
        return r;
    return reply.status == 200 ? 0 : refused(self, &reply, err);
}

static void
http_free(struct backend *backend)
{
    struct http_backend *self = self_of(backend);

    http_client_free(self->client);
    arena_release(&self->arena);
    free(self);
}

static const struct backend_kind kind = {
    .submit = http_submit,
    .show = http_show,
    .list = http_list,
    .act = http_act,
    .jobs = http_jobs,
    .schedules = http_schedules,
    .budgets = http_budgets,
    .lanes = http_lanes,
    .hold = http_hold,
    .backfill = http_backfill,
    .backfills = http_backfills,
    .workers = http_workers,
    .job = http_job,
    .execution = http_execution,
    .why = http_why,
    .result = http_result,
    .free = http_free,
};

int
backend_http_new(const char *server, struct backend **ret_backend, struct err *err)
{
    struct http_backend *self;
    size_t len = strlen(server);
    int r;

    if (!str_starts_with(server, "http://") && !str_starts_with(server, "https://") &&
        !str_starts_with(server, UNIX_PREFIX))
        return err_set(err, ERR_USAGE,
                       "the server %s is no address; write http://HOST:PORT or "
                       "unix:PATH",
                       server);
    self = xcalloc(1, sizeof(*self));
    self->base.kind = &kind;
    r = http_client_new(&self->client, err);
    if (r < 0) {
        free(self);
        return r;
    }
    while (len > 0 && server[len - 1] == '/')
        len--;
    if (str_starts_with(server, UNIX_PREFIX)) {
        self->base_url = SOCKET_HOST;
        self->unix_path = arena_strdup(&self->arena, server + strlen(UNIX_PREFIX));
    } else {
        self->base_url = arena_strndup(&self->arena, server, len);
    }
    *ret_backend = &self->base;
    return 0;
}

bool
backend_http_alive(struct backend *backend)
{
    scoped(arena_release) struct arena arena = {0};
    scoped(http_reply_release) struct http_reply reply = {0};
    struct http_call call = {.timeout_ms = ALIVE_MS, .connect_timeout_ms = ALIVE_MS};
    struct ask ask = {.method = "GET", .path = "/livez"};
    struct err ignored = {0};

    return send_ask(self_of(backend), &ask, &arena, &call, &reply, &ignored) == 0;
}
