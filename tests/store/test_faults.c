/*
 * store_write over a connection whose n-th call fails, for each n: what was promised is
 * there once, what failed is not there at all, and the store goes on afterwards.
 */
#include "tests/store/harness.h"

#include "db_faulty.h"

#include <string.h>

#define CALLS_MAX 100

/* The newest connection for writing that the store has opened, wrapped. */
static struct db *newest;
static int opened;

static int
open_faulty(const struct db_options *options, struct db **ret_db, struct err *err)
{
    struct db *db;
    int r = db_open(options, &db, err);

    if (r < 0)
        return r;
    *ret_db = db_faulty_new(db, 0, FAULTY_ONCE);
    if (!options->read_only) {
        newest = *ret_db;
        opened++;
    }
    return 0;
}

struct act {
    const char *subject;
    int runs;
};

/* An audit row: nothing but ourselves keeps it from being there twice. */
static int
act_fn(struct db *db, void *arg, struct err *err)
{
    struct act *act = (struct act *)arg;

    act->runs++;
    return store_audit(db, "me", "test", act->subject, NULL, err);
}

static int64_t
rows_of(struct harness *h, const char *subject)
{
    return harness_i64(h, "SELECT count(*) FROM pawl.audit WHERE subject = '%s'",
                       subject);
}

static void
assert_outcome(struct harness *h, const struct act *act, int r, enum faulty_how how)
{
    if (r >= 0) {
        assert_int_equal(rows_of(h, act->subject), 1);
    } else if (r == -ERR_COMMIT_UNKNOWN) {
        /* Not run again: it may well be there. */
        assert_int_equal(act->runs, 1);
        assert_int_equal(rows_of(h, act->subject), how == FAULTY_COMMIT_LOST);
    } else {
        assert_int_equal(r, -ERR_STORE);
        assert_int_equal(rows_of(h, act->subject), 0);
    }
}

/* One write whose n-th call fails; false when there is no n-th call. */
static bool
write_failing_at(struct harness *h, int n, enum faulty_how how)
{
    char subject[32];
    struct act act = {.subject = subject};
    struct act next = {.subject = "next"};
    struct err err = {0};
    int before = opened;
    bool hit;
    int r;

    snprintf(subject, sizeof(subject), "%d/%d", how, n);
    db_faulty_arm(newest, n, how);
    r = store_write(h->store, STORE_NORMAL, act_fn, &act, &err);
    hit = r < 0 || opened != before || db_faulty_hit(newest);
    assert_outcome(h, &act, r, how);
    /* One that was lost is closed by now, or soon; it must not be touched. */
    if (!hit || how == FAULTY_ONCE)
        db_faulty_arm(newest, 0, FAULTY_ONCE);
    harness_write(h, act_fn, &next);
    return hit;
}

static void
sweep(struct harness *h, enum faulty_how how)
{
    struct act first = {.subject = "first"};
    int n = 1;

    h->options.open = open_faulty;
    h->options.connections = 1;
    harness_reopen(h);
    harness_write(h, act_fn, &first);
    while (write_failing_at(h, n, how)) {
        n++;
        assert_true(n < CALLS_MAX);
    }
    assert_true(n > 3); /* begin, the statement, commit */
}

static void
test_a_failing_call_leaves_nothing_behind(struct harness *h)
{
    sweep(h, FAULTY_ONCE);
}

static void
test_a_lost_connection_leaves_nothing_or_the_whole_once(struct harness *h)
{
    sweep(h, FAULTY_FOREVER);
}

static void
test_a_commit_whose_answer_is_lost_is_not_run_again(struct harness *h)
{
    sweep(h, FAULTY_COMMIT_LOST);
}

/* --- a full disk --- */

static int
fill(struct db *db, void *arg, struct err *err)
{
    int r;

    r = db_script(db, "PRAGMA max_page_count = 100", err);
    if (r == 0)
        r = db_script(db,
                      "INSERT INTO pawl.audit (at, actor, act, subject, detail)"
                      " VALUES (0, '', '', 'big', CAST(zeroblob(4000000) AS text))",
                      err);
    return r;
}

static int
make_room(struct db *db, void *arg, struct err *err)
{
    return db_script(db, "PRAGMA max_page_count = 1073741823", err);
}

static void
test_a_full_disk_is_told_and_passes(struct harness *h)
{
    struct act act = {.subject = "after"};
    struct err err = {0};

    assert_int_equal(store_write(h->store, STORE_NORMAL, fill, NULL, &err),
                     -ERR_DISK_FULL);
    harness_write(h, make_room, NULL);
    harness_write(h, act_fn, &act);
    assert_int_equal(harness_i64(h, "SELECT count(*) FROM pawl.audit"), 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_a_failing_call_leaves_nothing_behind),
        store_test(test_a_lost_connection_leaves_nothing_or_the_whole_once),
        store_test(test_a_commit_whose_answer_is_lost_is_not_run_again),
        store_test_sqlite(test_a_full_disk_is_told_and_passes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
