/*
 * An event carries the id, not the result: a receiver asks for that. What is of free
 * length is cut, so that a body stays below the 20 kB that receivers can be expected
 * to take.
 */
#include "worker/hook.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/strs.h"
#include "base/utf8.h"
#include "io/base64.h"
#include "queue/request.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SECRET_PREFIX "whsec_"
#define SECRET_MAX    512
/* A byte of text is at most six of JSON. */
#define DETAIL_MAX      1500
#define RESULT_NAME_MAX 300

/* --- signing --- */

static int
add_secret(const char *text, size_t len, struct arena *arena,
           struct hook_secrets *secrets, struct err *err)
{
    size_t prefix = strlen(SECRET_PREFIX);
    uint8_t *bytes = (uint8_t *)arena_strndup(arena, text, len);

    if (secrets->count == HOOK_SECRETS_MAX)
        return err_set(err, ERR_CONFIG,
                       "it holds more than %d secrets: leave out the oldest",
                       HOOK_SECRETS_MAX);
    if (len > SECRET_MAX)
        return err_set(err, ERR_CONFIG, "a secret of it is longer than %d bytes",
                       SECRET_MAX);
    if (len >= prefix && strncmp(text, SECRET_PREFIX, prefix) == 0 &&
        (!base64_read(text + prefix, len - prefix, bytes, &len) || len == 0))
        return err_set(err, ERR_CONFIG,
                       "what follows " SECRET_PREFIX
                       " in it is not base64: copy the secret whole");
    secrets->list[secrets->count].bytes = bytes;
    secrets->list[secrets->count++].len = len;
    return 0;
}

int
hook_secrets_read(const char *value, struct arena *arena,
                  struct hook_secrets *ret_secrets, struct err *err)
{
    static const char blanks[] = " \t\r\n";
    struct hook_secrets secrets = {0};

    for (value += strspn(value, blanks); *value; value += strspn(value, blanks)) {
        size_t len = strcspn(value, blanks);
        int r = add_secret(value, len, arena, &secrets, err);

        if (r < 0)
            return r;
        value += len;
    }
    if (secrets.count == 0)
        return err_set(err, ERR_CONFIG, "it holds no secret");
    *ret_secrets = secrets;
    return 0;
}

const char *
hook_signature(const struct hook_secrets *secrets, const char *id, int64_t timestamp_s,
               const char *body, size_t len, struct arena *arena)
{
    scoped(buf_release) struct buf content = {0};
    scoped(buf_release) struct buf signature = {0};

    buf_init(&content, 0);
    buf_init(&signature, 0);
    buf_addf(&content, "%s.%" PRId64 ".", id, timestamp_s);
    buf_add(&content, body, len);
    for (size_t i = 0; i < secrets->count; i++) {
        uint8_t mac[SHA256_BYTES];

        hmac_sha256(secrets->list[i].bytes, secrets->list[i].len, content.data,
                    content.len, mac);
        buf_addf(&signature, "%sv1,", i ? " " : "");
        base64_add(&signature, (const char *)mac, sizeof(mac));
    }
    return arena_strdup(arena, buf_str(&signature));
}

/* --- the event --- */

const char *
hook_event_id(const char *store_id, int64_t request_id, const char *webhook,
              struct arena *arena)
{
    return arena_printf(arena, "%s-%" PRId64 "-%s", store_id, request_id, webhook);
}

static const char *
type_of(enum request_outcome outcome)
{
    switch (outcome) {
    case OUTCOME_COMPLETED:
        return "pawl.request.completed.v1";
    case OUTCOME_STOPPED:
        return "pawl.request.stopped.v1";
    case OUTCOME_CANCELLED:
        return "pawl.request.cancelled.v1";
    case OUTCOME_EXPIRED:
        return "pawl.request.expired.v1";
    case OUTCOME_REFUSED:
        return "pawl.request.refused.v1";
    case OUTCOME_ERROR:
    case OUTCOME_TIMEOUT:
    case OUTCOME_WORKER_LOST:
    case OUTCOME_NONE:
    case OUTCOME_COUNT:
        break;
    }
    return "pawl.request.failed.v1";
}

static void
put_text(struct json_out *out, const char *key, const char *text, size_t max)
{
    if (text)
        json_kv_strn(out, key, text, utf8_cut(text, strlen(text), max));
    else
        json_kv_null(out, key);
}

static void
put_result(struct json_out *out, const struct request_result *result)
{
    json_key(out, "result");
    if (!result->known) {
        json_put_null(out);
        return;
    }
    json_begin_object(out);
    put_text(out, "name", result->name, RESULT_NAME_MAX);
    json_kv_i64(out, "bytes", result->bytes);
    if (result->rows >= 0)
        json_kv_i64(out, "rows", result->rows);
    else
        json_kv_null(out, "rows");
    json_kv_str(out, "sha256", result->sha256);
    json_end_object(out);
}

void
hook_event_add(struct buf *out_buf, const char *store_id, const char *event_id,
               const struct request *request)
{
    struct json_out out;
    char text[64];

    assert(request_status_final(request->status));
    json_out_init(&out, out_buf);
    json_begin_object(&out);
    json_kv_str(&out, "specversion", "1.0");
    json_kv_str(&out, "id", event_id);
    snprintf(text, sizeof(text), "pawl/%s", store_id);
    json_kv_str(&out, "source", text);
    json_kv_str(&out, "type", type_of(request->outcome));
    json_kv_time_us(&out, "time", request->finished_at_us);
    snprintf(text, sizeof(text), "%" PRId64, request->id);
    json_kv_str(&out, "subject", text);
    json_kv_str(&out, "datacontenttype", "application/json");
    json_key(&out, "data");
    json_begin_object(&out);
    json_kv_i64(&out, "requestId", request->id);
    json_kv_i64(&out, "firstTry",
                request->first_try ? request->first_try : request->id);
    json_kv_i64(&out, "attempt", request->attempt);
    json_kv_str(&out, "job", request->job);
    json_kv_str(&out, "status", request_status_name(request->status));
    json_kv_str(&out, "outcome", request_outcome_name(request->outcome));
    put_text(&out, "detail", request->detail, DETAIL_MAX);
    put_result(&out, &request->result);
    json_end_object(&out);
    json_end_object(&out);
}
