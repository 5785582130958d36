/*
 * From a request to its handler and back. The head is looked at on the loop's
 * thread (is there such a route, may it have this body?), the handler runs on
 * one of the server's threads.
 */
#include "api/api_private.h"

#include "api/watch.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/strs.h"
#include "config/config.h"
#include "net/loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A body is JSON in UTF-8; no body needs no type. */
static int
check_media_type(const struct http_request *req, const struct route *route,
                 struct err *err)
{
    const char *type = http_request_header(req, "Content-Type");
    const char *length = http_request_header(req, "Content-Length");
    bool has_body = http_request_header(req, "Transfer-Encoding") ||
                    (length && strcmp(length, "0") != 0);

    if (!has_body)
        return 0;
    if (route->body_max == 0)
        return err_set(err, ERR_INVALID, "this call takes no body");
    if (!type || strncasecmp(type, "application/json", 16) != 0 ||
        (type[16] && type[16] != ';' && type[16] != ' '))
        return err_set(err, ERR_MEDIA_TYPE,
                       "send the body as Content-Type: application/json");
    if (strcasestr(type, "charset=") && !strcasestr(type, "charset=utf-8"))
        return err_set(err, ERR_MEDIA_TYPE, "send the body in UTF-8");
    return 0;
}

static void
on_request(void *arg, struct http_request *req)
{
    const struct route *route = http_request_user(req);
    struct reply reply = {0};
    struct api *api = arg;
    struct err err = {0};

    buf_init(&reply.answer.body, SERVICE_BODY_MAX);
    if (route->handle(api, req, &reply, &err) < 0) {
        buf_release(&reply.answer.body);
        api_respond_problem(api, req, &reply.complaint, &err);
        return;
    }
    if (reply.kept)
        buf_release(&reply.answer.body);
    else
        api_respond(api, req, &reply);
}

/* Many at once may have more than one alone, and never less. */
static size_t
body_max_of(const struct api *api, const struct route *route)
{
    size_t one = (size_t)api->options.config->api.max_body;

    if (route->body_max == 0)
        return 1;
    return route->body_max > one ? route->body_max : one;
}

static void
on_head(void *arg, struct http_request *req)
{
    const struct route *route;
    struct api *api = arg;
    struct err err = {0};

    route = api_route_find(req, &err);
    if (!route || api_ask_origin(req, &err) < 0 ||
        check_media_type(req, route, &err) < 0) {
        api_respond_problem(api, req, NULL, &err);
        return;
    }
    http_request_set_user(req, (void *)(uintptr_t)route);
    http_request_set_body_max(req, body_max_of(api, route));
    /* Never behind handlers that wait for a store that is away. */
    if (route->handle == api_livez)
        on_request(api, req);
}

/* --- life --- */

/* "127.0.0.1:8410", "[::1]:8410", "localhost:0" */
static int
listen_tcp(struct api *api, struct err *err)
{
    char host[HTTP_HOST_SIZE];
    int port = 0;
    int r = http_server_parse_listen(api->options.config->api.listen, host, &port, err);

    if (r < 0)
        return r;
    return http_server_listen_tcp(api->server, host, port, &api->port, err);
}

static int
open_server(struct api *api, struct err *err)
{
    const struct config *config = api->options.config;
    struct http_server_options options = {
        .handler = on_request,
        .on_head = on_head,
        .arg = api,
        .connections_max = (int)config->api.max_connections,
        .head_ms = config->api.header_timeout_us / US_PER_MS,
        .body_ms = config->api.body_timeout_us / US_PER_MS,
        .idle_ms = config->api.idle_timeout_us / US_PER_MS,
    };
    int r = http_server_new(api->options.loop, &options, &api->server, err);

    if (r == 0)
        r = listen_tcp(api, err);
    if (r == 0 && api->options.socket)
        r = http_server_listen_unix(api->server, api->options.socket, err);
    return r;
}

int
api_new(const struct api_options *options, struct api **ret_api, struct err *err)
{
    struct api *api = xcalloc(1, sizeof(*api));
    int r;

    api->options = *options;
    api->ready = true;
    r = watch_new(api, &api->watch, err);
    if (r == 0)
        r = open_server(api, err);
    if (r < 0) {
        api_free(api);
        return r;
    }
    *ret_api = api;
    return 0;
}

void
api_free(struct api *api)
{
    if (!api)
        return;
    /* Handlers run until the server is freed, and that waits for those who watch. */
    watch_end(api->watch);
    http_server_free(api->server);
    watch_free(api->watch);
    free(api);
}

int
api_port(const struct api *api)
{
    return api->port;
}

void
api_drain(struct api *api, int64_t deadline_ms, void (*fn)(void *arg), void *arg)
{
    api->ready = false;
    watch_drain(api->watch);
    http_server_drain(api->server, deadline_ms, fn, arg);
}
