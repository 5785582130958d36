/*
 * Inside of the HTTP server, shared by http_server.c (life, drain), http_listen.c
 * (accept), http_conn.c (reading, states), http_wait.c (timeouts), http_send.c
 * (writing), http_request.c (what handlers read), http_respond.c and http_stream.c
 * (what they answer) and http_pool.c.
 *
 * Threads. A connection belongs to the loop's thread. A request belongs to the loop
 * until it is handed to a handler ("released" false) and again once that side let go
 * of it ("released" true). Where both meet, server->lock is held: the fields marked
 * [lock] and the done list. The lock is never held while a callback runs or a socket
 * is touched.
 */
#ifndef NET_HTTP_SERVER_IMPL_H
#define NET_HTTP_SERVER_IMPL_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "net/http_parse.h"
#include "net/http_server.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

#define HTTP_LISTENERS_MAX 8
#define HTTP_SCRATCH_BYTES ((size_t)64 << 10)
#define HTTP_REFUSED_MAX   128 /* connections being told 503 at once */
#define HTTP_LINGER_MS     2000
#define HTTP_PEER_SIZE     INET6_ADDRSTRLEN

struct loop;
struct loop_timer;
struct loop_wake;
struct loop_watch;
struct http_pool;

/* An answer on its way: head and memory first, then the file. */
struct http_out {
    struct buf head;
    struct buf body;
    const char *data; /* body.data or fixed memory; NULL: none */
    size_t data_len;
    size_t sent; /* of head and data together */
    int fd;      /* -1: none */
    int64_t offset;
    int64_t left;
    bool close; /* close the connection behind it */
};

struct http_request {
    struct http_server *server;
    struct http_conn *conn;    /* [lock] NULL: no longer joined; set by the loop only */
    struct http_request *next; /* in the done list or the pool's queue */
    struct arena arena;
    struct http_parse parser;
    const char *path;
    const char **segments;
    size_t segment_count;
    struct http_param *params;
    size_t param_count;
    char peer[HTTP_PEER_SIZE];
    bool is_unix;
    uid_t uid;
    void *user;
    bool is_head_method;
    bool body_pending; /* not all of the body was read: the connection must close */

    http_gone_fn on_gone; /* [lock] */
    void *gone_arg;       /* [lock] */
    bool telling;         /* [lock] on_gone is running */
    bool peer_closed;     /* [lock] */
    bool released;        /* [lock] the handler's side has let go, or never had it */
    bool queued;          /* [lock] in the done list */

    bool streaming; /* set before the handler's side lets the loop see it */
    bool chunked_reply;
    struct buf queue; /* [lock] stream bytes not yet taken by the loop */
    bool cut;         /* [lock] too slow: close */
    bool finishing;   /* [lock] the server ends the stream */
    const char *farewell;

    struct http_out out;
};

enum conn_state {
    CONN_READING, /* idle when it has no req */
    CONN_BUSY,    /* the request is with a handler */
    CONN_WRITING,
    CONN_STREAMING,
    CONN_LINGERING, /* answered; waits for the client to close */
};

/* Each kind of waiting has one length, so a queue per kind is sorted by deadline. */
enum conn_wait {
    WAIT_IDLE,
    WAIT_HEAD,
    WAIT_BODY,
    WAIT_WRITE,
    WAIT_LINGER,
    WAIT_KINDS,
    WAIT_NONE = WAIT_KINDS,
};

struct http_conn {
    struct http_server *server;
    struct list link; /* server->conns */
    struct list wait_link;
    enum conn_wait wait;
    int64_t deadline_ms;
    int64_t window_bytes; /* body bytes since the window began */
    enum conn_state state;
    int fd;
    struct loop_watch *watch;
    struct http_request *req;
    struct buf early; /* what came behind the request being answered */
    bool peer_closed;
    bool refused; /* over the cap: only told so */
    bool counted; /* in server->addresses */
    bool is_unix;
    uid_t uid;
    char peer[HTTP_PEER_SIZE];
};

