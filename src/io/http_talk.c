/*
 * The order of one attempt: token → fill the texts → take a call from the budget →
 * call → judge. The call is taken last before it is made, and counts from then on.
 */
#include "io/http_talk_private.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/retry.h"
#include "base/strs.h"
#include "io/call_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOK_BYTES (256 << 10)

void
http_show_as(struct http_talk *talk, const struct http_spec *spec)
{
    snprintf(talk->shown, sizeof(talk->shown), "%.*s", (int)strcspn(spec->url, "?#"),
             spec->url);
}

int
http_talk_init(struct http_talk *talk, struct http_link *link, struct err *err)
{
    *talk = (struct http_talk){.link = link};
    http_show_as(talk, link->spec);
    return http_client_new(&talk->client, err);
}

void
http_talk_release(struct http_talk *talk)
{
    http_client_free(talk->client);
    arena_release(&talk->arena);
    *talk = (struct http_talk){0};
}

void
http_said_release(struct http_said *said)
{
    reply_tree_release(&said->tree);
    buf_release(&said->body);
}

/* --- a call --- */

static int
on_progress(void *arg, int64_t done_bytes, int64_t total_bytes)
{
    struct io_ctx *io = arg;

    return io->cut(io);
}

static int
empty_sink(const struct http_sink *sink, struct err *err)
{
    if (lseek(sink->fd, 0, SEEK_SET) < 0 || ftruncate(sink->fd, 0) < 0)
        return err_set(err, ERR_IO, "cannot empty the file that is fetched");
    return 0;
}

/* A small file may be no file but a reply that tells a code: have a look at it. */
static void
look_into_sink(struct http_attempt *attempt)
{
    struct http_reply *reply = &attempt->reply;
    size_t len = (size_t)reply->body_bytes;
    char *room;
    ssize_t n;

    if (reply->status < 200 || reply->status > 299 || len == 0 || len > LOOK_BYTES ||
        attempt->spec->n_code_paths == 0)
        return;
    buf_clear(&reply->body);
    room = buf_reserve(&reply->body, len);
    n = room ? pread(attempt->sink->fd, room, len, 0) : -1;
    if (n > 0)
        reply->body.len += (size_t)n;
    if (n > 0)
        reply->body.data[reply->body.len] = '\0';
}

/* What went wrong below HTTP: tried again, but for what lies in the job or here. */
static int
failed_call(struct http_attempt *attempt, int r, struct err *err)
{
    if (r == -ERR_CANCELLED) {
        err_clear(err);
        attempt->said->end = HTTP_END_CUT;
        return 1;
    }
    http_strike_out(attempt, err->text);
    if (r == -ERR_TOO_LARGE) { /* it would be the next time too */
        err_prefix(err, "%s (max_bytes)", attempt->talk->shown);
        attempt->said->end = HTTP_END_UPSTREAM;
        return 1;
    }
    if (r != -ERR_CONNECT && r != -ERR_TIMEOUT && r != -ERR_PROTOCOL)
        return r;
    attempt->outcome = HTTP_TRANSIENT;
    return 0;
}

/* 0: judged, 1: said->end is set, < 0. */
static int
call_once(struct http_attempt *attempt, struct err *err)
{
    const struct http_spec *spec = attempt->spec;
    struct io_ctx *io = attempt->talk->link->io;
    scoped(buf_release) struct buf url = {0};
    scoped(buf_release) struct buf body = {0};
    const struct http_sent *sent = http_sent_of(attempt);
    struct http_field fields[CALL_FIELDS_MAX];
    struct http_call call = {.method = spec->method,
                             .shown = attempt->talk->shown,
                             .fields = fields,
                             .connect_timeout_ms = spec->connect_ms,
                             .timeout_ms = spec->timeout_ms,
                             .stall_ms = spec->timeout_ms,
                             .reply_max = (size_t)spec->max_bytes,
                             .on_progress = on_progress,
                             .on_progress_arg = io};
    int r;

    buf_init(&url, CALL_URL_MAX_BYTES);
    buf_init(&body, CALL_BODY_MAX_BYTES);
    r = http_fill_url(attempt, &url, err);
    if (r == 0)
        r = http_fill_headers(attempt, fields, &call.field_count, err);
    if (r == 0)
        r = http_fill_body(attempt, &body, err);
    if (r == 0 && attempt->sink)
        r = empty_sink(attempt->sink, err);
    if (r < 0)
        return r;
    r = io->take_call(io, spec->budget, attempt->said->why, err);
    if (r != IO_TAKE_GO) {
        attempt->said->end = r == IO_TAKE_END ? HTTP_END_CUT : HTTP_END_STOP;
        attempt->said->spent = r == IO_TAKE_SPENT;
        return r < 0 ? r : 1;
    }
    call.url = buf_str(&url);
    if (spec->body || spec->json) {
        call.body = buf_str(&body);
        call.body_len = body.len;
    }
    if (sent && sent->body) {
        call.body = sent->body;
        call.body_len = sent->body_len;
    }
    if (attempt->sink) {
        call.to_fd = true;
        call.fd = attempt->sink->fd;
        call.fd_max = spec->max_bytes;
        call.reply_max = 1 << 20;
    }
    r = http_client_call(attempt->talk->client, &call, &attempt->talk->arena,
                         &attempt->reply, err);
    if (r < 0)
        return failed_call(attempt, r, err);
    if (attempt->sink)
        look_into_sink(attempt);
    http_judge(attempt, err);
    http_reply_release(&attempt->reply);
    return 0;
}

