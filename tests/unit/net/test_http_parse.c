/*
 * The request parser as a function of its bytes: what is refused with which status,
 * what is understood how, and that no cut of the bytes makes a difference. The first
 * 22 refusals are the list of docs/decisions: requests that well-known servers answer.
 */
#include "base/buf.h"
#include "net/http_parse.h"
#include "unit/net/bad_requests.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BODY_MAX 100 /* bad_requests.h counts on it */

#define CHUNKED "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"

static const struct bad_case bad_chunks[] = {
    {"empty size", BYTES(CHUNKED "\r\n"), 400},
    {"blank before size", BYTES(CHUNKED " 5\r\nhello\r\n0\r\n\r\n"), 400},
    {"blank behind size", BYTES(CHUNKED "5 \r\nhello\r\n0\r\n\r\n"), 400},
    {"minus", BYTES(CHUNKED "-1\r\n"), 400},
    {"size of 16 digits", BYTES(CHUNKED "0000000000000005\r\nhello\r\n"), 400},
    {"bare LF behind size", BYTES(CHUNKED "5\nhello\r\n0\r\n\r\n"), 400},
    {"data longer than size", BYTES(CHUNKED "4\r\nhello\r\n0\r\n\r\n"), 400},
    {"bare LF behind data", BYTES(CHUNKED "5\r\nhello\n0\r\n\r\n"), 400},
    {"bare LF in extension", BYTES(CHUNKED "5;a\nb\r\nhello\r\n0\r\n\r\n"), 400},
    {"NUL in extension", BYTES(CHUNKED "5;\0\r\nhello\r\n0\r\n\r\n"), 400},
    {"over the limit at once", BYTES(CHUNKED "65\r\n"), 413},
    {"over the limit in sum", BYTES(CHUNKED "5\r\nhello\r\n60\r\n"), 413},
    {"enormous", BYTES(CHUNKED "fffffffffffffff\r\n"), 413},
    {"trailer", BYTES(CHUNKED "0\r\nA: b\r\n\r\n"), 400},
    {"CR alone at the end", BYTES(CHUNKED "0\r\n\rGET"), 400},
    {"LF alone at the end", BYTES(CHUNKED "0\r\n\n"), 400},
};

struct good_case {
    const char *what;
    struct bytes text;
    const char *result; /* as tell writes it */
};

