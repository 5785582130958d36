/*
 * Listening and accepting. When the process is out of descriptors, accepting pauses
 * until a connection closes or a moment has passed: the waiting one would make the
 * loop spin. Clients over a cap are told 503 instead of being left hanging.
 */
#include "net/http_server_impl.h"

#include "base/err.h"
#include "base/strs.h"
#include "net/loop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define ACCEPTS_PER_TURN 64
#define BACKLOG          1024
#define PAUSE_MS         200

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un un;
};

void
http_accept_set(struct http_server *server, bool on)
{
    server->accept_paused = !on;
    for (size_t i = 0; i < server->listener_count; i++)
        loop_watch_set(server->listeners[i].watch, on ? LOOP_READABLE : 0);
    loop_timer_set(server->accept_timer, on ? -1 : PAUSE_MS);
}

static intptr_t
address_count(const struct http_server *server, const char *peer)
{
    return (intptr_t)map_get(&server->addresses, peer);
}

void
http_address_leaves(struct http_server *server, const char *peer)
{
    intptr_t count = address_count(server, peer) - 1;

    if (count > 0)
        map_put(&server->addresses, peer, (void *)count);
    else
        map_take(&server->addresses, peer);
}

static bool
is_loopback(const union address *address)
{
    if (address->any.sa_family == AF_INET)
        return ntohl(address->v4.sin_addr.s_addr) >> 24 == 127;
    return address->any.sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
}

static void
name_peer(struct http_conn *seed, int fd, const union address *address)
{
    struct ucred cred = {0};
    socklen_t size = sizeof(cred);

    if (address->any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &address->v4.sin_addr, seed->peer, sizeof(seed->peer));
    } else if (address->any.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &address->v6.sin6_addr, seed->peer, sizeof(seed->peer));
    } else {
        str_copy(seed->peer, sizeof(seed->peer), "unix");
        seed->is_unix = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) == 0;
        seed->uid = cred.uid;
    }
}

/* A connection is here: count it, or mark it as one too many. */
static void
admit(struct http_server *server, struct http_conn *seed, const union address *address)
{
    const struct http_server_options *opt = &server->opt;

    if (server->conn_count - server->refused_count >= opt->connections_max)
        seed->refused = true;
    if (seed->is_unix || (is_loopback(address) && !opt->count_loopback))
        return;
    if (address_count(server, seed->peer) >= opt->per_address_max)
        seed->refused = true;
    if (seed->refused)
        return;
    seed->counted = true;
    map_put(&server->addresses, seed->peer,
            (void *)(address_count(server, seed->peer) + 1));
}

/* False: nothing more to accept now. */
static bool
accept_one(struct http_listener *listener)
{
    struct http_server *server = listener->server;
    union address address = {0};
    socklen_t size = sizeof(address);
    struct http_conn seed = {.wait = WAIT_NONE};
    int one = 1;
    int fd;

    fd = accept4(listener->fd, &address.any, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            http_accept_set(server, false);
        return errno == ECONNABORTED || errno == EINTR;
    }
    name_peer(&seed, fd, &address);
    admit(server, &seed, &address);
    if (seed.refused && server->refused_count >= HTTP_REFUSED_MAX) {
        close(fd);
        return true;
    }
    if (!seed.is_unix)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    http_conn_open(server, fd, &seed);
    return true;
}

static void
on_readable(void *arg, unsigned events)
{
    struct http_listener *listener = arg;

    for (int i = 0; i < ACCEPTS_PER_TURN; i++)
        if (!accept_one(listener))
            return;
}

/* Takes fd over. */
static int
add_listener(struct http_server *server, int fd, const char *path, struct err *err)
{
    struct http_listener *listener;
    struct stat st;
    int r;

    if (server->listener_count == HTTP_LISTENERS_MAX) {
        close(fd);
        return err_set(err, ERR_CONFIG, "cannot listen on more than %d addresses",
                       HTTP_LISTENERS_MAX);
    }
    listener = &server->listeners[server->listener_count];
    *listener = (struct http_listener){.server = server, .fd = fd};
    r = loop_watch_new(server->loop, fd, on_readable, listener, &listener->watch, err);
    if (r < 0) {
        close(fd);
        return r;
    }
    str_copy(listener->path, sizeof(listener->path), path);
    if (*path != '\0' && stat(path, &st) == 0) {
        listener->dev = st.st_dev;
        listener->ino = st.st_ino;
    }
    server->listener_count++;
    loop_watch_set(listener->watch, LOOP_READABLE);
    return 0;
}

void
http_listeners_close(struct http_server *server)
{
    for (size_t i = 0; i < server->listener_count; i++) {
        struct http_listener *listener = &server->listeners[i];
        struct stat st;

        loop_watch_free(listener->watch);
        close(listener->fd);
        if (listener->path[0] != '\0' && stat(listener->path, &st) == 0 &&
            st.st_dev == listener->dev && st.st_ino == listener->ino)
            unlink(listener->path);
    }
    server->listener_count = 0;
    loop_timer_set(server->accept_timer, -1);
    server->accept_paused = false;
}

