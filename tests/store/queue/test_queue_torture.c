/*
 * Failure torture: the n-th call to the database fails, for every n, once or for good,
 * or with the commit done and its answer lost. Whatever the caller is told, the rows
 * must be whole, and where he is told "done" it must stand.
 */
#include "tests/store/queue/common.h"

#include "db_faulty.h"
#include "queue/lost.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define TOLD                                                                           \
    "{\"on\":[\"COMPLETED\",\"CANCELLED\",\"EXPIRED\",\"WORKER_LOST\"],\"to\":"        \
    "\"shop\"}"
#define LISTEN_MARK "?application_name=listen"

static const char empty_all[] =
    "BEGIN; DELETE FROM pawl.later; DELETE FROM pawl.ready; DELETE FROM pawl.claim;"
    "DELETE FROM pawl.flag; DELETE FROM pawl.progress; DELETE FROM pawl.active;"
    "DELETE FROM pawl.outcome; DELETE FROM pawl.idempotency; DELETE FROM pawl.request;"
    "DELETE FROM pawl.audit; DELETE FROM pawl.delivery; COMMIT";

/* Wraps every connection. The one to fail is the one that writes: not a reader of
 * SQLite, and not the listening one, which has a URL of its own. */
static struct {
    pthread_mutex_t lock;
    int fail_at; /* for connections opened now */
    enum faulty_how how;
    struct db *newest;
} faults = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int
open_faulty(const struct db_options *options, struct db **ret_db, struct err *err)
{
    struct db *real = NULL;
    int r = db_open(options, &real, err);

    if (r < 0)
        return r;
    pthread_mutex_lock(&faults.lock);
    *ret_db = db_faulty_new(real, 0, FAULTY_ONCE);
    if (!options->read_only && !strstr(options->url, LISTEN_MARK))
        faults.newest = *ret_db;
    pthread_mutex_unlock(&faults.lock);
    return 0;
}

static int64_t
id_of(struct harness *h)
{
    return harness_i64(h, "SELECT max(id) FROM pawl.request");
}

/* An operation under test: prepare (unharmed), then act (harmed). act returns what the
 * function said; done asserts what must hold when that was >= 0. */
struct operation {
    const char *name;
    void (*prepare)(struct harness *h);
    int (*act)(struct harness *h, struct err *err);
    void (*done)(struct harness *h, int r);
};

static struct claim held;

static void
nothing(struct harness *h)
{
    (void)h;
}

static void
a_refuse_job_queued(struct harness *h)
{
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_REFUSE);
    struct submit_order order = order_of(&job);

    submit_order(h, &order);
}

static void
a_span_claimed(struct harness *h)
{
    struct queue_flags flags;
    struct claim claims[5];
    struct err err = {0};
    size_t count;

    submit_span(h, "task", 5);
    assert_int_equal(claim_some(h, "w1", 5, claims, &count), 5);
    held = claims[0];
    assert_ok(queue_progress(h->store, held.first_id + 2, held.token, 1, 2, NULL,
                             &flags, &err),
              &err);
    assert_ok(queue_cancel(h->store, held.first_id + 2, "op", &err), &err);
}

static void
a_span_waiting(struct harness *h)
{
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_ALLOW);
    struct submit_order order = order_of(&job);

    order.not_before_us = HARNESS_NOW + 1;
    submit_order(h, &order);
    order.not_before_us = 0;
    order.expires_at_us = HARNESS_NOW + 1;
    submit_order(h, &order);
    harness_clock_advance(h, US_PER_S);
}

static int
act_submit(struct harness *h, struct err *err)
{
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_REFUSE);
    struct submit_order order = order_of(&job);
    struct submit_answer answer;

    order.idempotency_key = "k";
    order.body_digest = "d";
    return queue_submit(h->store, &order, &answer, err);
}

static void
done_submit(struct harness *h, int r)
{
    (void)r;
    assert_int_equal(rows_in(h, "request"), 1);
    assert_int_equal(rows_in(h, "active"), 1);
    assert_int_equal(rows_in(h, "idempotency"), 1);
}

