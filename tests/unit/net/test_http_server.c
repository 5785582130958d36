/*
 * The server over real sockets: one connection's life, and what malformed requests
 * get. Limits are in test_http_limits.c; held requests in test_http_held.c;
 * streams and draining in test_http_stream.c.
 */
#include "unit/net/bad_requests.h"
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
    if (body != NULL)
        assert_string_equal(buf_str(&reply.body), body);
}

static void
test_a_connection_serves_one_request_after_the_other(void **state)
{
    struct rig rig;
    struct peer peer;

    rig_start(&rig, NULL);
    peer_connect(&peer, rig.port);
    for (int i = 0; i < 3; i++) {
        peer_send(&peer, "POST /echo?i HTTP/1.1\r\nHost: a\r\n"
                         "Content-Length: 5\r\n\r\nhello");
        expect(&peer, 200, "POST /echo?i 127.0.0.1 hello");
    }
    assert_int_equal(rig_connections(&rig), 1);
    peer_close(&peer);
    rig_stop(&rig);
}

static void
test_every_answer_carries_the_safe_headers(void **state)
{
    scoped(reply_release) struct reply reply;
    struct rig rig;
    struct peer peer;

    rig_start(&rig, NULL);
    peer_connect(&peer, rig.port);
    peer_send(&peer, GET("/echo"));
    peer_reply(&peer, false, &reply);
    assert_true(reply_has(&reply, "\r\nCache-Control: no-store\r\n"));
    assert_true(reply_has(&reply, "\r\nX-Content-Type-Options: nosniff\r\n"));
    assert_true(reply_has(&reply, "\r\nContent-Length: 20\r\n"));
    assert_true(reply_has(&reply, " GMT\r\n"));
    assert_false(reply_has(&reply, "Connection:"));
    peer_close(&peer);
    rig_stop(&rig);
}

static void
test_a_header_value_cannot_make_a_header_of_its_own(void **state)
{
    scoped(reply_release) struct reply reply;
    struct rig rig;
    struct peer peer;

    rig_start(&rig, NULL);
    peer_connect(&peer, rig.port);
    peer_send(&peer, GET("/fields"));
    peer_reply(&peer, false, &reply);
    assert_true(reply_has(&reply, "\r\nX-Odd: a  X-Injected: yes\r\n"));
    assert_true(reply_has(&reply, "\r\nCache-Control: max-age=60\r\n"));
    assert_false(reply_has(&reply, "no-store"));
    assert_string_equal(buf_str(&reply.body), "fixed");
    peer_close(&peer);
    rig_stop(&rig);
}

static void
test_pipelined_requests_are_answered_in_order(void **state)
{
    struct rig rig;
    struct peer peer;

    rig_start(&rig, NULL);
    peer_connect(&peer, rig.port);
    peer_send(&peer, GET("/echo?1") "POST /echo?2 HTTP/1.1\r\nHost: a\r\n"
                                    "Content-Length: 2\r\n\r\nab" GET("/refused")
                                        GET("/echo?3"));
    expect(&peer, 200, "GET /echo?1 127.0.0.1 ");
    expect(&peer, 200, "POST /echo?2 127.0.0.1 ab");
    expect(&peer, 404, NULL);
    expect(&peer, 200, "GET /echo?3 127.0.0.1 ");
    peer_close(&peer);
    rig_stop(&rig);
}

static void
test_requests_sent_while_one_is_held_wait_their_turn(void **state)
{
    struct rig rig;
    struct peer peer;

    rig_start(&rig, NULL);
    peer_connect(&peer, rig.port);
    peer_send(&peer, GET("/keep"));
    rig_await(&rig, &rig.arrived, 1);
    peer_send(&peer, GET("/echo?later"));
    rig_turn_loop(&rig);
    assert_int_equal(rig_read(&rig, &rig.arrived), 1);
    rig_answer(rig_take_held(&rig), "first");
    expect(&peer, 200, "first");
    expect(&peer, 200, "GET /echo?later 127.0.0.1 ");
    peer_close(&peer);
    rig_stop(&rig);
}

