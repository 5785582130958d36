/*
 * What the server does not put up with: slow clients, too many of them, too few
 * descriptors, sockets in the way, addresses that others can reach.
 */
#include "base/err.h"
#include "base/fsio.h"
#include "base/strs.h"
#include "net/loop.h"
#include "unit/net/rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

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
test_a_head_that_does_not_come_in_time_is_408(void **state)
{
    struct http_server_options options = {.head_ms = 50};
    struct rig rig;
    struct peer slow, mute;

    rig_start(&rig, &options);
    peer_connect(&slow, rig.port);
    peer_connect(&mute, rig.port);
    peer_send(&slow, "GET /echo HT");
    expect(&slow, 408, NULL);
    assert_true(peer_at_end(&slow));
    assert_true(peer_at_end(&mute)); /* said nothing: hears nothing */
    assert_int_equal(mute.in.len, 0);
    peer_close(&slow);
    peer_close(&mute);
    rig_stop(&rig);
}

static void
test_a_body_that_comes_too_slowly_is_408(void **state)
{
    struct http_server_options options = {.body_ms = 50};
    struct rig rig;
    struct peer peer;

    rig_start(&rig, &options);
    peer_connect(&peer, rig.port);
    peer_send(&peer, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab");
    expect(&peer, 408, NULL);
    assert_true(peer_at_end(&peer));
    assert_int_equal(rig_read(&rig, &rig.arrived), 0);
    peer_close(&peer);
    rig_stop(&rig);
}

static void
test_an_idle_connection_is_closed_in_the_end(void **state)
{
    struct http_server_options options = {.idle_ms = 50};
    struct rig rig;
    struct peer peer;

    rig_start(&rig, &options);
    peer_connect(&peer, rig.port);
    peer_send(&peer, GET("/echo"));
    expect(&peer, 200, NULL);
    assert_true(peer_at_end(&peer));
    peer_close(&peer);
    rig_stop(&rig);
}

static void
test_a_reader_that_takes_nothing_is_cut_off(void **state)
{
    struct http_server_options options = {.write_ms = 50};
    struct rig rig;
    struct peer peer;
    int small = 4096;

    rig_start(&rig, &options);
    peer_connect(&peer, rig.port);
    setsockopt(peer.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    for (int i = 0; i < 20; i++)
        peer_send(&peer, GET("/file"));
    /* 60 MiB are on their way and nobody reads: it must end by itself. */
    while (rig_read(&rig, &rig.arrived) == 0)
        rig_turn_loop(&rig);
    while (peer_is_silent(&peer, 10))
        continue;
    while (rig_connections(&rig) > 0)
        rig_turn_loop(&rig);
    peer_close(&peer);
    rig_stop(&rig);
}

static void
expect_503(int port)
{
    scoped(reply_release) struct reply reply;
    struct peer peer;

    peer_connect(&peer, port);
    peer_reply(&peer, false, &reply);
    assert_int_equal(reply.status, 503);
    assert_true(reply_has(&reply, "\r\nRetry-After: 1\r\n"));
    assert_true(peer_at_end(&peer));
    peer_close(&peer);
}

static void
test_connections_over_the_cap_are_told_503(void **state)
{
    struct http_server_options options = {.connections_max = 2};
    struct rig rig;
    struct peer one, two;

    rig_start(&rig, &options);
    peer_connect(&one, rig.port);
    peer_connect_unix(&two, rig.socket_path);
    peer_send(&two, GET("/echo"));
    expect(&two, 200, "GET /echo unix ");
    expect_503(rig.port);
    peer_close(&two);
    while (rig_connections(&rig) > 1)
        rig_turn_loop(&rig);
    peer_connect(&two, rig.port);
    peer_send(&two, GET("/echo"));
    expect(&two, 200, NULL);
    peer_close(&one);
    peer_close(&two);
    rig_stop(&rig);
}

static void
test_connections_of_one_address_have_a_cap(void **state)
{
    struct http_server_options options = {.per_address_max = 1, .count_loopback = true};
    struct rig rig;
    struct peer one, local;

    rig_start(&rig, &options);
    peer_connect(&one, rig.port);
    expect_503(rig.port);
    peer_connect_unix(&local, rig.socket_path);
    peer_send(&local, GET("/echo"));
    expect(&local, 200, NULL);
    peer_close(&one);
    while (rig_connections(&rig) > 1)
        rig_turn_loop(&rig);
    peer_connect(&one, rig.port);
    peer_send(&one, GET("/echo"));
    expect(&one, 200, NULL);
    peer_close(&one);
    peer_close(&local);
    rig_stop(&rig);
}

static int64_t
cpu_ms_of(pthread_t thread)
{
    struct timespec used;
    clockid_t id;

    assert_int_equal(pthread_getcpuclockid(thread, &id), 0);
    assert_int_equal(clock_gettime(id, &used), 0);
    return (int64_t)used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

static void
test_out_of_descriptors_accepting_rests_and_goes_on_later(void **state)
{
    struct rig rig;
    struct peer peer = {0};
    struct rlimit old, low;
    int taken[64];
    size_t count = 0;
    int64_t cpu_ms;

    rig_start(&rig, NULL);
    peer_connect(&peer, rig.port);
    rig_turn_loop(&rig);
    peer_close(&peer);
    while (rig_connections(&rig) > 0)
        rig_turn_loop(&rig);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    peer.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    low = (struct rlimit){.rlim_cur = (rlim_t)peer.fd + 8, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    while (count < array_len(taken) && (taken[count] = dup(0)) >= 0)
        count++;

    struct sockaddr_un address = {.sun_family = AF_UNIX};
    str_copy(address.sun_path, sizeof(address.sun_path), rig.socket_path);
    assert_int_equal(
        connect(peer.fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    peer_send(&peer, GET("/echo"));
    cpu_ms = cpu_ms_of(rig.thread);
    assert_true(peer_is_silent(&peer, 400));
    assert_in_range(cpu_ms_of(rig.thread) - cpu_ms, 0, 100);
    while (count > 0)
        close(taken[--count]);
    expect(&peer, 200, NULL);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    peer_close(&peer);
    rig_stop(&rig);
}

static void
test_the_socket_file_is_private_and_goes_with_the_server(void **state)
{
    struct rig rig;
    struct peer peer;
    struct stat st;

    rig_start(&rig, NULL);
    assert_int_equal(stat(rig.socket_path, &st), 0);
    assert_true(S_ISSOCK(st.st_mode));
    assert_int_equal(st.st_mode & 0777, 0600);
    peer_connect_unix(&peer, rig.socket_path);
    peer_send(&peer, GET("/echo"));
    expect(&peer, 200, "GET /echo unix ");
    peer_close(&peer);
    rig_drain(&rig, 0);
    rig_await(&rig, &rig.drained, 1);
    assert_false(fs_exists(rig.socket_path));
    rig_stop(&rig);
}

static void
never(void *arg, struct http_request *req)
{
    abort();
}

/* Leave a socket file as a killed server does. */
static void
leave_stale_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(str_copy(address.sun_path, sizeof(address.sun_path), path));
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    close(fd);
}

static void
test_a_dead_socket_file_is_replaced_a_live_one_and_a_file_are_not(void **state)
{
    struct http_server_options options = {.handler = never};
    struct rig rig;
    struct loop *loop;
    struct http_server *second;
    struct err err = {0};
    char stale[120], plain[120], longer[200];

    rig_start(&rig, NULL);
    assert_int_equal(loop_new(&loop, &err), 0);
    assert_int_equal(http_server_new(loop, &options, &second, &err), 0);
    snprintf(stale, sizeof(stale), "%s/stale", rig.dir);
    snprintf(plain, sizeof(plain), "%s/plain", rig.dir);
    leave_stale_socket(stale);
    assert_int_equal(fs_replace_file(plain, "x", 1, 0600, &err), 0);

    assert_int_equal(http_server_listen_unix(second, stale, &err), 0);
    assert_int_equal(http_server_listen_unix(second, rig.socket_path, &err),
                     -ERR_CONFIG);
    assert_non_null(strstr(err.text, "in use by a running server"));
    err_clear(&err);
    assert_int_equal(http_server_listen_unix(second, plain, &err), -ERR_CONFIG);
    assert_non_null(strstr(err.text, "is no socket"));
    err_clear(&err);
    memset(longer, 'l', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    assert_int_equal(http_server_listen_unix(second, longer, &err), -ERR_CONFIG);
    assert_non_null(strstr(err.text, "longer than the 107 characters"));
    http_server_free(second);
    assert_true(fs_exists(plain));
    loop_free(loop);
    rig_stop(&rig);
}

static void
test_addresses_that_others_can_reach_are_refused(void **state)
{
    static const char *const addresses[] = {"0.0.0.0", "::",          "192.0.2.1",
                                            "8.8.8.8", "example.org", ""};
    struct http_server_options options = {.handler = never};
    struct http_server *server;
    struct loop *loop;
    struct err err = {0};
    int port = 0;

    assert_int_equal(loop_new(&loop, &err), 0);
    assert_int_equal(http_server_new(loop, &options, &server, &err), 0);
    for (size_t i = 0; i < array_len(addresses); i++) {
        assert_int_equal(http_server_listen_tcp(server, addresses[i], 0, &port, &err),
                         -ERR_CONFIG);
        err_clear(&err);
    }
    assert_int_equal(http_server_listen_tcp(server, "localhost", 70000, &port, &err),
                     -ERR_CONFIG);
    err_clear(&err);
    assert_int_equal(http_server_listen_tcp(server, "localhost", 0, &port, &err), 0);
    assert_true(port > 0);
    assert_int_equal(http_server_listen_tcp(server, "127.0.0.1", port, NULL, &err),
                     -ERR_CONFIG);
    assert_non_null(strstr(err.text, "another server"));
    http_server_free(server);
    loop_free(loop);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_head_that_does_not_come_in_time_is_408),
        cmocka_unit_test(test_a_body_that_comes_too_slowly_is_408),
        cmocka_unit_test(test_an_idle_connection_is_closed_in_the_end),
        cmocka_unit_test(test_a_reader_that_takes_nothing_is_cut_off),
        cmocka_unit_test(test_connections_over_the_cap_are_told_503),
        cmocka_unit_test(test_connections_of_one_address_have_a_cap),
        cmocka_unit_test(test_out_of_descriptors_accepting_rests_and_goes_on_later),
        cmocka_unit_test(test_the_socket_file_is_private_and_goes_with_the_server),
        cmocka_unit_test(
            test_a_dead_socket_file_is_replaced_a_live_one_and_a_file_are_not),
        cmocka_unit_test(test_addresses_that_others_can_reach_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
