/* Requests: submit, show, list, cancel, stop. */
#include "api/api_private.h"
#include "api/watch.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/strs.h"
#include "config/config.h"
#include "queue/list.h"

#include <inttypes.h>
#include <stdio.h>

#define SEGMENT_NAME 3 /* /api/v1/jobs/NAME, /api/v1/requests/ID */

static void
add_location(struct http_request *req, struct reply *reply)
{
    api_reply_field(reply, "Location",
                    arena_printf(http_request_arena(req), "/api/v1/requests/%" PRId64,
                                 reply->answer.request_id));
}

int
api_submit(struct api *api, struct http_request *req, struct reply *reply,
           struct err *err)
{
    const char *key = http_request_header(req, "Idempotency-Key");
    const struct buf *raw = http_request_body(req);
    struct caller caller = api_ask_caller(req);
    scoped(json_drop) json_t *body = NULL;
    char digest[SHA256_HEX_SIZE];
    int r;

    r = api_ask_query(req, NULL, 0, err);
    if (r == 0)
        r = api_ask_body(req, &body, err);
    if (r < 0)
        return r;
    sha256_hex(raw ? raw->data : "", raw ? raw->len : 0, digest);
    r = service_submit(api->options.service, &caller,
                       http_request_segment(req, SEGMENT_NAME), body, key,
                       key ? digest : NULL, &reply->answer, &reply->complaint, err);
    if (r == 0)
        add_location(req, reply);
    return r;
}

int
api_submit_many(struct api *api, struct http_request *req, struct reply *reply,
                struct err *err)
{
    struct caller caller = api_ask_caller(req);
    scoped(json_drop) json_t *body = NULL;
    int r = api_ask_body(req, &body, err);

    if (r < 0)
        return r;
    return service_submit_many(api->options.service, &caller, body, &reply->answer,
                               &reply->complaint, err);
}

static int
ask_status(struct http_request *req, struct list_filter *filter, struct err *err)
{
    const char *status = http_request_query(req, "status");

    if (!status)
        return 0;
    filter->has_status = true;
    if (!request_status_parse(status, &filter->status))
        return err_set(err, ERR_INVALID,
                       "status must be QUEUED, RUNNING, DONE or FAILED, not %.40s",
                       status);
    return 0;
}

int
api_request_list(struct api *api, struct http_request *req, struct reply *reply,
                 struct err *err)
{
    static const char *const known[] = {"job", "status", "requester", "after", "limit"};
    const char *after = http_request_query(req, "after");
    const char *limit = http_request_query(req, "limit");
    struct list_filter filter = {
        .job = http_request_query(req, "job"),
        .requester = http_request_query(req, "requester"),
    };
    int64_t n = 0;
    int r;

    r = api_ask_query(req, known, array_len(known), err);
    if (r == 0)
        r = ask_status(req, &filter, err);
    if (r == 0 && after)
        r = parse_i64("after", after, 0, INT64_MAX, &filter.after, err);
    if (r == 0 && limit)
        r = parse_i64("limit", limit, INT64_MIN, INT64_MAX, &n, err);
    if (r < 0)
        return r;
    if (limit)
        filter.limit = n < 1 ? 1 : n > QUEUE_LIST_MAX ? QUEUE_LIST_MAX : (int)n;
    return service_list(api->options.service, &filter, &reply->answer, err);
}

int
api_request_show(struct api *api, struct http_request *req, struct reply *reply,
                 struct err *err)
{
    static const char *const known[] = {"wait"};
    int64_t wait_us = 0;
    bool final = false;
    int64_t id = 0;
    int r;

    r = api_ask_query(req, known, array_len(known), err);
    if (r == 0)
        r = api_ask_id(req, SEGMENT_NAME, &id, err);
    if (r == 0)
        r = api_ask_wait(req, api->options.config->api.max_wait_us, &wait_us, err);
    if (r == 0)
        r = service_show(api->options.service, id, &reply->answer, &final, err);
    if (r < 0 || final || wait_us == 0)
        return r;
    reply->kept = true;
    watch_hold(api->watch, req, id, wait_us);
    return 0;
}

int
api_request_events(struct api *api, struct http_request *req, struct reply *reply,
                   struct err *err)
{
    int64_t id = 0;
    int r;

    r = api_ask_query(req, NULL, 0, err);
    if (r == 0)
        r = api_ask_id(req, SEGMENT_NAME, &id, err);
    if (r == 0)
        r = service_show(api->options.service, id, &reply->answer, NULL, err);
    if (r < 0)
        return r;
    reply->kept = true;
    watch_stream(api->watch, req, id);
    return 0;
}

int
api_request_why(struct api *api, struct http_request *req, struct reply *reply,
                struct err *err)
{
    int64_t id = 0;
    int r;

    r = api_ask_query(req, NULL, 0, err);
    if (r == 0)
        r = api_ask_id(req, SEGMENT_NAME, &id, err);
    return r < 0 ? r : service_why(api->options.service, id, &reply->answer, err);
}

static int
act(struct api *api, struct http_request *req, struct reply *reply,
    int (*fn)(const struct service *, const struct caller *, int64_t, struct answer *,
              struct err *),
    struct err *err)
{
    struct caller caller = api_ask_caller(req);
    scoped(json_drop) json_t *body = NULL;
    int64_t id = 0;
    int r;

    r = api_ask_body(req, &body, err);
    if (r == 0 && json_object_size(body) > 0)
        r = err_set(err, ERR_INVALID, "this call takes no members; send {} or nothing");
    if (r == 0)
        r = api_ask_id(req, SEGMENT_NAME, &id, err);
    if (r == 0)
        r = fn(api->options.service, &caller, id, &reply->answer, err);
    return r;
}

int
api_request_cancel(struct api *api, struct http_request *req, struct reply *reply,
                   struct err *err)
{
    return act(api, req, reply, service_cancel, err);
}

int
api_request_stop(struct api *api, struct http_request *req, struct reply *reply,
                 struct err *err)
{
    return act(api, req, reply, service_stop, err);
}

int
api_request_restart(struct api *api, struct http_request *req, struct reply *reply,
                    struct err *err)
{
    return act(api, req, reply, service_restart, err);
}

int
api_execution_stop(struct api *api, struct http_request *req, struct reply *reply,
                   struct err *err)
{
    return act(api, req, reply, service_execution_stop, err);
}

int
api_execution_recover(struct api *api, struct http_request *req, struct reply *reply,
                      struct err *err)
{
    return act(api, req, reply, service_execution_recover, err);
}
