/*
 * On a connection to our own store BEGIN goes with the first statement in one round
 * trip. None of what a transaction promises may change by that, whatever comes first.
 */
#include "contract.h"

#include <stdio.h>
#include <string.h>

#define BOUND_MS 30000 /* longer than any pause here */

static const struct db_sql insert_t = {
    .name = "insert_t",
    .text = "INSERT INTO t (a, b) VALUES ($1, $2)",
    .n_params = 2,
};
static const struct db_sql count_t = {.name = "count_t",
                                      .text = "SELECT count(*) FROM t"};

/* As the store opens it, to the database of the fixture. */
static struct db *
open_store(struct fixture *f)
{
    struct db_options options = {
        .url = f->testdb.url, .store = true, .idle_tx_timeout_ms = BOUND_MS};
    struct db *db;

    ok(f, db_open(&options, &db, &f->err));
    script(f, "CREATE TABLE t (a bigint PRIMARY KEY, b text NOT NULL)");
    return db;
}

static void
test_the_first_statement_commits_with_the_others(struct fixture *f)
{
    scoped(db_closep) struct db *db = open_store(f);

    for (int64_t i = 0; i < 6; i += 2) { /* first made ready, then ready */
        scoped(db_tx_end) struct db_tx tx = {0};

        ok(f, db_begin(db, DB_WRITE, &tx, &f->err));
        ok(f, db_run(db, &insert_t, &f->err, p_i64(i), p_text("x")));
        assert_int_equal(db_changes(db), 1);
        assert_int_equal(number(f, "SELECT count(*) FROM t"), i);
        ok(f, db_run(db, &insert_t, &f->err, p_i64(i + 1), p_text("y")));
        ok(f, db_commit(&tx, &f->err));
        assert_int_equal(number(f, "SELECT count(*) FROM t"), i + 2);
    }
}

static void
test_a_rollback_takes_the_first_statement_back(struct fixture *f)
{
    scoped(db_closep) struct db *db = open_store(f);
    struct db_tx tx = {0};

    ok(f, db_begin(db, DB_WRITE, &tx, &f->err));
    ok(f, db_run(db, &insert_t, &f->err, p_i64(1), p_text("x")));
    db_tx_end(&tx);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 0);
}

static void
test_a_first_statement_that_fails_leaves_only_the_rollback(struct fixture *f)
{
    scoped(db_closep) struct db *db = open_store(f);
    struct db_tx tx = {0};

    for (int i = 0; i < 2; i++) { /* first made ready, then ready */
        ok(f, db_begin(db, DB_WRITE, &tx, &f->err));
        fails(f, ERR_DB_CONSTRAINT, db_run(db, &insert_t, &f->err, p_i64(1), p_null()));
        err_clear(&f->err);
        assert_true(db_run(db, &insert_t, &f->err, p_i64(2), p_text("x")) < 0);
        err_clear(&f->err);
        assert_true(db_commit(&tx, &f->err) < 0);
        err_clear(&f->err);
        db_tx_end(&tx);
        assert_true(db_usable(db));
        assert_false(db_in_tx(db));
    }
    ok(f, db_run(db, &insert_t, &f->err, p_i64(3), p_text("x")));
    assert_int_equal(number(f, "SELECT sum(a) FROM t"), 3);
}

static void
test_a_first_statement_with_an_error_in_it_leaves_a_connection_to_go_on_with(
    struct fixture *f)
{
    static const struct db_sql bad = {.name = "bad", .text = "SELECT nosuch"};
    scoped(db_closep) struct db *db = open_store(f);
    struct db_tx tx = {0};

    ok(f, db_begin(db, DB_WRITE, &tx, &f->err));
    fails(f, ERR_DB, db_run(db, &bad, &f->err));
    err_clear(&f->err);
    db_tx_end(&tx);
    ok(f, db_begin(db, DB_WRITE, &tx, &f->err));
    ok(f, db_run(db, &insert_t, &f->err, p_i64(1), p_text("x")));
    ok(f, db_commit(&tx, &f->err));
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 1);
}

static void
test_a_transaction_without_a_statement_is_none(struct fixture *f)
{
    scoped(db_closep) struct db *db = open_store(f);
    struct db_tx tx = {0};

    ok(f, db_begin(db, DB_WRITE, &tx, &f->err));
    ok(f, db_commit(&tx, &f->err));
    ok(f, db_begin(db, DB_WRITE, &tx, &f->err));
    db_tx_end(&tx);
    /* Outside of a transaction again: at once in the table. */
    ok(f, db_run(db, &insert_t, &f->err, p_i64(1), p_text("x")));
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 1);
}

