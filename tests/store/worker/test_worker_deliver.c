/* Telling webhooks, round by round: what a row of the store, another worker or another
 * webhook's trouble does to the rest. Nobody listens at the address, but where a test
 * has a receiver. */
#include "tests/store/worker/desk.h"

#include "queue/delivery.h"
#include "base/log.h"
#include "worker/deliver_private.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define NOWHERE "http://127.0.0.1:1/"

struct bench {
    struct harness *h;
    struct config_webhook hooks[2];
    struct config config;
    struct clock_settable clock;
    struct log log;
    char said[4000];
    struct deliver *deliver;
};

static void
bench_open(struct bench *bench, struct harness *h)
{
    struct err err = {0};

    *bench = (struct bench){.h = h};
    for (size_t i = 0; i < array_len(bench->hooks); i++)
        bench->hooks[i] = (struct config_webhook){
            .url = NOWHERE, .key = "PAWL_TEST_HOOK_KEY", .timeout_us = US_PER_S};
    bench->hooks[0].name = "first";
    bench->hooks[1].name = "shop";
    bench->config = (struct config){.webhooks = bench->hooks,
                                    .webhook_count = array_len(bench->hooks)};
    clock_settable_init(&bench->clock, HARNESS_NOW);
    clock_advance(&bench->clock, US_PER_DAY);
    log_init(&bench->log, memfd_create("log", MFD_CLOEXEC), LOG_INFO, LOG_TEXT,
             &bench->clock.clock);
    setenv("PAWL_TEST_HOOK_KEY", "secret", 1);
    assert_ok(deliver_new(&(struct deliver_options){.config = &bench->config,
                                                    .store = h->store,
                                                    .clock = &bench->clock.clock,
                                                    .log = &bench->log},
                          &bench->deliver, &err),
              &err);
    assert_non_null(bench->deliver);
}

static void
bench_close(struct bench *bench)
{
    deliver_free(bench->deliver);
    close(bench->log.fd);
}

static int64_t
now_us(const struct bench *bench)
{
    return clock_mono_us(&bench->clock.clock);
}

static int
turn(struct bench *bench, int64_t *ret_next_us)
{
    struct err err = {0};
    int r = deliver_round(bench->deliver, 0, ret_next_us, &err);

    assert_ok(r, &err);
    return r;
}

/* How many lines of the log hold this. */
static int
lines_with(struct bench *bench, const char *text)
{
    ssize_t n = pread(bench->log.fd, bench->said, sizeof(bench->said) - 1, 0);
    int count = 0;

    assert_true(n >= 0);
    bench->said[n] = '\0';
    for (const char *at = bench->said; (at = strstr(at, text)); at++)
        count++;
    return count;
}

static void
add_delivery(struct harness *h, int64_t id, const char *webhook)
{
    harness_sql(h,
                "INSERT INTO pawl.delivery (request_id, webhook, created_at, due_at)"
                " VALUES (%lld, '%s', %lld, %lld)",
                (long long)id, webhook, (long long)HARNESS_NOW, (long long)HARNESS_NOW);
}

static int64_t
ended(struct harness *h)
{
    int64_t id = submit_one(h, "task");
    struct claim claim = claim_one(h, "w1");

    finish_ok(h, id, &claim, OUTCOME_COMPLETED);
    return id;
}

static int64_t
attempts_of(struct harness *h, int64_t id, const char *webhook)
{
    return harness_i64(h,
                       "SELECT attempts FROM pawl.delivery WHERE request_id = %lld"
                       " AND webhook = '%s'",
                       (long long)id, webhook);
}

static void
test_a_row_of_a_request_that_is_not_over_is_dropped_with_a_note(struct harness *h)
{
    scoped(bench_close) struct bench bench;
    int64_t next_us = 0;
    int64_t open;
    char *act;

    bench_open(&bench, h);
    open = submit_one(h, "task");
    add_delivery(h, open, "shop");
    turn(&bench, &next_us);
    assert_int_equal(rows_in(h, "delivery"), 0);
    assert_int_equal(lines_with(&bench, "not over"), 1);
    act = harness_text(h, "SELECT act || ' ' || subject || ' ' || detail"
                          " FROM pawl.audit WHERE act LIKE 'webhook%%'");
    assert_non_null(act);
    assert_non_null(strstr(act, "webhook-given-up request "));
    assert_non_null(strstr(act, "not over"));
    free(act);
    assert_int_equal(rows_in(h, "request"), 1);
    assert_int_equal(turn(&bench, &next_us), 0);
    assert_int_equal(next_us, 0);
}

