/*
 * The client against our own server, and its messages when there is none.
 */
#include "base/arena.h"
#include "base/err.h"
#include "base/fsio.h"
#include "net/http_client.h"
#include "unit/net/rig.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    struct rig rig;
    struct http_client *client;
    struct arena arena;
    struct err err;
    char url[200];
};

static int
set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    *state = f;
    rig_start(&f->rig, NULL);
    return http_client_new(&f->client, &f->err);
}

static int
tear_down(void **state)
{
    struct fixture *f = *state;

    http_client_free(f->client);
    rig_stop(&f->rig);
    arena_release(&f->arena);
    free(f);
    return 0;
}

static const char *
url(struct fixture *f, const char *path)
{
    snprintf(f->url, sizeof(f->url), "http://127.0.0.1:%d%s", f->rig.port, path);
    return f->url;
}

static int
call(struct fixture *f, const struct http_call *what, struct http_reply *ret)
{
    err_clear(&f->err);
    return http_client_call(f->client, what, &f->arena, ret, &f->err);
}

static void
test_get_and_post_bring_status_headers_and_body(void **state)
{
    static const struct http_field fields[] = {{"X-One", "1"}, {"X-Empty", ""}};
    struct fixture *f = *state;
    struct http_call get = {.method = "GET",
                            .url = url(f, "/echo?a=b"),
                            .fields = fields,
                            .field_count = array_len(fields)};
    scoped(http_reply_release) struct http_reply reply = {0};
    scoped(http_reply_release) struct http_reply posted = {0};

    assert_int_equal(call(f, &get, &reply), 0);
    assert_int_equal(reply.status, 200);
    assert_string_equal(buf_str(&reply.body), "GET /echo?a=b 127.0.0.1 ");
    assert_string_equal(http_reply_field(&reply, "content-type"), "text/plain");
    assert_null(http_reply_field(&reply, "X-Absent"));
    struct http_call post = {
        .method = "POST", .url = url(f, "/echo"), .body = "hello", .body_len = 5};
    assert_int_equal(call(f, &post, &posted), 0);
    assert_string_equal(buf_str(&posted.body), "POST /echo 127.0.0.1 hello");
    assert_int_equal(posted.body_bytes, posted.body.len);
    assert_int_equal(rig_connections(&f->rig), 1); /* one for both */
}

static void
test_other_methods_with_and_without_body(void **state)
{
    static const char *const methods[] = {"DELETE", "PUT", "POST", "PATCH"};
    struct fixture *f = *state;

    for (size_t i = 0; i < array_len(methods); i++) {
        scoped(http_reply_release) struct http_reply reply = {0};
        struct http_call what = {.method = methods[i], .url = url(f, "/echo")};
        char want[80];

        assert_int_equal(call(f, &what, &reply), 0);
        snprintf(want, sizeof(want), "%s /echo 127.0.0.1 ", methods[i]);
        assert_string_equal(buf_str(&reply.body), want);
    }
    scoped(http_reply_release) struct http_reply head = {0};
    struct http_call what = {.method = "HEAD", .url = url(f, "/file")};
    assert_int_equal(call(f, &what, &head), 0);
    assert_string_equal(http_reply_field(&head, "Content-Length"), "3145728");
    assert_int_equal(head.body.len, 0);
}

static void
test_an_error_status_is_an_answer(void **state)
{
    struct fixture *f = *state;
    scoped(http_reply_release) struct http_reply reply = {0};
    struct http_call what = {.method = "GET", .url = url(f, "/echo/%00")};

    what.to_fd = true; /* the text of an error does not go into the download */
    what.fd = -1;
    assert_int_equal(call(f, &what, &reply), 0);
    assert_int_equal(reply.status, 400);
    assert_non_null(strstr(buf_str(&reply.body), "\"code\":\"BAD_REQUEST\""));
}

static void
test_a_unix_socket_is_spoken_through(void **state)
{
    struct fixture *f = *state;
    scoped(http_reply_release) struct http_reply reply = {0};
    struct http_call what = {.method = "GET",
                             .url = "http://localhost/echo",
                             .unix_path = f->rig.socket_path};

    assert_int_equal(call(f, &what, &reply), 0);
    assert_string_equal(buf_str(&reply.body), "GET /echo unix ");
}

