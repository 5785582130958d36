/*
 * Requests that are held. The races between a client that leaves and an answer on its
 * way are run many times, for the thread sanitizer to watch. Streams and draining are
 * in test_http_stream.c.
 */
#include "net/loop.h"
#include "unit/net/rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <cmocka.h>

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

static void
expect(struct peer *peer, int status, const char *body)
{
    scoped(reply_release) struct reply reply;

    peer_reply(peer, false, &reply);
    assert_int_equal(reply.status, status);
    assert_string_equal(buf_str(&reply.body), body);
}

static void
test_a_held_request_is_answered_later_from_another_thread(void **state)
{
    struct rig rig;
    struct peer peer;

    rig_start(&rig, NULL);
    peer_connect(&peer, rig.port);
    peer_send(&peer, GET("/hold"));
    rig_answer(rig_take_held(&rig), "at last");
    expect(&peer, 200, "at last");
    assert_int_equal(rig_read(&rig, &rig.presence), HTTP_CLIENT_HERE);
    peer_send(&peer, GET("/echo"));
    expect(&peer, 200, "GET /echo 127.0.0.1 ");
    peer_close(&peer);
    rig_turn_loop(&rig);
    assert_int_equal(rig_read(&rig, &rig.gone), 0);
    rig_stop(&rig);
}

static void
leave_while_held(bool by_unix_socket)
{
    struct rig rig;
    struct peer peer;

    rig_start(&rig, NULL);
    if (by_unix_socket)
        peer_connect_unix(&peer, rig.socket_path);
    else
        peer_connect(&peer, rig.port);
    peer_send(&peer, GET("/hold"));
    struct http_request *req = rig_take_held(&rig);
    peer_close(&peer);
    rig_await(&rig, &rig.gone, 1);
    assert_int_equal(rig_connections(&rig), 0);
    rig_answer(req, "too late"); /* must still be answered, to no effect */
    rig_turn_loop(&rig);
    assert_int_equal(rig_read(&rig, &rig.gone), 1);
    rig_stop(&rig);
}

static void
test_who_holds_a_request_is_told_once_when_its_client_leaves(void **state)
{
    leave_while_held(false);
    leave_while_held(true);
}