static void
test_a_client_that_waits_for_100_gets_it_before_its_body(void **state)
{
    struct rig rig;
    struct peer peer;

    rig_start(&rig, NULL);
    peer_connect(&peer, rig.port);
    peer_send(&peer, "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
                     "Content-Length: 3\r\n\r\n");
    assert_true(peer_read_until(&peer, "HTTP/1.1 100 Continue\r\n\r\n"));
    peer_send(&peer, "abc");
    expect(&peer, 200, "POST /echo 127.0.0.1 abc");
    peer_close(&peer);
    rig_stop(&rig);
}

static void
test_a_refused_body_is_never_asked_for(void **state)
{
    struct rig rig;
    struct peer peer;

    rig_start(&rig, NULL);
    peer_connect(&peer, rig.port);
    peer_send(&peer, "POST /refused HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
                     "Content-Length: 3\r\n\r\n");
    expect(&peer, 404, NULL);
    assert_true(peer_at_end(&peer));
    peer_close(&peer);
    peer_connect(&peer, rig.port);
    peer_send(&peer, "POST /small HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
                     "Content-Length: 11\r\n\r\n");
    expect(&peer, 413, NULL);
    assert_true(peer_at_end(&peer));
    peer_close(&peer);
    assert_int_equal(rig_read(&rig, &rig.arrived), 0);
    rig_stop(&rig);
}

/* Unread bytes must not make the kernel drop the answer on its way. */
static void
test_a_client_that_sends_a_huge_body_anyway_reads_413(void **state)
{
    scoped(buf_release) struct buf body = {0};
    scoped(reply_release) struct reply reply;
    struct rig rig;
    struct peer peer;
    char byte;

    rig_start(&rig, NULL);
    for (int i = 0; i < 3 << 20; i++)
        buf_add_char(&body, 'x');
    peer_connect(&peer, rig.port);
    peer_send(&peer,
              "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3145728\r\n\r\n");
    assert_true(peer_send_bytes(&peer, body.data, body.len));
    peer_reply(&peer, false, &reply);
    assert_int_equal(reply.status, 413);
    assert_true(reply_has(&reply, "Connection: close"));
    assert_non_null(strstr(buf_str(&reply.body), "\"code\":\"TOO_LARGE\""));
    assert_int_equal(recv(peer.fd, &byte, 1, 0), 0); /* and no reset */
    peer_close(&peer);
    assert_int_equal(rig_read(&rig, &rig.arrived), 0);
    rig_stop(&rig);
}

static void
test_the_head_hook_sets_the_limit_of_one_route(void **state)
{
    struct rig rig;
    struct peer peer;

    rig_start(&rig, NULL);
    peer_connect(&peer, rig.port);
    peer_send(&peer, "POST /small HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n"
                     "0123456789");
    expect(&peer, 200, "POST /small 127.0.0.1 0123456789");
    peer_send(&peer, "POST /small HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n");
    expect(&peer, 413, NULL);
    assert_true(peer_at_end(&peer));
    peer_close(&peer);
    rig_stop(&rig);
}

static void
test_HEAD_gets_the_length_and_no_body(void **state)
{
    scoped(reply_release) struct reply reply, file;
    struct rig rig;
    struct peer peer;

    rig_start(&rig, NULL);
    peer_connect(&peer, rig.port);
    peer_send(&peer, "HEAD /echo HTTP/1.1\r\nHost: a\r\n\r\n");
    peer_reply(&peer, true, &reply);
    assert_true(reply_has(&reply, "\r\nContent-Length: 21\r\n"));
    peer_send(&peer, "HEAD /file HTTP/1.1\r\nHost: a\r\n\r\n");
    peer_reply(&peer, true, &file);
    assert_true(reply_has(&file, "\r\nContent-Length: 3145728\r\n"));
    peer_send(&peer, GET("/echo"));
    expect(&peer, 200, "GET /echo 127.0.0.1 ");
    peer_close(&peer);
    rig_stop(&rig);
}