/* Only the owner can write such numbers, but those who tell must survive them. */
static void
test_a_row_with_odd_numbers_is_told_as_others_are(struct harness *h)
{
    scoped(bench_close) struct bench bench;
    int64_t next_us = 0;
    int64_t most, least;

    bench_open(&bench, h);
    most = ended(h);
    add_delivery(h, most, "shop");
    harness_sql(h, "UPDATE pawl.delivery SET attempts = 2147483647,"
                   " created_at = 9223372036854775807");
    assert_int_equal(turn(&bench, &next_us), 1);
    assert_in_range(attempts_of(h, most, "shop"), 1000, 2147483647);
    least = ended(h);
    add_delivery(h, least, "first");
    harness_sql(h, "UPDATE pawl.delivery SET attempts = -2147483647 - 1,"
                   " created_at = -9223372036854775807 WHERE webhook = 'first'");
    assert_int_equal(turn(&bench, &next_us), 1);
    assert_int_equal(attempts_of(h, least, "first"), 1);
}

static void
refuse_first(struct harness *h)
{
    if (h->kind == HARNESS_SQLITE)
        harness_sql(h, "CREATE TRIGGER pawl.refuse BEFORE UPDATE ON delivery"
                       " WHEN NEW.webhook = 'first' BEGIN SELECT RAISE(ABORT, 'no');"
                       " END");
    else
        harness_sql(h, "CREATE FUNCTION pawl.refuse() RETURNS trigger LANGUAGE plpgsql"
                       " AS $$BEGIN RAISE 'no'; END$$;"
                       "CREATE TRIGGER refuse BEFORE UPDATE ON pawl.delivery"
                       " FOR EACH ROW WHEN (NEW.webhook = 'first')"
                       " EXECUTE FUNCTION pawl.refuse()");
}

static void
accept_first(struct harness *h)
{
    if (h->kind == HARNESS_SQLITE)
        harness_sql(h, "DROP TRIGGER pawl.refuse");
    else
        harness_sql(h, "DROP FUNCTION pawl.refuse CASCADE");
}

static void
test_one_webhook_that_fails_keeps_no_other_waiting(struct harness *h)
{
    scoped(bench_close) struct bench bench;
    int64_t next_us = 0;
    int64_t id;

    bench_open(&bench, h);
    id = ended(h);
    add_delivery(h, id, "first");
    add_delivery(h, id, "shop");
    refuse_first(h);
    assert_int_equal(turn(&bench, &next_us), 1);
    assert_int_equal(attempts_of(h, id, "first"), 0);
    assert_int_equal(attempts_of(h, id, "shop"), 1);
    assert_in_range(next_us, now_us(&bench), now_us(&bench) + 5 * US_PER_S);
    assert_int_equal(turn(&bench, &next_us), 0); /* not again at once */
    clock_advance(&bench.clock, 5 * US_PER_S);
    turn(&bench, &next_us);
    assert_int_equal(lines_with(&bench, "webhook=first"), 1); /* said once */
    accept_first(h);
    clock_advance(&bench.clock, 5 * US_PER_S);
    turn(&bench, &next_us);
    assert_int_equal(attempts_of(h, id, "first"), 1);
}

/* The other one's time is not known yet: its transaction is under way. */
static void
test_where_another_was_faster_it_is_looked_again_soon(struct harness *h)
{
    scoped(bench_close) struct bench bench;
    int64_t next_us = 0;
    int64_t id;

    bench_open(&bench, h);
    id = ended(h);
    add_delivery(h, id, "shop");
    harness_sql(h, "BEGIN; UPDATE pawl.delivery SET attempts = attempts + 1,"
                   " due_at = due_at + 31000000");
    assert_int_equal(turn(&bench, &next_us), 0);
    assert_in_range(next_us, now_us(&bench), now_us(&bench) + US_PER_S);
    harness_sql(h, "COMMIT");
    assert_int_equal(turn(&bench, &next_us), 0);
    assert_int_equal(next_us, now_us(&bench) + 31 * US_PER_S);
}

/* --- one that is slow to answer --- */

#define SLOW_US  (2 * US_PER_S)
#define QUICK_US (10 * US_PER_MS)

/* Answers 200 to each, at once by the machine's clock: by the bench's /s takes SLOW_US
 * and /q QUICK_US. */
struct receiver {
    struct bench *bench;
    pthread_t thread;
    int fd;
    char urls[2][64];
    char heard[200]; /* the first letters of the paths, in order */
    size_t count;
};

