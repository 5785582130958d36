/*
 * HTTP/1.1 server. The loop's thread accepts, reads, parses and writes; handlers
 * run on a small pool of threads, because they wait for the database.
 *
 *      http_server_new → http_server_listen_* … loop_run … http_server_drain
 *      → (drained) → http_server_free
 *
 * A request is answered exactly once: by http_respond, or by http_stream_begin …
 * http_stream_end, in the handler or later, from any thread. Until then it belongs
 * to the handler's side; after it the pointer and all that it gave are gone.
 * A request that is kept for long (?wait=) asks with http_request_on_gone to be
 * told when its client leaves; it must be answered even then.
 */
#ifndef NET_HTTP_SERVER_H
#define NET_HTTP_SERVER_H

#include "base/buf.h"
#include "net/http.h"
#include "net/http_uri.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct arena;
struct err;
struct loop;
struct http_server;
struct http_request;

/* On a pool thread, when the whole request is there. */
typedef void (*http_handler_fn)(void *arg, struct http_request *req);

/* On the loop's thread, when the head is there and before the body is read: it may
 * set the body limit, keep something with http_request_set_user, or answer at once by
 * http_respond (the handler is not called then). It must not block or keep req. */
typedef void (*http_head_fn)(void *arg, struct http_request *req);

/* On the loop's thread. */
typedef void (*http_gone_fn)(void *arg);
typedef void (*http_drained_fn)(void *arg);

/* 0 anywhere means the default in brackets. */
struct http_server_options {
    http_handler_fn handler;
    http_head_fn on_head; /* may be NULL */
    void *arg;
    int threads;             /* [4] */
    size_t body_max;         /* bytes [1 MiB]; on_head may change it per request */
    int connections_max;     /* [10000]; above: 503 with Retry-After */
    int per_address_max;     /* [100]; Unix sockets are never counted */
    bool count_loopback;     /* per_address_max also for 127.0.0.0/8 and ::1 */
    size_t stream_queue_max; /* bytes waiting for one slow reader [256 KiB] */
    int64_t head_ms;         /* whole head, from its first byte → 408 [10 s] */
    int64_t body_ms;  /* window in which a body must bring 1 KiB a second [10 s] */
    int64_t idle_ms;  /* kept-alive connection without a request [75 s] */
    int64_t write_ms; /* answer without any progress [30 s] */
};

int http_server_new(struct loop *loop, const struct http_server_options *options,
                    struct http_server **ret_server, struct err *err) must_check;

/* Closes what is open and waits until each request out of hand is answered.
 * On the loop's thread, or when the loop does not run. */
void http_server_free(struct http_server *server);

/* address: "127.0.0.1", another of 127.0.0.0/8, "::1" or "localhost"; others are
 * refused. port 0 lets the system choose; *ret_port (may be NULL) is the real one. */
#define HTTP_HOST_SIZE 256

/* "127.0.0.1:8410", "[::1]:8410": taken apart, and refused if http_server_listen_tcp
 * would refuse it. */
int http_server_parse_listen(const char *listen, char ret_host[HTTP_HOST_SIZE],
                             int *ret_port, struct err *err) must_check;

int http_server_listen_tcp(struct http_server *server, const char *address, int port,
                           int *ret_port, struct err *err) must_check;

/* Socket file of mode 0600; a dead one in its place is removed, a live one or
 * anything else is refused. Removed again by http_server_free. */
int http_server_listen_unix(struct http_server *server, const char *path,
                            struct err *err) must_check;

/* Accept no more, answer what runs (Connection: close), end streams with their
 * farewell, close all the rest after deadline_ms; then fn(arg). Loop's thread. */
void http_server_drain(struct http_server *server, int64_t deadline_ms,
                       http_drained_fn fn, void *arg);

/* Connections open now. Loop's thread. */
int http_server_connections(const struct http_server *server);

/* Of a request; strings live as long as it does. */
const char *http_request_method(const struct http_request *req);
const char *http_request_target(const struct http_request *req); /* as sent */
const char *http_request_path(const struct http_request *req); /* raw, without query */
size_t http_request_segment_count(const struct http_request *req);
const char *http_request_segment(const struct http_request *req,
                                 size_t i); /* decoded */
const char *http_request_query(const struct http_request *req, const char *name);
const struct http_param *http_request_params(const struct http_request *req,
                                             size_t *ret_count);
const char *http_request_header(const struct http_request *req, const char *name);
const struct buf *http_request_body(const struct http_request *req);
const char *http_request_peer(const struct http_request *req); /* "127.0.0.1", "unix" */
struct arena *http_request_arena(struct http_request *req);    /* of who holds req */

/* True, and the uid of the other side, when it came through a Unix socket. */
bool http_request_peer_uid(const struct http_request *req, uid_t *ret_uid);

/* A pointer of the caller's, e.g. the route that on_head found. */
void http_request_set_user(struct http_request *req, void *user);
void *http_request_user(const struct http_request *req);

/* In on_head only: the limit of this request's body in bytes. */
void http_request_set_body_max(struct http_request *req, size_t body_max);

enum http_presence { HTTP_CLIENT_HERE, HTTP_CLIENT_GONE };

/*
 * Call fn(arg) on the loop's thread when the client leaves before the answer. At most
 * once, and never after http_respond or http_stream_end has returned: those wait for
 * an fn that is running, so call them without a lock that fn takes (fn itself may
 * call them). GONE: it has left already, fn will not be called.
 */
enum http_presence http_request_on_gone(struct http_request *req, http_gone_fn fn,
                                        void *arg);

struct http_file {
    int fd; /* becomes the server's, which closes it */
    int64_t offset;
    int64_t length; /* bytes from offset on; must be there */
};

/* Date, Content-Length, Connection, X-Content-Type-Options: nosniff and (unless given)
 * Cache-Control: no-store are added. Control characters in values become spaces. */
struct http_response {
    int status;
    const char *content_type;        /* NULL: none */
    const struct http_field *fields; /* copied */
    size_t field_count;
    /* the body: at most one of these three; HEAD requests get its length only */
    struct buf body; /* taken over, also on HEAD */
    const struct http_file *file;
    const void *fixed; /* lives as long as the program */
    size_t fixed_len;
    bool close;           /* close the connection after this answer */
    const char *farewell; /* streams: last words when the server drains; fixed text */
};

/* Answer and let go of req. Any thread. */
void http_respond(struct http_request *req, struct http_response *response);

/* Start an answer of unknown length (SSE). req stays the caller's until
 * http_stream_end. Status and fields of response only. */
void http_stream_begin(struct http_request *req, struct http_response *response);

/* Queue bytes; never blocks. GONE: the client has left, is too slow (its queue was
 * full, it is cut off) or the server drains; only http_stream_end remains. */
enum http_presence http_stream_send(struct http_request *req, const void *data,
                                    size_t len);

/* What is queued is still sent. Lets go of req. */
void http_stream_end(struct http_request *req);

#endif
