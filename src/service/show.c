/*
 * Requests as clients see them: one object with everything a poller needs, the
 * same in a list, in an event and on the command line.
 */
#include "service/service.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "config/config.h"
#include "queue/delivery.h"
#include "queue/list.h"
#include "queue/tries.h"
#include "run/result_store.h"

#include <inttypes.h>
#include <stdio.h>

static int64_t
percent_of(const struct request *request)
{
    const struct request_progress *progress = &request->progress;

    if (request->outcome == OUTCOME_COMPLETED)
        return 100;
    if (!progress->known || progress->total <= 0)
        return -1;
    /* An estimate can be short: 100 is kept for the end. */
    if (progress->done >= progress->total)
        return 99;
    return progress->done * 100 / progress->total;
}

/* Seconds left if it goes on as it went; -1 = cannot be said. */
static int64_t
eta_of(const struct request *request)
{
    const struct request_progress *progress = &request->progress;
    int64_t took_us = progress->updated_at_us - request->claimed_at_us;

    if (request->status != REQUEST_RUNNING || progress->done <= 0 ||
        progress->total <= progress->done || took_us <= 0)
        return -1;
    return (int64_t)((double)took_us * (double)(progress->total - progress->done) /
                     (double)progress->done / (double)US_PER_S);
}

static void
put_known(struct json_out *out, const char *key, int64_t value)
{
    if (value >= 0)
        json_kv_i64(out, key, value);
    else
        json_kv_null(out, key);
}

static void
put_progress(struct json_out *out, const struct request *request)
{
    const struct request_progress *progress = &request->progress;

    json_key(out, "progress");
    if (!progress->known && request->outcome != OUTCOME_COMPLETED) {
        json_put_null(out);
        return;
    }
    json_begin_object(out);
    put_known(out, "done", progress->known ? progress->done : -1);
    put_known(out, "total", progress->known ? progress->total : -1);
    put_known(out, "percent", percent_of(request));
    json_kv_str(out, "message", progress->message);
    put_known(out, "etaSeconds", eta_of(request));
    json_end_object(out);
}

static void
put_result(struct json_out *out, const struct request *request)
{
    const struct request_result *result = &request->result;
    char url[80];

    json_key(out, "result");
    if (!result->known) {
        json_put_null(out);
        return;
    }
    snprintf(url, sizeof(url), "/api/v1/requests/%" PRId64 "/result", request->id);
    json_begin_object(out);
    json_kv_str(out, "name", result->name);
    json_kv_i64(out, "bytes", result->bytes);
    json_kv_str(out, "sha256", result->sha256);
    put_known(out, "rows", result->rows);
    json_kv_str(out, "contentType", result->type);
    json_kv_time_us(out, "goneAt", result->gone_at_us);
    json_kv_str(out, "url", url);
    json_end_object(out);
}

static void
put_id(struct json_out *out, const char *key, int64_t id)
{
    if (id)
        json_kv_i64(out, key, id);
    else
        json_kv_null(out, key);
}

static void
put_times(struct json_out *out, const struct request *request)
{
    json_kv_time_us(out, "createdAt", request->created_at_us);
    json_kv_time_us(out, "notBefore", request->not_before_us);
    json_kv_time_us(out, "expiresAt", request->expires_at_us);
    json_kv_time_us(out, "readySince", request->ready_since_us);
    json_kv_time_us(out, "startedAt", request->claimed_at_us);
    json_kv_time_us(out, "finishedAt", request->finished_at_us);
}

/* All tries of the same work, the first one first; the last one is the live one. */
static void
put_tries(struct json_out *out, const struct request_try *tries, size_t count)
{
    json_key(out, "attempts");
    json_begin_array(out);
    for (size_t i = 0; i < count; i++) {
        json_begin_object(out);
        json_kv_i64(out, "requestId", tries[i].id);
        json_kv_i64(out, "attempt", tries[i].attempt);
        json_kv_str(out, "status", request_status_name(tries[i].status));
        json_kv_str(out, "outcome", request_outcome_name(tries[i].outcome));
        json_kv_str(out, "detail", tries[i].detail);
        json_kv_time_us(out, "createdAt", tries[i].created_at_us);
        json_kv_time_us(out, "startedAt", tries[i].started_at_us);
        json_kv_time_us(out, "finishedAt", tries[i].finished_at_us);
        json_end_object(out);
    }
    json_end_array(out);
}

/* Who is still to be told of its end. */
static void
put_webhooks(struct json_out *out, const struct delivery_waiting *list, size_t count)
{
    json_key(out, "webhooks");
    json_begin_array(out);
    for (size_t i = 0; i < count; i++) {
        json_begin_object(out);
        json_kv_str(out, "name", list[i].webhook);
        json_kv_i64(out, "attempts", list[i].attempts);
        json_kv_time_us(out, "nextTry", list[i].due_at_us);
        json_kv_str(out, "lastError", list[i].last_error);
        json_end_object(out);
    }
    json_end_array(out);
}

/* What is told of one request only, not in a list. */
struct more {
    struct request_try *tries;
    size_t n_tries;
    struct delivery_waiting *webhooks;
    size_t n_webhooks;
};

