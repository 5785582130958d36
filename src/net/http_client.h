/*
 * Blocking HTTP client over libcurl, for the CLI and for steps. One client keeps
 * its connection open between calls and belongs to one thread at a time. It never
 * follows redirects and takes no proxy from the environment.
 */
#ifndef NET_HTTP_CLIENT_H
#define NET_HTTP_CLIENT_H

#include "base/buf.h"
#include "net/http.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct err;
struct http_client;

/* Bytes of the body so far, and all of them (-1: not known). Also called about once a
 * second while nothing comes. Non-zero ends the call with -ERR_CANCELLED. */
typedef int (*http_progress_fn)(void *arg, int64_t done_bytes, int64_t total_bytes);

/* A piece of a 2xx body, as it comes. < 0 ends the call with that value. */
typedef int (*http_body_fn)(void *arg, const char *data, size_t len, struct err *err);

struct http_call {
    const char *method;    /* "GET", "POST" … */
    const char *url;       /* http:// or https:// */
    const char *shown;     /* what messages call it; NULL: its scheme, host and path */
    const char *unix_path; /* speak through this socket; url's host is only a name */
    const char *proxy;     /* NULL: none */
    const struct http_field *fields;
    size_t field_count;
    const void *body; /* NULL: none */
    size_t body_len;
    int64_t connect_timeout_ms; /* 0: 10 s */
    int64_t timeout_ms;         /* the whole call; 0: none */
    int64_t stall_ms; /* less than one byte a second for so long; 0: 60 s, <0: never */
    size_t reply_max; /* ceiling of reply.body in bytes; 0: 16 MiB */
    bool to_fd;       /* a 2xx body goes to fd instead of reply.body */
    int fd;
    int64_t fd_max;       /* ceiling of what goes there, in bytes; 0: none */
    http_body_fn on_body; /* or to this; both NULL and false: reply.body */
    void *on_body_arg;
    http_progress_fn on_progress;
    void *on_progress_arg;
    bool head_suffices; /* what befalls the body after a whole head is no failure */
};

struct http_reply {
    int status;
    struct buf body;    /* also the body of any status but 2xx (at most reply_max) */
    bool cut;           /* of head_suffices: the body is not whole */
    int64_t body_bytes; /* received, wherever they went */
    const struct http_field *fields; /* in the arena */
    size_t field_count;
};

int http_client_new(struct http_client **ret_client, struct err *err) must_check;
void http_client_free(struct http_client *client);

/*
 * 0 for every answer, whatever its status; then *ret_reply must be released. The name
 * of a server that is not resolved in time holds up no call. -ERR_CONNECT, -ERR_TIMEOUT
 * (both name the URL and a remedy), -ERR_TOO_LARGE, -ERR_CANCELLED, -ERR_IO (fd),
 * -ERR_PROTOCOL, -ERR_USAGE (not an http URL).
 */
int http_client_call(struct http_client *client, const struct http_call *call,
                     struct arena *arena, struct http_reply *ret_reply,
                     struct err *err) must_check;

void http_reply_release(struct http_reply *reply);

/* Last field of that name in any case, or NULL. */
const char *http_reply_field(const struct http_reply *reply, const char *name);

#endif
