/*
 * Writing answers. As much as the socket takes at once; the rest when it is writable
 * again. A file goes by sendfile in slices, so that one fast download on a fast line
 * does not hold the loop for long.
 */
#include "net/http_server_impl.h"

#include "net/loop.h"

#include <errno.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#define SLICE_BYTES ((size_t)256 << 10)
#define TURN_SLICES 4 /* then other connections have their turn */

enum sent { SENT_ALL, SENT_SOME, SENT_BROKEN };

void
http_out_init(struct http_out *out)
{
    memset(out, 0, sizeof(*out));
    out->fd = -1;
}

void
http_out_release(struct http_out *out)
{
    buf_release(&out->head);
    buf_release(&out->body);
    if (out->fd >= 0)
        close(out->fd);
    http_out_init(out);
}

static enum sent
sent_of_errno(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK ? SENT_SOME : SENT_BROKEN;
}

static enum sent
send_memory(int fd, struct http_out *out)
{
    size_t total = out->head.len + out->data_len;

    while (out->sent < total) {
        struct iovec parts[2];
        struct msghdr message = {.msg_iov = parts};
        ssize_t n;

        if (out->sent < out->head.len)
            parts[message.msg_iovlen++] =
                (struct iovec){out->head.data + out->sent, out->head.len - out->sent};
        if (out->data_len > 0) {
            size_t from = out->sent > out->head.len ? out->sent - out->head.len : 0;

            /* sendmsg only reads it. */
            parts[message.msg_iovlen++] = (struct iovec){
                (void *)(uintptr_t)(out->data + from), out->data_len - from};
        }
        n = sendmsg(fd, &message, MSG_NOSIGNAL | (out->left > 0 ? MSG_MORE : 0));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return sent_of_errno();
        out->sent += (size_t)n;
    }
    return SENT_ALL;
}

/* For files that sendfile does not take (some pseudo file systems). */
static ssize_t
copy_slice(int fd, struct http_out *out, char *scratch, size_t len)
{
    ssize_t n;

    if (len > HTTP_SCRATCH_BYTES)
        len = HTTP_SCRATCH_BYTES;
    n = pread(out->fd, scratch, len, (off_t)out->offset);
    if (n > 0)
        n = send(fd, scratch, (size_t)n, MSG_NOSIGNAL);
    if (n > 0)
        out->offset += n;
    return n;
}

static ssize_t
send_slice(int fd, struct http_out *out, char *scratch)
{
    size_t len = out->left < (int64_t)SLICE_BYTES ? (size_t)out->left : SLICE_BYTES;
    off_t offset = (off_t)out->offset;
    ssize_t n = sendfile(fd, out->fd, &offset, len);

    if (n < 0 && (errno == EINVAL || errno == ENOSYS))
        return copy_slice(fd, out, scratch, len);
    out->offset = offset;
    return n;
}

static enum sent
send_file(int fd, struct http_out *out, char *scratch)
{
    for (int i = 0; i < TURN_SLICES && out->left > 0; i++) {
        ssize_t n = send_slice(fd, out, scratch);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return sent_of_errno();
        /* Shorter than promised: the client must see that its copy is not whole. */
        if (n == 0)
            return SENT_BROKEN;
        out->left -= n;
    }
    return out->left > 0 ? SENT_SOME : SENT_ALL;
}

static enum sent
send_out(struct http_conn *conn)
{
    struct http_out *out = &conn->req->out;
    size_t sent = out->sent;
    int64_t left = out->left;
    enum sent result = send_memory(conn->fd, out);

    if (result == SENT_ALL && out->left > 0)
        result = send_file(conn->fd, out, conn->server->scratch);
    if (result == SENT_SOME &&
        (conn->wait != WAIT_WRITE || out->sent != sent || out->left != left))
        http_conn_wait(conn, WAIT_WRITE);
    return result;
}

void
http_send_more(struct http_conn *conn)
{
    switch (send_out(conn)) {
    case SENT_ALL:
        http_conn_finish(conn);
        return;
    case SENT_SOME:
        loop_watch_set(conn->watch, LOOP_WRITABLE);
        return;
    case SENT_BROKEN:
        http_conn_close(conn);
        return;
    }
}

/* Make chunk the next thing to send. */
static void
load_chunk(struct http_out *out, struct buf *chunk)
{
    buf_release(&out->head);
    buf_release(&out->body);
    out->body = *chunk;
    out->data = out->body.data;
    out->data_len = out->body.len;
    out->sent = 0;
}

static void
stream_ends(struct http_conn *conn)
{
    struct http_request *req = conn->req;
    struct buf last = {0};

    conn->state = CONN_WRITING;
    if (req->chunked_reply && !req->is_head_method) {
        buf_add_str(&last, "0\r\n\r\n");
        load_chunk(&req->out, &last);
    }
    http_send_more(conn);
}

void
http_stream_more(struct http_conn *conn)
{
    struct http_request *req = conn->req;
    enum stream_next next = STREAM_DATA;

    while (next == STREAM_DATA) {
        struct buf chunk = {0};
        enum sent sent = send_out(conn);

        if (sent == SENT_BROKEN) {
            http_conn_close(conn);
            return;
        }
        next = http_stream_take(req, sent == SENT_ALL ? &chunk : NULL);
        if (next == STREAM_FULL) {
            loop_watch_set(conn->watch, LOOP_WRITABLE | LOOP_HANGUP);
            return;
        }
        if (next == STREAM_DATA)
            load_chunk(&req->out, &chunk);
    }
    if (next == STREAM_CUT) {
        http_conn_close(conn);
    } else if (next == STREAM_END) {
        stream_ends(conn);
    } else {
        http_conn_wait(conn, WAIT_NONE);
        loop_watch_set(conn->watch, LOOP_HANGUP);
    }
}
