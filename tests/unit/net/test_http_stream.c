/*
 * Streams, and what draining does to all that is long.
 */
#include "net/loop.h"
#include "unit/net/rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>

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
send_text(struct http_request *req, const char *text)
{
    assert_int_equal(http_stream_send(req, text, strlen(text)), HTTP_CLIENT_HERE);
}

static void
test_a_stream_brings_each_piece_when_it_is_sent(void **state)
{
    scoped(reply_release) struct reply head;
    struct rig rig;
    struct peer peer;

    rig_start(&rig, NULL);
    peer_connect(&peer, rig.port);
    peer_send(&peer, GET("/stream"));
    peer_reply(&peer, true, &head);
    assert_true(reply_has(&head, "\r\nTransfer-Encoding: chunked\r\n"));
    assert_true(reply_has(&head, "\r\nContent-Type: text/event-stream\r\n"));
    struct http_request *req = rig_take_held(&rig);
    send_text(req, "one\n");
    assert_true(peer_read_until(&peer, "4\r\none\n\r\n"));
    send_text(req, "three\n");
    assert_true(peer_read_until(&peer, "6\r\nthree\n\r\n"));
    http_stream_end(req);
    assert_true(peer_read_until(&peer, "0\r\n\r\n"));
    peer_send(&peer, GET("/echo"));
    expect(&peer, 200, "GET /echo 127.0.0.1 ");
    peer_close(&peer);
    rig_stop(&rig);
}

static void
test_a_stream_that_ends_at_once_is_still_whole(void **state)
{
    struct rig rig;
    struct peer peer;

    rig_start(&rig, NULL);
    peer_connect(&peer, rig.port);
    for (int i = 0; i < 50; i++) {
        peer_send(&peer, GET("/stream"));
        struct http_request *req = rig_take_held(&rig);
        send_text(req, "all");
        http_stream_end(req);
        expect(&peer, 200, "all");
    }
    peer_close(&peer);
    rig_stop(&rig);
}

static void
test_a_stream_for_HTTP_1_0_is_plain_and_ends_with_the_connection(void **state)
{
    scoped(reply_release) struct reply head;
    struct rig rig;
    struct peer peer;

    rig_start(&rig, NULL);
    peer_connect(&peer, rig.port);
    peer_send(&peer, "GET /stream HTTP/1.0\r\n\r\n");
    struct http_request *req = rig_take_held(&rig);
    send_text(req, "plain");
    http_stream_end(req);
    peer_reply(&peer, true, &head);
    assert_false(reply_has(&head, "chunked"));
    assert_true(peer_read_until(&peer, "plain"));
    assert_true(peer_at_end(&peer));
    peer_close(&peer);
    rig_stop(&rig);
}

static void
test_HEAD_of_a_stream_gets_only_the_head(void **state)
{
    scoped(reply_release) struct reply head;
    struct rig rig;
    struct peer peer;

    rig_start(&rig, NULL);
    peer_connect(&peer, rig.port);
    peer_send(&peer, "HEAD /stream HTTP/1.1\r\nHost: a\r\n\r\n");
    struct http_request *req = rig_take_held(&rig);
    assert_int_equal(http_stream_send(req, "x", 1), HTTP_CLIENT_GONE);
    http_stream_end(req);
    peer_reply(&peer, true, &head);
    assert_int_equal(head.status, 200);
    peer_send(&peer, GET("/echo"));
    expect(&peer, 200, "GET /echo 127.0.0.1 ");
    peer_close(&peer);
    rig_stop(&rig);
}

static void
test_a_lost_stream_client_is_noticed_without_sending(void **state)
{
    struct rig rig;
    struct peer peer;

    rig_start(&rig, NULL);
    peer_connect(&peer, rig.port);
    peer_send(&peer, GET("/stream"));
    assert_true(peer_read_until(&peer, "\r\n\r\n"));
    struct http_request *req = rig_take_held(&rig);
    peer_close(&peer);
    rig_await(&rig, &rig.gone, 1);
    assert_int_equal(rig_connections(&rig), 0);
    assert_int_equal(http_stream_send(req, "x", 1), HTTP_CLIENT_GONE);
    http_stream_end(req);
    rig_stop(&rig);
}