/* --- attempts --- */

static int
limit_reached(struct http_attempt *attempt, struct err *err)
{
    struct io_ctx *io = attempt->talk->link->io;
    struct http_said *said = attempt->said;
    char told[CALL_SAYING_MAX * 2];
    int r = 0;

    (void)str_copy(told, sizeof(told), err->text);
    err_clear(err);
    said->end = HTTP_END_LIMIT;
    if (attempt->spec->budget)
        r = io->close_budget(io, attempt->spec->budget, said->why, err);
    if (r < 0)
        return r;
    if (!said->why[0])
        snprintf(said->why, sizeof(said->why),
                 "the provider allows no more calls for now: %s; ask again later",
                 told);
    return 0;
}

/* 1: go on trying, 0: said->end is set, < 0. */
static int
after_failure(struct http_attempt *attempt, struct backoff *backoff, struct err *err)
{
    struct io_ctx *io = attempt->talk->link->io;
    int64_t wait_ms;

    if (backoff->attempts + 1 >= attempt->spec->attempts) {
        attempt->said->end = HTTP_END_UPSTREAM;
        if (attempt->spec->attempts > 1)
            err_prefix(err, "after %d attempts", attempt->spec->attempts);
        return 0;
    }
    wait_ms = backoff_next_ms(backoff);
    if (attempt->retry_after_ms > wait_ms)
        wait_ms = attempt->retry_after_ms > attempt->spec->max_wait_ms
                      ? attempt->spec->max_wait_ms
                      : attempt->retry_after_ms;
    attempt->retry_after_ms = 0;
    io->wait_ms(io, wait_ms);
    if (io->cut(io)) {
        err_clear(err);
        attempt->said->end = HTTP_END_CUT;
        return 0;
    }
    return 1;
}

/* 1: go on trying, 0: said->end is set, < 0. */
static int
after_attempt(struct http_attempt *attempt, struct backoff *backoff, bool *renewed,
              struct err *err)
{
    int r;

    switch (attempt->outcome) {
    case HTTP_OK:
        attempt->said->end = HTTP_END_OK;
        return 0;
    case HTTP_NO_DATA:
        attempt->said->end = HTTP_END_NO_DATA;
        return 0;
    case HTTP_SKIP:
        attempt->said->end = HTTP_END_REJECTED;
        return 0;
    case HTTP_LIMIT:
        return limit_reached(attempt, err);
    case HTTP_TRANSIENT:
        return after_failure(attempt, backoff, err);
    case HTTP_RENEW:
        if (!*renewed && attempt->spec->token) {
            *renewed = true;
            err_clear(err);
            r = http_token_get(attempt, true, err);
            return r == 0 ? 1 : r == 1 ? 0 : r;
        }
        break;
    case HTTP_FATAL:
    case HTTP_OUTCOME_COUNT:
        break;
    }
    err->code = ERR_FORBIDDEN;
    return -ERR_FORBIDDEN;
}

int
http_attempts_run(struct http_attempt *attempt, struct err *err)
{
    struct backoff backoff = {
        .base_ms = attempt->spec->wait_ms ? attempt->spec->wait_ms : 1,
        .max_ms = attempt->spec->max_wait_ms ? attempt->spec->max_wait_ms : 1,
        .factor = (double)attempt->spec->factor,
        .jitter = 0.2};
    bool renewed = false;
    int r;

    do {
        err_clear(err);
        attempt->said->code[0] = '\0';
        arena_clear(&attempt->talk->arena);
        r = call_once(attempt, err);
        if (r != 0)
            return r < 0 ? r : 0;
        r = after_attempt(attempt, &backoff, &renewed, err);
    } while (r == 1);
    return r;
}

int
http_talk_call(struct http_talk *talk, struct call_names *names,
               const struct http_extra extras[2], const struct http_sink *sink,
               struct http_said *ret_said, struct err *err)
{
    struct http_said said = {0};
    struct http_attempt attempt = {.talk = talk,
                                   .spec = talk->link->spec,
                                   .names = names,
                                   .extras = extras,
                                   .sink = sink,
                                   .said = &said};
    int r;

    names->budget = talk->link->spec->budget;
    names->token = NULL;
    r = http_token_get(&attempt, false, err);
    if (r == 0)
        r = http_attempts_run(&attempt, err);
    free((char *)(uintptr_t)names->token);
    names->token = NULL;
    if (r < 0) {
        http_said_release(&said);
        return r;
    }
    *ret_said = said;
    return 0;
}
