/* What goes wrong is told with one code on every database, and is survived. */
#include "contract.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static const struct db_sql insert_t = {
    .name = "insert_t",
    .text = "INSERT INTO t (a, b) VALUES ($1, $2)",
    .n_params = 2,
};

static void
make_t(struct fixture *f)
{
    script(f, "CREATE TABLE t (a bigint PRIMARY KEY, b text NOT NULL)");
}

static bool
on_pg(const struct fixture *f)
{
    return f->kind != TESTDB_SQLITE;
}

static void
test_a_second_row_with_one_key_is_a_duplicate(struct fixture *f)
{
    make_t(f);
    ok(f, db_run(f->db, &insert_t, &f->err, p_i64(1), p_text("x")));
    fails(f, ERR_DB_CONSTRAINT,
          db_run(f->db, &insert_t, &f->err, p_i64(1), p_text("y")));
    assert_true(db_is_duplicate(&f->err));
    assert_non_null(strstr(f->err.text, "insert_t"));
    err_clear(&f->err);
    fails(f, ERR_DB_CONSTRAINT, db_run(f->db, &insert_t, &f->err, p_i64(2), p_null()));
    assert_false(db_is_duplicate(&f->err));
    assert_true(db_usable(f->db));
}

static void
test_a_syntax_error_names_statement_and_place(struct fixture *f)
{
    static const struct db_sql bad = {.name = "bad_one",
                                      .text = "SELECT 1,\n  nosuch\nFROM (SELECT 1) x"};

    fails(f, ERR_DB, db_run(f->db, &bad, &f->err));
    assert_non_null(strstr(f->err.text, "bad_one"));
    assert_non_null(strstr(f->err.text, "nosuch"));
    assert_non_null(strstr(f->err.text, "line 2, column 3"));
    assert_string_not_equal(f->err.detail, "");
}

static void
test_an_error_in_a_script_names_its_line(struct fixture *f)
{
    fails(f, ERR_DB,
          db_script(f->db,
                    "CREATE TABLE s (a bigint);\n\nCREATE TABLE s2 (\n a nope(;\n",
                    &f->err));
    assert_non_null(strstr(f->err.text, "line 4"));
}

static void
test_several_statements_are_for_scripts_only(struct fixture *f)
{
    static const struct db_sql two = {.name = "two", .text = "SELECT 1; SELECT 2"};
    static const struct db_sql one = {.name = "one", .text = "SELECT 1; -- done\n"};
    static const struct db_sql copy = {
        .name = "copy", .text_pg = "COPY t TO STDOUT", .text_sqlite = ""};

    make_t(f);
    assert_true(db_run(f->db, &two, &f->err) < 0);
    err_clear(&f->err);
    ok(f, db_run(f->db, &one, &f->err));
    assert_true(db_run(f->db, &copy, &f->err) < 0);
    err_clear(&f->err);
    assert_int_equal(number(f, "SELECT 3"), 3);
}

struct canceller {
    struct db *db;
    int started[2];
};

static void *
cancel_later(void *arg)
{
    struct canceller *c = arg;

    /* Cancelling what has not begun yet does nothing, so go on until told to stop. */
    while (poll(&(struct pollfd){.fd = c->started[0], .events = POLLIN}, 1, 20) == 0)
        db_cancel(c->db);
    return NULL;
}

static const struct db_sql never_ends = {
    .name = "never_ends",
    .text_pg = "SELECT pg_sleep(60)",
    .text_sqlite = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
                   "SELECT count(*) FROM n",
};

static void
test_a_running_statement_is_cancelled_from_another_thread(struct fixture *f)
{
    struct canceller c = {.db = f->db};
    pthread_t thread;

    assert_int_equal(pipe(c.started), 0);
    assert_int_equal(pthread_create(&thread, NULL, cancel_later, &c), 0);
    fails(f, ERR_TIMEOUT, db_run(f->db, &never_ends, &f->err));
    assert_int_equal(write(c.started[1], "x", 1), 1);
    pthread_join(thread, NULL);
    close(c.started[0]);
    close(c.started[1]);
    err_clear(&f->err);
    assert_true(db_usable(f->db));
    ok(f, db_ping(f->db, &f->err));
}