struct progress {
    int64_t last;
    int64_t total;
    int64_t stop_at;
};

static int
on_progress(void *arg, int64_t done_bytes, int64_t total_bytes)
{
    struct progress *progress = arg;

    assert_true(done_bytes >= progress->last);
    progress->last = done_bytes;
    if (total_bytes >= 0)
        progress->total = total_bytes;
    return progress->stop_at > 0 && done_bytes >= progress->stop_at;
}

static void
test_a_download_goes_to_a_file_with_progress(void **state)
{
    struct fixture *f = *state;
    scoped(http_reply_release) struct http_reply reply = {0};
    struct progress progress = {0};
    struct http_call what = {.method = "GET",
                             .url = url(f, "/file"),
                             .to_fd = true,
                             .reply_max = 10,
                             .on_progress = on_progress,
                             .on_progress_arg = &progress};
    scoped(buf_release) struct buf path = {0};
    struct stat st;

    assert_int_equal(fs_open_temp(f->rig.dir, "got", &path, &what.fd, &f->err), 0);
    assert_int_equal(call(f, &what, &reply), 0);
    assert_int_equal(reply.body.len, 0);
    assert_int_equal(reply.body_bytes, f->rig.file_size);
    assert_int_equal(progress.last, f->rig.file_size);
    assert_int_equal(progress.total, f->rig.file_size);
    assert_int_equal(fstat(what.fd, &st), 0);
    assert_int_equal(st.st_size, f->rig.file_size);
    close(what.fd);
}

static void
test_progress_can_end_a_call(void **state)
{
    struct fixture *f = *state;
    struct http_reply reply;
    struct progress progress = {.stop_at = 1};
    struct http_call what = {.method = "GET",
                             .url = url(f, "/file"),
                             .on_progress = on_progress,
                             .on_progress_arg = &progress};

    assert_int_equal(call(f, &what, &reply), -ERR_CANCELLED);
}

static int
fail_at_once(void *arg, const char *data, size_t len, struct err *err)
{
    return err_set(err, ERR_INVALID, "not what was asked for");
}

static void
test_a_sink_that_fails_ends_the_call_with_its_own_error(void **state)
{
    struct fixture *f = *state;
    struct http_reply reply;
    struct http_call what = {
        .method = "GET", .url = url(f, "/echo"), .on_body = fail_at_once};

    assert_int_equal(call(f, &what, &reply), -ERR_INVALID);
    assert_string_equal(f->err.text, "not what was asked for");
    struct http_call full = {.method = "GET", .url = url(f, "/file"), .to_fd = true};
    full.fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_int_equal(call(f, &full, &reply), -ERR_DISK_FULL);
    close(full.fd);
}

static void
test_an_answer_over_the_ceiling_is_an_error(void **state)
{
    struct fixture *f = *state;
    struct http_reply reply;
    struct http_call what = {
        .method = "GET", .url = url(f, "/file"), .reply_max = 100000};

    assert_int_equal(call(f, &what, &reply), -ERR_TOO_LARGE);
}

static void
test_no_server_is_told_with_address_and_remedy(void **state)
{
    struct fixture *f = *state;
    struct http_reply reply;
    struct http_call tcp = {.method = "GET",
                            .url = "http://me:secret@127.0.0.1:1/jobs?key=secret"};
    struct http_call local = {.method = "GET",
                              .url = "http://localhost/",
                              .unix_path = "/nonexistent/pawl.sock"};

    assert_int_equal(call(f, &tcp, &reply), -ERR_CONNECT);
    assert_non_null(strstr(f->err.text, "http://127.0.0.1:1/jobs"));
    assert_non_null(strstr(f->err.text, "check that the server runs"));
    assert_null(strstr(f->err.text, "secret"));
    assert_int_equal(call(f, &local, &reply), -ERR_CONNECT);
    assert_non_null(strstr(f->err.text, "/nonexistent/pawl.sock"));
}