static void
test_a_read_transaction_writes_nothing_and_sees_one_state(struct fixture *f)
{
    scoped(db_closep) struct db *db = open_store(f);
    struct db_tx tx = {0};
    int64_t rows;

    ok(f, db_begin(db, DB_READ, &tx, &f->err));
    ok(f, db_query_i64(db, &count_t, NULL, 0, &rows, &f->err));
    ok(f, db_run(f->db, &insert_t, &f->err, p_i64(1), p_text("x")));
    ok(f, db_query_i64(db, &count_t, NULL, 0, &rows, &f->err));
    assert_int_equal(rows, 0);
    db_tx_end(&tx);
    ok(f, db_begin(db, DB_READ, &tx, &f->err));
    assert_true(db_run(db, &insert_t, &f->err, p_i64(2), p_text("y")) < 0);
    assert_string_equal(f->err.detail, "25006");
    err_clear(&f->err);
    db_tx_end(&tx);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 1);
}

static void
test_a_savepoint_comes_first(struct fixture *f)
{
    scoped(db_closep) struct db *db = open_store(f);
    struct db_tx tx = {0};

    ok(f, db_begin(db, DB_WRITE, &tx, &f->err));
    ok(f, db_savepoint(db, "s", &f->err));
    ok(f, db_run(db, &insert_t, &f->err, p_i64(1), p_text("x")));
    ok(f, db_rollback_to(db, "s", &f->err));
    ok(f, db_run(db, &insert_t, &f->err, p_i64(2), p_text("x")));
    ok(f, db_commit(&tx, &f->err));
    assert_int_equal(number(f, "SELECT sum(a) FROM t"), 2);
}

static void
test_a_copy_a_script_or_a_stream_comes_first(struct fixture *f)
{
    static const char *const columns[] = {"a", "b"};
    static const struct db_sql stream = {
        .name = "stream", .text = "SELECT a FROM t", .flags = DB_STREAM};
    scoped(db_closep) struct db *db = open_store(f);
    int64_t rows;

    for (int first = 0; first < 3; first++) {
        scoped(db_tx_end) struct db_tx tx = {0};
        scoped(db_copy_abort) struct db_copy copy = {0};
        scoped(db_rows_end) struct db_rows cursor = {0};

        ok(f, db_begin(db, DB_WRITE, &tx, &f->err));
        if (first == 0) {
            ok(f, db_copy_begin(db, "t", columns, 2, &copy, &f->err));
            ok(f, db_copy_row(&copy, (const struct db_value[]){p_i64(1), p_text("x")},
                              &f->err));
            ok(f, db_copy_end(&copy, &rows, &f->err));
        } else if (first == 1) {
            ok(f, db_script(db, "INSERT INTO t VALUES (2, 'y')", &f->err));
        } else {
            ok(f, db_query(db, &stream, NULL, 0, &cursor, &f->err));
            while (db_next(&cursor, &f->err) > 0)
                ;
            db_rows_end(&cursor);
        }
        ok(f, db_run(db, &insert_t, &f->err, p_i64(10 + first), p_text("z")));
        db_tx_end(&tx);
        assert_int_equal(number(f, "SELECT count(*) FROM t"), 0);
    }
}

static void
test_a_server_gone_at_the_first_statement_is_a_lost_connection(struct fixture *f)
{
    static const struct db_sql pid_of = {.name = "pid",
                                         .text = "SELECT pg_backend_pid()"};
    scoped(db_closep) struct db *db = open_store(f);
    struct db_tx tx = {0};
    char text[160];
    int64_t pid;

    ok(f, db_query_i64(db, &pid_of, NULL, 0, &pid, &f->err));
    ok(f, db_begin(db, DB_WRITE, &tx, &f->err));
    snprintf(text, sizeof(text), "SELECT pg_terminate_backend(%lld, 10000)",
             (long long)pid);
    script(f, text);
    fails(f, ERR_STORE, db_run(db, &insert_t, &f->err, p_i64(1), p_text("x")));
    assert_false(db_usable(db));
    db_tx_end(&tx);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 0);
}

#define pg_case(name)                                                                  \
    db_case_on(name, TESTDB_PG, "pg"), db_case_on(name, TESTDB_PGBOUNCER, "pgbouncer")

int
main(void)
{
    const struct CMUnitTest tests[] = {
        pg_case(test_the_first_statement_commits_with_the_others),
        pg_case(test_a_rollback_takes_the_first_statement_back),
        pg_case(test_a_first_statement_that_fails_leaves_only_the_rollback),
        pg_case(
            test_a_first_statement_with_an_error_in_it_leaves_a_connection_to_go_on_with),
        pg_case(test_a_transaction_without_a_statement_is_none),
        pg_case(test_a_read_transaction_writes_nothing_and_sees_one_state),
        pg_case(test_a_savepoint_comes_first),
        pg_case(test_a_copy_a_script_or_a_stream_comes_first),
        db_case_on(test_a_server_gone_at_the_first_statement_is_a_lost_connection,
                   TESTDB_PG, "pg"),
    };

    return cmocka_run_group_tests_name("db begin", tests, NULL, NULL);
}