static int
parse_address(const char *text, int port, union address *ret, socklen_t *ret_size,
              struct err *err)
{
    if (str_eq(text, "localhost"))
        text = "127.0.0.1";
    memset(ret, 0, sizeof(*ret));
    if (inet_pton(AF_INET, text, &ret->v4.sin_addr) == 1) {
        ret->v4.sin_family = AF_INET;
        ret->v4.sin_port = htons((uint16_t)port);
        *ret_size = sizeof(ret->v4);
    } else if (inet_pton(AF_INET6, text, &ret->v6.sin6_addr) == 1) {
        ret->v6.sin6_family = AF_INET6;
        ret->v6.sin6_port = htons((uint16_t)port);
        *ret_size = sizeof(ret->v6);
    } else {
        return err_set(err, ERR_CONFIG,
                       "listen address \"%s\" is not an IP address; write 127.0.0.1",
                       text);
    }
    if (!is_loopback(ret))
        return err_set(err, ERR_CONFIG,
                       "listen address %s is reachable from other machines, which is "
                       "not allowed yet; use 127.0.0.1 and a proxy with TLS before it",
                       text);
    return 0;
}

int
http_server_parse_listen(const char *listen, char ret_host[HTTP_HOST_SIZE],
                         int *ret_port, struct err *err)
{
    const char *colon = strrchr(listen, ':');
    union address address;
    socklen_t size = 0;
    int64_t port = 0;
    size_t len;
    int r;

    if (!colon || colon == listen)
        return err_set(err, ERR_CONFIG, "api.listen must be HOST:PORT, not %s", listen);
    r = parse_i64("the port of api.listen", colon + 1, 0, 65535, &port, err);
    if (r < 0)
        return r;
    len = (size_t)(colon - listen);
    if (listen[0] == '[' && len > 2 && listen[len - 1] == ']')
        snprintf(ret_host, HTTP_HOST_SIZE, "%.*s", (int)len - 2, listen + 1);
    else
        snprintf(ret_host, HTTP_HOST_SIZE, "%.*s", (int)len, listen);
    *ret_port = (int)port;
    return parse_address(ret_host, (int)port, &address, &size, err);
}

static int
bound_port(int fd)
{
    union address address = {0};
    socklen_t size = sizeof(address);

    if (getsockname(fd, &address.any, &size) < 0)
        return 0;
    return ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port
                                                   : address.v4.sin_port);
}

int
http_server_listen_tcp(struct http_server *server, const char *text, int port,
                       int *ret_port, struct err *err)
{
    union address address;
    socklen_t size = 0;
    int one = 1;
    int fd, r;

    if (port < 0 || port > 65535)
        return err_set(err, ERR_CONFIG, "port %d is not between 0 and 65535", port);
    r = parse_address(text, port, &address, &size, err);
    if (r < 0)
        return r;
    fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_errno(err, ERR_IO, errno, "cannot make a socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, &address.any, size) < 0 || listen(fd, BACKLOG) < 0) {
        r = err_errno(err, ERR_CONFIG, errno,
                      "cannot listen on %s port %d (is another server running there? "
                      "choose another port)",
                      text, port);
        close(fd);
        return r;
    }
    port = bound_port(fd);
    r = add_listener(server, fd, "", err);
    if (r == 0 && ret_port != NULL)
        *ret_port = port;
    return r;
}

/* Remove what a dead server left behind; refuse all else that is in the way. */
static int
clear_stale(const union address *address, struct err *err)
{
    const char *path = address->un.sun_path;
    struct stat st;
    int fd, failure;

    if (lstat(path, &st) < 0)
        return 0;
    if (!S_ISSOCK(st.st_mode))
        return err_set(err, ERR_CONFIG,
                       "%s is in the way and is no socket; remove it or choose another "
                       "path",
                       path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_errno(err, ERR_IO, errno, "cannot make a socket");
    failure = connect(fd, &address->any, sizeof(address->un)) == 0 ? 0 : errno;
    close(fd);
    if (failure != ECONNREFUSED)
        return err_set(err, ERR_CONFIG,
                       "%s is in use by a running server; stop that one first", path);
    if (unlink(path) < 0)
        return err_errno(err, ERR_CONFIG, errno, "cannot remove the old socket %s",
                         path);
    return 0;
}

int
http_server_listen_unix(struct http_server *server, const char *path, struct err *err)
{
    union address address = {.un = {.sun_family = AF_UNIX}};
    int fd, r;

    if (strlen(path) >= sizeof(address.un.sun_path))
        return err_set(err, ERR_CONFIG,
                       "socket path %s is longer than the %zu characters that the "
                       "system allows; choose a shorter folder",
                       path, sizeof(address.un.sun_path) - 1);
    str_copy(address.un.sun_path, sizeof(address.un.sun_path), path);
    r = clear_stale(&address, err);
    if (r < 0)
        return r;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_errno(err, ERR_IO, errno, "cannot make a socket");
    /* The socket file gets the mode of its descriptor: never open to others, not even
     * for a moment, and no umask is touched. */
    if (fchmod(fd, 0600) < 0 || bind(fd, &address.any, sizeof(address.un)) < 0 ||
        listen(fd, BACKLOG) < 0) {
        r = err_errno(err, ERR_CONFIG, errno, "cannot listen on the socket %s", path);
        close(fd);
        return r;
    }
    return add_listener(server, fd, path, err);
}
