#include "unit/net/rig.h"

#include "base/err.h"
#include "base/fsio.h"
#include "base/strs.h"
#include "net/loop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static void
bump(struct rig *rig, int *counter)
{
    pthread_mutex_lock(&rig->lock);
    ++*counter;
    pthread_cond_broadcast(&rig->changed);
    pthread_mutex_unlock(&rig->lock);
}

static void
wait_changed(struct rig *rig)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += RIG_PATIENCE_S;
    if (pthread_cond_timedwait(&rig->changed, &rig->lock, &until) != 0) {
        fprintf(stderr, "rig: waited in vain\n");
        abort();
    }
}

void
rig_await(struct rig *rig, const int *counter, int wanted)
{
    pthread_mutex_lock(&rig->lock);
    while (*counter < wanted)
        wait_changed(rig);
    pthread_mutex_unlock(&rig->lock);
}

int
rig_read(struct rig *rig, const int *counter)
{
    int value;

    pthread_mutex_lock(&rig->lock);
    value = *counter;
    pthread_mutex_unlock(&rig->lock);
    return value;
}

struct http_request *
rig_take_held(struct rig *rig)
{
    struct http_request *req;

    pthread_mutex_lock(&rig->lock);
    while (rig->held == NULL)
        wait_changed(rig);
    req = rig->held;
    rig->held = NULL;
    pthread_mutex_unlock(&rig->lock);
    return req;
}

void
rig_answer(struct http_request *req, const char *text)
{
    struct http_response response = {.status = 200, .content_type = "text/plain"};

    buf_add_str(&response.body, text);
    http_respond(req, &response);
}

void
rig_let_go(struct rig *rig)
{
    pthread_mutex_lock(&rig->lock);
    rig->let_go = true;
    pthread_cond_broadcast(&rig->changed);
    pthread_mutex_unlock(&rig->lock);
}

static void
on_gone(void *arg)
{
    struct rig *rig = arg;
    struct http_request *req = NULL;

    pthread_mutex_lock(&rig->lock);
    if (rig->answer_when_gone) {
        req = rig->held;
        rig->held = NULL;
    }
    pthread_mutex_unlock(&rig->lock);
    if (req != NULL)
        rig_answer(req, "nobody reads this");
    bump(rig, &rig->gone);
}

static void
hold(struct rig *rig, struct http_request *req)
{
    pthread_mutex_lock(&rig->lock);
    rig->held = req;
    pthread_cond_broadcast(&rig->changed);
    pthread_mutex_unlock(&rig->lock);
}

static void
handle_hold(struct rig *rig, struct http_request *req)
{
    int presence = (int)http_request_on_gone(req, on_gone, rig);

    pthread_mutex_lock(&rig->lock);
    rig->presence = presence;
    pthread_mutex_unlock(&rig->lock);
    hold(rig, req);
}

static void
handle_echo(struct rig *rig, struct http_request *req)
{
    struct http_response response = {.status = 200, .content_type = "text/plain"};
    const struct buf *body = http_request_body(req);

    buf_addf(&response.body, "%s %s %s ", http_request_method(req),
             http_request_target(req), http_request_peer(req));
    buf_add(&response.body, body->data, body->len);
    http_respond(req, &response);
}

static void
await_let_go(struct rig *rig)
{
    pthread_mutex_lock(&rig->lock);
    while (!rig->let_go)
        wait_changed(rig);
    pthread_mutex_unlock(&rig->lock);
}

static void
handle_slow(struct rig *rig, struct http_request *req)
{
    await_let_go(rig);
    rig_answer(req, "slow");
}

static void
handle_stream(struct rig *rig, struct http_request *req)
{
    struct http_response response = {
        .status = 200, .content_type = "text/event-stream", .farewell = "bye\n"};

    http_request_on_gone(req, on_gone, rig);
    if (http_request_query(req, "slowly") != NULL)
        await_let_go(rig);
    http_stream_begin(req, &response);
    hold(rig, req);
}

static int64_t
number_of(struct http_request *req, const char *name, int64_t otherwise)
{
    const char *text = http_request_query(req, name);
    int64_t value;

    return text != NULL && str_to_i64(text, &value) ? value : otherwise;
}

static void
handle_file(struct rig *rig, struct http_request *req)
{
    struct http_file file = {
        .fd = dup(rig->file),
        .offset = number_of(req, "from", 0),
        .length = number_of(req, "len", rig->file_size),
    };

    http_respond(req, &(struct http_response){.status = 200, .file = &file});
}

