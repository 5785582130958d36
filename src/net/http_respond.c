/*
 * Answers: making the head, and the hand-over between the thread that answers and
 * the loop. A request goes through
 *
 *      loop → (hand_out) → handler's side → (respond or stream_end) → loop → freed
 *
 * and may lose its connection at any moment of it. Whoever is last frees it: the loop
 * if the connection outlives the answer, else the side that lets go.
 */
#include "net/http_server_impl.h"

#include "base/civil.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "net/loop.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

static void
add_date(struct buf *head)
{
    static const char days[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    int64_t now_us = clock_wall_us(clock_real());
    struct civil t;

    civil_from_us(now_us, &t);
    buf_addf(head, "Date: %s, %02d %s %04d %02d:%02d:%02d GMT\r\n",
             days[civil_weekday(now_us / US_PER_DAY)], t.day, months[t.month - 1],
             t.year, t.hour, t.minute, t.second);
}

/* No value can end its line, whatever it was made from. */
static void
add_field(struct buf *head, const char *name, const char *value)
{
    buf_add_str(head, name);
    buf_add_str(head, ": ");
    for (; *value != '\0'; value++) {
        unsigned char c = (unsigned char)*value;

        buf_add_char(head, c < 0x20 || c == 0x7f ? ' ' : *value);
    }
    buf_add_str(head, "\r\n");
}

static bool
has_field(const struct http_response *response, const char *name)
{
    for (size_t i = 0; i < response->field_count; i++)
        if (strcasecmp(response->fields[i].name, name) == 0)
            return true;
    return false;
}

static bool
status_has_body(int status)
{
    return status >= 200 && status != 204 && status != 304;
}

void
http_add_head(struct http_request *req, const struct http_response *response,
              struct http_out *out, int64_t length)
{
    struct buf *head = &out->head;

    buf_addf(head, "HTTP/1.1 %d %s\r\n", response->status,
             http_status_text(response->status));
    add_date(head);
    if (response->content_type != NULL)
        add_field(head, "Content-Type", response->content_type);
    if (length < 0 && req->chunked_reply)
        add_field(head, "Transfer-Encoding", "chunked");
    else if (length >= 0 && status_has_body(response->status))
        buf_addf(head, "Content-Length: %lld\r\n", (long long)length);
    add_field(head, "X-Content-Type-Options", "nosniff");
    if (!has_field(response, "Cache-Control"))
        add_field(head, "Cache-Control", "no-store");
    for (size_t i = 0; i < response->field_count; i++)
        add_field(head, response->fields[i].name, response->fields[i].value);
    if (out->close)
        add_field(head, "Connection", "close");
    buf_add_str(head, "\r\n");
}

bool
http_must_close(const struct http_request *req, const struct http_response *response)
{
    return response->close || !req->parser.keep_alive || req->body_pending ||
           atomic_load(&req->server->draining);
}

/* Everything that needs no lock; the response's body and file are taken over. */
static void
make_out(struct http_request *req, struct http_response *response)
{
    struct http_out *out = &req->out;
    bool with_body = status_has_body(response->status) && !req->is_head_method;
    int64_t length = (int64_t)response->body.len;

    assert(response->file == NULL || response->fixed == NULL);
    out->close = http_must_close(req, response);
    out->body = response->body;
    response->body = (struct buf){0};
    if (response->file != NULL) {
        length = response->file->length;
        out->fd = response->file->fd;
        out->offset = response->file->offset;
        out->left = with_body ? length : 0;
    } else if (response->fixed != NULL) {
        length = (int64_t)response->fixed_len;
        out->data = with_body ? response->fixed : NULL;
        out->data_len = with_body ? response->fixed_len : 0;
    } else if (with_body) {
        out->data = out->body.data;
        out->data_len = out->body.len;
    }
    http_add_head(req, response, out, length);
}

void
http_put_done(struct http_request *req)
{
    struct http_server *server = req->server;

    if (req->queued)
        return;
    req->queued = true;
    req->next = NULL;
    if (server->done_tail != NULL)
        server->done_tail->next = req;
    else
        server->done_head = req;
    server->done_tail = req;
    /* Inside the lock: the server may be freed as soon as it is open. */
    loop_wake_send(server->wake);
}

static struct http_request *
pop_done(struct http_server *server)
{
    struct http_request *req = server->done_head;

    if (req == NULL)
        return NULL;
    server->done_head = req->next;
    if (server->done_head == NULL)
        server->done_tail = NULL;
    req->next = NULL;
    req->queued = false;
    return req;
}

struct http_request *
http_done_take(struct http_server *server)
{
    struct http_request *req;

    pthread_mutex_lock(&server->lock);
    while ((req = pop_done(server)) != NULL && req->conn == NULL) {
        /* Not released: its owner may free it at any moment, so hands off. */
        if (!req->released)
            continue;
        pthread_mutex_unlock(&server->lock);
        http_request_free(req);
        pthread_mutex_lock(&server->lock);
    }
    pthread_mutex_unlock(&server->lock);
    return req;
}

/* Under the lock: wait for an on_gone in another thread (in this one, it is its end
 * that frees). */
static void
await_telling(struct http_request *req)
{
    struct http_server *server = req->server;

    while (req->telling && !pthread_equal(server->teller, pthread_self()))
        pthread_cond_wait(&server->changed, &server->lock);
}

void
http_let_go(struct http_request *req)
{
    struct http_server *server = req->server;
    bool last;

    pthread_mutex_lock(&server->lock);
    await_telling(req);
    assert(!req->released);
    req->released = true;
    if (req->conn != NULL)
        http_put_done(req);
    last = req->conn == NULL && !req->queued && !req->telling;
    pthread_mutex_unlock(&server->lock);
    if (last)
        http_request_free(req);
}

void
http_respond(struct http_request *req, struct http_response *response)
{
    make_out(req, response);
    http_let_go(req);
}

void
http_refuse(struct http_request *req, int status, const char *reason)
{
    static const struct http_field retry = {"Retry-After", "1"};
    struct http_response response = {
        .status = status,
        .content_type = "application/problem+json",
        .fields = &retry,
        .field_count = status == 503 ? 1 : 0,
        .close = true,
    };
    struct json_out json;

    json_out_init(&json, &response.body);
    json_begin_object(&json);
    json_key(&json, "type");
    json_put_str(&json, "about:blank");
    json_key(&json, "title");
    json_put_str(&json, http_status_text(status));
    json_key(&json, "status");
    json_put_i64(&json, status);
    json_key(&json, "code");
    json_put_str(&json, http_status_code(status));
    json_key(&json, "detail");
    json_put_str(&json, reason);
    json_end_object(&json);
    make_out(req, &response);
}

void
http_request_hand_out(struct http_request *req)
{
    pthread_mutex_lock(&req->server->lock);
    req->released = false;
    pthread_mutex_unlock(&req->server->lock);
}

bool
http_request_take_back(struct http_request *req)
{
    bool answered;

    pthread_mutex_lock(&req->server->lock);
    answered = req->released;
    req->released = true;
    pthread_mutex_unlock(&req->server->lock);
    return !answered;
}

enum http_presence
http_request_on_gone(struct http_request *req, http_gone_fn fn, void *arg)
{
    struct http_server *server = req->server;
    enum http_presence presence = HTTP_CLIENT_HERE;

    pthread_mutex_lock(&server->lock);
    assert(!req->released && req->on_gone == NULL);
    if (req->conn == NULL || req->peer_closed) {
        presence = HTTP_CLIENT_GONE;
    } else {
        req->on_gone = fn;
        req->gone_arg = arg;
    }
    pthread_mutex_unlock(&server->lock);
    return presence;
}

bool
http_request_peer_closed(struct http_request *req)
{
    bool wants_to_know;

    pthread_mutex_lock(&req->server->lock);
    req->peer_closed = true;
    wants_to_know = req->on_gone != NULL;
    pthread_mutex_unlock(&req->server->lock);
    return wants_to_know;
}

void
http_request_left(struct http_request *req)
{
    struct http_server *server = req->server;
    bool last;

    pthread_mutex_lock(&server->lock);
    req->conn = NULL;
    if (!req->released && req->on_gone != NULL) {
        http_gone_fn fn = req->on_gone;
        void *arg = req->gone_arg;

        req->telling = true;
        server->teller = pthread_self();
        pthread_mutex_unlock(&server->lock);
        fn(arg);
        pthread_mutex_lock(&server->lock);
        req->telling = false;
        pthread_cond_broadcast(&server->changed);
    }
    last = req->released && !req->queued;
    pthread_mutex_unlock(&server->lock);
    if (last)
        http_request_free(req);
}
