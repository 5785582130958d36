/*
 * One connection: reading → busy (with a handler) → writing or streaming → reading
 * again, or lingering and closed. One request at a time; what a client sends ahead
 * stays in the kernel, but for the tail of the last read, which waits in early.
 * While it waits for a request a connection holds this struct and no buffer.
 */
#include "net/http_server_impl.h"

#include "base/err.h"
#include "net/loop.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void
http_conn_refuse(struct http_conn *conn, int status, const char *reason)
{
    if (conn->req == NULL)
        conn->req = http_request_new(conn);
    http_refuse(conn->req, status, reason);
    conn->state = CONN_WRITING;
    http_conn_wait(conn, WAIT_NONE);
    http_send_more(conn);
}

void
http_conn_close(struct http_conn *conn)
{
    struct http_server *server = conn->server;
    struct http_request *req = conn->req;

    list_remove(&conn->link);
    list_remove(&conn->wait_link);
    loop_watch_free(conn->watch);
    close(conn->fd);
    buf_release(&conn->early);
    server->conn_count--;
    if (conn->refused)
        server->refused_count--;
    if (conn->counted)
        http_address_leaves(server, conn->peer);
    free(conn);
    if (req != NULL)
        http_request_left(req);
    if (server->accept_paused)
        http_accept_set(server, true);
    if (server->drained != NULL && server->conn_count == 0)
        loop_timer_set(server->drain_timer, 0); /* not from inside a connection */
}

/* Close, but let the client read the answer first: bytes that it still sends and that
 * nobody reads would make the kernel reset the connection and drop it. */
static void
linger(struct http_conn *conn)
{
    if (conn->peer_closed || shutdown(conn->fd, SHUT_WR) < 0) {
        http_conn_close(conn);
        return;
    }
    conn->state = CONN_LINGERING;
    http_conn_wait(conn, WAIT_LINGER);
    loop_watch_set(conn->watch, LOOP_READABLE);
}

static void
discard(struct http_conn *conn)
{
    ssize_t n = recv(conn->fd, conn->server->scratch, HTTP_SCRATCH_BYTES, 0);

    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        http_conn_close(conn);
}

/* Bytes behind the request that is being answered. */
static void
keep_early(struct http_conn *conn, const char *data, size_t len)
{
    if (len == 0)
        return;
    buf_init(&conn->early, HTTP_SCRATCH_BYTES + 1);
    buf_add(&conn->early, data, len);
}

/* False: the answer is given or the connection gone. */
static bool
send_continue(struct http_conn *conn, bool more_bytes_here)
{
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    const struct http_parse *parser = &conn->req->parser;
    ssize_t n;

    if (!parser->expect_continue || more_bytes_here || !http_parse_has_body(parser) ||
        (uint64_t)parser->content_length > parser->body_max)
        return true;
    n = send(conn->fd, text, sizeof(text) - 1, MSG_NOSIGNAL);
    if (n == (ssize_t)sizeof(text) - 1)
        return true;
    /* A client that reads nothing at all. */
    http_conn_close(conn);
    return false;
}

/* The head is there. False: the connection reads no further. */
static bool
head_is_whole(struct http_conn *conn, const char *rest, size_t rest_len)
{
    struct http_server *server = conn->server;
    struct http_request *req = conn->req;
    struct err err = {0};

    if (http_request_open(req, &err) < 0) {
        http_conn_refuse(conn, 400, err.text);
        return false;
    }
    if (server->opt.on_head != NULL) {
        http_request_hand_out(req);
        server->opt.on_head(server->opt.arg, req);
        if (!http_request_take_back(req)) {
            conn->state = CONN_BUSY;
            http_conn_wait(conn, WAIT_NONE);
            if (!http_parse_has_body(&req->parser))
                keep_early(conn, rest, rest_len);
            return false;
        }
    }
    return send_continue(conn, rest_len > 0);
}

static void
request_is_whole(struct http_conn *conn, const char *rest, size_t rest_len)
{
    struct http_request *req = conn->req;

    conn->state = CONN_BUSY;
    http_conn_wait(conn, WAIT_NONE);
    keep_early(conn, rest, rest_len);
    req->body_pending = false;
    http_request_hand_out(req);
    http_pool_put(conn->server->pool, req);
}

static void
wait_for_more(struct http_conn *conn, size_t len)
{
    enum conn_wait wait = WAIT_HEAD;

    if (conn->req != NULL && conn->req->path != NULL)
        wait = WAIT_BODY;
    if (wait == WAIT_BODY && conn->wait == WAIT_BODY)
        conn->window_bytes += (int64_t)len;
    if (conn->wait == wait)
        return;
    conn->window_bytes = 0;
    http_conn_wait(conn, wait);
}

