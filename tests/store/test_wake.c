/* Wake-ups: within a process on every database, between processes on PostgreSQL. */
#include "tests/store/harness.h"

#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Counts what one subscriber was told, by topic. */
struct ear {
    pthread_mutex_t lock;
    pthread_cond_t heard_more;
    int calls;
    int topic[4];
};

#define EAR_INIT                                                                       \
    {                                                                                  \
        .lock = PTHREAD_MUTEX_INITIALIZER, .heard_more = PTHREAD_COND_INITIALIZER      \
    }

static void
ear_fn(void *arg, unsigned mask)
{
    struct ear *ear = (struct ear *)arg;

    pthread_mutex_lock(&ear->lock);
    ear->calls++;
    for (int i = 0; i < 4; i++)
        if (mask & (1u << i))
            ear->topic[i]++;
    pthread_cond_broadcast(&ear->heard_more);
    pthread_mutex_unlock(&ear->lock);
}

/* Wait until a topic was heard so many times; fails after 10 s. */
static void
await(struct ear *ear, int topic, int times)
{
    struct timespec until;
    int error = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 10;
    pthread_mutex_lock(&ear->lock);
    while (ear->topic[topic] < times && error == 0)
        error = pthread_cond_timedwait(&ear->heard_more, &ear->lock, &until);
    pthread_mutex_unlock(&ear->lock);
    assert_int_equal(error, 0);
}

static void
test_a_subscriber_hears_its_topics_at_once(struct harness *h)
{
    struct ear ready = EAR_INIT;
    struct ear both = EAR_INIT;

    store_subscribe(h->store, WAKE_READY, ear_fn, &ready);
    store_subscribe(h->store, WAKE_DONE | WAKE_FLAG, ear_fn, &both);
    store_wake(h->store, WAKE_READY);
    assert_int_equal(ready.topic[0], 1);
    assert_int_equal(both.calls, 0);
    store_wake(h->store, WAKE_READY | WAKE_DONE | WAKE_FLAG);
    assert_int_equal(ready.topic[0], 2);
    assert_int_equal(both.calls, 1);
    assert_int_equal(both.topic[1], 1);
    assert_int_equal(both.topic[2], 1);
    store_close(h->store);
    h->store = NULL;
}

static void
test_who_unsubscribed_hears_nothing(struct harness *h)
{
    struct ear gone = EAR_INIT;
    struct ear here = EAR_INIT;
    int subscription = store_subscribe(h->store, WAKE_ALL, ear_fn, &gone);

    store_subscribe(h->store, WAKE_ALL, ear_fn, &here);
    store_unsubscribe(h->store, subscription);
    store_unsubscribe(h->store, subscription); /* twice is no matter */
    store_wake(h->store, WAKE_ALL);
    assert_int_equal(gone.calls, 0);
    assert_int_equal(here.calls, 1);
    store_close(h->store);
    h->store = NULL;
}

static void
test_SQLite_needs_no_safety_scan_for_others(struct harness *h)
{
    assert_true(store_has_listen(h->store));
}

static struct store *
open_second(struct harness *h)
{
    struct store *store = NULL;
    struct err err = {0};

    assert_ok(store_open(&h->options, &store, &err), &err);
    return store;
}

static void
test_a_wake_up_reaches_the_other_process_once(struct harness *h)
{
    struct store *second = open_second(h);
    struct ear mine = EAR_INIT;
    struct ear theirs = EAR_INIT;

    store_subscribe(h->store, WAKE_ALL, ear_fn, &mine);
    store_subscribe(second, WAKE_ALL, ear_fn, &theirs);
    store_wake(h->store, WAKE_READY);
    await(&theirs, 0, 1);
    /* An answer the other way arrives behind our own echo: that was not heard. */
    store_wake(second, WAKE_DONE);
    await(&mine, 1, 1);
    assert_int_equal(mine.topic[0], 1);
    assert_int_equal(theirs.topic[0], 1);
    assert_int_equal(theirs.topic[1], 1);
    store_close(h->store);
    h->store = NULL;
    store_close(second);
}

/* However often it is told, the wire carries a few. */
static void
test_many_wake_ups_become_few_notifications(struct harness *h)
{
    struct store *second = open_second(h);
    struct ear theirs = EAR_INIT;

    store_subscribe(second, WAKE_READY | WAKE_DEFS, ear_fn, &theirs);
    for (int i = 0; i < 10000; i++)
        store_wake(h->store, WAKE_READY);
    store_wake(h->store, WAKE_DEFS);
    await(&theirs, 3, 1);
    assert_true(theirs.topic[0] >= 1);
    assert_true(theirs.topic[0] < 1000);
    store_close(second);
}