struct http_listener {
    struct http_server *server;
    struct loop_watch *watch;
    int fd;
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* "" for TCP */
    dev_t dev; /* of the socket file, to remove no other's */
    ino_t ino;
};

struct http_server {
    struct loop *loop;
    struct http_server_options opt;
    struct http_listener listeners[HTTP_LISTENERS_MAX];
    size_t listener_count;
    struct list conns;
    int conn_count;
    int refused_count;
    struct map addresses; /* peer → number of its connections */
    bool accept_paused;
    struct loop_timer *accept_timer;
    struct list waits[WAIT_KINDS];
    struct loop_timer *wait_timer;
    int64_t wait_armed_ms; /* when wait_timer fires; INT64_MAX: not set */
    struct loop_wake *wake;
    struct http_pool *pool;
    char *scratch; /* HTTP_SCRATCH_BYTES, the loop's */

    atomic_bool draining;
    struct loop_timer *drain_timer;
    http_drained_fn drained;
    void *drained_arg;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t teller;               /* [lock] who runs an on_gone */
    struct http_request *done_head; /* [lock] */
    struct http_request *done_tail; /* [lock] */
    int live;                       /* [lock] requests not yet freed */
};

/* http_listen.c */
void http_accept_set(struct http_server *server, bool on);
void http_listeners_close(struct http_server *server);
void http_address_leaves(struct http_server *server, const char *peer);

/* http_conn.c: each of these may free conn, so each is the caller's last word on it. */
void http_conn_open(struct http_server *server, int fd, const struct http_conn *seed);
void http_conn_close(struct http_conn *conn);
void http_conn_finish(struct http_conn *conn); /* the answer is out */
void http_conn_answer(struct http_conn *conn); /* conn->req->out is ready */
void http_conn_refuse(struct http_conn *conn, int status, const char *reason);

/* http_wait.c */
void http_conn_wait(struct http_conn *conn, enum conn_wait wait); /* frees nothing */
void http_server_on_wait(void *server);

/* http_send.c: same warning. */
void http_send_more(struct http_conn *conn);
void http_stream_more(struct http_conn *conn);
void http_out_init(struct http_out *out);
void http_out_release(struct http_out *out);

/* http_request.c */
struct http_request *http_request_new(struct http_conn *conn);
void http_request_free(struct http_request *req);
int http_request_open(struct http_request *req, struct err *err) must_check;

/* http_respond.c */
void http_add_head(struct http_request *req, const struct http_response *response,
                   struct http_out *out, int64_t length); /* length -1: not known */
bool http_must_close(const struct http_request *req,
                     const struct http_response *response);
void http_put_done(struct http_request *req); /* with the lock: show it to the loop */
void http_let_go(struct http_request *req);
void http_refuse(struct http_request *req, int status, const char *reason);
void http_request_hand_out(struct http_request *req);
bool http_request_take_back(struct http_request *req);   /* false: answered already */
bool http_request_peer_closed(struct http_request *req); /* true: it asked to know */
void http_request_left(struct http_request *req);        /* the connection goes */
void http_stream_finish(struct http_request *req);       /* the server drains */

/* The next one with news for its connection; NULL: none. Frees what lost its own. */
struct http_request *http_done_take(struct http_server *server);

/* http_stream.c */
void http_stream_finish(struct http_request *req); /* the server drains */

/* What of a stream may go out next is moved to chunk; chunk NULL: the socket takes no
 * more now, FULL unless the stream is to be cut. */
enum stream_next { STREAM_WAIT, STREAM_DATA, STREAM_END, STREAM_CUT, STREAM_FULL };
enum stream_next http_stream_take(struct http_request *req, struct buf *chunk);

/* http_pool.c */
struct http_pool *http_pool_new(int threads, http_handler_fn fn, void *arg);
void http_pool_put(struct http_pool *pool, struct http_request *req);
void http_pool_free(struct http_pool *pool); /* what has not begun is answered 503 */

#endif