static const struct good_case good_cases[] = {
    {"plain", BYTES("GET / HTTP/1.1\r\n" HOST "\r\n"), "GET / 1.1 keep [Host=a]  +0"},
    {"empty line first", BYTES("\r\nGET / HTTP/1.1\r\n" HOST "\r\n"),
     "GET / 1.1 keep [Host=a]  +0"},
    {"1.0 without Host", BYTES("GET / HTTP/1.0\r\n\r\n"), "GET / 1.0 close   +0"},
    {"1.0 that would keep", BYTES("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
     "GET / 1.0 close [Connection=keep-alive]  +0"},
    {"query and odd characters",
     BYTES("GET /a%20b/~c;d=1?q=[x]&r={|}'%25 HTTP/1.1\r\n" HOST "\r\n"),
     "GET /a%20b/~c;d=1?q=[x]&r={|}'%25 1.1 keep [Host=a]  +0"},
    {"values are trimmed",
     BYTES("GET / HTTP/1.1\r\nHost:a\r\nX: \t b  c  \r\nEmpty:\r\nBlank:  \r\n\r\n"),
     "GET / 1.1 keep [Host=a][X=b  c][Empty=][Blank=]  +0"},
    {"UTF-8 in a value", BYTES("GET / HTTP/1.1\r\n" HOST "X: \xea\xb0\x80\r\n\r\n"),
     "GET / 1.1 keep [Host=a][X=\xea\xb0\x80]  +0"},
    {"close among others",
     BYTES("GET / HTTP/1.1\r\n" HOST "connection: foo ,CLOSE\r\n\r\n"),
     "GET / 1.1 close [Host=a][connection=foo ,CLOSE]  +0"},
    {"close only as a word",
     BYTES("GET / HTTP/1.1\r\n" HOST "Connection: closed\r\n\r\n"),
     "GET / 1.1 keep [Host=a][Connection=closed]  +0"},
    {"IPv6 host", BYTES("GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n"),
     "GET / 1.1 keep [Host=[::1]:8080]  +0"},
    {"empty host", BYTES("GET / HTTP/1.1\r\nHost:\r\n\r\n"),
     "GET / 1.1 keep [Host=]  +0"},
    {"body by length",
     BYTES("POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello"),
     "POST / 1.1 keep [Host=a][Content-Length=5] hello +0"},
    {"next request stays",
     BYTES("POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhelloGET /"),
     "POST / 1.1 keep [Host=a][Content-Length=5] hello +5"},
    {"length zero", BYTES("POST / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\nG"),
     "POST / 1.1 keep [Host=a][Content-Length=0]  +1"},
    {"chunks", BYTES(CHUNKED "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"),
     "POST / 1.1 keep [Host=a][Transfer-Encoding=chunked] hello world +0"},
    {"chunks with all extras",
     BYTES(CHUNKED "00a;x=\"y\";z\r\n0123456789\r\n0;end\r\n\r\nGET"),
     "POST / 1.1 keep [Host=a][Transfer-Encoding=chunked] 0123456789 +3"},
    {"only the last chunk", BYTES(CHUNKED "0\r\n\r\n"),
     "POST / 1.1 keep [Host=a][Transfer-Encoding=chunked]  +0"},
    {"coding in capitals",
     BYTES("POST / HTTP/1.1\r\n" HOST "TRANSFER-ENCODING: Chunked\r\n\r\n0\r\n\r\n"),
     "POST / 1.1 keep [Host=a][TRANSFER-ENCODING=Chunked]  +0"},
    {"Expect",
     BYTES("POST / HTTP/1.1\r\n" HOST
           "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\nx"),
     "POST / 1.1 keep expect [Host=a][Expect=100-Continue][Content-Length=1] x +0"},
};

/* The whole outcome as text, so that two runs can be compared. */
static void
tell(const struct http_parse *p, enum http_parse_outcome outcome, size_t rest,
     struct buf *out)
{
    if (outcome == HTTP_PARSE_MORE) {
        buf_add_str(out, "more");
        return;
    }
    if (outcome == HTTP_PARSE_BAD) {
        buf_addf(out, "%d %s", p->status, p->reason);
        return;
    }
    buf_addf(out, "%s %s 1.%d %s ", http_parse_method(p), http_parse_target(p),
             p->minor, p->keep_alive ? "keep" : "close");
    if (p->expect_continue)
        buf_add_str(out, "expect ");
    for (size_t i = 0; i < p->field_count; i++)
        buf_addf(out, "[%s=%s]", p->head.data + p->names[i].at,
                 p->head.data + p->values[i].at);
    buf_addf(out, " %s +%zu", buf_str(&p->body), rest);
}

/* Feed pieces that end at cut, then of step bytes each; ret gets the outcome. Each
 * piece is a block of its own, so that the sanitizer sees any look beyond it. */
static enum http_parse_outcome
run(struct bytes text, size_t cut, size_t step, struct buf *ret)
{
    enum http_parse_outcome outcome = HTTP_PARSE_MORE;
    struct http_parse parser;
    size_t at = 0;

    http_parse_init(&parser, BODY_MAX);
    while (at < text.len && outcome == HTTP_PARSE_MORE) {
        size_t end = at < cut ? cut : at + step;
        size_t len = (end < text.len ? end : text.len) - at;
        char *piece = malloc(len);
        size_t done = 0;

        memcpy(piece, text.data + at, len);
        do {
            size_t used;

            outcome = http_parse(&parser, piece + done, len - done, &used);
            done += used;
        } while (outcome == HTTP_PARSE_HEAD);
        at += done;
        free(piece);
    }
    tell(&parser, outcome, text.len - at, ret);
    http_parse_release(&parser);
    return outcome;
}

static void
check_bad(const struct bad_case *c)
{
    for (size_t step = 1; step <= c->text.len; step += step == 1 ? c->text.len : 1) {
        scoped(buf_release) struct buf got = {0};
        scoped(buf_release) struct buf want = {0};
        enum http_parse_outcome outcome = run(c->text, 0, step, &got);

        buf_addf(&want, "%d ", c->status);
        if (outcome != HTTP_PARSE_BAD ||
            strncmp(buf_str(&got), buf_str(&want), want.len) != 0)
            fail_msg("%s, step %zu: %s instead of %d", c->what, step, buf_str(&got),
                     c->status);
    }
}

static void
test_each_malformed_request_is_refused_with_its_status(void **state)
{
    for (size_t i = 0; i < array_len(bad_cases); i++)
        check_bad(&bad_cases[i]);
}

static void
test_each_malformed_chunk_is_refused_with_its_status(void **state)
{
    for (size_t i = 0; i < array_len(bad_chunks); i++)
        check_bad(&bad_chunks[i]);
}

static void
test_good_requests_are_understood_and_the_rest_is_left(void **state)
{
    for (size_t i = 0; i < array_len(good_cases); i++) {
        scoped(buf_release) struct buf got = {0};

        run(good_cases[i].text, 0, good_cases[i].text.len, &got);
        if (strcmp(buf_str(&got), good_cases[i].result) != 0)
            fail_msg("%s: %s", good_cases[i].what, buf_str(&got));
    }
}

static void
same_in_all_cuts(const char *what, struct bytes text)
{
    scoped(buf_release) struct buf whole = {0};

    run(text, 0, text.len, &whole);
    for (size_t cut = 0; cut < text.len; cut++) {
        scoped(buf_release) struct buf two = {0};

        run(text, cut, text.len, &two);
        if (strcmp(buf_str(&two), buf_str(&whole)) != 0)
            fail_msg("%s, cut at %zu: %s, whole: %s", what, cut, buf_str(&two),
                     buf_str(&whole));
    }
    for (size_t step = 1; step <= 3; step++) {
        scoped(buf_release) struct buf bytes = {0};

        run(text, 0, step, &bytes);
        if (strcmp(buf_str(&bytes), buf_str(&whole)) != 0)
            fail_msg("%s, in pieces of %zu: %s", what, step, buf_str(&bytes));
    }
}

static void
test_no_cut_of_the_bytes_makes_a_difference(void **state)
{
    for (size_t i = 0; i < array_len(good_cases); i++)
        same_in_all_cuts(good_cases[i].what, good_cases[i].text);
    for (size_t i = 0; i < array_len(bad_cases); i++)
        same_in_all_cuts(bad_cases[i].what, bad_cases[i].text);
    for (size_t i = 0; i < array_len(bad_chunks); i++)
        same_in_all_cuts(bad_chunks[i].what, bad_chunks[i].text);
}

/* A prefix of a good request is never refused and never taken for a whole one. */
static void
test_an_unfinished_request_asks_for_more(void **state)
{
    for (size_t i = 0; i < array_len(good_cases); i++) {
        scoped(buf_release) struct buf whole = {0};
        struct bytes text = good_cases[i].text;
        const char *plus;

        run(text, 0, text.len, &whole);
        plus = strrchr(buf_str(&whole), '+');
        text.len -= (size_t)strtol(plus + 1, NULL, 10);
        while (--text.len > 0) {
            scoped(buf_release) struct buf part = {0};

            run(text, 0, text.len, &part);
            if (strcmp(buf_str(&part), "more") != 0)
                fail_msg("%s, first %zu bytes: %s", good_cases[i].what, text.len,
                         buf_str(&part));
        }
    }
}

static int
status_of(const struct buf *text)
{
    scoped(buf_release) struct buf got = {0};
    struct bytes bytes = {text->data, text->len};

    if (run(bytes, 0, text->len, &got) != HTTP_PARSE_BAD)
        return 0;
    return (int)strtol(buf_str(&got), NULL, 10);
}

static void
fill(struct buf *buf, char c, size_t count)
{
    while (count-- > 0)
        buf_add_char(buf, c);
}

static int
status_of_target(size_t len)
{
    scoped(buf_release) struct buf text = {0};

    buf_add_str(&text, "GET /");
    fill(&text, 'a', len - 1);
    buf_add_str(&text, " HTTP/1.1\r\n" HOST "\r\n");
    return status_of(&text);
}

static void
test_a_target_may_have_8_KiB_and_no_more(void **state)
{
    assert_int_equal(status_of_target(HTTP_TARGET_MAX), 0);
    assert_int_equal(status_of_target(HTTP_TARGET_MAX + 1), 414);
    assert_int_equal(status_of_target(9 << 10), 414);
}

static int
status_of_header_bytes(size_t total)
{
    scoped(buf_release) struct buf text = {0};

    buf_add_str(&text, "GET / HTTP/1.1\r\n" HOST "X: ");
    fill(&text, 'a', total - strlen(HOST "X: \r\n\r\n"));
    buf_add_str(&text, "\r\n\r\n");
    return status_of(&text);
}

static void
test_headers_may_have_16_KiB_and_no_more(void **state)
{
    assert_int_equal(status_of_header_bytes(HTTP_HEADERS_MAX), 0);
    assert_int_equal(status_of_header_bytes(HTTP_HEADERS_MAX + 1), 431);
    assert_int_equal(status_of_header_bytes(40 << 10), 431);
}

static int
status_of_fields(size_t count)
{
    scoped(buf_release) struct buf text = {0};

    buf_add_str(&text, "GET / HTTP/1.1\r\n" HOST);
    while (--count > 0)
        buf_add_str(&text, "X: y\r\n");
    buf_add_str(&text, "\r\n");
    return status_of(&text);
}

static void
test_a_hundred_headers_are_taken_and_no_more(void **state)
{
    assert_int_equal(status_of_fields(HTTP_FIELDS_MAX), 0);
    assert_int_equal(status_of_fields(HTTP_FIELDS_MAX + 1), 431);
}

static void
test_chunk_extensions_have_a_ceiling_in_sum(void **state)
{
    scoped(buf_release) struct buf text = {0};

    buf_add_str(&text, CHUNKED);
    for (int i = 0; i < 20; i++) {
        buf_add_str(&text, "1;");
        fill(&text, 'e', 100);
        buf_add_str(&text, "\r\nx\r\n");
    }
    assert_int_equal(status_of(&text), 400);
}

/* The limit may be set between head and body, and holds before any byte is read. */
static void
test_body_limit_is_the_one_set_after_the_head(void **state)
{
    static const char text[] = "POST / HTTP/1.1\r\n" HOST "Content-Length: 50\r\n\r\n";
    struct http_parse parser;
    size_t used;

    http_parse_init(&parser, 1000);
    assert_int_equal(http_parse(&parser, text, sizeof(text) - 1, &used),
                     HTTP_PARSE_HEAD);
    assert_int_equal(used, sizeof(text) - 1);
    parser.body_max = 49;
    assert_int_equal(http_parse(&parser, "", 0, &used), HTTP_PARSE_BAD);
    assert_int_equal(parser.status, 413);
    http_parse_release(&parser);
}

static void
test_a_body_may_be_exactly_as_long_as_the_limit(void **state)
{
    scoped(buf_release) struct buf by_length = {0};
    scoped(buf_release) struct buf by_chunk = {0};

    buf_add_str(&by_length, "POST / HTTP/1.1\r\n" HOST "Content-Length: 100\r\n\r\n");
    fill(&by_length, 'x', BODY_MAX);
    assert_int_equal(status_of(&by_length), 0);
    buf_add_str(&by_chunk, CHUNKED "64\r\n");
    fill(&by_chunk, 'x', BODY_MAX);
    buf_add_str(&by_chunk, "\r\n0\r\n\r\n");
    assert_int_equal(status_of(&by_chunk), 0);
}

/* Every byte value at every place of a request: no crash, and what is accepted has
 * the same meaning in one piece and byte by byte. */
static void
test_any_changed_byte_is_read_alike_in_one_piece_and_byte_by_byte(void **state)
{
    char text[] = CHUNKED "5;a\r\nhello\r\n0\r\n\r\n";
    struct bytes bytes = {text, sizeof(text) - 1};

    for (size_t at = 0; at < bytes.len; at++) {
        char kept = text[at];

        for (int c = 0; c < 256; c++) {
            scoped(buf_release) struct buf whole = {0};
            scoped(buf_release) struct buf single = {0};

            text[at] = (char)c;
            run(bytes, 0, bytes.len, &whole);
            run(bytes, 0, 1, &single);
            assert_string_equal(buf_str(&whole), buf_str(&single));
        }
        text[at] = kept;
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_malformed_request_is_refused_with_its_status),
        cmocka_unit_test(test_each_malformed_chunk_is_refused_with_its_status),
        cmocka_unit_test(test_good_requests_are_understood_and_the_rest_is_left),
        cmocka_unit_test(test_no_cut_of_the_bytes_makes_a_difference),
        cmocka_unit_test(test_an_unfinished_request_asks_for_more),
        cmocka_unit_test(test_a_target_may_have_8_KiB_and_no_more),
        cmocka_unit_test(test_headers_may_have_16_KiB_and_no_more),
        cmocka_unit_test(test_a_hundred_headers_are_taken_and_no_more),
        cmocka_unit_test(test_chunk_extensions_have_a_ceiling_in_sum),
        cmocka_unit_test(test_body_limit_is_the_one_set_after_the_head),
        cmocka_unit_test(test_a_body_may_be_exactly_as_long_as_the_limit),
        cmocka_unit_test(
            test_any_changed_byte_is_read_alike_in_one_piece_and_byte_by_byte),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