static void
test_a_lock_not_to_be_had_in_time_is_told(struct fixture *f)
{
    struct db_options options = {
        .url = f->testdb.direct_url, .create = true, .lock_timeout_ms = 30};
    static const struct db_sql update = {.name = "u", .text = "UPDATE t SET b = 'z'"};
    scoped(db_closep) struct db *other = NULL;
    scoped(db_tx_end) struct db_tx theirs = {0}, ours = {0};
    int r;

    make_t(f);
    ok(f, db_run(f->db, &insert_t, &f->err, p_i64(1), p_text("x")));
    ok(f, db_open(&options, &other, &f->err));
    ok(f, db_begin(f->db, DB_WRITE, &ours, &f->err));
    ok(f, db_run(f->db, &update, &f->err));
    r = db_begin(other, DB_WRITE, &theirs, &f->err);
    if (r == 0)
        r = db_run(other, &update, &f->err);
    fails(f, ERR_STORE_BUSY, r);
    db_tx_end(&theirs);
    db_tx_end(&ours);
}

static void
test_a_statement_that_takes_too_long_times_out(struct fixture *f)
{
    struct db_options options = {.url = f->testdb.url, .statement_timeout_ms = 30};
    scoped(db_closep) struct db *db = NULL;

    ok(f, db_open(&options, &db, &f->err));
    fails(f, ERR_TIMEOUT, db_run(db, &never_ends, &f->err));
    assert_string_equal(f->err.detail, on_pg(f) ? "57014" : "SQLITE_INTERRUPT");
    assert_true(db_usable(db));
    err_clear(&f->err);
    ok(f, db_ping(db, &f->err));
}

static void
test_each_sqlstate_gets_its_code(struct fixture *f)
{
    static const struct {
        const char *state;
        enum err_code code;
    } rows[] = {
        {"40001", ERR_DB_CONFLICT},
        {"40P01", ERR_DB_CONFLICT},
        {"23503", ERR_DB_CONSTRAINT},
        {"53100", ERR_DISK_FULL},
        {"55P03", ERR_STORE_BUSY},
        {"57014", ERR_TIMEOUT},
        {"42501", ERR_DB},
        {"PW409", ERR_DB},
        {"53300", ERR_CONNECT},
        {"22001", ERR_DB_CONSTRAINT},
        {"22012", ERR_DB},
    };

    for (size_t i = 0; on_pg(f) && i < array_len(rows); i++) {
        char text[128];

        snprintf(text, sizeof(text),
                 "DO $do$ BEGIN RAISE SQLSTATE '%s' USING MESSAGE = 'the reason'; "
                 "END $do$",
                 rows[i].state);
        fails(f, rows[i].code, db_script(f->db, text, &f->err));
        assert_string_equal(f->err.detail, rows[i].state);
        assert_non_null(strstr(f->err.text, "the reason"));
        err_clear(&f->err);
    }
}

/* --- a connection that goes away (PostgreSQL) --- */

static int64_t
backend_pid(struct fixture *f)
{
    return number(f, "SELECT pg_backend_pid()");
}

/* End the server's process and wait until it is gone. */
static void
terminate(struct fixture *f, int64_t pid)
{
    struct db_options options = {.url = f->testdb.direct_url};
    static const struct db_sql kill = {
        .name = "kill",
        .text = "SELECT CAST(pg_terminate_backend(CAST($1 AS int), 10000) AS int)",
        .n_params = 1,
    };
    scoped(db_closep) struct db *admin = NULL;
    struct db_value param = p_i64(pid);
    int64_t done = 0;

    ok(f, db_open(&options, &admin, &f->err));
    assert_int_equal(db_query_i64(admin, &kill, &param, 1, &done, &f->err), 1);
    assert_int_equal(done, 1);
}

