/* Answers: JSON, files, problem documents with a trace id that the log has too. */
#include "api/api_private.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "base/rand.h"

#include <stdio.h>
#include <string.h>

#define PROBLEM_MAX 65536

/* 130 random bits in the alphabet of Crockford's base 32. */
static void
make_trace(char ret[API_TRACE_SIZE])
{
    static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

    for (size_t i = 0; i < API_TRACE_SIZE - 1; i++)
        ret[i] = digits[rand_u64() & 31];
    ret[API_TRACE_SIZE - 1] = '\0';
}

void
api_reply_field(struct reply *reply, const char *name, const char *value)
{
    if (reply->n_fields < API_FIELDS_MAX)
        reply->fields[reply->n_fields++] = (struct http_field){name, value};
}

void
api_respond(struct api *api, struct http_request *req, struct reply *reply)
{
    struct http_response response = {
        .status = reply->answer.status,
        .content_type = reply->file ? reply->content_type : "application/json",
        .fields = reply->fields,
        .field_count = reply->n_fields,
        .file = reply->file,
    };
    struct err err = {0};

    if (!reply->file) {
        if (buf_check(&reply->answer.body, "the answer", &err) < 0) {
            buf_release(&reply->answer.body);
            api_respond_problem(api, req, NULL, &err);
            return;
        }
        response.body = reply->answer.body;
        if (response.body.len == 0)
            response.content_type = NULL;
    }
    http_respond(req, &response);
}

/* 409s of a race and 5xx tell when to come again. */
static const char *
retry_after(enum err_code code)
{
    int status = err_http_status(code);

    if (code == ERR_JOB_BEING_SUBMITTED)
        return "1";
    return status == 503 || status == 429 || status == 507 ? "5" : NULL;
}

void
api_respond_problem(struct api *api, struct http_request *req,
                    const struct complaint *complaint, const struct err *err)
{
    char trace[API_TRACE_SIZE];
    struct http_field fields[3];
    struct http_response response = {
        .content_type = "application/problem+json",
        .fields = fields,
    };

    make_trace(trace);
    buf_init(&response.body, PROBLEM_MAX);
    response.status =
        service_problem(err, complaint, http_request_path(req), trace, &response.body);
    fields[response.field_count++] = (struct http_field){"X-Trace-Id", trace};
    if (retry_after(err->code))
        fields[response.field_count++] =
            (struct http_field){"Retry-After", retry_after(err->code)};
    if (err->code == ERR_METHOD)
        fields[response.field_count++] = (struct http_field){"Allow", err->detail};
    if (response.status >= 500)
        log_line(api->options.log, LOG_ERROR, "request failed", log_str("trace", trace),
                 log_str("method", http_request_method(req)),
                 log_str("path", http_request_path(req)),
                 log_str("code", err_word(err->code)), log_str("reason", err->text));
    http_respond(req, &response);
}