static void
test_an_answer_that_does_not_come_is_a_timeout(void **state)
{
    struct fixture *f = *state;
    struct http_reply reply;
    struct http_call what = {
        .method = "GET", .url = url(f, "/hold"), .timeout_ms = 100};

    assert_int_equal(call(f, &what, &reply), -ERR_TIMEOUT);
    assert_non_null(strstr(f->err.text, f->url));
    rig_answer(rig_take_held(&f->rig), "too late");
}

static void
test_a_server_that_breaks_off_is_told(void **state)
{
    struct fixture *f = *state;
    struct http_reply reply;
    struct http_call what = {.method = "GET",
                             .url = url(f, "/file?from=3145700&len=100")};

    assert_int_equal(call(f, &what, &reply), -ERR_CONNECT);
    assert_non_null(strstr(f->err.text, "broke"));
}

static void
test_only_http_addresses_are_called(void **state)
{
    static const char *const urls[] = {"file:///etc/passwd", "ftp://127.0.0.1/", "",
                                       "http://", "gopher://127.0.0.1:1/"};
    struct fixture *f = *state;
    struct http_reply reply;

    for (size_t i = 0; i < array_len(urls); i++) {
        struct http_call what = {.method = "GET", .url = urls[i]};

        if (call(f, &what, &reply) != -ERR_USAGE)
            fail_msg("%s: %s", urls[i], f->err.text);
    }
}

static void
test_a_header_with_a_line_end_is_not_sent(void **state)
{
    static const struct http_field evil = {"X", "a\r\nY: b"};
    struct fixture *f = *state;
    struct http_reply reply;
    struct http_call what = {
        .method = "GET", .url = url(f, "/echo"), .fields = &evil, .field_count = 1};

    assert_int_equal(call(f, &what, &reply), -ERR_USAGE);
    assert_int_equal(rig_read(&f->rig, &f->rig.arrived), 0);
}

#define WITH_RIG(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

/* Answers one connection with what no server of ours would say, and closes it. */
struct oddity {
    int listener;
    const char *head;
    size_t body_bytes;
    pthread_t thread;
};

static void *
answer_oddly(void *arg)
{
    const struct oddity *odd = arg;
    int fd = accept(odd->listener, NULL, NULL);
    char asked[1000];
    char piece[1000];

    assert_true(fd >= 0);
    assert_true(read(fd, asked, sizeof(asked)) > 0);
    assert_true(send(fd, odd->head, strlen(odd->head), MSG_NOSIGNAL) > 0);
    memset(piece, 'x', sizeof(piece));
    for (size_t left = odd->body_bytes; left > 0;) {
        size_t len = left < sizeof(piece) ? left : sizeof(piece);
        ssize_t n = send(fd, piece, len, MSG_NOSIGNAL);

        if (n <= 0)
            break; /* nobody reads it to the end */
        left -= (size_t)n;
    }
    close(fd);
    return NULL;
}

