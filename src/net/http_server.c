/*
 * Life of the server: making, draining, freeing, and the wake-up by which answers of
 * other threads reach the loop.
 */
#include "net/http_server.h"

#include "base/err.h"
#include "net/http_server_impl.h"
#include "net/loop.h"

#include <assert.h>
#include <stdlib.h>

static void
set_default(int *value, int standard)
{
    if (*value == 0)
        *value = standard;
}

static void
set_default_ms(int64_t *value, int64_t standard)
{
    if (*value == 0)
        *value = standard;
}

static void
set_default_size(size_t *value, size_t standard)
{
    if (*value == 0)
        *value = standard;
}

static void
fill_defaults(struct http_server_options *opt)
{
    set_default(&opt->threads, 4);
    set_default(&opt->connections_max, 10000);
    set_default(&opt->per_address_max, 100);
    set_default_size(&opt->body_max, (size_t)1 << 20);
    set_default_size(&opt->stream_queue_max, (size_t)256 << 10);
    set_default_ms(&opt->head_ms, 10000);
    set_default_ms(&opt->body_ms, 10000);
    set_default_ms(&opt->idle_ms, 75000);
    set_default_ms(&opt->write_ms, 30000);
}

static void
on_wake(void *arg)
{
    struct http_server *server = arg;
    struct http_request *req;

    while ((req = http_done_take(server)) != NULL)
        http_conn_answer(req->conn);
}

static void
on_accept_timer(void *arg)
{
    http_accept_set(arg, true);
}

static void
close_all(struct http_server *server)
{
    struct list *link;

    while ((link = server->conns.next) != &server->conns)
        http_conn_close(list_entry(link, struct http_conn, link));
}

/* The deadline, or the last connection has gone. */
static void
on_drain_timer(void *arg)
{
    struct http_server *server = arg;
    http_drained_fn fn = server->drained;

    server->drained = NULL;
    close_all(server);
    if (fn != NULL)
        fn(server->drained_arg);
}

int
http_server_new(struct loop *loop, const struct http_server_options *options,
                struct http_server **ret_server, struct err *err)
{
    struct http_server *server = xcalloc(1, sizeof(*server));
    int r;

    assert(options->handler != NULL);
    server->loop = loop;
    server->opt = *options;
    fill_defaults(&server->opt);
    r = loop_wake_new(loop, on_wake, server, &server->wake, err);
    if (r < 0) {
        free(server);
        return r;
    }
    server->pool = http_pool_new(server->opt.threads, options->handler, options->arg);
    if (server->pool == NULL) {
        loop_wake_free(server->wake);
        free(server);
        return err_set(err, ERR_NOMEM, "cannot start a thread for HTTP requests");
    }
    list_init(&server->conns);
    for (int i = 0; i < WAIT_KINDS; i++)
        list_init(&server->waits[i]);
    map_init(&server->addresses, NULL);
    server->wait_armed_ms = INT64_MAX;
    server->wait_timer = loop_timer_new(loop, http_server_on_wait, server);
    server->accept_timer = loop_timer_new(loop, on_accept_timer, server);
    server->drain_timer = loop_timer_new(loop, on_drain_timer, server);
    server->scratch = xmalloc(HTTP_SCRATCH_BYTES);
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->changed, NULL);
    *ret_server = server;
    return 0;
}

/* All connections are closed: wait for the answers of those that hold requests. */
static void
await_requests(struct http_server *server)
{
    struct http_request *req = http_done_take(server);

    assert(req == NULL);
    (void)req;
    pthread_mutex_lock(&server->lock);
    while (server->live > 0)
        pthread_cond_wait(&server->changed, &server->lock);
    pthread_mutex_unlock(&server->lock);
}

void
http_server_free(struct http_server *server)
{
    if (server == NULL)
        return;
    atomic_store(&server->draining, true);
    server->drained = NULL;
    http_listeners_close(server);
    close_all(server);
    http_pool_free(server->pool);
    await_requests(server);
    loop_timer_free(server->wait_timer);
    loop_timer_free(server->accept_timer);
    loop_timer_free(server->drain_timer);
    loop_wake_free(server->wake);
    map_release(&server->addresses);
    pthread_mutex_destroy(&server->lock);
    pthread_cond_destroy(&server->changed);
    free(server->scratch);
    free(server);
}

void
http_server_drain(struct http_server *server, int64_t deadline_ms, http_drained_fn fn,
                  void *arg)
{
    atomic_store(&server->draining, true);
    http_listeners_close(server);
    list_each_safe(link, &server->conns)
    {
        struct http_conn *conn = list_entry(link, struct http_conn, link);

        if (conn->state == CONN_READING && conn->req == NULL)
            http_conn_close(conn);
        else if (conn->state == CONN_BUSY || conn->state == CONN_STREAMING)
            http_stream_finish(conn->req);
    }
    server->drained = fn;
    server->drained_arg = arg;
    loop_timer_set(server->drain_timer, server->conn_count == 0 ? 0 : deadline_ms);
}

int
http_server_connections(const struct http_server *server)
{
    return server->conn_count;
}
