/* The pool: never more than its size, never a dead connection, no stampede. */
#include "contract.h"

#include "db_faulty.h"
#include "db/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static struct db_pool *
pool_of(struct fixture *f, int max)
{
    struct db_pool_options options = {.db = {.url = f->testdb.url, .create = true},
                                      .max = max};
    struct db_pool *pool = NULL;

    ok(f, db_pool_new(&options, &pool, &f->err));
    return pool;
}

static void
assert_counts(struct db_pool *pool, int open, int idle)
{
    int n_open = -1, n_idle = -1;

    db_pool_counts(pool, &n_open, &n_idle);
    assert_int_equal(n_open, open);
    assert_int_equal(n_idle, idle);
}

static void
test_a_connection_put_back_is_handed_out_again(struct fixture *f)
{
    struct db_pool *pool = pool_of(f, 2);
    struct db *first = NULL, *second = NULL, *third = NULL;

    ok(f, db_pool_get(pool, 10000, &first, &f->err));
    ok(f, db_pool_get(pool, 10000, &second, &f->err));
    assert_counts(pool, 2, 0);
    fails(f, ERR_STORE_BUSY, db_pool_get(pool, 1, &third, &f->err));
    err_clear(&f->err);
    db_pool_put(pool, first);
    assert_counts(pool, 2, 1);
    ok(f, db_pool_get(pool, 0, &third, &f->err));
    assert_ptr_equal(third, first);
    db_pool_put(pool, third);
    db_pool_put(pool, second);
    db_pool_put(pool, NULL);
    db_pool_drop_idle(pool);
    assert_counts(pool, 0, 0);
    db_pool_free(pool);
}

static void
test_a_transaction_left_open_is_rolled_back_when_put(struct fixture *f)
{
    struct db_pool *pool = pool_of(f, 1);
    struct db *db = NULL;
    struct db_tx tx = {0};

    script(f, "CREATE TABLE t (a bigint)");
    ok(f, db_pool_get(pool, 10000, &db, &f->err));
    ok(f, db_begin(db, DB_WRITE, &tx, &f->err));
    ok(f, db_script(db, "INSERT INTO t VALUES (1)", &f->err));
    db_pool_put(pool, db);
    assert_counts(pool, 1, 1);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 0);
    db_pool_free(pool);
}

/* --- against a server that can be away --- */

struct server {
    const struct testdb *testdb;
    atomic_bool away;
    atomic_int tries;
};

static struct server *the_server; /* open has no argument of its own */

static int
open_at_server(const struct db_options *options, struct db **ret_db, struct err *err)
{
    struct db *real = NULL;
    int r;

    atomic_fetch_add(&the_server->tries, 1);
    if (atomic_load(&the_server->away))
        return err_set(err, ERR_STORE, "the server is away");
    r = db_open(options, &real, err);
    if (r == 0)
        *ret_db = db_faulty_new(real, 0, FAULTY_FOREVER);
    return r;
}

static struct db_pool *
pool_at(struct fixture *f, struct server *server, int max)
{
    struct db_pool_options options = {.db = {.url = f->testdb.url, .create = true},
                                      .max = max,
                                      .open = open_at_server};
    struct db_pool *pool = NULL;

    the_server = server;
    ok(f, db_pool_new(&options, &pool, &f->err));
    return pool;
}

static void
test_a_broken_connection_is_dropped_not_handed_out(struct fixture *f)
{
    struct server server = {0};
    struct db_pool *pool = pool_at(f, &server, 1);
    struct db *db = NULL;
    struct err lost = {0};

    ok(f, db_pool_get(pool, 10000, &db, &f->err));
    db_faulty_arm(db, 1, FAULTY_FOREVER);
    assert_int_equal(db_ping(db, &lost), -ERR_STORE);
    db_pool_put(pool, db);
    assert_counts(pool, 0, 0);
    ok(f, db_pool_get(pool, 10000, &db, &f->err));
    ok(f, db_ping(db, &f->err));
    assert_int_equal(atomic_load(&server.tries), 2);
    db_pool_put(pool, db);
    db_pool_free(pool);
}

static int64_t
now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void *
get_and_put(void *arg)
{
    struct db_pool *pool = arg;
    struct err err = {0};
    struct db *db = NULL;

    if (db_pool_get(pool, 300, &db, &err) == 0)
        db_pool_put(pool, db);
    return NULL;
}

