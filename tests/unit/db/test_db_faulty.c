/*
 * Every call of the face fails once, and from then on, one after the other: nothing
 * leaks (run under ASan), nothing is half done, and the connection says whether it is
 * still good.
 */
#include "contract.h"

#include "db_faulty.h"

#include <string.h>

static const struct db_sql insert_t = {
    .name = "insert_t", .text = "INSERT INTO t (a) VALUES ($1)", .n_params = 1};
static const struct db_sql select_t = {
    .name = "select_t", .text = "SELECT a FROM t ORDER BY a", .flags = DB_STREAM};

static int
read_all(struct db *db, int64_t *sum, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int r;

    r = db_query(db, &select_t, NULL, 0, &rows, err);
    if (r < 0)
        return r;
    while ((r = db_next(&rows, err)) > 0)
        *sum += db_i64(&rows, 0);
    return r;
}

static int
copy_some(struct db *db, struct err *err)
{
    static const char *const columns[] = {"a"};
    scoped(db_copy_abort) struct db_copy copy = {0};
    int r;

    r = db_copy_begin(db, "t", columns, 1, &copy, err);
    for (int i = 10; i < 12 && r == 0; i++) {
        struct db_value row = p_i64(i);

        r = db_copy_row(&copy, &row, err);
    }
    return r < 0 ? r : db_copy_end(&copy, NULL, err);
}

static int
describe_it(struct db *db, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};

    return db_describe(db, &insert_t, &rows, err);
}

/* A life with every kind of call in it. 100 and more in t: it was all done. */
static int
scenario(struct db *db, struct err *err)
{
    scoped(db_tx_end) struct db_tx tx = {0};
    int64_t sum = 0;
    int r;

    r = db_ping(db, err);
    if (r == 0)
        r = describe_it(db, err);
    if (r == 0)
        r = db_begin(db, DB_WRITE, &tx, err);
    if (r == 0)
        r = db_run(db, &insert_t, err, p_i64(1));
    if (r == 0)
        r = copy_some(db, err);
    if (r == 0)
        r = db_savepoint(db, "s", err);
    if (r == 0)
        r = db_script(db, "INSERT INTO t (a) VALUES (5)", err);
    if (r == 0)
        r = db_rollback_to(db, "s", err);
    if (r == 0)
        r = db_release(db, "s", err);
    if (r == 0)
        r = read_all(db, &sum, err);
    if (r == 0)
        r = db_run(db, &insert_t, err, p_i64(100 + sum));
    return r < 0 ? r : db_commit(&tx, err);
}

/* 0 nothing there, 1 all of it; else it is torn. */
static int
is_done(struct fixture *f)
{
    int64_t rows = number(f, "SELECT count(*) FROM t");
    int64_t sum = number(f, "SELECT coalesce(sum(a), 0) FROM t");

    if (rows == 0)
        return 0;
    assert_int_equal(rows, 4);
    assert_int_equal(sum, 1 + 10 + 11 + 122);
    return 1;
}

static void
sweep(struct fixture *f, enum faulty_how how)
{
    bool hit = true;
    int n;

    script(f, "CREATE TABLE t (a bigint PRIMARY KEY)");
    for (n = 1; hit; n++) {
        struct db *db = db_faulty_new(testdb_open(&f->testdb), n, how);
        struct err err = {0};
        int r = scenario(db, &err);

        hit = db_faulty_hit(db);
        assert_int_equal(db_in_tx(db), false);
        assert_int_equal(db_usable(db), !hit || how == FAULTY_ONCE);
        if (hit) {
            assert_true(r < 0);
            assert_string_equal(err.detail, "FAULT");
            if (how == FAULTY_ONCE) {
                struct err again = {0};

                assert_int_equal(db_ping(db, &again), 0);
            }
        }
        db_close(db);
        if (err.code == ERR_COMMIT_UNKNOWN)
            assert_int_equal(how, FAULTY_COMMIT_LOST);
        assert_int_equal(is_done(f), !hit || err.code == ERR_COMMIT_UNKNOWN);
        script(f, "DELETE FROM t");
    }
    assert_true(n > 18);
}

static void
test_any_call_may_fail_once(struct fixture *f)
{
    sweep(f, FAULTY_ONCE);
}

static void
test_the_server_may_go_away_at_any_call(struct fixture *f)
{
    sweep(f, FAULTY_FOREVER);
}

static void
test_the_answer_to_a_commit_may_be_lost(struct fixture *f)
{
    sweep(f, FAULTY_COMMIT_LOST);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        db_case(test_any_call_may_fail_once),
        db_case(test_the_server_may_go_away_at_any_call),
        db_case(test_the_answer_to_a_commit_may_be_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