static int
act_bulk(struct harness *h, struct err *err)
{
    struct queue_job job = job_of("task", QUEUE_DUPLICATES_ALLOW);
    struct submit_order orders[20];
    struct submit_answer answers[20];

    for (size_t i = 0; i < 20; i++)
        orders[i] = order_of(&job);
    return queue_submit_many(h->store, orders, 20, answers, NULL, err);
}

static void
done_bulk(struct harness *h, int r)
{
    (void)r;
    assert_int_equal(rows_in(h, "request"), 20);
}

static int
act_claim(struct harness *h, struct err *err)
{
    static const char *const jobs[] = {"task"};
    scoped(arena_release) struct arena arena = {0};
    struct claim_want want = {
        .worker = "w1", .lane = "normal", .jobs = jobs, .n_jobs = 1, .max = 3};
    struct claim claims[3];
    size_t count;
    int r = queue_claim(h->store, &want, &arena, claims, &count, err);

    return r < 0 ? r : (int)count;
}

static void
done_claim(struct harness *h, int r)
{
    assert_int_equal(r, rows_in(h, "claim"));
    assert_int_equal(r, 1);
}

static int
act_finish(struct harness *h, struct err *err)
{
    struct finish_order order = finish_of(held.first_id + 2, &held, OUTCOME_COMPLETED);

    return queue_finish(h->store, &order, err);
}

static void
done_finish(struct harness *h, int r)
{
    assert_int_equal(r, QUEUE_FINISHED);
    assert_int_equal(
        harness_i64(h, "SELECT count(*) FROM pawl.outcome WHERE outcome = 'COMPLETED'"),
        1);
    assert_int_equal(rows_in(h, "flag") + rows_in(h, "progress"), 0);
    assert_int_equal(rows_in(h, "claim"), 2);
}

static int
act_cancel(struct harness *h, struct err *err)
{
    return queue_cancel(h->store, id_of(h), "op", err);
}

static void
done_cancel(struct harness *h, int r)
{
    assert_int_equal(r, QUEUE_CANCELLED);
    assert_int_equal(rows_in(h, "outcome"), 1);
    assert_int_equal(rows_in(h, "active"), 0);
    assert_int_equal(rows_in(h, "audit"), 1);
}

static int
act_chores(struct harness *h, struct err *err)
{
    int64_t moved;
    int r = queue_expire(h->store, &moved, err);

    return r < 0 ? r : queue_promote(h->store, &moved, err);
}

static void
done_chores(struct harness *h, int r)
{
    (void)r;
    assert_int_equal(rows_in(h, "later"), 0);
    assert_int_equal(rows_in(h, "ready"), 1);
    assert_int_equal(rows_in(h, "outcome"), 1);
}

static int
act_lose(struct harness *h, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    struct lost_request *lost;
    size_t count;

    return queue_close_lost(h->store, "w1", "gone", NULL, NULL, &arena, &lost, &count,
                            err);
}

static void
done_lose(struct harness *h, int r)
{
    (void)r;
    assert_int_equal(rows_in(h, "outcome"), 5);
    assert_int_equal(rows_in(h, "claim"), 0);
    assert_int_equal(
        harness_i64(h, "SELECT count(*) FROM pawl.outcome WHERE outcome = 'CANCELLED'"),
        1);
}

static const struct operation operations[] = {
    {"submit", nothing, act_submit, done_submit},
    {"bulk", nothing, act_bulk, done_bulk},
    {"claim", a_refuse_job_queued, act_claim, done_claim},
    {"finish", a_span_claimed, act_finish, done_finish},
    {"cancel", a_refuse_job_queued, act_cancel, done_cancel},
    {"expire and promote", a_span_waiting, act_chores, done_chores},
    {"close lost", a_span_claimed, act_lose, done_lose},
};

static void
empty(struct harness *h)
{
    harness_sql(h, "%s", empty_all);
    harness_clock_set(h, HARNESS_NOW);
}

