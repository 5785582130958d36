/*
 * Those who wait for a request while the server goes: each is answered, also one
 * whose handler comes to the watching thread when that has ended already.
 */
#include "tests/store/queue/common.h"

#include "api/api_private.h"
#include "api/watch.h"
#include "base/log.h"
#include "config/config.h"
#include "net/http_client.h"
#include "net/loop.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define WAIT_US (60 * US_PER_S)

/* A server whose one handler comes to the watch when it is let go. */
struct rig {
    struct service service;
    struct log log;
    struct api api;
    int64_t request_id;
    bool streams;
    pthread_t loop_thread;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool arrived;
    bool let_go;
};

static void
set(struct rig *rig, bool *flag)
{
    pthread_mutex_lock(&rig->lock);
    *flag = true;
    pthread_cond_broadcast(&rig->changed);
    pthread_mutex_unlock(&rig->lock);
}

static void
await(struct rig *rig, const bool *flag)
{
    pthread_mutex_lock(&rig->lock);
    while (!*flag)
        pthread_cond_wait(&rig->changed, &rig->lock);
    pthread_mutex_unlock(&rig->lock);
}

static void
handle(void *arg, struct http_request *req)
{
    struct rig *rig = arg;

    set(rig, &rig->arrived);
    await(rig, &rig->let_go);
    if (rig->streams)
        watch_stream(rig->api.watch, req, rig->request_id);
    else
        watch_hold(rig->api.watch, req, rig->request_id, WAIT_US);
}

static void *
run_loop(void *arg)
{
    loop_run(arg);
    return NULL;
}

static void
rig_open(struct rig *rig, struct harness *h)
{
    struct http_server_options options = {.handler = handle, .arg = rig};
    struct err err = {0};

    *rig = (struct rig){.request_id = submit_one(h, "task")};
    pthread_mutex_init(&rig->lock, NULL);
    pthread_cond_init(&rig->changed, NULL);
    rig->service = (struct service){.store = h->store, .clock = clock_real()};
    log_init(&rig->log, STDERR_FILENO, LOG_ERROR, LOG_TEXT, clock_real());
    rig->api.options = (struct api_options){.service = &rig->service, .log = &rig->log};
    assert_ok(loop_new(&rig->api.options.loop, &err), &err);
    assert_ok(watch_new(&rig->api, &rig->api.watch, &err), &err);
    assert_ok(http_server_new(rig->api.options.loop, &options, &rig->api.server, &err),
              &err);
    assert_ok(
        http_server_listen_tcp(rig->api.server, "127.0.0.1", 0, &rig->api.port, &err),
        &err);
    assert_int_equal(
        pthread_create(&rig->loop_thread, NULL, run_loop, rig->api.options.loop), 0);
}

static void
rig_close(struct rig *rig)
{
    loop_stop(rig->api.options.loop);
    pthread_join(rig->loop_thread, NULL);
    http_server_free(rig->api.server);
    watch_free(rig->api.watch);
    loop_free(rig->api.options.loop);
    pthread_cond_destroy(&rig->changed);
    pthread_mutex_destroy(&rig->lock);
}

/* The client's side: one call; the status stays 0 when there is no answer. */
struct call {
    int port;
    int status;
};

static void *
run_call(void *arg)
{
    scoped(arena_release) struct arena arena = {0};
    struct call *call = arg;
    struct http_client *client = NULL;
    struct http_reply reply = {0};
    struct err err = {0};
    struct http_call get = {
        .method = "GET",
        .url = arena_printf(&arena, "http://127.0.0.1:%d/", call->port),
        .timeout_ms = 20000,
    };

    if (http_client_new(&client, &err) == 0 &&
        http_client_call(client, &get, &arena, &reply, &err) == 0) {
        call->status = reply.status;
        http_reply_release(&reply);
    }
    http_client_free(client);
    return NULL;
}

static void
end_before_the_handler_comes(struct harness *h, bool streams)
{
    pthread_t client;
    struct call call;
    struct rig rig;

    rig_open(&rig, h);
    rig.streams = streams;
    call = (struct call){.port = rig.api.port};
    assert_int_equal(pthread_create(&client, NULL, run_call, &call), 0);
    await(&rig, &rig.arrived);
    watch_end(rig.api.watch);
    set(&rig, &rig.let_go);
    pthread_join(client, NULL);
    assert_int_equal(call.status, 200);
    rig_close(&rig);
}

static void
test_a_long_poll_that_comes_after_the_end_is_answered(struct harness *h)
{
    end_before_the_handler_comes(h, false);
}

static void
test_a_stream_that_comes_after_the_end_is_ended(struct harness *h)
{
    end_before_the_handler_comes(h, true);
}

static void
test_who_waits_at_the_end_is_answered(struct harness *h)
{
    pthread_t client;
    struct call call;
    struct rig rig;

    rig_open(&rig, h);
    call = (struct call){.port = rig.api.port};
    assert_int_equal(pthread_create(&client, NULL, run_call, &call), 0);
    await(&rig, &rig.arrived);
    set(&rig, &rig.let_go);
    watch_end(rig.api.watch); /* before or after it is taken in: both must do */
    pthread_join(client, NULL);
    assert_int_equal(call.status, 200);
    rig_close(&rig);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test_sqlite(test_a_long_poll_that_comes_after_the_end_is_answered),
        store_test_sqlite(test_a_stream_that_comes_after_the_end_is_ended),
        store_test_sqlite(test_who_waits_at_the_end_is_answered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
