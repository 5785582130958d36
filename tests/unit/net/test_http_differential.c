/*
 * Our parser beside Debian's libhttp-parser, over many mutations of good and bad
 * requests. What that one refuses, ours must not take; and what both take they must
 * cut alike: same target, same body, same end. A fixed seed makes a failure come back;
 * PAWL_FUZZ_ROUNDS makes the walk longer.
 */
#include "base/buf.h"
#include "base/strs.h"
#include "net/http_parse.h"
#include "unit/net/bad_requests.h"

#include <http_parser.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>

#define ROUNDS   200000
#define TEXT_MAX 2000

enum verdict { TAKEN, REFUSED, UNFINISHED };

struct reading {
    enum verdict verdict;
    struct buf target;
    struct buf body;
    size_t used;
    bool odd_name;
};

static void
reading_release(struct reading *reading)
{
    buf_release(&reading->target);
    buf_release(&reading->body);
}

static int
on_url(http_parser *theirs, const char *at, size_t len)
{
    struct reading *reading = theirs->data;

    buf_add(&reading->target, at, len);
    return 0;
}

static int
on_body(http_parser *theirs, const char *at, size_t len)
{
    struct reading *reading = theirs->data;

    buf_add(&reading->body, at, len);
    return 0;
}

static int
on_complete(http_parser *theirs)
{
    struct reading *reading = theirs->data;

    reading->verdict = TAKEN;
    http_parser_pause(theirs, 1);
    return 0;
}

static void
read_theirs(const char *data, size_t len, struct reading *ret)
{
    static const http_parser_settings settings = {
        .on_url = on_url, .on_body = on_body, .on_message_complete = on_complete};
    http_parser theirs;

    *ret = (struct reading){.verdict = UNFINISHED};
    http_parser_init(&theirs, HTTP_REQUEST);
    theirs.data = ret;
    ret->used = http_parser_execute(&theirs, &settings, data, len);
    /* Which methods exist is the routes' business, so that refusal does not count. */
    if (ret->verdict == UNFINISHED && HTTP_PARSER_ERRNO(&theirs) != HPE_OK &&
        HTTP_PARSER_ERRNO(&theirs) != HPE_INVALID_METHOD)
        ret->verdict = REFUSED;
}

/* Theirs takes a longer name that begins so for the name itself, and refuses it. */
static bool
has_odd_name(const struct http_parse *ours)
{
    static const char name[] = "Transfer-Encoding";

    for (size_t i = 0; i < ours->field_count; i++)
        if (ours->names[i].len > sizeof(name) - 1 &&
            strncasecmp(ours->head.data + ours->names[i].at, name, sizeof(name) - 1) ==
                0)
            return true;
    return false;
}

static void
read_ours(const char *data, size_t len, struct reading *ret)
{
    struct http_parse ours;
    enum http_parse_outcome outcome;

    *ret = (struct reading){.verdict = UNFINISHED};
    http_parse_init(&ours, 1 << 20);
    do {
        size_t used;

        outcome = http_parse(&ours, data + ret->used, len - ret->used, &used);
        ret->used += used;
    } while (outcome == HTTP_PARSE_HEAD);
    if (outcome == HTTP_PARSE_BAD)
        ret->verdict = REFUSED;
    if (outcome == HTTP_PARSE_DONE) {
        ret->verdict = TAKEN;
        ret->odd_name = has_odd_name(&ours);
        buf_add_str(&ret->target, http_parse_target(&ours));
        buf_add(&ret->body, ours.body.data, ours.body.len);
    }
    http_parse_release(&ours);
}

static bool
same_bytes(const struct buf *a, const struct buf *b)
{
    return a->len == b->len && memcmp(buf_str(a), buf_str(b), a->len) == 0;
}

static void
show(const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)data[i];

        if (c >= 0x20 && c < 0x7f)
            fputc(c, stderr);
        else
            fprintf(stderr, c == '\n' ? "\\n\n" : "\\x%02x", c);
    }
    fputc('\n', stderr);
}

/* True when ours took it, so that the test can say that it tested something. */
static bool
compare(const char *data, size_t len)
{
    scoped(reading_release) struct reading ours = {0}, theirs = {0};
    const char *wrong = NULL;

    read_ours(data, len, &ours);
    if (ours.verdict != TAKEN || ours.odd_name)
        return false;
    read_theirs(data, len, &theirs);
    if (theirs.verdict == REFUSED)
        wrong = "theirs refuses, ours takes";
    else if (theirs.verdict == TAKEN && ours.used != theirs.used)
        wrong = "they end at different places";
    else if (theirs.verdict == TAKEN && !same_bytes(&ours.body, &theirs.body))
        wrong = "they read different bodies";
    else if (theirs.verdict == TAKEN && !same_bytes(&ours.target, &theirs.target))
        wrong = "they read different targets";
    if (wrong != NULL) {
        show(data, len);
        fail_msg("%s (ours used %zu, theirs %zu)", wrong, ours.used, theirs.used);
    }
    return true;
}