static void
test_a_lost_connection_is_told_and_not_used_again(struct fixture *f)
{
    struct db_tx tx = {0};

    if (!on_pg(f))
        return;
    make_t(f);
    ok(f, db_begin(f->db, DB_WRITE, &tx, &f->err));
    terminate(f, backend_pid(f));
    fails(f, ERR_CONNECT, db_run(f->db, &insert_t, &f->err, p_i64(1), p_text("x")));
    err_clear(&f->err);
    assert_false(db_usable(f->db));
    fails(f, ERR_CONNECT, db_ping(f->db, &f->err));
    assert_non_null(strstr(f->err.text, "open another"));
    err_clear(&f->err);
    fails(f, ERR_CONNECT, db_commit(&tx, &f->err));
    db_tx_end(&tx);
}

static void
test_a_server_that_hangs_fails_the_beat_in_time(struct fixture *f)
{
    struct db_options options = {.url = f->testdb.direct_url,
                                 .connect_timeout_ms = 200};
    static const struct db_sql pid_of = {.name = "pid",
                                         .text = "SELECT pg_backend_pid()"};
    scoped(db_closep) struct db *db = NULL;
    int64_t pid = 0;
    int r;

    if (f->kind != TESTDB_PG)
        return;
    ok(f, db_open(&options, &db, &f->err));
    ok(f, db_ping(db, &f->err));
    assert_int_equal(db_query_i64(db, &pid_of, NULL, 0, &pid, &f->err), 1);
    assert_int_equal(kill((pid_t)pid, SIGSTOP), 0);
    r = db_ping(db, &f->err);
    assert_int_equal(kill((pid_t)pid, SIGCONT), 0);
    fails(f, ERR_CONNECT, r);
    assert_false(db_usable(db));
}

static void
test_a_commit_whose_answer_is_lost_is_unknown(struct fixture *f)
{
    struct db_tx tx = {0};

    if (!on_pg(f))
        return;
    make_t(f);
    ok(f, db_begin(f->db, DB_WRITE, &tx, &f->err));
    ok(f, db_run(f->db, &insert_t, &f->err, p_i64(1), p_text("x")));
    terminate(f, backend_pid(f));
    fails(f, ERR_COMMIT_UNKNOWN, db_commit(&tx, &f->err));
    assert_false(db_usable(f->db));
    db_tx_end(&tx);
}

static void
test_a_stream_whose_server_goes_away_ends_with_a_failure(struct fixture *f)
{
    static const struct db_sql endless_rows = {
        .name = "endless_rows",
        .text = "SELECT generate_series(1, 1000000000), pg_backend_pid(), "
                "repeat('x', 1000)",
        .flags = DB_STREAM,
    };
    scoped(db_rows_end) struct db_rows rows = {0};
    int r;

    if (!on_pg(f))
        return;
    ok(f, db_ask(f->db, &endless_rows, &rows, &f->err));
    assert_int_equal(db_next(&rows, &f->err), 1);
    terminate(f, db_i64(&rows, 1));
    while ((r = db_next(&rows, &f->err)) > 0)
        ;
    fails(f, ERR_CONNECT, r);
    assert_false(db_usable(f->db));
}

static void
test_other_statements_are_refused_while_a_stream_is_read(struct fixture *f)
{
    static const struct db_sql stream = {
        .name = "stream_it",
        .text = "SELECT x FROM generate_series(1, 100000) x",
        .flags = DB_STREAM,
    };
    struct db_rows rows = {0};

    if (!on_pg(f))
        return;
    make_t(f);
    ok(f, db_ask(f->db, &stream, &rows, &f->err));
    fails(f, ERR_INTERNAL, db_run(f->db, &insert_t, &f->err, p_i64(1), p_text("x")));
    assert_non_null(strstr(f->err.text, "stream_it"));
    err_clear(&f->err);
    db_rows_end(&rows);
    ok(f, db_run(f->db, &insert_t, &f->err, p_i64(1), p_text("x")));
}