static void
check_file(struct rig *rig, const char *request, int64_t from, int64_t len)
{
    scoped(reply_release) struct reply reply;
    struct peer peer;

    peer_connect(&peer, rig->port);
    peer_send(&peer, request);
    peer_reply(&peer, false, &reply);
    assert_int_equal(reply.status, 200);
    assert_int_equal(reply.body.len, len);
    for (int64_t i = 0; i < len; i++)
        if (reply.body.data[i] != (char)((from + i) % 251))
            fail_msg("byte %lld differs", (long long)i);
    /* The connection goes on. */
    peer_send(&peer, GET("/echo"));
    expect(&peer, 200, "GET /echo 127.0.0.1 ");
    peer_close(&peer);
}

static void
test_files_are_sent_whole_and_in_slices(void **state)
{
    struct rig rig;

    rig_start(&rig, NULL);
    check_file(&rig, GET("/file"), 0, rig.file_size);
    check_file(&rig, GET("/file?from=1000&len=5"), 1000, 5);
    check_file(&rig, GET("/file?from=3000000&len=145728"), 3000000, 145728);
    check_file(&rig, GET("/file?from=7&len=0"), 7, 0);
    rig_stop(&rig);
}

static void
test_a_file_shorter_than_promised_ends_the_connection(void **state)
{
    scoped(reply_release) struct reply reply;
    struct rig rig;
    struct peer peer;

    rig_start(&rig, NULL);
    peer_connect(&peer, rig.port);
    peer_send(&peer, GET("/file?from=3145700&len=100"));
    peer_reply(&peer, false, &reply);
    assert_int_equal(reply.body.len, 28);
    assert_true(peer_at_end(&peer));
    peer_close(&peer);
    rig_stop(&rig);
}

static void
test_a_client_that_leaves_during_a_download_disturbs_nobody(void **state)
{
    struct rig rig;
    struct peer leaver, other;

    rig_start(&rig, NULL);
    peer_connect(&leaver, rig.port);
    peer_send(&leaver, GET("/file"));
    assert_true(peer_read_until(&leaver, "\r\n\r\n"));
    peer_close(&leaver);
    peer_connect(&other, rig.port);
    peer_send(&other, GET("/echo"));
    expect(&other, 200, NULL);
    peer_close(&other);
    rig_stop(&rig);
}

static void
test_malformed_requests_are_refused_and_reach_no_handler(void **state)
{
    struct http_server_options options = {.body_max = 100};
    struct rig rig;

    rig_start(&rig, &options);
    for (size_t i = 0; i < array_len(bad_cases); i++) {
        scoped(reply_release) struct reply reply;
        struct peer peer;

        peer_connect(&peer, rig.port);
        peer_send_bytes(&peer, bad_cases[i].text.data, bad_cases[i].text.len);
        peer_reply(&peer, false, &reply);
        if (reply.status != bad_cases[i].status)
            fail_msg("%s: %d", bad_cases[i].what, reply.status);
        assert_true(reply_has(&reply, "\r\nConnection: close\r\n"));
        assert_true(reply_has(&reply, "application/problem+json"));
        assert_true(peer_at_end(&peer));
        peer_close(&peer);
    }
    assert_int_equal(rig_read(&rig, &rig.arrived), 0);
    rig_stop(&rig);
}

static void
test_a_request_hidden_in_a_body_is_not_carried_out(void **state)
{
    /* Read by Content-Length the body is "5c CR LF"; by chunks it is all the rest. */
    static const char *const smuggling[] = {
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n"
        "Transfer-Encoding: chunked\r\n\r\n"
        "21\r\nGET /echo HTTP/1.1\r\nHost: a\r\n\r\n\r\n0\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
        "Content-Length: 4\r\n\r\n0\r\n\r\nGET /echo HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n" GET(
            "/echo"),
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n"
        "Content-Length: 32\r\n\r\n" GET("/echo"),
        "GET /echo HTTP/1.1\r\nHost: a\r\nX: y\nContent-Length: 32\r\n\r\n" GET(
            "/echo"),
    };
    struct rig rig;

    rig_start(&rig, NULL);
    for (size_t i = 0; i < array_len(smuggling); i++) {
        struct peer peer;

        peer_connect(&peer, rig.port);
        peer_send(&peer, smuggling[i]);
        expect(&peer, i == 2 ? 501 : 400, NULL);
        assert_true(peer_at_end(&peer));
        peer_close(&peer);
    }
    assert_int_equal(rig_read(&rig, &rig.arrived), 0);
    rig_stop(&rig);
}