static void
handle_fields(struct rig *rig, struct http_request *req)
{
    static const struct http_field fields[] = {
        {"X-Odd", "a\r\nX-Injected: yes"},
        {"Cache-Control", "max-age=60"},
    };

    http_respond(req, &(struct http_response){.status = 200,
                                              .fixed = "fixed",
                                              .fixed_len = 5,
                                              .fields = fields,
                                              .field_count = array_len(fields)});
}

/* To add one: a row here and a line in rig.h. */
static const struct {
    const char *name;
    void (*fn)(struct rig *rig, struct http_request *req);
} handlers[] = {
    {"echo", handle_echo}, {"small", handle_echo},    {"hold", handle_hold},
    {"keep", hold},        {"slow", handle_slow},     {"stream", handle_stream},
    {"file", handle_file}, {"fields", handle_fields},
};

static void
on_request(void *arg, struct http_request *req)
{
    struct rig *rig = arg;
    const char *name = http_request_segment(req, 0);

    bump(rig, &rig->arrived);
    for (size_t i = 0; i < array_len(handlers); i++) {
        if (str_eq(name, handlers[i].name)) {
            handlers[i].fn(rig, req);
            return;
        }
    }
    http_respond(req, &(struct http_response){.status = 404});
}

static void
on_head(void *arg, struct http_request *req)
{
    const char *name = http_request_segment(req, 0);

    if (str_eq(name, "refused"))
        http_respond(req, &(struct http_response){.status = 404});
    else if (str_eq(name, "small"))
        http_request_set_body_max(req, 10);
}

static void *
loop_thread(void *arg)
{
    struct rig *rig = arg;

    loop_run(rig->loop);
    return NULL;
}

static void
make_file(struct rig *rig)
{
    scoped(buf_release) struct buf content = {0};
    scoped(buf_release) struct buf path = {0};
    struct err err = {0};

    rig->file_size = 3 << 20;
    for (int64_t i = 0; i < rig->file_size; i++)
        buf_add_char(&content, (char)(i % 251));
    assert_int_equal(fs_open_temp(rig->dir, "file", &path, &rig->file, &err), 0);
    assert_int_equal(fs_write_all(rig->file, content.data, content.len, "file", &err),
                     0);
}

void
rig_start(struct rig *rig, const struct http_server_options *options)
{
    struct http_server_options own =
        options != NULL ? *options : (struct http_server_options){0};
    struct err err = {0};

    memset(rig, 0, sizeof(*rig));
    pthread_mutex_init(&rig->lock, NULL);
    pthread_cond_init(&rig->changed, NULL);
    str_copy(rig->dir, sizeof(rig->dir), "/tmp/pawl-net-XXXXXX");
    assert_non_null(mkdtemp(rig->dir));
    snprintf(rig->socket_path, sizeof(rig->socket_path), "%s/sock", rig->dir);
    make_file(rig);
    own.handler = on_request;
    own.on_head = on_head;
    own.arg = rig;
    assert_int_equal(loop_new(&rig->loop, &err), 0);
    assert_int_equal(http_server_new(rig->loop, &own, &rig->server, &err), 0);
    assert_int_equal(
        http_server_listen_tcp(rig->server, "127.0.0.1", 0, &rig->port, &err), 0);
    assert_int_equal(http_server_listen_unix(rig->server, rig->socket_path, &err), 0);
    assert_int_equal(pthread_create(&rig->thread, NULL, loop_thread, rig), 0);
}

void
rig_stop(struct rig *rig)
{
    loop_stop(rig->loop);
    pthread_join(rig->thread, NULL);
    http_server_free(rig->server);
    loop_free(rig->loop);
    close(rig->file);
    fs_remove_tree_quietly(rig->dir);
    pthread_mutex_destroy(&rig->lock);
    pthread_cond_destroy(&rig->changed);
}

static void
on_posted(void *arg)
{
    struct rig *rig = arg;

    pthread_mutex_lock(&rig->lock);
    rig->connections = http_server_connections(rig->server);
    pthread_mutex_unlock(&rig->lock);
    bump(rig, &rig->posted);
}

void
rig_turn_loop(struct rig *rig)
{
    int before = rig_read(rig, &rig->posted);

    loop_post(rig->loop, on_posted, rig);
    rig_await(rig, &rig->posted, before + 1);
}

int
rig_connections(struct rig *rig)
{
    rig_turn_loop(rig);
    return rig_read(rig, &rig->connections);
}

static void
on_drained(void *arg)
{
    struct rig *rig = arg;

    bump(rig, &rig->drained);
}

static void
begin_drain(void *arg)
{
    struct rig *rig = arg;

    http_server_drain(rig->server, rig->drain_ms, on_drained, rig);
}