static void
test_a_rollback_ends_a_stream_that_is_still_read(struct fixture *f)
{
    static const struct db_sql stream = {
        .name = "s",
        .text = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n "
                "WHERE x < 100000) SELECT x FROM n",
        .flags = DB_STREAM,
    };
    struct db_rows rows = {0};
    struct db_tx tx = {0};

    ok(f, db_begin(f->db, DB_READ, &tx, &f->err));
    ok(f, db_ask(f->db, &stream, &rows, &f->err));
    assert_int_equal(db_next(&rows, &f->err), 1);
    db_tx_end(&tx);
    db_rows_end(&rows);
    assert_int_equal(number(f, "SELECT 1"), 1);
}

/* --- notifications --- */

struct heard {
    int count;
    char last[64];
};

static void
hear(void *arg, const char *channel, const char *payload)
{
    struct heard *heard = arg;

    heard->count++;
    snprintf(heard->last, sizeof(heard->last), "%s=%s", channel, payload);
}

static void
test_a_notification_wakes_the_listener(struct fixture *f)
{
    scoped(db_closep) struct db *other = NULL;
    struct heard heard = {0};
    struct pollfd fd = {.events = POLLIN};
    int r = 0;

    if (f->kind != TESTDB_PG) { /* told what to do instead */
        fails(f, ERR_CONFIG, db_listen(f->db, "queue", &f->err));
        return;
    }
    ok(f, db_listen(f->db, "odd \"name", &f->err));
    assert_int_equal(db_notifications(f->db, hear, &heard, &f->err), 0);
    other = testdb_open(&f->testdb);
    ok(f, db_script(other, "NOTIFY \"odd \"\"name\", 'now'", &f->err));
    fd.fd = db_notify_fd(f->db);
    while (r == 0) {
        assert_int_equal(poll(&fd, 1, 10000), 1);
        r = db_notifications(f->db, hear, &heard, &f->err);
    }
    ok(f, r);
    assert_int_equal(heard.count, 1);
    assert_string_equal(heard.last, "odd \"name=now");
}

static void
test_a_listener_learns_that_its_connection_is_gone(struct fixture *f)
{
    struct pollfd fd = {.events = POLLIN};
    int r = 0;

    if (f->kind != TESTDB_PG)
        return;
    ok(f, db_listen(f->db, "queue", &f->err));
    terminate(f, backend_pid(f));
    fd.fd = db_notify_fd(f->db);
    for (int i = 0; i < 10 && r == 0; i++) {
        assert_int_equal(poll(&fd, 1, 10000), 1);
        r = db_notifications(f->db, hear, &(struct heard){0}, &f->err);
    }
    fails(f, ERR_CONNECT, r);
    assert_false(db_usable(f->db));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        db_case(test_a_second_row_with_one_key_is_a_duplicate),
        db_case(test_a_syntax_error_names_statement_and_place),
        db_case(test_an_error_in_a_script_names_its_line),
        db_case(test_several_statements_are_for_scripts_only),
        db_case(test_a_running_statement_is_cancelled_from_another_thread),
        db_case(test_a_lock_not_to_be_had_in_time_is_told),
        db_case(test_a_statement_that_takes_too_long_times_out),
        db_case(test_each_sqlstate_gets_its_code),
        db_case(test_a_lost_connection_is_told_and_not_used_again),
        db_case(test_a_server_that_hangs_fails_the_beat_in_time),
        db_case(test_a_commit_whose_answer_is_lost_is_unknown),
        db_case(test_a_stream_whose_server_goes_away_ends_with_a_failure),
        db_case(test_other_statements_are_refused_while_a_stream_is_read),
        db_case(test_a_rollback_ends_a_stream_that_is_still_read),
        db_case(test_a_notification_wakes_the_listener),
        db_case(test_a_listener_learns_that_its_connection_is_gone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
