/*
 * Streams: answers of unknown length, fed by any thread. Bytes wait in the request's
 * queue until the loop has sent what it took before; whoever lets its queue grow over
 * the limit by reading too slowly is cut off, so that no sender ever waits.
 */
#include "net/http_server_impl.h"

#include "base/strs.h"

#include <assert.h>
#include <string.h>

static void
add_chunk(struct http_request *req, const void *data, size_t len)
{
    if (req->chunked_reply)
        buf_addf(&req->queue, "%zx\r\n", len);
    buf_add(&req->queue, data, len);
    if (req->chunked_reply)
        buf_add_str(&req->queue, "\r\n");
}

/* Under the lock: the server drains, so say farewell and take no more. */
static void
finish(struct http_request *req)
{
    if (!req->streaming || req->finishing || req->released || req->is_head_method)
        return;
    req->finishing = true;
    if (!str_empty(req->farewell))
        add_chunk(req, req->farewell, strlen(req->farewell));
    if (req->conn != NULL)
        http_put_done(req);
}

void
http_stream_finish(struct http_request *req)
{
    pthread_mutex_lock(&req->server->lock);
    finish(req);
    pthread_mutex_unlock(&req->server->lock);
}

void
http_stream_begin(struct http_request *req, struct http_response *response)
{
    struct http_server *server = req->server;
    struct http_out *out = &req->out;

    assert(response->file == NULL && response->fixed == NULL);
    assert(response->body.len == 0);
    req->chunked_reply = req->parser.minor >= 1;
    out->close = http_must_close(req, response) || !req->chunked_reply;
    http_add_head(req, response, out, -1);

    pthread_mutex_lock(&server->lock);
    assert(!req->released && !req->streaming);
    req->streaming = true;
    req->farewell = response->farewell;
    buf_init(&req->queue, BUF_MAX_DEFAULT);
    if (req->conn != NULL)
        http_put_done(req);
    if (atomic_load(&server->draining))
        finish(req); /* it began after the others were ended */
    pthread_mutex_unlock(&server->lock);
}

enum http_presence
http_stream_send(struct http_request *req, const void *data, size_t len)
{
    struct http_server *server = req->server;
    enum http_presence presence = HTTP_CLIENT_HERE;

    pthread_mutex_lock(&server->lock);
    if (req->conn == NULL || req->cut || req->finishing || req->is_head_method) {
        presence = HTTP_CLIENT_GONE;
    } else if (req->queue.len + len > server->opt.stream_queue_max) {
        req->cut = true;
        presence = HTTP_CLIENT_GONE;
        http_put_done(req);
    } else if (len > 0) {
        add_chunk(req, data, len);
        http_put_done(req);
    }
    pthread_mutex_unlock(&server->lock);
    return presence;
}

void
http_stream_end(struct http_request *req)
{
    http_let_go(req);
}

enum stream_next
http_stream_take(struct http_request *req, struct buf *chunk)
{
    enum stream_next next;

    pthread_mutex_lock(&req->server->lock);
    if (req->cut) {
        next = STREAM_CUT;
    } else if (chunk == NULL) {
        next = STREAM_FULL;
    } else if (req->queue.len > 0) {
        *chunk = req->queue;
        buf_init(&req->queue, BUF_MAX_DEFAULT);
        next = STREAM_DATA;
    } else {
        bool over = req->released || req->finishing || req->is_head_method;

        next = over ? STREAM_END : STREAM_WAIT;
    }
    pthread_mutex_unlock(&req->server->lock);
    return next;
}