static void
test_what_was_told_just_before_closing_goes_out(struct harness *h)
{
    struct store *second = open_second(h);
    struct ear mine = EAR_INIT;

    store_subscribe(h->store, WAKE_ALL, ear_fn, &mine);
    store_wake(second, WAKE_FLAG);
    store_close(second);
    await(&mine, 2, 1);
    store_close(h->store);
    h->store = NULL;
}

static int
wake_in(struct db *db, void *arg, struct err *err)
{
    struct harness *h = (struct harness *)arg;

    return store_wake_in(h->store, db, WAKE_DEFS, err);
}

static int
wake_in_and_fail(struct db *db, void *arg, struct err *err)
{
    int r = wake_in(db, arg, err);

    return r < 0 ? r : err_set(err, ERR_INVALID, "rolled back");
}

/* So who dies behind the commit has told it all the same. */
static void
test_what_is_told_in_a_transaction_goes_out_with_its_commit(struct harness *h)
{
    struct store *second = open_second(h);
    struct ear theirs = EAR_INIT;
    struct err err = {0};

    store_subscribe(second, WAKE_ALL, ear_fn, &theirs);
    assert_int_equal(store_write(h->store, STORE_NORMAL, wake_in_and_fail, h, &err),
                     -ERR_INVALID);
    err_clear(&err);
    assert_ok(store_write(h->store, STORE_NORMAL, wake_in, h, &err), &err);
    await(&theirs, 3, 1);
    store_wake(h->store, WAKE_READY);
    await(&theirs, 0, 1);
    assert_int_equal(theirs.topic[3], 1);
    store_close(second);
}

static void
test_a_notify_of_an_SQL_user_is_heard(struct harness *h)
{
    struct ear mine = EAR_INIT;

    store_subscribe(h->store, WAKE_ALL, ear_fn, &mine);
    harness_sql(h, "BEGIN; NOTIFY pawl_ready; COMMIT");
    await(&mine, 0, 1);
    assert_int_equal(mine.calls, 1);
    store_close(h->store);
    h->store = NULL;
}

/* Whoever reconnects is woken for all, since pushes may have been missed. */
static void
test_a_lost_listening_connection_comes_back(struct harness *h)
{
    struct ear mine = EAR_INIT;

    assert_true(store_has_listen(h->store));
    store_subscribe(h->store, WAKE_ALL, ear_fn, &mine);
    for (int i = 1; i <= 2; i++) {
        harness_sql(h, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                       " WHERE datname = current_database()"
                       " AND pid <> pg_backend_pid()");
        await(&mine, 3, i);
    }
    assert_true(store_has_listen(h->store));
    harness_sql(h, "NOTIFY pawl_flag");
    await(&mine, 2, 3);
    store_close(h->store);
    h->store = NULL;
}

static void
test_behind_a_pooler_nothing_listens_but_others_are_told(struct harness *h)
{
    struct store_options direct = h->options;
    struct store *second = NULL;
    struct ear theirs = EAR_INIT;
    struct err err = {0};

    assert_false(store_has_listen(h->store));
    direct.listen_url = h->direct_url;
    assert_ok(store_open(&direct, &second, &err), &err);
    assert_true(store_has_listen(second));
    store_subscribe(second, WAKE_ALL, ear_fn, &theirs);
    store_wake(h->store, WAKE_READY);
    await(&theirs, 0, 1);
    store_close(second);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_a_subscriber_hears_its_topics_at_once),
        store_test(test_who_unsubscribed_hears_nothing),
        store_test_sqlite(test_SQLite_needs_no_safety_scan_for_others),
        store_test_pg(test_a_wake_up_reaches_the_other_process_once),
        store_test_pg(test_many_wake_ups_become_few_notifications),
        store_test_pg(test_what_was_told_just_before_closing_goes_out),
        store_test_pgbouncer(test_behind_a_pooler_nothing_listens_but_others_are_told),
        store_test_pg(test_what_is_told_in_a_transaction_goes_out_with_its_commit),
        store_test_pg(test_a_notify_of_an_SQL_user_is_heard),
        store_test_pg(test_a_lost_listening_connection_comes_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