static void
put_request(struct json_out *out, const struct request *request,
            const struct more *more)
{
    json_begin_object(out);
    json_kv_i64(out, "requestId", request->id);
    json_kv_str(out, "job", request->job);
    json_kv_str(out, "status", request_status_name(request->status));
    json_kv_str(out, "outcome", request_outcome_name(request->outcome));
    json_kv_bool(out, "complete", request->outcome == OUTCOME_COMPLETED);
    json_kv_str(out, "detail", request->detail);
    json_kv_str(out, "waitsFor", request->later_reason);
    put_progress(out, request);
    put_result(out, request);
    json_kv_raw(out, "params", request->given);
    json_kv_str(out, "requester", request->requester);
    json_kv_str(out, "source", request_source_name(request->source));
    json_kv_str(out, "lane", request->lane);
    json_kv_i64(out, "priority", request->priority);
    put_known(out, "estimate", request->estimate);
    json_kv_i64(out, "attempt", request->attempt);
    put_id(out, "retryOf", request->retry_of);
    put_id(out, "restartOf", request->restart_of);
    json_kv_raw(out, "next", request->next);
    json_kv_bool(out, "cancelRequested", request->cancel_asked);
    json_kv_bool(out, "stopRequested", request->stop_asked);
    json_kv_str(out, "worker", request->worker);
    put_id(out, "executionId", request->execution_id);
    put_times(out, request);
    if (more) {
        put_tries(out, more->tries, more->n_tries);
        put_webhooks(out, more->webhooks, more->n_webhooks);
    }
    json_end_object(out);
}

/* Most are the only try, and then say so themselves. */
static int
tries_of(const struct service *service, const struct request *request,
         struct arena *arena, struct request_try **ret_tries, size_t *ret_count,
         struct err *err)
{
    bool tried_again =
        request->retry_of != 0 || (request_status_final(request->status) &&
                                   request->outcome != OUTCOME_COMPLETED);

    if (tried_again)
        return queue_tries(service->store, request->id, arena, ret_tries, ret_count,
                           err);
    *ret_tries = arena_new(arena, struct request_try);
    *ret_count = 1;
    **ret_tries = (struct request_try){
        .id = request->id,
        .attempt = request->attempt,
        .source = request->source,
        .status = request->status,
        .outcome = request->outcome,
        .created_at_us = request->created_at_us,
        .started_at_us = request->claimed_at_us,
        .finished_at_us = request->finished_at_us,
        .detail = request->detail,
    };
    return 0;
}

/* A job has a webhook only where the file names some. */
static int
webhooks_of(const struct service *service, const struct request *request,
            struct arena *arena, struct more *more, struct err *err)
{
    if (!request_status_final(request->status) || service->config->webhook_count == 0)
        return 0;
    return queue_deliveries_of(service->store, request->id, arena, &more->webhooks,
                               &more->n_webhooks, err);
}

int
service_show(const struct service *service, int64_t request_id,
             struct answer *ret_answer, bool *ret_final, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    struct more more = {0};
    struct request request = {0};
    struct json_out out;
    int r = queue_get(service->store, request_id, &arena, &request, err);

    if (r == 0)
        r = tries_of(service, &request, &arena, &more.tries, &more.n_tries, err);
    if (r == 0)
        r = webhooks_of(service, &request, &arena, &more, err);
    if (r < 0)
        return r;
    ret_answer->status = 200;
    ret_answer->request_id = request_id;
    json_out_init(&out, &ret_answer->body);
    put_request(&out, &request, &more);
    if (ret_final)
        *ret_final = request_status_final(request.status);
    return 0;
}

int
service_list(const struct service *service, const struct list_filter *filter,
             struct answer *ret_answer, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    struct request_page page = {0};
    struct json_out out;
    int r = queue_list(service->store, filter, &arena, &page, err);

    if (r < 0)
        return r;
    ret_answer->status = 200;
    json_out_init(&out, &ret_answer->body);
    json_begin_object(&out);
    json_key(&out, "items");
    json_begin_array(&out);
    for (size_t i = 0; i < page.count; i++)
        put_request(&out, &page.requests[i], NULL);
    json_end_array(&out);
    put_id(&out, "next", page.next_after);
    json_end_object(&out);
    return 0;
}

/* --- the result --- */

static int
no_result(const struct request *request, struct err *err)
{
    if (!request_status_final(request->status))
        return err_set(err, ERR_NO_RESULT,
                       "request %" PRId64 " is %s; its result is there when it is DONE",
                       request->id, request_status_name(request->status));
    if (request->outcome != OUTCOME_COMPLETED)
        return err_set(err, ERR_NO_RESULT,
                       "request %" PRId64 " ended %s and has no result", request->id,
                       request_outcome_name(request->outcome));
    return err_set(err, ERR_NOT_FOUND, "job %s makes no result file", request->job);
}

int
service_result(const struct service *service, int64_t request_id, struct arena *arena,
               struct service_result *ret_result, struct err *err)
{
    struct request request = {0};
    int fd = -1;
    int r = queue_get(service->store, request_id, arena, &request, err);

    if (r < 0)
        return r;
    if (request.outcome != OUTCOME_COMPLETED || !request.result.known)
        return no_result(&request, err);
    if (request.result.gone_at_us)
        return err_set(err, ERR_GONE,
                       "the result of request %" PRId64
                       " is no longer kept; run the job again to make it",
                       request_id);
    r = result_store_read(service->results, request.result.path, request.result.bytes,
                          &fd, err);
    if (r < 0)
        return r;
    *ret_result = (struct service_result){
        .fd = fd,
        .bytes = request.result.bytes,
        .name = request.result.name,
        .type = request.result.type,
        .sha256 = request.result.sha256,
    };
    return 0;
}