static const struct bytes good[] = {
    BYTES("GET /a?b=c HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n"),
    BYTES("POST /jobs/x/requests HTTP/1.1\r\nHost: a:1\r\nContent-Length: 11\r\n"
          "Content-Type: application/json\r\n\r\n{\"params\":1}GET / HTTP/1.1\r\n"),
    BYTES("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
          "5\r\nhello\r\na;x=y\r\n0123456789\r\n0\r\n\r\n\r\nGET / HTTP/1.1\r\n"),
    BYTES("PUT /%41 HTTP/1.0\r\nContent-Length: 2\r\nConnection: close\r\n\r\nab"),
};

/* What requests are made of, to be put where it does not belong. */
static const struct bytes pieces[] = {
    BYTES("\r\n"),
    BYTES("\n"),
    BYTES("\r"),
    BYTES(" "),
    BYTES("\t"),
    BYTES(":"),
    BYTES(";"),
    BYTES("\0"),
    BYTES("\r\n "),
    BYTES("0"),
    BYTES("+"),
    BYTES("0x"),
    BYTES("Host: b\r\n"),
    BYTES("Content-Length: 5\r\n"),
    BYTES("Content-Length: 0\r\n"),
    BYTES("Transfer-Encoding: chunked\r\n"),
    BYTES("Transfer-Encoding: identity\r\n"),
    BYTES("chunked"),
    BYTES(", "),
    BYTES("0\r\n\r\n"),
    BYTES("HTTP/1.1"),
    BYTES("GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
};

struct walk {
    uint64_t seed;
    char text[TEXT_MAX];
    size_t len;
};

static size_t
below(struct walk *walk, size_t limit)
{
    walk->seed ^= walk->seed << 13;
    walk->seed ^= walk->seed >> 7;
    walk->seed ^= walk->seed << 17;
    return limit == 0 ? 0 : (size_t)(walk->seed % limit);
}

static void
insert(struct walk *walk, size_t at, const char *data, size_t len)
{
    if (walk->len + len > TEXT_MAX)
        return;
    memmove(walk->text + at + len, walk->text + at, walk->len - at);
    memcpy(walk->text + at, data, len);
    walk->len += len;
}

static void
cut_out(struct walk *walk, size_t at, size_t len)
{
    memmove(walk->text + at, walk->text + at + len, walk->len - at - len);
    walk->len -= len;
}

static void
mutate(struct walk *walk)
{
    const struct bytes *piece = &pieces[below(walk, array_len(pieces))];
    size_t at = below(walk, walk->len);
    size_t span = below(walk, walk->len - at < 20 ? walk->len - at : 20);
    char copy[20];

    switch (below(walk, 5)) {
    case 0:
        if (walk->len > 0)
            walk->text[at] = (char)below(walk, 256);
        return;
    case 1:
        cut_out(walk, at, span);
        return;
    case 2:
        memcpy(copy, walk->text + at, span);
        insert(walk, below(walk, walk->len), copy, span);
        return;
    case 3: /* at the beginning of a line, where headers stand */
        while (at > 0 && walk->text[at - 1] != '\n')
            at--;
        insert(walk, at, piece->data, piece->len);
        return;
    default:
        insert(walk, at, piece->data, piece->len);
        return;
    }
}

static void
begin(struct walk *walk)
{
    const struct bytes *text = &good[below(walk, array_len(good))];

    if (below(walk, 4) == 0)
        text = &bad_cases[below(walk, array_len(bad_cases))].text;
    memcpy(walk->text, text->data, text->len);
    walk->len = text->len;
}

static void
test_what_another_parser_refuses_or_cuts_otherwise_is_not_taken(void **state)
{
    const char *wish = getenv("PAWL_FUZZ_ROUNDS");
    struct walk walk = {.seed = 0x9e3779b97f4a7c15};
    int64_t rounds = ROUNDS;
    int64_t taken = 0;

    if (wish != NULL)
        assert_true(str_to_i64(wish, &rounds));
    for (int64_t i = 0; i < rounds; i++) {
        begin(&walk);
        for (size_t changes = below(&walk, 4); changes > 0; changes--)
            mutate(&walk);
        taken += compare(walk.text, walk.len);
    }
    /* A walk that only makes rubbish would prove nothing. */
    print_message("%lld of %lld taken\n", (long long)taken, (long long)rounds);
    assert_true(taken > rounds / 10);
    assert_true(taken < rounds);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_what_another_parser_refuses_or_cuts_otherwise_is_not_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