static void
odd_begin(struct fixture *f, struct oddity *odd)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);

    odd->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(odd->listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(odd->listener, 1), 0);
    assert_int_equal(getsockname(odd->listener, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(pthread_create(&odd->thread, NULL, answer_oddly, odd), 0);
    snprintf(f->url, sizeof(f->url), "http://127.0.0.1:%d/", ntohs(address.sin_port));
}

static void
odd_end(struct oddity *odd)
{
    pthread_join(odd->thread, NULL);
    close(odd->listener);
}

static void
test_an_answer_that_is_no_http_is_blamed_on_the_server_not_on_the_address(void **state)
{
    struct fixture *f = *state;
    struct oddity odd = {.head = "\x7f\x01\x02 no HTTP \xff\r\n\r\n"};
    scoped(http_reply_release) struct http_reply reply = {0};

    odd_begin(f, &odd);
    assert_int_equal(
        call(f, &(struct http_call){.method = "GET", .url = f->url}, &reply),
        -ERR_PROTOCOL);
    assert_non_null(strstr(f->err.text, "gave no proper HTTP answer"));
    odd_end(&odd);
}

#define LATER  "HTTP/1.1 503 Later\r\nRetry-After: 7\r\n"
#define REFUSE "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 410 Gone\r\nRetry-After: 7\r\n"

/* One row twice: for who needs the whole answer, and for whom its head suffices. */
static void
test_who_needs_no_body_gets_the_head_of_an_answer_whose_body_fails(void **state)
{
    static const struct {
        const char *head;
        size_t body_bytes;
        int status;
        int whole; /* what else the call ends with */
        int head_only;
    } rows[] = {
        {LATER "Content-Length: 1000000\r\n\r\n", 1000000, 503, -ERR_TOO_LARGE, 0},
        {LATER "Content-Length: 1000\r\n\r\n", 10, 503, -ERR_CONNECT, 0},
        {LATER "Transfer-Encoding: chunked\r\n\r\n5\r\n", 5, 503, -ERR_CONNECT, 0},
        {REFUSE "Content-Length: 1000000\r\n\r\n", 1000000, 410, -ERR_TOO_LARGE, 0},
        {REFUSE "Content-Length: 10\r\n\r\n", 10, 410, 0, 0},
        {LATER "Content-Length: 1000\r\n", 0, 0, -ERR_CONNECT, -ERR_CONNECT},
        {"HTTP/1.1 100 Continue\r\n\r\n", 0, 0, -ERR_CONNECT, -ERR_CONNECT},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < 2 * array_len(rows); i++) {
        scoped(http_reply_release) struct http_reply reply = {0};
        size_t row = i / 2;
        bool head_only = i % 2;
        int wanted = head_only ? rows[row].head_only : rows[row].whole;
        struct oddity odd = {.head = rows[row].head,
                             .body_bytes = rows[row].body_bytes};
        struct http_call what = {.method = "GET",
                                 .url = f->url,
                                 .reply_max = 64 << 10,
                                 .head_suffices = head_only};
        int r;

        odd_begin(f, &odd);
        r = call(f, &what, &reply);
        odd_end(&odd);
        if (r != wanted)
            fail_msg("%zu: %d (%s) and not %d", i, r, f->err.text, wanted);
        if (r < 0)
            continue;
        assert_int_equal(f->err.code, 0);
        assert_int_equal(reply.status, rows[row].status);
        assert_int_equal(reply.cut, rows[row].whole != 0);
        assert_string_equal(http_reply_field(&reply, "Retry-After"), "7");
    }
}

/* The status is known, the rest does not come. */
static void
test_an_answer_whose_body_does_not_come_in_time_has_its_head(void **state)
{
    struct fixture *f = *state;
    scoped(http_reply_release) struct http_reply reply = {0};
    struct http_call what = {.method = "GET",
                             .url = url(f, "/stream"),
                             .timeout_ms = 100,
                             .head_suffices = true};

    assert_int_equal(call(f, &what, &reply), 0);
    assert_int_equal(reply.status, 200);
    assert_true(reply.cut);
    http_stream_end(rig_take_held(&f->rig));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RIG(test_get_and_post_bring_status_headers_and_body),
        WITH_RIG(test_other_methods_with_and_without_body),
        WITH_RIG(test_an_error_status_is_an_answer),
        WITH_RIG(test_a_unix_socket_is_spoken_through),
        WITH_RIG(test_a_download_goes_to_a_file_with_progress),
        WITH_RIG(test_progress_can_end_a_call),
        WITH_RIG(test_a_sink_that_fails_ends_the_call_with_its_own_error),
        WITH_RIG(test_an_answer_over_the_ceiling_is_an_error),
        WITH_RIG(test_no_server_is_told_with_address_and_remedy),
        WITH_RIG(test_an_answer_that_does_not_come_is_a_timeout),
        WITH_RIG(test_a_server_that_breaks_off_is_told),
        WITH_RIG(test_only_http_addresses_are_called),
        WITH_RIG(test_a_header_with_a_line_end_is_not_sent),
        WITH_RIG(
            test_an_answer_that_is_no_http_is_blamed_on_the_server_not_on_the_address),
        WITH_RIG(test_who_needs_no_body_gets_the_head_of_an_answer_whose_body_fails),
        WITH_RIG(test_an_answer_whose_body_does_not_come_in_time_has_its_head),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