static void
test_a_hundred_lost_stream_clients_leave_no_connection_behind(void **state)
{
    enum { COUNT = 100 };
    struct http_request *held[COUNT];
    struct peer peers[COUNT];
    struct rig rig;

    rig_start(&rig, NULL);
    for (int i = 0; i < COUNT; i++) {
        peer_connect(&peers[i], rig.port);
        peer_send(&peers[i], GET("/stream"));
        held[i] = rig_take_held(&rig);
    }
    assert_int_equal(rig_connections(&rig), COUNT);
    for (int i = 0; i < COUNT; i++)
        peer_close(&peers[i]);
    rig_await(&rig, &rig.gone, COUNT);
    assert_int_equal(rig_connections(&rig), 0);
    for (int i = 0; i < COUNT; i++)
        http_stream_end(held[i]);
    rig_stop(&rig);
}

static void
test_a_slow_stream_reader_is_cut_off_and_the_sender_told(void **state)
{
    struct http_server_options options = {.stream_queue_max = 10000};
    static const char text[1000] = {0};
    struct rig rig;
    struct peer peer;
    int small = 4096;

    rig_start(&rig, &options);
    peer_connect(&peer, rig.port);
    setsockopt(peer.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    peer_send(&peer, GET("/stream"));
    struct http_request *req = rig_take_held(&rig);
    while (http_stream_send(req, text, sizeof(text)) == HTTP_CLIENT_HERE)
        continue;
    rig_await(&rig, &rig.gone, 1);
    assert_int_equal(rig_connections(&rig), 0);
    http_stream_end(req);
    peer_close(&peer);
    rig_stop(&rig);
}

static void
test_a_stream_and_a_client_that_leaves_race_safely(void **state)
{
    struct rig rig;

    rig_start(&rig, NULL);
    for (int i = 0; i < 200; i++) {
        struct peer peer;

        peer_connect(&peer, rig.port);
        peer_send(&peer, GET("/stream"));
        struct http_request *req = rig_take_held(&rig);
        if (i % 2 == 0)
            peer_close(&peer);
        http_stream_send(req, "x", 1);
        http_stream_send(req, "y", 1);
        http_stream_end(req);
        if (i % 2 == 1)
            peer_close(&peer);
    }
    while (rig_connections(&rig) > 0)
        continue;
    rig_stop(&rig);
}

static void
test_draining_waits_for_held_requests_and_closes_the_rest(void **state)
{
    scoped(reply_release) struct reply reply;
    struct rig rig;
    struct peer idle, waiting;

    rig_start(&rig, NULL);
    peer_connect(&idle, rig.port);
    peer_send(&idle, GET("/echo"));
    expect(&idle, 200, "GET /echo 127.0.0.1 ");
    peer_connect(&waiting, rig.port);
    peer_send(&waiting, GET("/hold"));
    struct http_request *req = rig_take_held(&rig);

    rig_drain(&rig, RIG_PATIENCE_S * 1000);
    assert_true(peer_at_end(&idle));
    rig_turn_loop(&rig);
    assert_int_equal(rig_read(&rig, &rig.drained), 0);
    rig_answer(req, "last");
    peer_reply(&waiting, false, &reply);
    assert_string_equal(buf_str(&reply.body), "last");
    assert_true(reply_has(&reply, "\r\nConnection: close\r\n"));
    assert_true(peer_at_end(&waiting));
    peer_close(&waiting);
    rig_await(&rig, &rig.drained, 1);
    assert_int_equal(rig_read(&rig, &rig.gone), 0);
    peer_close(&idle);
    rig_stop(&rig);
}

static void
test_draining_ends_at_its_deadline_and_tells_who_still_holds(void **state)
{
    struct rig rig;
    struct peer peer;

    rig_start(&rig, NULL);
    peer_connect(&peer, rig.port);
    peer_send(&peer, GET("/hold"));
    struct http_request *req = rig_take_held(&rig);
    rig_drain(&rig, 20);
    rig_await(&rig, &rig.drained, 1);
    assert_int_equal(rig_read(&rig, &rig.gone), 1);
    assert_true(peer_at_end(&peer));
    rig_answer(req, "too late");
    peer_close(&peer);
    rig_stop(&rig);
}

static void
test_draining_ends_streams_with_their_farewell(void **state)
{
    struct rig rig;
    struct peer peer;

    rig_start(&rig, NULL);
    peer_connect(&peer, rig.port);
    peer_send(&peer, GET("/stream"));
    struct http_request *req = rig_take_held(&rig);
    send_text(req, "news\n");
    rig_drain(&rig, RIG_PATIENCE_S * 1000);
    assert_true(peer_read_until(&peer, "news\n\r\n4\r\nbye\n\r\n0\r\n\r\n"));
    assert_true(peer_at_end(&peer));
    rig_await(&rig, &rig.gone, 1);
    assert_int_equal(http_stream_send(req, "more", 4), HTTP_CLIENT_GONE);
    http_stream_end(req);
    peer_close(&peer);
    rig_await(&rig, &rig.drained, 1);
    rig_stop(&rig);
}

static void
test_a_stream_that_begins_while_draining_ends_at_once(void **state)
{
    struct rig rig;
    struct peer peer;

    rig_start(&rig, NULL);
    peer_connect(&peer, rig.port);
    peer_send(&peer, GET("/stream?slowly"));
    rig_await(&rig, &rig.arrived, 1);
    rig_drain(&rig, RIG_PATIENCE_S * 1000);
    rig_let_go(&rig);
    assert_true(peer_read_until(&peer, "bye\n\r\n0\r\n\r\n"));
    assert_true(peer_at_end(&peer));
    http_stream_end(rig_take_held(&rig));
    peer_close(&peer);
    rig_await(&rig, &rig.drained, 1);
    rig_stop(&rig);
}

static void
test_draining_lets_running_handlers_answer(void **state)
{
    struct rig rig;
    struct peer peer;

    rig_start(&rig, NULL);
    peer_connect(&peer, rig.port);
    peer_send(&peer, GET("/slow"));
    rig_await(&rig, &rig.arrived, 1);
    rig_drain(&rig, RIG_PATIENCE_S * 1000);
    rig_let_go(&rig);
    expect(&peer, 200, "slow");
    peer_close(&peer);
    rig_await(&rig, &rig.drained, 1);
    rig_stop(&rig);
}

static void
test_an_empty_server_is_drained_at_once(void **state)
{
    struct rig rig;

    rig_start(&rig, NULL);
    rig_drain(&rig, RIG_PATIENCE_S * 1000);
    rig_await(&rig, &rig.drained, 1);
    rig_stop(&rig);
}

/* Freed without draining, in the middle of everything: nothing may be lost or hang. */
static void
test_a_server_may_be_freed_at_any_moment(void **state)
{
    struct http_server_options options = {.threads = 1};
    struct rig rig;
    struct peer half, queued[3], streaming, downloading;

    rig_start(&rig, &options);
    rig.answer_when_gone = true;
    peer_connect(&streaming, rig.port);
    peer_send(&streaming, GET("/stream"));
    struct http_request *stream = rig_take_held(&rig);
    peer_connect(&downloading, rig.port);
    peer_send(&downloading, GET("/file"));
    assert_true(peer_read_until(&downloading, "\r\n\r\n"));
    peer_connect(&half, rig.port);
    peer_send(&half, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx");
    for (int i = 0; i < 3; i++) {
        peer_connect(&queued[i], rig.port);
        peer_send(&queued[i], i == 0 ? GET("/slow") : GET("/echo"));
        if (i == 0)
            rig_await(&rig, &rig.arrived, 3);
    }
    rig_turn_loop(&rig);
    rig_let_go(&rig);
    http_stream_end(stream);
    rig_stop(&rig);
    peer_close(&half);
    peer_close(&streaming);
    peer_close(&downloading);
    for (int i = 0; i < 3; i++)
        peer_close(&queued[i]);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stream_brings_each_piece_when_it_is_sent),
        cmocka_unit_test(test_a_stream_that_ends_at_once_is_still_whole),
        cmocka_unit_test(
            test_a_stream_for_HTTP_1_0_is_plain_and_ends_with_the_connection),
        cmocka_unit_test(test_HEAD_of_a_stream_gets_only_the_head),
        cmocka_unit_test(test_a_lost_stream_client_is_noticed_without_sending),
        cmocka_unit_test(test_a_hundred_lost_stream_clients_leave_no_connection_behind),
        cmocka_unit_test(test_a_slow_stream_reader_is_cut_off_and_the_sender_told),
        cmocka_unit_test(test_a_stream_and_a_client_that_leaves_race_safely),
        cmocka_unit_test(test_draining_waits_for_held_requests_and_closes_the_rest),
        cmocka_unit_test(test_draining_ends_at_its_deadline_and_tells_who_still_holds),
        cmocka_unit_test(test_draining_ends_streams_with_their_farewell),
        cmocka_unit_test(test_a_stream_that_begins_while_draining_ends_at_once),
        cmocka_unit_test(test_draining_lets_running_handlers_answer),
        cmocka_unit_test(test_an_empty_server_is_drained_at_once),
        cmocka_unit_test(test_a_server_may_be_freed_at_any_moment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