/* Give bytes to the parser until the request is whole or they are used up. */
static void
feed(struct http_conn *conn, const char *data, size_t len)
{
    size_t all = len;

    if (conn->req == NULL) {
        conn->req = http_request_new(conn);
        http_conn_wait(conn, WAIT_NONE); /* its time runs from this first byte */
    }
    for (;;) {
        struct http_parse *parser = &conn->req->parser;
        size_t used;
        enum http_parse_outcome outcome = http_parse(parser, data, len, &used);

        data += used;
        len -= used;
        switch (outcome) {
        case HTTP_PARSE_MORE:
            wait_for_more(conn, all);
            return;
        case HTTP_PARSE_HEAD:
            if (!head_is_whole(conn, data, len))
                return;
            break;
        case HTTP_PARSE_DONE:
            request_is_whole(conn, data, len);
            return;
        case HTTP_PARSE_BAD:
            http_conn_refuse(conn, parser->status, parser->reason);
            return;
        }
    }
}

static void
read_more(struct http_conn *conn)
{
    struct http_server *server = conn->server;
    ssize_t n = recv(conn->fd, server->scratch, HTTP_SCRATCH_BYTES, 0);

    if (n > 0)
        feed(conn, server->scratch, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        http_conn_close(conn);
}

static void
next_request(struct http_conn *conn)
{
    scoped(buf_release) struct buf early = conn->early;

    conn->early = (struct buf){0};
    conn->state = CONN_READING;
    http_conn_wait(conn, WAIT_IDLE);
    loop_watch_set(conn->watch, LOOP_READABLE | LOOP_HANGUP);
    if (early.len > 0)
        feed(conn, early.data, early.len);
}

void
http_conn_finish(struct http_conn *conn)
{
    struct http_request *req = conn->req;
    bool over = req->out.close || atomic_load(&conn->server->draining);

    conn->req = NULL;
    http_request_left(req);
    if (over)
        linger(conn);
    else
        next_request(conn);
}

void
http_conn_answer(struct http_conn *conn)
{
    if (conn->state == CONN_STREAMING) {
        http_stream_more(conn);
        return;
    }
    assert(conn->state == CONN_BUSY);
    if (conn->req->streaming) {
        conn->state = CONN_STREAMING;
        http_stream_more(conn);
    } else {
        conn->state = CONN_WRITING;
        http_send_more(conn);
    }
}

/* The client sends no more. It may still read (a half-closed pipe is a normal way to
 * say "that was all"), so only a request that asked to know is given up. */
static void
busy_event(struct http_conn *conn, unsigned events)
{
    if (events & LOOP_HANGUP) {
        conn->peer_closed = true;
        if (http_request_peer_closed(conn->req))
            http_conn_close(conn);
        else
            loop_watch_set(conn->watch, 0);
        return;
    }
    /* The next request: it can wait in the kernel. */
    loop_watch_set(conn->watch, LOOP_HANGUP);
}

static void
on_event(void *arg, unsigned events)
{
    struct http_conn *conn = arg;

    if (events & LOOP_BROKEN) {
        http_conn_close(conn);
        return;
    }
    switch (conn->state) {
    case CONN_READING:
        read_more(conn);
        return;
    case CONN_BUSY:
        busy_event(conn, events);
        return;
    case CONN_WRITING:
        http_send_more(conn);
        return;
    case CONN_STREAMING:
        if (events & LOOP_HANGUP)
            http_conn_close(conn);
        else
            http_stream_more(conn);
        return;
    case CONN_LINGERING:
        discard(conn);
        return;
    }
}

void
http_conn_open(struct http_server *server, int fd, const struct http_conn *seed)
{
    struct http_conn *conn = xmalloc(sizeof(*conn));
    struct err err = {0};

    *conn = *seed;
    conn->server = server;
    conn->fd = fd;
    list_init(&conn->wait_link);
    list_push_back(&server->conns, &conn->link);
    server->conn_count++;
    if (conn->refused)
        server->refused_count++;
    if (loop_watch_new(server->loop, fd, on_event, conn, &conn->watch, &err) < 0) {
        http_conn_close(conn);
        return;
    }
    if (conn->refused) {
        http_conn_refuse(conn, 503, "Too many connections; try again soon.");
        return;
    }
    conn->state = CONN_READING;
    http_conn_wait(conn, WAIT_HEAD);
    loop_watch_set(conn->watch, LOOP_READABLE | LOOP_HANGUP);
}