static void
arm(int fail_at, enum faulty_how how)
{
    pthread_mutex_lock(&faults.lock);
    db_faulty_arm(faults.newest, fail_at, how);
    pthread_mutex_unlock(&faults.lock);
}

/* The pool opens its one connection at the first use. */
static void
open_connection(struct harness *h)
{
    scoped(arena_release) struct arena arena = {0};
    struct request request;
    struct err err = {0};

    harness_reopen(h);
    assert_int_equal(queue_get(h->store, 1, &arena, &request, &err), -ERR_NOT_FOUND);
}

/* What ended is told of, once, and nothing else is. */
static void
assert_told(struct harness *h)
{
    int64_t outcomes = harness_i64(h, "SELECT count(*) FROM pawl.outcome o JOIN"
                                      " pawl.request r ON r.id = o.id"
                                      " WHERE r.job = 'task'");

    assert_int_equal(outcomes, rows_in(h, "delivery"));
}

/* One step: the n-th call fails. Returns whether there was an n-th call. */
static bool
strike(struct harness *h, const struct operation *operation, int n, enum faulty_how how)
{
    int hits = db_faulty_hits();
    struct err err = {0};
    bool hit;
    int r;

    empty(h);
    open_connection(h);
    operation->prepare(h);
    arm(n, how);
    r = operation->act(h, &err);
    hit = db_faulty_hits() > hits;
    assert_consistent(h);
    assert_told(h);
    if (!hit)
        assert_ok(r, &err);
    if (r >= 0) {
        operation->done(h, r);
    } else if (r != -ERR_COMMIT_UNKNOWN) {
        /* A refusal means that nothing happened: asking again does it. */
        err_clear(&err);
        harness_reopen(h);
        r = operation->act(h, &err);
        assert_ok(r, &err);
        operation->done(h, r);
        assert_told(h);
    }
    return hit;
}

/* Every call on SQLite, and in the full suite; else every fifth, from another one on
 * for each operation: opening a store on PostgreSQL anew takes its time. */
static void
sweep(struct harness *h, const struct operation *operation, enum faulty_how how)
{
    bool all = h->kind == HARNESS_SQLITE || getenv("PAWL_FULL");
    int step = all || how == FAULTY_COMMIT_LOST ? 1 : 5;
    int n = step == 1 ? 1 : 1 + (int)(operation - operations) % step;
    int hits = 0;

    while (strike(h, operation, n, how)) {
        hits++;
        n += step;
        if (n > 200)
            fail_msg("%s does not come to an end", operation->name);
    }
    assert_true(hits > 0 && n > 4); /* the faults did meet what is under test */
}

static void
torture(struct harness *h, enum faulty_how how)
{
    char listen_url[320];

    snprintf(listen_url, sizeof(listen_url), "%s%s", h->url, LISTEN_MARK);
    h->options.open = open_faulty;
    h->options.connections = 1;
    if (h->kind != HARNESS_SQLITE)
        h->options.listen_url = listen_url;
    harness_reopen(h);
    define_job(h, &(struct job_text){.name = "task", .webhook = TOLD});
    for (size_t i = 0; i < array_len(operations); i++)
        sweep(h, &operations[i], how);
}

static void
test_any_call_may_fail_once(struct harness *h)
{
    torture(h, FAULTY_ONCE);
}

static void
test_the_database_may_go_away_at_any_call(struct harness *h)
{
    torture(h, FAULTY_FOREVER);
}

static void
test_the_answer_of_a_commit_may_be_lost(struct harness *h)
{
    torture(h, FAULTY_COMMIT_LOST);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test_sqlite(test_any_call_may_fail_once),
        store_test_pg(test_any_call_may_fail_once),
        store_test_sqlite(test_the_database_may_go_away_at_any_call),
        store_test_pg(test_the_database_may_go_away_at_any_call),
        store_test_sqlite(test_the_answer_of_a_commit_may_be_lost),
        store_test_pg(test_the_answer_of_a_commit_may_be_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
