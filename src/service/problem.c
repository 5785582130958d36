/*
 * Failures for clients: application/problem+json (RFC 9457). What is the
 * client's to mend is said in full; what is ours is said in general words with
 * the trace id under which the log has the rest.
 */
#include "service/service.h"

#include "base/err.h"
#include "base/json.h"

#include <stdio.h>

static const char *
title_of(int status)
{
    switch (status) {
    case 400:
        return "The request is not valid";
    case 403:
        return "This is not allowed";
    case 404:
        return "There is no such thing";
    case 405:
        return "This method is not allowed here";
    case 409:
        return "It cannot be done in the present state";
    case 410:
        return "It is no longer kept";
    case 413:
        return "Too large";
    case 415:
        return "This media type is not understood";
    case 416:
        return "There are no such bytes";
    case 421:
        return "This server is not the one that was meant";
    case 422:
        return "The request contradicts an earlier one";
    case 429:
        return "Too many requests";
    case 502:
        return "A server that is needed does not answer";
    case 503:
        return "Not possible right now";
    case 507:
        return "The disk is full";
    default:
        return "Something went wrong on the server";
    }
}

/* The store's own words may hold SQL and addresses: not for clients. */
static const char *
detail_of(const struct err *err, char *text, size_t size)
{
    switch (err->code) {
    case ERR_STORE:
    case ERR_STORE_BUSY:
    case ERR_DB_CONFLICT:
    case ERR_TIMEOUT:
    case ERR_NOMEM:
        return "The store does not answer right now; try again in a few seconds.";
    case ERR_COMMIT_UNKNOWN:
        return "The store went away while it was committing: the request may or may "
               "not "
               "have been stored. Try again with the same Idempotency-Key, or look at "
               "the list first.";
    case ERR_DISK_FULL:
        return "The disk of the store is full; free some space and try again.";
    case ERR_NO_WORKER:
        return err->text;
    case ERR_ESTIMATE:
        snprintf(
            text, size,
            "The estimate of job %s failed, so nothing was stored: mend `estimate` of "
            "the job. The server's log has the cause under this trace id.",
            err->detail);
        return text;
    default:
        break;
    }
    return err_http_status(err->code) >= 500 ? "It failed inside the server, whose log "
                                               "has the cause under this trace id."
                                             : err->text;
}

int
service_problem(const struct err *err, const struct complaint *complaint,
                const char *instance, const char *trace, struct buf *body)
{
    int status = err_http_status(err->code);
    char text[256];
    struct json_out out;

    json_out_init(&out, body);
    json_begin_object(&out);
    json_kv_str(&out, "type", "about:blank");
    json_kv_str(&out, "title", title_of(status));
    json_kv_i64(&out, "status", status);
    json_kv_str(&out, "code", err_word(err->code));
    json_kv_str(&out, "detail", detail_of(err, text, sizeof(text)));
    if (instance)
        json_kv_str(&out, "instance", instance);
    if (trace)
        json_kv_str(&out, "traceId", trace);
    if (err->code == ERR_JOB_ALREADY_RUNNING && err->detail[0])
        json_kv_raw(&out, "activeRequestId", err->detail);
    if (complaint && complaint->has_index)
        json_kv_i64(&out, "index", (int64_t)complaint->index);
    if (complaint && complaint->errors.count > 0) {
        json_key(&out, "errors");
        json_begin_array(&out);
        for (size_t i = 0; i < complaint->errors.count; i++) {
            json_begin_object(&out);
            json_kv_str(&out, "pointer", complaint->errors.list[i].pointer);
            json_kv_str(&out, "detail", complaint->errors.list[i].detail);
            json_end_object(&out);
        }
        json_end_array(&out);
    }
    json_end_object(&out);
    return status;
}
