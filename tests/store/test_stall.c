/*
 * A process that stands still inside a transaction of the store (SIGSTOP, a machine
 * that is put to sleep) keeps its locks only for a moment: nobody waits until it wakes.
 */
#include "tests/store/harness.h"

#include "base/clock.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#define BOUND_MS 700

static const struct db_sql insert = {
    .name = "insert",
    .text = "INSERT INTO pawl.active (key, request_id) VALUES ($1, $2)",
    .n_params = 2};
static const struct db_sql count = {.name = "count",
                                    .text = "SELECT count(*) FROM pawl.active"};

/* Somebody whose thread stops in the middle of its work until it is let go. */
struct staller {
    struct harness *h;
    bool more; /* another statement follows; else the commit */
    int stops; /* still to come */
    int runs;
    int r;
    struct err err;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool stands, woken;
};

static void
stand_still(struct staller *staller)
{
    pthread_mutex_lock(&staller->lock);
    staller->stands = true;
    pthread_cond_broadcast(&staller->moved);
    while (!staller->woken)
        pthread_cond_wait(&staller->moved, &staller->lock);
    pthread_mutex_unlock(&staller->lock);
}

static int
write_fn(struct db *db, void *arg, struct err *err)
{
    struct staller *staller = (struct staller *)arg;
    int r;

    staller->runs++;
    r = db_run(db, &insert, err, p_text("mine"), p_i64(1));
    if (r == 0)
        r = db_run(db, &insert, err, p_text("wanted"), p_i64(1));
    if (r < 0)
        return r;
    if (staller->stops-- > 0)
        stand_still(staller);
    return staller->more ? db_run(db, &insert, err, p_text("more"), p_i64(1)) : 0;
}

static int
read_fn(struct db *db, void *arg, struct err *err)
{
    struct staller *staller = (struct staller *)arg;
    scoped(db_tx_end) struct db_tx tx = {0};
    int64_t rows;
    int r = db_begin(db, DB_READ, &tx, err);

    staller->runs++;
    if (r == 0)
        r = db_query_i64(db, &count, NULL, 0, &rows, err);
    if (r >= 0)
        stand_still(staller);
    return r < 0 ? r : db_query_i64(db, &count, NULL, 0, &rows, err);
}

static void *
write_main(void *arg)
{
    struct staller *staller = (struct staller *)arg;

    staller->r =
        store_write(staller->h->store, STORE_NORMAL, write_fn, staller, &staller->err);
    return NULL;
}

static void *
read_main(void *arg)
{
    struct staller *staller = (struct staller *)arg;

    staller->r = store_read(staller->h->store, read_fn, staller, &staller->err);
    return NULL;
}

/* Returns when it stands still. */
static void
start(struct staller *staller, struct harness *h, void *(*body)(void *))
{
    h->options.idle_tx_ms = BOUND_MS;
    harness_reopen(h);
    staller->h = h;
    pthread_mutex_init(&staller->lock, NULL);
    pthread_cond_init(&staller->moved, NULL);
    assert_int_equal(pthread_create(&staller->thread, NULL, body, staller), 0);
    pthread_mutex_lock(&staller->lock);
    while (!staller->stands)
        pthread_cond_wait(&staller->moved, &staller->lock);
    pthread_mutex_unlock(&staller->lock);
}

static void
wake(struct staller *staller)
{
    pthread_mutex_lock(&staller->lock);
    staller->woken = true;
    pthread_cond_broadcast(&staller->moved);
    pthread_mutex_unlock(&staller->lock);
    pthread_join(staller->thread, NULL);
    pthread_cond_destroy(&staller->moved);
    pthread_mutex_destroy(&staller->lock);
}

/* As somebody else; waits for the key as long as the staller has it. */
static void
take_wanted(struct harness *h)
{
    int64_t began_us = clock_mono_us(clock_real());
    int64_t took_us;

    harness_sql(h, "SET lock_timeout = '20s';"
                   "INSERT INTO pawl.active (key, request_id) VALUES ('wanted', 2)");
    took_us = clock_mono_us(clock_real()) - began_us;
    assert_true(took_us > BOUND_MS * US_PER_MS / 2);
    assert_true(took_us < BOUND_MS * US_PER_MS + 5 * US_PER_S);
}

static int64_t
rows_of(struct harness *h, const char *key)
{
    return harness_i64(h, "SELECT count(*) FROM pawl.active WHERE key = '%s'", key);
}

static void
test_A14_who_stands_still_in_a_transaction_keeps_nobody_waiting(struct harness *h)
{
    struct staller staller = {.more = true, .stops = 1};

    start(&staller, h, write_main);
    take_wanted(h);
    wake(&staller);
    /* Once more from the beginning, where it meets who came in between. */
    assert_int_equal(staller.runs, 2);
    assert_int_equal(staller.r, -ERR_DB_CONSTRAINT);
    assert_int_equal(rows_of(h, "mine"), 0);
    assert_int_equal(rows_of(h, "more"), 0);
    assert_int_equal(
        harness_i64(h, "SELECT request_id FROM pawl.active WHERE key = 'wanted'"), 2);
}

static void
test_A14_who_stood_still_and_has_no_rival_does_its_work_the_second_time(
    struct harness *h)
{
    struct staller staller = {.more = true, .stops = 1};

    start(&staller, h, write_main);
    take_wanted(h);
    harness_sql(h, "DELETE FROM pawl.active");
    wake(&staller);
    assert_ok(staller.r, &staller.err);
    assert_int_equal(staller.runs, 2);
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.active"), 3);
}

/* With the commit on its way nothing is run again, whatever became of it. */
static void
test_A14_who_stood_still_before_the_commit_has_done_nothing(struct harness *h)
{
    struct staller staller = {.stops = 1};

    start(&staller, h, write_main);
    take_wanted(h);
    wake(&staller);
    assert_int_equal(staller.runs, 1);
    assert_int_equal(staller.r, -ERR_COMMIT_UNKNOWN);
    assert_int_equal(rows_of(h, "mine"), 0);
}

/* fsck looks at files between two statements, for as long as that takes. */
static void
test_a_reading_transaction_may_stand_still(struct harness *h)
{
    struct staller staller = {0};

    start(&staller, h, read_main);
    while (harness_i64(h,
                       "SELECT count(*) FROM pg_stat_activity"
                       " WHERE datname = current_database()"
                       " AND state = 'idle in transaction'"
                       " AND now() - state_change > interval '%d ms'",
                       2 * BOUND_MS) == 0)
        sched_yield();
    wake(&staller);
    assert_ok(staller.r, &staller.err);
    assert_int_equal(staller.runs, 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test_pg(test_A14_who_stands_still_in_a_transaction_keeps_nobody_waiting),
        store_test_pgbouncer(
            test_A14_who_stands_still_in_a_transaction_keeps_nobody_waiting),
        store_test_pg(
            test_A14_who_stood_still_and_has_no_rival_does_its_work_the_second_time),
        store_test_pgbouncer(
            test_A14_who_stood_still_and_has_no_rival_does_its_work_the_second_time),
        store_test_pg(test_A14_who_stood_still_before_the_commit_has_done_nothing),
        store_test_pgbouncer(
            test_A14_who_stood_still_before_the_commit_has_done_nothing),
        store_test_pg(test_a_reading_transaction_may_stand_still),
        store_test_pgbouncer(test_a_reading_transaction_may_stand_still),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