void
rig_drain(struct rig *rig, int64_t deadline_ms)
{
    rig->drain_ms = deadline_ms;
    loop_post(rig->loop, begin_drain, rig);
    rig_turn_loop(rig);
}

static void
connect_to(struct peer *peer, const struct sockaddr *address, socklen_t size)
{
    struct timeval patience = {.tv_sec = RIG_PATIENCE_S};

    memset(peer, 0, sizeof(*peer));
    peer->fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(peer->fd >= 0);
    setsockopt(peer->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    assert_int_equal(connect(peer->fd, address, size), 0);
}

void
peer_connect(struct peer *peer, int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    connect_to(peer, (const struct sockaddr *)&address, sizeof(address));
}

void
peer_connect_unix(struct peer *peer, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    str_copy(address.sun_path, sizeof(address.sun_path), path);
    connect_to(peer, (const struct sockaddr *)&address, sizeof(address));
}

void
peer_close(struct peer *peer)
{
    close(peer->fd);
    peer->fd = -1;
    buf_release(&peer->in);
}

bool
peer_send_bytes(struct peer *peer, const void *data, size_t len)
{
    const char *from = data;

    while (len > 0) {
        ssize_t n = send(peer->fd, from, len, MSG_NOSIGNAL);

        if (n <= 0)
            return false;
        from += n;
        len -= (size_t)n;
    }
    return true;
}

void
peer_send(struct peer *peer, const char *text)
{
    peer_send_bytes(peer, text, strlen(text));
}

/* More bytes into in; false at the end. */
static bool
fill_in(struct peer *peer)
{
    char piece[4096];
    ssize_t n = recv(peer->fd, piece, sizeof(piece), 0);

    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        fprintf(stderr, "peer: waited in vain\n");
        abort();
    }
    if (n <= 0)
        return false;
    buf_add(&peer->in, piece, (size_t)n);
    return true;
}

static const char *
unread(const struct peer *peer)
{
    return buf_str(&peer->in) + peer->at;
}

bool
peer_read_until(struct peer *peer, const char *text)
{
    for (;;) {
        const char *found = strstr(unread(peer), text);

        if (found != NULL) {
            peer->at = (size_t)(found - peer->in.data) + strlen(text);
            return true;
        }
        if (!fill_in(peer))
            return false;
    }
}

static void
take_bytes(struct peer *peer, size_t len, struct buf *to)
{
    while (peer->in.len - peer->at < len)
        if (!fill_in(peer))
            break;
    if (len > peer->in.len - peer->at)
        len = peer->in.len - peer->at;
    buf_add(to, unread(peer), len);
    peer->at += len;
}

static size_t
line_number(struct peer *peer, int base)
{
    size_t from = peer->at;

    assert_true(peer_read_until(peer, "\r\n"));
    return (size_t)strtoul(peer->in.data + from, NULL, base);
}

static void
take_chunks(struct peer *peer, struct buf *to)
{
    size_t len;

    while ((len = line_number(peer, 16)) > 0) {
        take_bytes(peer, len, to);
        assert_true(peer_read_until(peer, "\r\n"));
    }
    assert_true(peer_read_until(peer, "\r\n"));
}

bool
reply_has(const struct reply *reply, const char *line)
{
    return strstr(buf_str(&reply->head), line) != NULL;
}

void
peer_reply(struct peer *peer, bool head_only, struct reply *ret)
{
    size_t from = peer->at;
    const char *length;

    memset(ret, 0, sizeof(*ret));
    if (!peer_read_until(peer, "\r\n\r\n"))
        return;
    buf_add(&ret->head, peer->in.data + from, peer->at - from);
    ret->status = (int)strtol(buf_str(&ret->head) + strlen("HTTP/1.1 "), NULL, 10);
    if (head_only)
        return;
    length = strstr(buf_str(&ret->head), "Content-Length: ");
    if (length != NULL)
        take_bytes(peer, strtoul(length + strlen("Content-Length: "), NULL, 10),
                   &ret->body);
    else if (reply_has(ret, "Transfer-Encoding: chunked"))
        take_chunks(peer, &ret->body);
}

bool
peer_at_end(struct peer *peer)
{
    return peer->at == peer->in.len && !fill_in(peer);
}

bool
peer_is_silent(struct peer *peer, int for_ms)
{
    struct pollfd poller = {.fd = peer->fd, .events = POLLIN};

    return peer->at == peer->in.len && poll(&poller, 1, for_ms) == 0;
}

void
reply_release(struct reply *reply)
{
    buf_release(&reply->head);
    buf_release(&reply->body);
}
