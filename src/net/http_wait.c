/*
 * How long a connection may stay in one kind of waiting, and what happens then. All
 * waits of a kind have the same length, so each kind's list is sorted by itself, and
 * one timer, set to the earliest of the few heads, serves all connections.
 */
#include "net/http_server_impl.h"

#include "net/loop.h"

#define BODY_BYTES_PER_S 1024

static int64_t
wait_length_ms(const struct http_server *server, enum conn_wait wait)
{
    switch (wait) {
    case WAIT_IDLE:
        return server->opt.idle_ms;
    case WAIT_HEAD:
        return server->opt.head_ms;
    case WAIT_BODY:
        return server->opt.body_ms;
    case WAIT_WRITE:
        return server->opt.write_ms;
    case WAIT_LINGER:
        return HTTP_LINGER_MS;
    case WAIT_NONE:
        break;
    }
    return 0;
}

static void
arm_wait_timer(struct http_server *server, int64_t deadline_ms)
{
    int64_t delay_ms = deadline_ms - loop_now_ms(server->loop);

    server->wait_armed_ms = deadline_ms;
    loop_timer_set(server->wait_timer, delay_ms > 0 ? delay_ms : 0);
}

/* Begin a wait of this kind, from now on. */
void
http_conn_wait(struct http_conn *conn, enum conn_wait wait)
{
    struct http_server *server = conn->server;

    list_remove(&conn->wait_link);
    conn->wait = wait;
    if (wait == WAIT_NONE)
        return;
    conn->deadline_ms = loop_now_ms(server->loop) + wait_length_ms(server, wait);
    list_push_back(&server->waits[wait], &conn->wait_link);
    if (conn->deadline_ms < server->wait_armed_ms)
        arm_wait_timer(server, conn->deadline_ms);
}

static void
wait_is_over(struct http_conn *conn)
{
    int64_t wanted = conn->server->opt.body_ms * BODY_BYTES_PER_S / 1000;

    if (conn->wait == WAIT_BODY && conn->window_bytes >= wanted) {
        conn->window_bytes = 0;
        http_conn_wait(conn, WAIT_BODY);
    } else if (conn->wait == WAIT_BODY) {
        http_conn_refuse(conn, 408, "The body came too slowly.");
    } else if (conn->wait == WAIT_HEAD && conn->req != NULL) {
        http_conn_refuse(conn, 408, "The request head did not come in time.");
    } else {
        http_conn_close(conn);
    }
}

void
http_server_on_wait(void *arg)
{
    struct http_server *server = arg;
    int64_t now_ms = loop_now_ms(server->loop);
    int64_t next_ms = INT64_MAX;

    server->wait_armed_ms = INT64_MAX;
    for (int i = 0; i < WAIT_KINDS; i++) {
        while (!list_empty(&server->waits[i])) {
            struct http_conn *conn =
                list_entry(server->waits[i].next, struct http_conn, wait_link);

            if (conn->deadline_ms > now_ms) {
                if (conn->deadline_ms < next_ms)
                    next_ms = conn->deadline_ms;
                break;
            }
            wait_is_over(conn);
        }
    }
    if (next_ms < server->wait_armed_ms)
        arm_wait_timer(server, next_ms);
}
