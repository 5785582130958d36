/*
 * A request as handlers see it.
 */
#include "net/http_server_impl.h"

#include "base/err.h"
#include "base/strs.h"

#include <stdlib.h>
#include <string.h>

struct http_request *
http_request_new(struct http_conn *conn)
{
    struct http_request *req = xcalloc(1, sizeof(*req));
    struct http_server *server = conn->server;

    req->server = server;
    req->conn = conn;
    req->released = true; /* the loop's until handed out */
    req->is_unix = conn->is_unix;
    req->uid = conn->uid;
    memcpy(req->peer, conn->peer, sizeof(req->peer));
    http_parse_init(&req->parser, server->opt.body_max);
    http_out_init(&req->out);
    pthread_mutex_lock(&server->lock);
    server->live++;
    pthread_mutex_unlock(&server->lock);
    return req;
}

void
http_request_free(struct http_request *req)
{
    struct http_server *server = req->server;

    http_parse_release(&req->parser);
    http_out_release(&req->out);
    buf_release(&req->queue);
    arena_release(&req->arena);
    free(req);
    pthread_mutex_lock(&server->lock);
    if (--server->live == 0)
        pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

int
http_request_open(struct http_request *req, struct err *err)
{
    const char *target = http_parse_target(&req->parser);
    size_t path_len = strcspn(target, "?");
    const char *query = target[path_len] == '?' ? target + path_len + 1 : NULL;
    int r;

    req->is_head_method = strcmp(http_parse_method(&req->parser), "HEAD") == 0;
    req->body_pending = http_parse_has_body(&req->parser);
    req->path = arena_strndup(&req->arena, target, path_len);
    r = http_uri_path(&req->arena, req->path, &req->segments, &req->segment_count, err);
    if (r < 0)
        return r;
    return http_uri_query(&req->arena, query, &req->params, &req->param_count, err);
}

const char *
http_request_method(const struct http_request *req)
{
    return http_parse_method(&req->parser);
}

const char *
http_request_target(const struct http_request *req)
{
    return http_parse_target(&req->parser);
}

const char *
http_request_path(const struct http_request *req)
{
    return req->path;
}

size_t
http_request_segment_count(const struct http_request *req)
{
    return req->segment_count;
}

const char *
http_request_segment(const struct http_request *req, size_t i)
{
    return i < req->segment_count ? req->segments[i] : NULL;
}

const char *
http_request_query(const struct http_request *req, const char *name)
{
    for (size_t i = 0; i < req->param_count; i++)
        if (str_eq(req->params[i].name, name))
            return req->params[i].value;
    return NULL;
}

const struct http_param *
http_request_params(const struct http_request *req, size_t *ret_count)
{
    *ret_count = req->param_count;
    return req->params;
}

const char *
http_request_header(const struct http_request *req, const char *name)
{
    return http_parse_field(&req->parser, name);
}

const struct buf *
http_request_body(const struct http_request *req)
{
    return &req->parser.body;
}

const char *
http_request_peer(const struct http_request *req)
{
    return req->peer;
}

struct arena *
http_request_arena(struct http_request *req)
{
    return &req->arena;
}

bool
http_request_peer_uid(const struct http_request *req, uid_t *ret_uid)
{
    if (req->is_unix)
        *ret_uid = req->uid;
    return req->is_unix;
}

void
http_request_set_user(struct http_request *req, void *user)
{
    req->user = user;
}

void *
http_request_user(const struct http_request *req)
{
    return req->user;
}

void
http_request_set_body_max(struct http_request *req, size_t body_max)
{
    req->parser.body_max = body_max;
}
