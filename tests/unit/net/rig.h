/*
 * A server on a loop in a thread of its own, with handlers for every situation, and a
 * client of plain sockets. Waiting is always for an event, at most RIG_PATIENCE_S.
 *
 *      /echo …          method, path, peer, body
 *      /hold            kept; answered by rig_answer; tells when the client leaves
 *      /keep            kept without asking to be told
 *      /slow            keeps its pool thread until rig_let_go
 *      /stream          a stream begins; goes on by http_stream_*(rig->held)
 *      /stream?slowly   the same after rig_let_go
 *      /file?from=&len= part of rig->file
 *      /fields          odd header values
 *      /refused …       404 by the head hook, before the body is read
 *      /small …         body limit of 10 bytes, set by the head hook
 */
#ifndef TESTS_NET_RIG_H
#define TESTS_NET_RIG_H

#include "base/buf.h"
#include "net/http_server.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define RIG_PATIENCE_S 20

struct rig {
    struct loop *loop;
    struct http_server *server;
    pthread_t thread;
    int port;
    char dir[64]; /* private folder */
    char socket_path[100];
    int file; /* of file_size bytes, byte i is i % 251 */
    int64_t file_size;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct http_request *held; /* what /hold, /keep, /stream got last */
    int arrived;               /* requests that handlers saw */
    int gone;                  /* calls of on_gone */
    int presence;              /* what http_request_on_gone said last */
    bool let_go;
    int drained;
    int posted;
    int connections; /* as of the last rig_turn_loop */
    int64_t drain_ms;
    bool answer_when_gone; /* on_gone answers by itself */
};

/* options may be NULL; handler, on_head and arg are the rig's. */
void rig_start(struct rig *rig, const struct http_server_options *options);
void rig_stop(struct rig *rig);

/* Wait until *counter (under lock) is at least wanted. */
void rig_await(struct rig *rig, const int *counter, int wanted);
int rig_read(struct rig *rig, const int *counter);
struct http_request *rig_take_held(struct rig *rig); /* waits for one */
void rig_answer(struct http_request *req, const char *text);
void rig_let_go(struct rig *rig);
void rig_drain(struct rig *rig, int64_t deadline_ms); /* returns once it has begun */
void rig_turn_loop(struct rig *rig);  /* returns when all posted before is done */
int rig_connections(struct rig *rig); /* after a turn of the loop */

struct peer {
    int fd;
    struct buf in;
    size_t at;
};

struct reply {
    int status;
    struct buf head;
    struct buf body;
};

void peer_connect(struct peer *peer, int port);
void peer_connect_unix(struct peer *peer, const char *path);
void peer_close(struct peer *peer);
void peer_send(struct peer *peer, const char *text);
bool peer_send_bytes(struct peer *peer, const void *data, size_t len); /* all sent? */

/* One whole answer; body by length, by chunks, or up to the end; none for head_only. */
void peer_reply(struct peer *peer, bool head_only, struct reply *ret);
bool peer_at_end(struct peer *peer); /* waits: true when the server has closed */
bool peer_read_until(struct peer *peer, const char *text); /* false: closed before */
bool peer_is_silent(struct peer *peer, int for_ms);
void reply_release(struct reply *reply);
bool reply_has(const struct reply *reply, const char *line);

#endif
