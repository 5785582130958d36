/*
 * store_write and store_read: what commits, what rolls back, who waits for whom, and
 * what is tried again.
 */
#include "tests/store/harness.h"

#include "base/clock.h"
#include "base/strs.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Stands before the C library's, so that SQLite's calls are counted. */
static int syncs;

int
fdatasync(int fd)
{
    __atomic_fetch_add(&syncs, 1, __ATOMIC_SEQ_CST);
    return (int)syscall(SYS_fdatasync, fd);
}

int
fsync(int fd)
{
    __atomic_fetch_add(&syncs, 1, __ATOMIC_SEQ_CST);
    return (int)syscall(SYS_fsync, fd);
}

static int
syncs_now(void)
{
    return __atomic_load_n(&syncs, __ATOMIC_SEQ_CST);
}

static const struct db_sql insert = {
    .name = "insert",
    .text = "INSERT INTO pawl.active (key, request_id) VALUES ($1, $2)",
    .n_params = 2};

struct work {
    struct harness *h;
    const char *key;
    int64_t id;
    int result; /* what fn returns after the insert */
    int runs;
    int r;
    struct err err;
};

static int
work_fn(struct db *db, void *arg, struct err *err)
{
    struct work *work = (struct work *)arg;
    int r;

    work->runs++;
    r = db_run(db, &insert, err, p_text(work->key), p_i64(work->id));
    if (r < 0)
        return r;
    if (work->result < 0)
        return err_set(err, ERR_ALREADY_FINAL, "refused on purpose");
    return work->result;
}

static int64_t
rows_of(struct harness *h, const char *key)
{
    return harness_i64(h, "SELECT count(*) FROM pawl.active WHERE key = '%s'", key);
}

static void
test_what_fn_returns_is_passed_on_and_committed(struct harness *h)
{
    struct work work = {.key = "a", .id = 1, .result = 3};

    assert_int_equal(harness_write(h, work_fn, &work), 3);
    assert_int_equal(work.runs, 1);
    assert_int_equal(rows_of(h, "a"), 1);
}

static void
test_a_write_returns_only_when_it_is_on_disk(struct harness *h)
{
    static const char *const keys[] = {"a", "b", "c"};

    for (int i = 0; i < 3; i++) {
        struct work work = {.key = keys[i], .id = 1};
        int before = syncs_now();

        harness_write(h, work_fn, &work);
        assert_true(syncs_now() > before);
    }
}

static void
test_a_failing_fn_rolls_back_and_its_note_stays(struct harness *h)
{
    struct work work = {.key = "a", .id = 1, .result = -1};
    struct err err = {0};

    assert_int_equal(store_write(h->store, STORE_NORMAL, work_fn, &work, &err),
                     -ERR_ALREADY_FINAL);
    assert_string_equal(err.text, "refused on purpose");
    assert_int_equal(rows_of(h, "a"), 0);
    work.result = 0;
    assert_int_equal(harness_write(h, work_fn, &work), 0);
}

static void
test_a_violated_constraint_is_told_as_such(struct harness *h)
{
    struct work work = {.key = "a", .id = 1};
    struct err err = {0};

    harness_write(h, work_fn, &work);
    assert_int_equal(store_write(h->store, STORE_NORMAL, work_fn, &work, &err),
                     -ERR_DB_CONSTRAINT);
    assert_true(db_is_duplicate(&err));
}

static int
read_fn(struct db *db, void *arg, struct err *err)
{
    static const struct db_sql count = {.name = "count",
                                        .text = "SELECT count(*) FROM pawl.active"};

    return db_query_i64(db, &count, NULL, 0, (int64_t *)arg, err);
}

static void
test_a_read_sees_what_was_written_before(struct harness *h)
{
    struct work work = {.key = "a", .id = 1};
    int64_t count = -1;

    harness_read(h, read_fn, &count);
    assert_int_equal(count, 0);
    harness_write(h, work_fn, &work);
    harness_read(h, read_fn, &count);
    assert_int_equal(count, 1);
}

static void
test_a_read_cannot_write_on_SQLite(struct harness *h)
{
    struct work work = {.key = "a", .id = 1};
    struct err err = {0};

    assert_true(store_read(h->store, work_fn, &work, &err) < 0);
    assert_int_equal(rows_of(h, "a"), 0);
}

/* --- many callers --- */