static void
test_a_client_that_resets_its_connection_is_gone_too(void **state)
{
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    struct rig rig;
    struct peer peer;

    rig_start(&rig, NULL);
    peer_connect(&peer, rig.port);
    peer_send(&peer, GET("/hold"));
    struct http_request *req = rig_take_held(&rig);
    setsockopt(peer.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    peer_close(&peer);
    rig_await(&rig, &rig.gone, 1);
    rig_answer(req, "too late");
    rig_stop(&rig);
}

static void
test_a_client_with_further_requests_waiting_is_seen_to_leave(void **state)
{
    struct rig rig;
    struct peer peer;

    rig_start(&rig, NULL);
    peer_connect(&peer, rig.port);
    peer_send(&peer, GET("/hold"));
    struct http_request *req = rig_take_held(&rig);
    peer_send(&peer, GET("/echo"));
    rig_turn_loop(&rig);
    peer_close(&peer);
    rig_await(&rig, &rig.gone, 1);
    rig_answer(req, "too late");
    assert_int_equal(rig_read(&rig, &rig.arrived), 1);
    rig_stop(&rig);
}

static void
note_gone(void *arg)
{
    ++*(int *)arg;
}

static void
test_one_who_asks_after_the_client_has_left_is_told_at_once(void **state)
{
    int called = 0;
    struct rig rig;
    struct peer peer;

    rig_start(&rig, NULL);
    peer_connect(&peer, rig.port);
    peer_send(&peer, GET("/keep"));
    struct http_request *req = rig_take_held(&rig);
    peer_close(&peer);
    /* Two turns: one for the event to be seen, whatever came first in the first. */
    rig_turn_loop(&rig);
    rig_turn_loop(&rig);
    assert_int_equal(http_request_on_gone(req, note_gone, &called), HTTP_CLIENT_GONE);
    rig_answer(req, "to nobody");
    rig_stop(&rig);
    assert_int_equal(called, 0);
}

static void
test_on_gone_may_answer_by_itself(void **state)
{
    struct rig rig;
    struct peer peer;

    rig_start(&rig, NULL);
    rig.answer_when_gone = true;
    peer_connect(&peer, rig.port);
    peer_send(&peer, GET("/hold"));
    rig_await(&rig, &rig.arrived, 1);
    while (rig_read(&rig, &rig.gone) == 0) {
        /* The handler may still be on its way to registering. */
        if (peer.fd >= 0) {
            pthread_mutex_lock(&rig.lock);
            bool held = rig.held != NULL;
            pthread_mutex_unlock(&rig.lock);
            if (held)
                peer_close(&peer);
        }
        rig_turn_loop(&rig);
    }
    rig_stop(&rig);
}

struct race {
    struct rig *rig;
    struct http_request *req;
};

static void *
answer_thread(void *arg)
{
    struct race *race = arg;

    rig_answer(race->req, "racing");
    return NULL;
}

static void
test_leaving_and_answering_at_the_same_moment_is_safe(void **state)
{
    struct rig rig;

    rig_start(&rig, NULL);
    for (int i = 0; i < 300; i++) {
        struct race race = {.rig = &rig};
        struct peer peer;
        pthread_t thread;

        peer_connect(&peer, rig.port);
        peer_send(&peer, GET("/hold"));
        race.req = rig_take_held(&rig);
        assert_int_equal(pthread_create(&thread, NULL, answer_thread, &race), 0);
        peer_close(&peer);
        pthread_join(thread, NULL);
    }
    /* The server still serves. */
    struct peer peer;
    peer_connect(&peer, rig.port);
    peer_send(&peer, GET("/echo"));
    expect(&peer, 200, "GET /echo 127.0.0.1 ");
    peer_close(&peer);
    rig_stop(&rig);
}

struct overlap {
    struct rig *rig;
    struct http_request *req;
    int telling;   /* on_gone has begun */
    int answering; /* the other thread is at http_respond */
    int answered;  /* and back from it */
    int answered_too_early;
    int told; /* on_gone is at its end */
};

static void
count(struct rig *rig, int *counter)
{
    pthread_mutex_lock(&rig->lock);
    ++*counter;
    pthread_cond_broadcast(&rig->changed);
    pthread_mutex_unlock(&rig->lock);
}

static void
gone_slowly(void *arg)
{
    const struct timespec a_while = {.tv_nsec = 50 * 1000 * 1000};
    struct overlap *overlap = arg;

    count(overlap->rig, &overlap->telling);
    rig_await(overlap->rig, &overlap->answering, 1);
    nanosleep(&a_while, NULL); /* nothing to wait for: it must not happen */
    overlap->answered_too_early = rig_read(overlap->rig, &overlap->answered);
    count(overlap->rig, &overlap->told);
}

static void *
answer_meanwhile(void *arg)
{
    struct overlap *overlap = arg;

    rig_await(overlap->rig, &overlap->telling, 1);
    count(overlap->rig, &overlap->answering);
    rig_answer(overlap->req, "meanwhile");
    count(overlap->rig, &overlap->answered);
    return NULL;
}

static void
test_answering_waits_for_an_on_gone_that_is_running(void **state)
{
    struct rig rig;
    struct overlap overlap = {.rig = &rig};
    struct peer peer;
    pthread_t thread;

    rig_start(&rig, NULL);
    peer_connect(&peer, rig.port);
    peer_send(&peer, GET("/keep"));
    overlap.req = rig_take_held(&rig);
    assert_int_equal(http_request_on_gone(overlap.req, gone_slowly, &overlap),
                     HTTP_CLIENT_HERE);
    assert_int_equal(pthread_create(&thread, NULL, answer_meanwhile, &overlap), 0);
    peer_close(&peer);
    rig_await(&rig, &overlap.told, 1);
    pthread_join(thread, NULL);
    assert_int_equal(overlap.answered_too_early, 0);
    rig_stop(&rig);
}

struct waiter {
    pthread_mutex_t lock;
    struct http_request *req; /* NULL: taken by one of the two */
};

static void
waiter_gone(void *arg)
{
    struct waiter *waiter = arg;
    struct http_request *req;

    pthread_mutex_lock(&waiter->lock);
    req = waiter->req;
    waiter->req = NULL;
    pthread_mutex_unlock(&waiter->lock);
    if (req != NULL)
        rig_answer(req, "gone");
}

/* The pattern of a long poll: whoever takes the request out of the waiter answers it,
 * and the waiter lives on the stack of one that may answer while on_gone runs. */
static void
test_a_waiter_may_be_thrown_away_once_the_request_is_answered(void **state)
{
    struct rig rig;

    rig_start(&rig, NULL);
    for (int i = 0; i < 300; i++) {
        struct waiter waiter = {.lock = PTHREAD_MUTEX_INITIALIZER};
        struct http_request *req;
        struct peer peer;

        peer_connect(&peer, rig.port);
        peer_send(&peer, GET("/keep"));
        req = rig_take_held(&rig);
        waiter.req = req;
        if (http_request_on_gone(req, waiter_gone, &waiter) == HTTP_CLIENT_GONE)
            fail();
        peer_close(&peer);
        pthread_mutex_lock(&waiter.lock);
        req = waiter.req;
        waiter.req = NULL;
        pthread_mutex_unlock(&waiter.lock);
        if (req != NULL)
            rig_answer(req, "in time");
        else
            rig_turn_loop(&rig); /* waiter_gone has it and is done after this */
        pthread_mutex_destroy(&waiter.lock);
        memset(&waiter, 0xee, sizeof(waiter));
    }
    rig_stop(&rig);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_held_request_is_answered_later_from_another_thread),
        cmocka_unit_test(test_who_holds_a_request_is_told_once_when_its_client_leaves),
        cmocka_unit_test(test_a_client_that_resets_its_connection_is_gone_too),
        cmocka_unit_test(test_a_client_with_further_requests_waiting_is_seen_to_leave),
        cmocka_unit_test(test_one_who_asks_after_the_client_has_left_is_told_at_once),
        cmocka_unit_test(test_on_gone_may_answer_by_itself),
        cmocka_unit_test(test_leaving_and_answering_at_the_same_moment_is_safe),
        cmocka_unit_test(test_answering_waits_for_an_on_gone_that_is_running),
        cmocka_unit_test(test_a_waiter_may_be_thrown_away_once_the_request_is_answered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
