/*
 * One call to a webhook's receiver. Nobody reads its answer, so no more of it is taken
 * than a limit, and what counts is the status, even if the body breaks off.
 */
#include "worker/hook.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/strs.h"
#include "config/config.h"
#include "net/http_client.h"
#include "queue/request.h"

#include <inttypes.h>
#include <stdio.h>

#define CONNECT_MS 5000
#define REPLY_MAX  ((size_t)64 << 10)

static int
on_progress(void *arg, int64_t done_bytes, int64_t total_bytes)
{
    const struct hook_send *send = (const struct hook_send *)arg;

    return send->is_over(send->is_over_arg);
}

static int
call(const struct hook_send *send, const char *id, const struct buf *body,
     int64_t now_s, struct arena *arena, struct http_reply *ret_reply, struct err *err)
{
    const struct http_field fields[] = {
        {"Content-Type", HOOK_EVENT_TYPE},
        {"webhook-id", id},
        {"webhook-timestamp", arena_printf(arena, "%" PRId64, now_s)},
        {"webhook-signature",
         hook_signature(send->secrets, id, now_s, body->data, body->len, arena)},
    };
    const struct http_call order = {
        .method = "POST",
        .url = send->webhook->url,
        .shown = arena_printf(arena, "webhook %s", send->webhook->name),
        .fields = fields,
        .field_count = array_len(fields),
        .body = body->data,
        .body_len = body->len,
        .connect_timeout_ms = CONNECT_MS,
        .timeout_ms = send->webhook->timeout_us / US_PER_MS,
        .reply_max = REPLY_MAX,
        .on_progress = on_progress,
        .on_progress_arg = (void *)(uintptr_t)send,
        .head_suffices = true,
    };

    return http_client_call(send->client, &order, arena, ret_reply, err);
}

int
hook_send(const struct hook_send *send, const struct request *request,
          struct arena *arena, struct hook_try *ret_try, char *why, size_t size)
{
    const char *id =
        hook_event_id(send->store_id, request->id, send->webhook->name, arena);
    scoped(http_reply_release) struct http_reply reply = {0};
    scoped(buf_release) struct buf body = {0};
    int64_t wall_us = clock_wall_us(send->clock);
    struct err err = {0};
    int r;

    buf_init(&body, HOOK_EVENT_MAX);
    hook_event_add(&body, send->store_id, id, request);
    r = call(send, id, &body, wall_us / US_PER_S, arena, &reply, &err);
    if (r == -ERR_CANCELLED)
        return r;
    ret_try->status = r == 0 ? reply.status : 0;
    ret_try->asked_wait_us =
        hook_asked_wait_us(http_reply_field(&reply, "Retry-After"), wall_us);
    if (r < 0)
        str_copy(why, size, err.text);
    else
        snprintf(why, size, "it answered HTTP %d%s", reply.status,
                 reply.status >= 300 && reply.status < 400
                     ? ", and a redirect is not followed: set url to where it leads"
                     : "");
    return 0;
}