static void
test_a_server_that_is_away_is_not_stormed(struct fixture *f)
{
    struct server server = {.away = true};
    struct db_pool *pool = pool_at(f, &server, 8);
    pthread_t threads[8];
    struct db *db = NULL;
    int64_t began = now_ms();

    fails(f, ERR_STORE, db_pool_get(pool, 0, &db, &f->err));
    assert_non_null(strstr(f->err.text, "away"));
    err_clear(&f->err);
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, get_and_put, pool), 0);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    /* 50 ms is the shortest pause: eight threads share the attempts. */
    assert_true(atomic_load(&server.tries) <= 2 + (now_ms() - began) / 50);
    atomic_store(&server.away, false);
    ok(f, db_pool_get(pool, 10000, &db, &f->err));
    db_pool_put(pool, db);
    db_pool_free(pool);
}

struct waiter {
    struct db_pool *pool;
    atomic_bool waits;
    int r;
    int64_t took_ms;
};

static void *
wait_long(void *arg)
{
    struct waiter *waiter = arg;
    struct db *db = NULL;
    struct err err = {0};
    int64_t began = now_ms();

    atomic_store(&waiter->waits, true);
    waiter->r = db_pool_get(waiter->pool, 60000, &db, &err);
    waiter->took_ms = now_ms() - began;
    return NULL;
}

static void
test_who_is_in_a_hurry_waits_for_no_server(struct fixture *f)
{
    struct server server = {.away = true};
    struct waiter waiter = {.pool = pool_at(f, &server, 2)};
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, wait_long, &waiter), 0);
    while (!atomic_load(&waiter.waits) || !atomic_load(&server.tries))
        continue;
    db_pool_hurry(waiter.pool);
    pthread_join(thread, NULL);
    assert_int_equal(waiter.r, -ERR_STORE);
    assert_true(waiter.took_ms < 10000);
    wait_long(&waiter); /* who comes later as well */
    assert_int_equal(waiter.r, -ERR_STORE);
    assert_true(waiter.took_ms < 10000);
    db_pool_free(waiter.pool);
}

struct crowd {
    struct db_pool *pool;
    atomic_int inside, most, failed;
};

static void *
crowd_member(void *arg)
{
    struct crowd *crowd = arg;

    for (int i = 0; i < 50; i++) {
        struct err err = {0};
        struct db *db = NULL;
        int inside, most;

        if (db_pool_get(crowd->pool, 20000, &db, &err) < 0) {
            atomic_fetch_add(&crowd->failed, 1);
            continue;
        }
        inside = atomic_fetch_add(&crowd->inside, 1) + 1;
        most = atomic_load(&crowd->most);
        while (inside > most &&
               !atomic_compare_exchange_weak(&crowd->most, &most, inside))
            ;
        if (db_ping(db, &err) < 0)
            atomic_fetch_add(&crowd->failed, 1);
        atomic_fetch_sub(&crowd->inside, 1);
        db_pool_put(crowd->pool, db);
    }
    return NULL;
}

static void
test_many_threads_share_few_connections(struct fixture *f)
{
    struct crowd crowd = {.pool = pool_of(f, 3)};
    pthread_t threads[8];

    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, crowd_member, &crowd), 0);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&crowd.failed), 0);
    assert_in_range(atomic_load(&crowd.most), 1, 3);
    db_pool_free(crowd.pool);
}

static void
test_a_pool_of_no_size_or_no_url_is_refused(struct fixture *f)
{
    struct db_pool_options options = {.db = {.url = f->testdb.url}, .max = 0};
    struct db_pool *pool = NULL;

    fails(f, ERR_CONFIG, db_pool_new(&options, &pool, &f->err));
    err_clear(&f->err);
    options = (struct db_pool_options){.db = {.url = "nothing"}, .max = 1};
    fails(f, ERR_CONFIG, db_pool_new(&options, &pool, &f->err));
    assert_null(pool);
    db_pool_free(NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        db_case(test_a_connection_put_back_is_handed_out_again),
        db_case(test_a_transaction_left_open_is_rolled_back_when_put),
        db_case(test_a_broken_connection_is_dropped_not_handed_out),
        db_case(test_a_server_that_is_away_is_not_stormed),
        db_case(test_who_is_in_a_hurry_waits_for_no_server),
        db_case(test_many_threads_share_few_connections),
        db_case_on(test_a_pool_of_no_size_or_no_url_is_refused, TESTDB_SQLITE,
                   "sqlite"),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