static void
answer(struct receiver *receiver, int fd)
{
    static const char reply[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"
                                "Connection: close\r\n\r\n";
    const char *end = NULL;
    const char *length;
    char call[8000];
    size_t len = 0;
    size_t whole = 0;

    while (!end || len < whole) {
        ssize_t n = read(fd, call + len, sizeof(call) - 1 - len);

        assert_true(n > 0);
        len += (size_t)n;
        call[len] = '\0';
        end = strstr(call, "\r\n\r\n");
        length = strstr(call, "Content-Length: ");
        if (end && length)
            whole = (size_t)(end + 4 - call) + strtoul(length + 16, NULL, 10);
    }
    assert_true(receiver->count < sizeof(receiver->heard) - 1);
    receiver->heard[receiver->count++] = call[strlen("POST /")];
    clock_advance(&receiver->bench->clock,
                  call[strlen("POST /")] == 's' ? SLOW_US : QUICK_US);
    assert_int_equal(write(fd, reply, strlen(reply)), strlen(reply));
}

static void *
receive(void *arg)
{
    struct receiver *receiver = (struct receiver *)arg;
    int fd;

    while ((fd = accept4(receiver->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        answer(receiver, fd);
        close(fd);
    }
    return NULL;
}

/* The first webhook is the slow one. */
static void
receiver_open(struct receiver *receiver, struct bench *bench)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);

    *receiver = (struct receiver){.bench = bench,
                                  .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    assert_return_code(bind(receiver->fd, (struct sockaddr *)&at, len), 0);
    assert_return_code(listen(receiver->fd, 10), 0);
    assert_return_code(getsockname(receiver->fd, (struct sockaddr *)&at, &len), 0);
    for (size_t i = 0; i < array_len(receiver->urls); i++) {
        snprintf(receiver->urls[i], sizeof(receiver->urls[i]), "http://127.0.0.1:%d/%c",
                 ntohs(at.sin_port), "sq"[i]);
        bench->hooks[i].url = receiver->urls[i];
    }
    assert_int_equal(pthread_create(&receiver->thread, NULL, receive, receiver), 0);
}

static void
receiver_close(struct receiver *receiver)
{
    shutdown(receiver->fd, SHUT_RDWR);
    pthread_join(receiver->thread, NULL);
    close(receiver->fd);
}

static void
test_a_slow_receiver_does_not_starve_a_quick_one(struct harness *h)
{
    struct receiver receiver;
    struct bench bench;
    int64_t next_us = 0;

    bench_open(&bench, h);
    receiver_open(&receiver, &bench);
    for (int i = 0; i < 10; i++) {
        int64_t id = ended(h);

        if (i < 6)
            add_delivery(h, id, "first");
        add_delivery(h, id, "shop");
    }
    while (turn(&bench, &next_us) > 0)
        ;
    receiver_close(&receiver);
    bench_close(&bench);
    assert_string_equal(receiver.heard, "sqsqqqqqqqqqssss");
    assert_int_equal(rows_in(h, "delivery"), 0);
}

/* Nor does one with very much to tell keep the slow one waiting for long. */
static void
test_a_turn_ends_after_a_hundred(struct harness *h)
{
    struct receiver receiver;
    struct bench bench;
    int64_t next_us = 0;

    bench_open(&bench, h);
    receiver_open(&receiver, &bench);
    for (int i = 0; i < 2; i++)
        add_delivery(h, ended(h), "first");
    for (int i = 0; i < 120; i++) /* those are gone: they take no time */
        add_delivery(h, 1000000 + i, "shop");
    assert_int_equal(turn(&bench, &next_us), 2);
    assert_int_equal(turn(&bench, &next_us), 101);
    receiver_close(&receiver);
    bench_close(&bench);
    assert_string_equal(receiver.heard, "ss");
}

/* --- the end of a drain --- */

static void
test_A19_only_what_ended_during_the_drain_is_told_at_its_end(struct harness *h)
{
    scoped(bench_close) struct bench bench;
    int64_t next_us = 0;
    struct err err = {0};
    int64_t old, id, since_us;

    bench_open(&bench, h);
    old = ended(h);
    add_delivery(h, old, "shop");
    harness_clock_advance(h, US_PER_MINUTE);
    clock_advance(&bench.clock, US_PER_MINUTE);
    since_us = now_us(&bench);
    assert_int_equal(deliver_round(bench.deliver, since_us, &next_us, &err), 0);
    id = ended(h);
    add_delivery(h, id, "shop");
    harness_sql(h,
                "UPDATE pawl.delivery SET created_at = %lld, due_at = %lld"
                " WHERE request_id = %lld",
                (long long)(HARNESS_NOW + US_PER_MINUTE),
                (long long)(HARNESS_NOW + US_PER_MINUTE), (long long)id);
    harness_clock_advance(h, US_PER_S);
    clock_advance(&bench.clock, US_PER_S);
    assert_int_equal(deliver_round(bench.deliver, since_us, &next_us, &err), 1);
    assert_int_equal(attempts_of(h, old, "shop"), 0);
    assert_int_equal(attempts_of(h, id, "shop"), 1);
    clock_advance(&bench.clock, US_PER_MINUTE); /* nobody listened: a pause */
    harness_clock_advance(h, US_PER_MINUTE);
    assert_int_equal(deliver_round(bench.deliver, since_us, &next_us, &err), 0);
    assert_int_equal(turn(&bench, &next_us), 1);
    assert_int_equal(attempts_of(h, old, "shop"), 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_a_row_of_a_request_that_is_not_over_is_dropped_with_a_note),
        store_test(test_a_row_with_odd_numbers_is_told_as_others_are),
        store_test(test_one_webhook_that_fails_keeps_no_other_waiting),
        store_test(test_a_slow_receiver_does_not_starve_a_quick_one),
        store_test(test_a_turn_ends_after_a_hundred),
        store_test(test_A19_only_what_ended_during_the_drain_is_told_at_its_end),
        store_test_pg(test_where_another_was_faster_it_is_looked_again_soon),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