static void
test_a_chunked_body_that_looks_like_a_request_is_only_a_body(void **state)
{
    struct rig rig;
    struct peer peer;

    rig_start(&rig, NULL);
    peer_connect(&peer, rig.port);
    peer_send(&peer, "POST /echo HTTP/1.1\r\nHost: a\r\n"
                     "Transfer-Encoding: chunked\r\n\r\n"
                     "f\r\nGET / HTTP/1.1\n\r\n0\r\n\r\n");
    expect(&peer, 200, "POST /echo 127.0.0.1 GET / HTTP/1.1\n");
    assert_int_equal(rig_read(&rig, &rig.arrived), 1);
    peer_close(&peer);
    rig_stop(&rig);
}

static void
test_a_badly_encoded_url_is_400(void **state)
{
    static const char *const targets[] = {
        GET("/echo/%00"), GET("/echo/%zz"),  GET("/echo/%c0%af"),
        GET("/echo?a=%"), GET("/echo/../x"),
    };
    struct rig rig;

    rig_start(&rig, NULL);
    for (size_t i = 0; i < array_len(targets); i++) {
        struct peer peer;

        peer_connect(&peer, rig.port);
        peer_send(&peer, targets[i]);
        expect(&peer, 400, NULL);
        assert_true(peer_at_end(&peer));
        peer_close(&peer);
    }
    assert_int_equal(rig_read(&rig, &rig.arrived), 0);
    rig_stop(&rig);
}

static void
test_HTTP_1_0_is_answered_and_closed(void **state)
{
    struct rig rig;
    struct peer peer;

    rig_start(&rig, NULL);
    peer_connect(&peer, rig.port);
    peer_send(&peer, "GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    expect(&peer, 200, "GET /echo 127.0.0.1 ");
    assert_true(peer_at_end(&peer));
    peer_close(&peer);
    rig_stop(&rig);
}

static void
test_a_client_that_only_closed_its_sending_side_gets_its_answer(void **state)
{
    struct rig rig;
    struct peer peer;

    rig_start(&rig, NULL);
    peer_connect(&peer, rig.port);
    peer_send(&peer, GET("/keep"));
    rig_await(&rig, &rig.arrived, 1);
    shutdown(peer.fd, SHUT_WR);
    rig_turn_loop(&rig);
    rig_answer(rig_take_held(&rig), "late");
    expect(&peer, 200, "late");
    assert_true(peer_at_end(&peer));
    peer_close(&peer);
    rig_stop(&rig);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_connection_serves_one_request_after_the_other),
        cmocka_unit_test(test_every_answer_carries_the_safe_headers),
        cmocka_unit_test(test_a_header_value_cannot_make_a_header_of_its_own),
        cmocka_unit_test(test_pipelined_requests_are_answered_in_order),
        cmocka_unit_test(test_requests_sent_while_one_is_held_wait_their_turn),
        cmocka_unit_test(test_a_client_that_waits_for_100_gets_it_before_its_body),
        cmocka_unit_test(test_a_refused_body_is_never_asked_for),
        cmocka_unit_test(test_a_client_that_sends_a_huge_body_anyway_reads_413),
        cmocka_unit_test(test_the_head_hook_sets_the_limit_of_one_route),
        cmocka_unit_test(test_HEAD_gets_the_length_and_no_body),
        cmocka_unit_test(test_files_are_sent_whole_and_in_slices),
        cmocka_unit_test(test_a_file_shorter_than_promised_ends_the_connection),
        cmocka_unit_test(test_a_client_that_leaves_during_a_download_disturbs_nobody),
        cmocka_unit_test(test_malformed_requests_are_refused_and_reach_no_handler),
        cmocka_unit_test(test_a_request_hidden_in_a_body_is_not_carried_out),
        cmocka_unit_test(test_a_chunked_body_that_looks_like_a_request_is_only_a_body),
        cmocka_unit_test(test_a_badly_encoded_url_is_400),
        cmocka_unit_test(test_HTTP_1_0_is_answered_and_closed),
        cmocka_unit_test(
            test_a_client_that_only_closed_its_sending_side_gets_its_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
