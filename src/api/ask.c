/* Reading what a client asks: ids, bodies, queries, who it is, how long it waits. */
#include "api/api_private.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/strs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int
api_ask_id(struct http_request *req, size_t segment, int64_t *ret_id, struct err *err)
{
    const char *text = http_request_segment(req, segment);
    struct err note = {0};

    if (parse_i64("id", text, 1, INT64_MAX, ret_id, &note) < 0)
        return err_set(err, ERR_NOT_FOUND, "there is nothing with the id %.40s", text);
    return 0;
}

int
api_ask_body(struct http_request *req, json_t **ret_body, struct err *err)
{
    const struct buf *body = http_request_body(req);
    json_t *parsed = NULL;
    int r;

    if (!body || body->len == 0) {
        *ret_body = json_object();
        return 0;
    }
    r = json_parse(body->data, body->len, JSON_DEPTH_MAX, &parsed, err);
    if (r < 0)
        return err_prefix(err, "body");
    if (!json_is_object(parsed)) {
        json_decref(parsed);
        return err_set(err, ERR_INVALID, "the body must be a JSON object");
    }
    *ret_body = parsed;
    return 0;
}

int
api_ask_query(struct http_request *req, const char *const *known, size_t count,
              struct err *err)
{
    size_t n = 0;
    const struct http_param *params = http_request_params(req, &n);

    for (size_t i = 0; i < n; i++) {
        bool found = false;

        for (size_t k = 0; k < count && !found; k++)
            found = strcmp(known[k], params[i].name) == 0;
        if (!found) {
            const char *near = str_nearest(params[i].name, known, count);

            return err_set(err, ERR_INVALID, "the query knows no %.60s here%s%s",
                           params[i].name, near ? "; did you mean " : "",
                           near ? near : "");
        }
    }
    return 0;
}

struct caller
api_ask_caller(struct http_request *req)
{
    struct arena *arena = http_request_arena(req);
    uid_t uid = 0;

    if (http_request_peer_uid(req, &uid))
        return (struct caller){.name = arena_printf(arena, "uid:%u", (unsigned)uid),
                               .source = SOURCE_CLI};
    return (struct caller){.name = arena_strdup(arena, http_request_peer(req)),
                           .source = SOURCE_API};
}

/* "wait=30" among the preferences of RFC 7240; NULL when there is none. */
static const char *
preferred_wait(struct http_request *req)
{
    const char *prefer = http_request_header(req, "Prefer");
    const char *at = prefer ? strstr(prefer, "wait=") : NULL;

    if (!at || (at != prefer && at[-1] != ' ' && at[-1] != ','))
        return NULL;
    return arena_printf(http_request_arena(req), "%.*ss",
                        (int)strspn(at + 5, "0123456789"), at + 5);
}

int
api_ask_wait(struct http_request *req, int64_t max_us, int64_t *ret_us, struct err *err)
{
    const char *text = http_request_query(req, "wait");
    int r;

    *ret_us = 0;
    if (!text)
        text = preferred_wait(req);
    if (!text)
        return 0;
    r = parse_duration_us("wait", text, ret_us, err);
    if (r < 0)
        return r;
    if (*ret_us > max_us)
        *ret_us = max_us;
    return 0;
}

/* The host part of "host:port" or "[::1]:port". */
static size_t
host_len(const char *host)
{
    const char *end = host[0] == '[' ? strchr(host, ']') : NULL;

    return end ? (size_t)(end - host) + 1 : strcspn(host, ":");
}

static bool
is_loopback_name(const char *host)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    size_t len = host_len(host);

    for (size_t i = 0; i < array_len(names); i++)
        if (strlen(names[i]) == len && strncasecmp(host, names[i], len) == 0)
            return true;
    return strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") == len;
}

int
api_ask_origin(struct http_request *req, struct err *err)
{
    const char *host = http_request_header(req, "Host");
    const char *origin = http_request_header(req, "Origin");
    const char *from = origin ? strstr(origin, "://") : NULL;
    uid_t uid;

    if (http_request_peer_uid(req, &uid))
        return 0;
    if (host && !is_loopback_name(host))
        return err_set(err, ERR_MISDIRECTED,
                       "this server answers to localhost only, not to %.100s", host);
    if (origin && (!from || !host || strcasecmp(from + 3, host) != 0))
        return err_set(err, ERR_FORBIDDEN,
                       "requests from pages of another site (%.100s) are refused",
                       origin);
    return 0;
}