#define CALLERS 32
#define ROUNDS  20

static void *
caller_main(void *arg)
{
    struct work *work = (struct work *)arg;
    char key[64];

    for (int i = 0; i < ROUNDS; i++) {
        struct err err = {0};
        int r;

        snprintf(key, sizeof(key), "%lld/%d", (long long)work->id, i);
        work->key = key;
        r = store_write(work->h->store, STORE_NORMAL, work_fn, work, &err);
        /* One of the callers fails each time, the others never. */
        if (r != (work->result < 0 ? -ERR_ALREADY_FINAL : 0)) {
            work->r = r;
            work->err = err;
            return NULL;
        }
    }
    work->r = 0;
    return NULL;
}

/* Each caller's row is there as soon as its call returns, seen by another connection;
 * here counted at the end, row by row. */
static void
test_of_32_callers_one_that_fails_spoils_no_other(struct harness *h)
{
    struct work works[CALLERS] = {0};
    pthread_t threads[CALLERS];
    struct store_counts before, after;
    int synced = syncs_now();

    store_counts(h->store, &before);
    for (int i = 0; i < CALLERS; i++) {
        works[i] = (struct work){.h = h, .id = i, .result = i == 7 ? -1 : 0, .r = -1};
        assert_int_equal(pthread_create(&threads[i], NULL, caller_main, &works[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++)
        pthread_join(threads[i], NULL);
    store_counts(h->store, &after);
    for (int i = 0; i < CALLERS; i++)
        assert_ok(works[i].r, &works[i].err);
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.active"),
                     (CALLERS - 1) * ROUNDS);
    assert_int_equal(rows_of(h, "7/0"), 0);
    assert_int_equal(after.writes - before.writes, (CALLERS - 1) * ROUNDS);
    if (h->kind == HARNESS_SQLITE) {
        assert_true(after.commits - before.commits < (CALLERS - 1) * ROUNDS / 2);
        assert_true(syncs_now() - synced < (CALLERS - 1) * ROUNDS);
    }
}

/* --- the one writer of SQLite, held so that callers gather --- */

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool entered, open;
};

static int
gate_fn(struct db *db, void *arg, struct err *err)
{
    struct gate *gate = (struct gate *)arg;

    pthread_mutex_lock(&gate->lock);
    gate->entered = true;
    pthread_cond_broadcast(&gate->moved);
    while (!gate->open)
        pthread_cond_wait(&gate->moved, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
    return 0;
}

struct call {
    struct harness *h;
    enum store_urgency urgency;
    store_fn fn;
    void *arg;
    int r;
    struct err err;
    pthread_t thread;
};

static void *
call_main(void *arg)
{
    struct call *call = (struct call *)arg;

    call->r =
        store_write(call->h->store, call->urgency, call->fn, call->arg, &call->err);
    return NULL;
}

static void
start(struct call *call)
{
    assert_int_equal(pthread_create(&call->thread, NULL, call_main, call), 0);
}

static void
await_waiting(struct harness *h, int64_t waiting)
{
    struct store_counts counts;

    do {
        sched_yield();
        store_counts(h->store, &counts);
    } while (counts.waiting != waiting);
}

/* Hold the writer inside a call; what is started meanwhile gathers in order. */
static void
hold(struct harness *h, struct gate *gate, struct call *holder)
{
    *gate = (struct gate){.lock = PTHREAD_MUTEX_INITIALIZER,
                          .moved = PTHREAD_COND_INITIALIZER};
    *holder = (struct call){.h = h, .fn = gate_fn, .arg = gate};
    start(holder);
    pthread_mutex_lock(&gate->lock);
    while (!gate->entered)
        pthread_cond_wait(&gate->moved, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

static void
let_go(struct gate *gate, struct call *holder)
{
    pthread_mutex_lock(&gate->lock);
    gate->open = true;
    pthread_cond_broadcast(&gate->moved);
    pthread_mutex_unlock(&gate->lock);
    pthread_join(holder->thread, NULL);
    assert_int_equal(holder->r, 0);
}

struct noting {
    int *next; /* shared, on the writer's thread only */
    int place;
};

static int
note_place(struct db *db, void *arg, struct err *err)
{
    struct noting *noting = (struct noting *)arg;

    noting->place = (*noting->next)++;
    return 0;
}

static void
test_beats_go_before_others_that_wait(struct harness *h)
{
    struct noting notes[6] = {0};
    struct call calls[6];
    struct call holder;
    struct gate gate;
    int next = 0;

    hold(h, &gate, &holder);
    for (int i = 0; i < 6; i++) {
        notes[i].next = &next;
        calls[i] = (struct call){.h = h,
                                 .urgency = i < 4 ? STORE_NORMAL : STORE_BEAT,
                                 .fn = note_place,
                                 .arg = &notes[i]};
        start(&calls[i]);
        await_waiting(h, i + 1);
    }
    let_go(&gate, &holder);
    for (int i = 0; i < 6; i++) {
        pthread_join(calls[i].thread, NULL);
        assert_int_equal(calls[i].r, 0);
        assert_int_equal(notes[i].place, i < 4 ? i + 2 : i - 4);
    }
}

static void
test_callers_that_waited_share_one_commit(struct harness *h)
{
    struct work works[8] = {0};
    struct call calls[8];
    struct call holder;
    struct store_counts before, after;
    struct gate gate;
    static const char *const keys[] = {"a", "b", "c", "d", "e", "f", "g", "h"};

    store_counts(h->store, &before);
    hold(h, &gate, &holder);
    for (int i = 0; i < 8; i++) {
        works[i] = (struct work){.key = keys[i], .id = i};
        calls[i] = (struct call){.h = h, .fn = work_fn, .arg = &works[i]};
        start(&calls[i]);
    }
    await_waiting(h, 8);
    let_go(&gate, &holder);
    for (int i = 0; i < 8; i++) {
        pthread_join(calls[i].thread, NULL);
        assert_int_equal(calls[i].r, 0);
    }
    store_counts(h->store, &after);
    assert_int_equal(after.writes - before.writes, 9);
    /* The holder may have been over its time, then the eight have one of their own. */
    assert_true(after.commits - before.commits <= 2);
}

/* INSERT OR ROLLBACK ends the whole transaction, as a full disk does. */
static int
rollback_all(struct db *db, void *arg, struct err *err)
{
    return db_script(db,
                     "INSERT OR ROLLBACK INTO pawl.active VALUES ('x', 1);"
                     "INSERT OR ROLLBACK INTO pawl.active VALUES ('x', 1)",
                     err);
}

/* Goes on over a failed statement, as no fn should. */
static int
swallow_failure(struct db *db, void *arg, struct err *err)
{
    struct err ignored = {0};

    (void)!db_script(db, "INSERT INTO pawl.active VALUES (NULL, NULL)", &ignored);
    return 0;
}

static void
around_a_bad_one(struct harness *h, store_fn bad, int want)
{
    static const char *const keys[] = {"a", NULL, "c"};
    struct work works[3] = {0};
    struct call calls[3];
    struct call holder;
    struct gate gate;

    hold(h, &gate, &holder);
    for (int i = 0; i < 3; i++) {
        works[i] = (struct work){.key = keys[i], .id = i};
        calls[i] =
            (struct call){.h = h, .fn = keys[i] ? work_fn : bad, .arg = &works[i]};
        start(&calls[i]);
        await_waiting(h, i + 1);
    }
    let_go(&gate, &holder);
    for (int i = 0; i < 3; i++) {
        pthread_join(calls[i].thread, NULL);
        assert_int_equal(calls[i].r, keys[i] ? 0 : want);
    }
    assert_int_equal(rows_of(h, "a"), 1);
    assert_int_equal(rows_of(h, "c"), 1);
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.active"), 2);
}

static void
test_one_that_ends_the_transaction_fails_alone(struct harness *h)
{
    around_a_bad_one(h, rollback_all, -ERR_DB_CONSTRAINT);
}

static void
test_one_that_goes_on_over_a_failure_fails_alone(struct harness *h)
{
    around_a_bad_one(h, swallow_failure, -ERR_DB);
}

/* --- PostgreSQL: what is tried again --- */

/* --- cancelled as a whole --- */

struct long_work {
    struct db *_Atomic db; /* while it may be cancelled */
    int first, second;     /* what its two statements returned */
};

static int
long_fn(struct db *db, void *arg, struct err *err)
{
    struct long_work *work = arg;
    struct err ignored = {0};

    db_cancellable_begin(db);
    work->db = db;
    work->first = db_script(
        db,
        db_kind(db) == DB_PG
            ? "SELECT pg_sleep(20)"
            : "INSERT INTO pawl.active WITH RECURSIVE n(i) AS (SELECT 1 UNION "
              "ALL SELECT i + 1 FROM n WHERE i < 2000000000) SELECT 'x', "
              "max(i) FROM n",
        err);
    work->db = NULL;
    work->second = db_script(db, "SELECT 1", &ignored);
    db_cancellable_end(db);
    return work->first;
}

static void
cancel_it(void *arg)
{
    struct long_work *work = arg;
    struct db *db = work->db;

    if (db)
        db_cancel(db);
}

static int
call_long(struct harness *h, struct long_work *work)
{
    struct err err = {0};

    return store_write_watched(h->store, long_fn, work, cancel_it, work, &err);
}

static void *
long_main(void *arg)
{
    struct call *call = arg;

    call->r = call_long(call->h, call->arg);
    return NULL;
}

/* SQLite rolls the transaction of all back when a writing statement is interrupted. */
static void
test_one_that_is_cancelled_fails_alone(struct harness *h)
{
    static const char *const keys[] = {"a", NULL, "c"};
    struct long_work lengthy = {.db = NULL};
    struct work works[3] = {0};
    struct call calls[3];
    struct call holder;
    struct gate gate;

    hold(h, &gate, &holder);
    for (int i = 0; i < 3; i++) {
        works[i] = (struct work){.key = keys[i], .id = i};
        calls[i] = (struct call){.h = h, .fn = work_fn, .arg = &works[i]};
        if (!keys[i])
            calls[i].arg = &lengthy;
        assert_int_equal(pthread_create(&calls[i].thread, NULL,
                                        keys[i] ? call_main : long_main, &calls[i]),
                         0);
        await_waiting(h, i + 1);
    }
    let_go(&gate, &holder);
    for (int i = 0; i < 3; i++) {
        pthread_join(calls[i].thread, NULL);
        assert_int_equal(calls[i].r, keys[i] ? 0 : -ERR_TIMEOUT);
    }
    assert_true(lengthy.second < 0);
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.active"), 2);
}

static void *
cancel_main(void *arg)
{
    struct long_work *work = arg;
    struct db *db;

    while (!(db = work->db))
        sched_yield();
    db_cancel(db);
    return NULL;
}

/* On a connection that others use after it. The request may come just before the
 * statement: it counts all the same. */
static void
test_after_a_cancel_the_connection_is_as_before(struct harness *h)
{
    struct work work = {.key = "a", .id = 1};

    for (int i = 0; i < 10; i++) {
        struct long_work lengthy = {.db = NULL};
        pthread_t thread;

        assert_int_equal(pthread_create(&thread, NULL, cancel_main, &lengthy), 0);
        assert_int_equal(call_long(h, &lengthy), -ERR_TIMEOUT);
        pthread_join(thread, NULL);
    }
    assert_int_equal(harness_write(h, work_fn, &work), 0);
    assert_int_equal(rows_of(h, "a"), 1);
}

static void *
wish_main(void *arg)
{
    struct call *call = arg;

    call->r = store_write_wish(call->h->store, 7, work_fn, call->arg, &call->err);
    return NULL;
}

static void
test_a_wish_is_known_before_it_is_written(struct harness *h)
{
    struct work work = {.key = "a", .id = 7};
    struct call holder;
    struct gate gate;
    struct call wish = {.h = h, .arg = &work};

    hold(h, &gate, &holder);
    assert_int_equal(pthread_create(&wish.thread, NULL, wish_main, &wish), 0);
    await_waiting(h, 1);
    assert_true(store_is_wished(h->store, 7));
    assert_false(store_is_wished(h->store, 8));
    let_go(&gate, &holder);
    pthread_join(wish.thread, NULL);
    assert_int_equal(wish.r, 0);
    assert_false(store_is_wished(h->store, 7));
}

/* A trigger that raises 40001 so many times; a sequence counts over rollbacks. */
static void
make_conflicts(struct harness *h, int times)
{
    harness_sql(h,
                "CREATE SEQUENCE public.conflicts;"
                "CREATE FUNCTION public.conflict() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN IF nextval('public.conflicts') <= %d THEN RAISE EXCEPTION "
                "'could not serialize' USING ERRCODE = '40001'; END IF; RETURN NEW; "
                "END $$;"
                "CREATE TRIGGER conflict BEFORE INSERT ON pawl.active"
                " FOR EACH ROW EXECUTE FUNCTION public.conflict()",
                times);
}

static void
test_A17_a_conflict_twice_is_tried_again_and_succeeds(struct harness *h)
{
    struct work work = {.key = "a", .id = 1};
    struct store_counts counts;
    int64_t began_us = clock_mono_us(clock_real());

    make_conflicts(h, 2);
    assert_int_equal(harness_write(h, work_fn, &work), 0);
    assert_int_equal(work.runs, 3);
    assert_int_equal(rows_of(h, "a"), 1);
    store_counts(h->store, &counts);
    assert_int_equal(counts.retries, 2);
    assert_true(clock_mono_us(clock_real()) - began_us < US_PER_S);
}

static void
test_A17_a_conflict_four_times_fails_with_its_cause(struct harness *h)
{
    struct work work = {.key = "a", .id = 1};
    struct err err = {0};

    make_conflicts(h, 4);
    assert_int_equal(store_write(h->store, STORE_NORMAL, work_fn, &work, &err),
                     -ERR_DB_CONFLICT);
    assert_int_equal(work.runs, 4);
    assert_non_null(strstr(err.text, "could not serialize"));
    assert_string_equal(err.detail, "40001");
    assert_int_equal(rows_of(h, "a"), 0);
}

/* As a restart of the server does to all connections. */
static void
cut_connections(struct harness *h)
{
    harness_sql(h, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                   " WHERE datname = current_database() AND pid <> pg_backend_pid()");
}

static void
test_cut_connections_are_opened_again_by_writes_and_reads(struct harness *h)
{
    struct work a = {.key = "a", .id = 1};
    struct work b = {.key = "b", .id = 2};
    int64_t count = 0;

    harness_write(h, work_fn, &a);
    cut_connections(h);
    harness_write(h, work_fn, &b);
    cut_connections(h);
    harness_read(h, read_fn, &count);
    assert_int_equal(count, 2);
}

/* --- audit --- */

static int
audit_fn(struct db *db, void *arg, struct err *err)
{
    int r = store_audit(db, "kim", "cancel", "request 7", NULL, err);

    return r < 0 ? r : *(int *)arg;
}

static void
test_an_audit_row_lives_and_dies_with_the_act(struct harness *h)
{
    int failing = -ERR_INTERNAL;
    int fine = 0;
    struct err err = {0};

    assert_true(store_write(h->store, STORE_NORMAL, audit_fn, &failing, &err) < 0);
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.audit"), 0);
    harness_write(h, audit_fn, &fine);
    assert_int_equal(harness_i64(h, "SELECT at FROM pawl.audit WHERE actor = 'kim' AND"
                                    " subject = 'request 7' AND detail IS NULL"),
                     HARNESS_NOW);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_what_fn_returns_is_passed_on_and_committed),
        store_test_sqlite(test_a_write_returns_only_when_it_is_on_disk),
        store_test(test_a_failing_fn_rolls_back_and_its_note_stays),
        store_test(test_a_violated_constraint_is_told_as_such),
        store_test(test_a_read_sees_what_was_written_before),
        store_test_sqlite(test_a_read_cannot_write_on_SQLite),
        store_test(test_of_32_callers_one_that_fails_spoils_no_other),
        store_test_sqlite(test_beats_go_before_others_that_wait),
        store_test_sqlite(test_callers_that_waited_share_one_commit),
        store_test_sqlite(test_one_that_ends_the_transaction_fails_alone),
        store_test_sqlite(test_one_that_goes_on_over_a_failure_fails_alone),
        store_test_sqlite(test_one_that_is_cancelled_fails_alone),
        store_test_sqlite(test_after_a_cancel_the_connection_is_as_before),
        store_test_pg(test_after_a_cancel_the_connection_is_as_before),
        store_test_sqlite(test_a_wish_is_known_before_it_is_written),
        store_test_pg(test_A17_a_conflict_twice_is_tried_again_and_succeeds),
        store_test_pg(test_A17_a_conflict_four_times_fails_with_its_cause),
        store_test_pg(test_cut_connections_are_opened_again_by_writes_and_reads),
        store_test_pgbouncer(test_cut_connections_are_opened_again_by_writes_and_reads),
        store_test(test_an_audit_row_lives_and_dies_with_the_act),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
