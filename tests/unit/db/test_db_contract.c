/* Statements, values, rows and transactions behave alike on every database. */
#include "contract.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const all_types_pg =
    "CREATE TABLE v (k bigint PRIMARY KEY, i bigint, r double precision, t text, "
    "b bytea, o boolean, d numeric(30,10), day date, at timestamptz)";
static const char *const all_types_sqlite =
    "CREATE TABLE v (k INTEGER PRIMARY KEY, i INTEGER, r REAL, t TEXT, "
    "b BLOB, o BOOLEAN, d TEXT_DECIMAL, day DATE, at TIMESTAMP)";

static const struct db_sql insert_v = {
    .name = "insert_v",
    .text = "INSERT INTO v (k, i, r, t, b, o, d, day) "
            "VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    .n_params = 8,
};
static const struct db_sql select_v = {
    .name = "select_v",
    .text = "SELECT k, i, r, t, b, o, d, day FROM v ORDER BY k",
};

static void
make_v(struct fixture *f)
{
    script(f, db_kind(f->db) == DB_PG ? all_types_pg : all_types_sqlite);
}

static void
make_t(struct fixture *f)
{
    script(f, "CREATE TABLE t (a bigint PRIMARY KEY, b text)");
}

static const struct db_sql insert_t = {
    .name = "insert_t",
    .text = "INSERT INTO t (a, b) VALUES ($1, $2)",
    .n_params = 2,
};

static void
test_values_come_back_as_they_went_in(struct fixture *f)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    const char *text = "žluťoučký 한국어 \"q\" 'a' \\ \t\n\r 😀";
    struct db_value day = p_bytes(DB_DATE, "2031-12-24", 10);
    char bytes[256];

    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    make_v(f);
    ok(f, db_run(f->db, &insert_v, &f->err, p_i64(1), p_i64(INT64_MIN), p_real(0.1),
                 p_text(text), p_blob(bytes, 256), p_bool(true),
                 p_decimal("12345678901234567890.0123456789"), day));
    ok(f, db_run(f->db, &insert_v, &f->err, p_i64(2), p_i64(INT64_MAX),
                 p_real(-1.7976931348623157e308), p_text(""), p_blob("", 0),
                 p_bool(false), p_decimal("-0.5000000000"), day));
    ok(f, db_run(f->db, &insert_v, &f->err, p_i64(3), p_null(), p_null(),
                 p_opt_text(NULL), p_null(), p_null(), p_null(), p_null()));

    ok(f, db_ask(f->db, &select_v, &rows, &f->err));
    assert_int_equal(db_column_count(&rows), 8);
    assert_string_equal(db_column_name(&rows, 3), "t");
    assert_int_equal(db_column(&rows, "d"), 6);
    assert_int_equal(db_column(&rows, "none"), -1);

    assert_int_equal(db_next(&rows, &f->err), 1);
    assert_true(db_i64(&rows, 1) == INT64_MIN);
    assert_true(db_double(&rows, 2) == 0.1);
    assert_string_equal(db_text(&rows, 3), text);
    assert_int_equal(db_text_len(&rows, 3), strlen(text));
    assert_int_equal(db_cell(&rows, 4).type, DB_BLOB);
    assert_int_equal(db_cell(&rows, 4).s.n, 256);
    assert_memory_equal(db_cell(&rows, 4).s.p, bytes, 256);
    assert_int_equal(db_cell(&rows, 5).type, DB_BOOL);
    assert_true(db_bool(&rows, 5));
    assert_int_equal(db_cell(&rows, 6).type, DB_DECIMAL);
    assert_string_equal(db_text(&rows, 6), "12345678901234567890.0123456789");
    assert_int_equal(db_cell(&rows, 7).type, DB_DATE);
    assert_string_equal(db_text(&rows, 7), "2031-12-24");

    assert_int_equal(db_next(&rows, &f->err), 1);
    assert_true(db_i64(&rows, 1) == INT64_MAX);
    assert_true(db_double(&rows, 2) == -1.7976931348623157e308);
    assert_string_equal(db_text(&rows, 3), "");
    assert_false(db_is_null(&rows, 3));
    assert_int_equal(db_cell(&rows, 4).s.n, 0);
    assert_false(db_is_null(&rows, 4));
    assert_false(db_bool(&rows, 5));
    assert_string_equal(db_text(&rows, 6), "-0.5000000000");

    assert_int_equal(db_next(&rows, &f->err), 1);
    for (int c = 1; c < 8; c++) {
        assert_true(db_is_null(&rows, c));
        assert_null(db_text(&rows, c));
        assert_int_equal(db_i64(&rows, c), 0);
    }
    assert_int_equal(db_next(&rows, &f->err), 0);
    assert_int_equal(db_next(&rows, &f->err), 0);
}

static void
test_column_types_are_known_before_the_first_row(struct fixture *f)
{
    static const enum db_type want[] = {DB_INT,  DB_INT,  DB_REAL,    DB_TEXT,
                                        DB_BLOB, DB_BOOL, DB_DECIMAL, DB_DATE};
    scoped(db_rows_end) struct db_rows rows = {0};

    make_v(f);
    ok(f, db_ask(f->db, &select_v, &rows, &f->err));
    for (int c = 0; c < 8; c++)
        assert_int_equal(db_column_type(&rows, c), want[c]);
    assert_int_equal(db_next(&rows, &f->err), 0);
}

static void
test_parameters_are_bound_by_number_not_by_place(struct fixture *f)
{
    static const struct db_sql swapped = {
        .name = "swapped",
        .text = "SELECT CAST($2 AS text), CAST($1 AS text), CAST($2 AS text)",
        .n_params = 2,
    };
    scoped(db_rows_end) struct db_rows rows = {0};

    ok(f, db_ask(f->db, &swapped, &rows, &f->err, p_text("one"), p_text("two")));
    assert_int_equal(db_next(&rows, &f->err), 1);
    assert_string_equal(db_text(&rows, 0), "two");
    assert_string_equal(db_text(&rows, 1), "one");
    assert_string_equal(db_text(&rows, 2), "two");
}

static void
test_a_wrong_count_of_parameters_is_refused(struct fixture *f)
{
    make_t(f);
    fails(f, ERR_INTERNAL, db_run(f->db, &insert_t, &f->err, p_i64(1)));
    assert_non_null(strstr(f->err.text, "insert_t"));
}

static void
test_a_nul_byte_in_text_is_refused_not_cut(struct fixture *f)
{
    make_t(f);
    fails(f, ERR_INVALID,
          db_run(f->db, &insert_t, &f->err, p_i64(1), p_text_n("a\0b", 3)));
    err_clear(&f->err);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 0);
}

static void
test_lists_go_in_as_one_parameter(struct fixture *f)
{
    static const struct db_sql ints = {
        .name = "ints",
        .text_pg = "SELECT CAST(sum(x) AS bigint) FROM unnest(CAST($1 AS bigint[])) x",
        .text_sqlite = "SELECT sum(value) FROM json_each($1)",
        .n_params = 1,
    };
    static const struct db_sql texts = {
        .name = "texts",
        .text_pg = "SELECT x FROM unnest(CAST($1 AS text[])) WITH ORDINALITY u(x, n) "
                   "ORDER BY n",
        .text_sqlite = "SELECT value FROM json_each($1) ORDER BY key",
        .n_params = 1,
    };
    static const char *const words[] = {"a,b",  "{c}", "\"d\"",  "e\\f",        NULL,
                                        "NULL", "",    "한국어", "g\th\ni\x01", "'"};
    static const int64_t numbers[] = {INT64_MAX, -1, 0, INT64_MIN + 1, 7};
    scoped(db_rows_end) struct db_rows rows = {0};
    int64_t sum = 0;
    struct db_value list = p_i64_array(numbers, array_len(numbers));

    assert_int_equal(db_query_i64(f->db, &ints, &list, 1, &sum, &f->err), 1);
    assert_int_equal(sum, 6);
    ok(f, db_ask(f->db, &texts, &rows, &f->err, p_text_array(words, array_len(words))));
    for (size_t i = 0; i < array_len(words); i++) {
        assert_int_equal(db_next(&rows, &f->err), 1);
        if (words[i])
            assert_string_equal(db_text(&rows, 0), words[i]);
        else
            assert_true(db_is_null(&rows, 0));
    }
    assert_int_equal(db_next(&rows, &f->err), 0);
    db_rows_end(&rows);
    ok(f, db_ask(f->db, &texts, &rows, &f->err, p_text_array(words, 0)));
    assert_int_equal(db_next(&rows, &f->err), 0);
}

static void
test_changes_count_rows_written_and_not_rows_read(struct fixture *f)
{
    static const struct db_sql update = {.name = "u", .text = "UPDATE t SET b = 'x'"};
    static const struct db_sql none = {.name = "n",
                                       .text = "UPDATE t SET b = 'x' WHERE a < 0"};
    static const struct db_sql select = {.name = "s", .text = "SELECT a FROM t"};
    static const struct db_sql back = {.name = "r",
                                       .text = "DELETE FROM t WHERE a < 3 RETURNING a"};
    scoped(db_rows_end) struct db_rows rows = {0};

    make_t(f);
    for (int i = 1; i <= 3; i++)
        ok(f, db_run(f->db, &insert_t, &f->err, p_i64(i), p_null()));
    ok(f, db_run(f->db, &update, &f->err));
    assert_int_equal(db_changes(f->db), 3);
    ok(f, db_run(f->db, &select, &f->err));
    assert_int_equal(db_changes(f->db), 0);
    ok(f, db_run(f->db, &update, &f->err));
    ok(f, db_run(f->db, &none, &f->err));
    assert_int_equal(db_changes(f->db), 0);
    ok(f, db_ask(f->db, &back, &rows, &f->err));
    while (db_next(&rows, &f->err) > 0)
        assert_in_range(db_i64(&rows, 0), 1, 2);
    assert_int_equal(db_changes(f->db), 2);
}

static void
test_a_statement_may_run_while_rows_of_the_same_are_read(struct fixture *f)
{
    static const struct db_sql select = {.name = "s",
                                         .text = "SELECT a FROM t ORDER BY a"};
    scoped(db_rows_end) struct db_rows outer = {0};
    int seen = 0;

    make_t(f);
    for (int i = 1; i <= 3; i++)
        ok(f, db_run(f->db, &insert_t, &f->err, p_i64(i), p_null()));
    ok(f, db_ask(f->db, &select, &outer, &f->err));
    while (db_next(&outer, &f->err) > 0) {
        scoped(db_rows_end) struct db_rows inner = {0};

        seen++;
        ok(f, db_ask(f->db, &select, &inner, &f->err));
        assert_int_equal(db_next(&inner, &f->err), 1);
        assert_int_equal(db_i64(&inner, 0), 1);
        assert_int_equal(db_i64(&outer, 0), seen);
    }
    assert_int_equal(seen, 3);
}

static void
test_a_prepared_statement_survives_a_change_of_its_table(struct fixture *f)
{
    static const struct db_sql select = {.name = "s", .text = "SELECT * FROM t"};
    scoped(db_rows_end) struct db_rows rows = {0};

    make_t(f);
    ok(f, db_run(f->db, &select, &f->err));
    ok(f, db_run(f->db, &insert_t, &f->err, p_i64(1), p_null()));
    script(f, "ALTER TABLE t ADD COLUMN c bigint DEFAULT 5");
    ok(f, db_ask(f->db, &select, &rows, &f->err));
    assert_int_equal(db_next(&rows, &f->err), 1);
    assert_int_equal(db_column_count(&rows), 3);
    assert_int_equal(db_i64(&rows, db_column(&rows, "c")), 5);
}

static void
test_more_statements_than_are_kept_prepared_all_run(struct fixture *f)
{
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 300; i++) {
            char text[48];
            struct db_sql sql = {.name = "many", .text = text};
            int64_t value = -1;

            snprintf(text, sizeof(text), "SELECT CAST(%d AS bigint)", i);
            assert_int_equal(db_query_i64(f->db, &sql, NULL, 0, &value, &f->err), 1);
            assert_int_equal(value, i);
        }
    }
}

static void
test_describe_tells_columns_and_parameters_without_running(struct fixture *f)
{
    static const struct db_sql sql = {
        .name = "d",
        .text = "DELETE FROM t WHERE a = $1 OR b = $2 RETURNING b AS word, a",
        .n_params = 2,
    };
    scoped(db_rows_end) struct db_rows rows = {0};

    make_t(f);
    ok(f, db_run(f->db, &insert_t, &f->err, p_i64(1), p_null()));
    ok(f, db_describe(f->db, &sql, &rows, &f->err));
    assert_int_equal(db_param_count(&rows), 2);
    assert_int_equal(db_column_count(&rows), 2);
    assert_string_equal(db_column_name(&rows, 0), "word");
    assert_int_equal(db_column_type(&rows, 1), DB_INT);
    assert_int_equal(db_next(&rows, &f->err), 0);
    db_rows_end(&rows);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 1);
}

/* --- streams --- */

static const struct db_sql numbers_stream = {
    .name = "numbers",
    .text = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n "
            "WHERE x < 20000) SELECT x, 'row ' || x FROM n",
    .flags = DB_STREAM,
};

static void
test_a_stream_gives_every_row_in_order(struct fixture *f)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int64_t want = 0;
    int r;

    ok(f, db_ask(f->db, &numbers_stream, &rows, &f->err));
    assert_int_equal(db_column_count(&rows), 2);
    while ((r = db_next(&rows, &f->err)) > 0)
        assert_int_equal(db_i64(&rows, 0), ++want);
    ok(f, r);
    assert_int_equal(want, 20000);
    assert_int_equal(number(f, "SELECT 1"), 1);
}

static void
test_a_stream_left_early_leaves_the_connection_usable(struct fixture *f)
{
    for (int i = 0; i < 3; i++) {
        scoped(db_rows_end) struct db_rows rows = {0};

        ok(f, db_ask(f->db, &numbers_stream, &rows, &f->err));
        assert_int_equal(db_next(&rows, &f->err), 1);
        db_rows_end(&rows);
        assert_int_equal(number(f, "SELECT 42"), 42);
    }
}

static void
test_a_failure_in_the_middle_of_a_stream_is_told(struct fixture *f)
{
    static const struct db_sql breaks = {
        .name = "breaks",
        .text_pg = "SELECT 10 / (5 - x) FROM generate_series(1, 10) x",
        .text_sqlite = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n "
                       "WHERE x < 10) SELECT abs(CASE x WHEN 5 THEN "
                       "-9223372036854775807 - 1 ELSE x END) FROM n",
        .flags = DB_STREAM,
    };
    scoped(db_rows_end) struct db_rows rows = {0};
    int r, seen = 0;

    ok(f, db_ask(f->db, &breaks, &rows, &f->err));
    while ((r = db_next(&rows, &f->err)) > 0)
        seen++;
    assert_int_equal(seen, 4);
    fails(f, ERR_DB, r);
    db_rows_end(&rows);
    err_clear(&f->err);
    assert_int_equal(number(f, "SELECT 1"), 1);
}

/* --- transactions --- */

static void
test_what_is_committed_is_seen_by_others_and_what_is_not_is_not(struct fixture *f)
{
    scoped(db_closep) struct db *other = testdb_open(&f->testdb);
    static const struct db_sql count = {.name = "c", .text = "SELECT count(*) FROM t"};
    int64_t n = -1;

    make_t(f);
    {
        scoped(db_tx_end) struct db_tx tx = {0};

        ok(f, db_begin(f->db, DB_WRITE, &tx, &f->err));
        assert_true(db_in_tx(f->db));
        ok(f, db_run(f->db, &insert_t, &f->err, p_i64(1), p_null()));
    }
    assert_false(db_in_tx(f->db));
    assert_int_equal(db_query_i64(other, &count, NULL, 0, &n, &f->err), 1);
    assert_int_equal(n, 0);
    {
        scoped(db_tx_end) struct db_tx tx = {0};

        ok(f, db_begin(f->db, DB_WRITE, &tx, &f->err));
        ok(f, db_run(f->db, &insert_t, &f->err, p_i64(1), p_null()));
        ok(f, db_commit(&tx, &f->err));
    }
    assert_int_equal(db_query_i64(other, &count, NULL, 0, &n, &f->err), 1);
    assert_int_equal(n, 1);
}

static void
test_a_failure_inside_a_transaction_spoils_it(struct fixture *f)
{
    struct db_tx tx = {0};

    make_t(f);
    ok(f, db_begin(f->db, DB_WRITE, &tx, &f->err));
    ok(f, db_run(f->db, &insert_t, &f->err, p_i64(1), p_null()));
    fails(f, ERR_DB_CONSTRAINT, db_run(f->db, &insert_t, &f->err, p_i64(1), p_null()));
    err_clear(&f->err);
    fails(f, ERR_DB, db_run(f->db, &insert_t, &f->err, p_i64(2), p_null()));
    assert_string_equal(f->err.detail, "25P02");
    err_clear(&f->err);
    fails(f, ERR_DB, db_commit(&tx, &f->err));
    err_clear(&f->err);
    db_tx_end(&tx);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 0);
    ok(f, db_run(f->db, &insert_t, &f->err, p_i64(2), p_null()));
}

static void
test_a_savepoint_saves_what_was_before_a_failure(struct fixture *f)
{
    struct db_tx tx = {0};

    make_t(f);
    ok(f, db_begin(f->db, DB_WRITE, &tx, &f->err));
    ok(f, db_run(f->db, &insert_t, &f->err, p_i64(1), p_null()));
    ok(f, db_savepoint(f->db, "here", &f->err));
    ok(f, db_run(f->db, &insert_t, &f->err, p_i64(2), p_null()));
    fails(f, ERR_DB_CONSTRAINT, db_run(f->db, &insert_t, &f->err, p_i64(1), p_null()));
    err_clear(&f->err);
    ok(f, db_rollback_to(f->db, "here", &f->err));
    ok(f, db_run(f->db, &insert_t, &f->err, p_i64(3), p_null()));
    ok(f, db_release(f->db, "here", &f->err));
    ok(f, db_commit(&tx, &f->err));
    assert_int_equal(number(f, "SELECT sum(a) FROM t"), 4);
}

static void
test_a_read_transaction_sees_one_state_and_does_not_write(struct fixture *f)
{
    scoped(db_closep) struct db *other = NULL;
    struct db_tx tx = {0};

    if (f->kind == TESTDB_SQLITE)
        script(f, "PRAGMA journal_mode = WAL");
    make_t(f);
    other = testdb_open(&f->testdb);
    ok(f, db_begin(f->db, DB_READ, &tx, &f->err));
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 0);
    ok(f, db_run(other, &insert_t, &f->err, p_i64(1), p_null()));
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 0);
    fails(f, ERR_DB, db_run(f->db, &insert_t, &f->err, p_i64(2), p_null()));
    assert_string_equal(f->err.detail, "25006");
    err_clear(&f->err);
    db_tx_end(&tx);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 1);
}

static void
test_a_second_begin_is_refused(struct fixture *f)
{
    struct db_tx tx = {0}, second = {0};

    ok(f, db_begin(f->db, DB_WRITE, &tx, &f->err));
    fails(f, ERR_INTERNAL, db_begin(f->db, DB_WRITE, &second, &f->err));
    db_tx_end(&tx);
}

/* --- copy --- */

static void
test_copy_brings_in_what_insert_would(struct fixture *f)
{
    static const char *const columns[] = {"k", "i", "r", "t", "b", "o", "d", "day"};
    scoped(db_rows_end) struct db_rows rows = {0};
    scoped(db_copy_abort) struct db_copy copy = {0};
    const char *text = "tab\t nl\n cr\r bs\\ \\N 'q' \"dq\" 한국어";
    int64_t n = 0;
    char bytes[256];

    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    make_v(f);
    ok(f, db_copy_begin(f->db, "v", columns, 8, &copy, &f->err));
    for (int i = 0; i < 5000; i++) {
        struct db_value row[] = {
            p_i64(i),           p_i64(INT64_MIN),
            p_real(0.1),        p_text(text),
            p_blob(bytes, 256), p_bool(i % 2),
            p_decimal("1.50"),  i ? p_bytes(DB_DATE, "2031-12-24", 10) : p_null()};

        ok(f, db_copy_row(&copy, row, &f->err));
    }
    ok(f, db_copy_end(&copy, &n, &f->err));
    assert_int_equal(n, 5000);
    assert_int_equal(number(f, "SELECT count(*) FROM v"), 5000);
    ok(f, db_ask(f->db, &select_v, &rows, &f->err));
    assert_int_equal(db_next(&rows, &f->err), 1);
    assert_true(db_i64(&rows, 1) == INT64_MIN);
    assert_true(db_double(&rows, 2) == 0.1);
    assert_string_equal(db_text(&rows, 3), text);
    assert_int_equal(db_cell(&rows, 4).s.n, 256);
    assert_memory_equal(db_cell(&rows, 4).s.p, bytes, 256);
    assert_true(db_is_null(&rows, 7));
}

static void
test_a_copy_that_breaks_a_rule_names_the_row_and_leaves_nothing(struct fixture *f)
{
    static const char *const columns[] = {"a"};
    struct db_copy copy = {0};
    struct db_tx tx = {0};
    int r = 0;

    make_t(f);
    ok(f, db_begin(f->db, DB_WRITE, &tx, &f->err));
    ok(f, db_copy_begin(f->db, "t", columns, 1, &copy, &f->err));
    for (int i = 0; i < 3 && r == 0; i++) {
        struct db_value row = p_i64(i == 2 ? 1 : i);

        r = db_copy_row(&copy, &row, &f->err);
    }
    if (r == 0)
        r = db_copy_end(&copy, NULL, &f->err);
    fails(f, ERR_DB_CONSTRAINT, r);
    assert_true(db_is_duplicate(&f->err));
    assert_non_null(strstr(f->err.text, "row 3"));
    err_clear(&f->err);
    db_copy_abort(&copy);
    db_tx_end(&tx);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 0);
}

/* The value is to blame, as where a rule of the table is broken. */
static void
test_a_value_that_its_column_does_not_take_is_told_as_a_constraint(struct fixture *f)
{
    static const struct db_sql insert = {
        .name = "insert_n", .text = "INSERT INTO n (a) VALUES ($1)", .n_params = 1};
    static const char *const columns[] = {"a"};
    struct db_value row = p_text("too long");
    struct db_copy copy = {0};
    int r;

    script(f, f->kind == TESTDB_SQLITE ? "CREATE TABLE n (a integer PRIMARY KEY)"
                                       : "CREATE TABLE n (a varchar(3))");
    fails(f, ERR_DB_CONSTRAINT, db_run(f->db, &insert, &f->err, row));
    assert_false(db_is_duplicate(&f->err));
    err_clear(&f->err);
    ok(f, db_copy_begin(f->db, "n", columns, 1, &copy, &f->err));
    r = db_copy_row(&copy, &row, &f->err);
    if (r == 0)
        r = db_copy_end(&copy, NULL, &f->err);
    fails(f, ERR_DB_CONSTRAINT, r);
    assert_non_null(strstr(f->err.text,
                           f->kind == TESTDB_SQLITE ? "row 1: " : "row 1, column a: "));
    err_clear(&f->err);
    db_copy_abort(&copy);
}

static void
test_a_copy_given_up_leaves_nothing_and_the_connection_usable(struct fixture *f)
{
    static const char *const columns[] = {"a", "b"};
    struct db_value row[] = {p_i64(1), p_text("x")};
    struct db_copy copy = {0};
    struct db_tx tx = {0};

    make_t(f);
    ok(f, db_begin(f->db, DB_WRITE, &tx, &f->err));
    ok(f, db_copy_begin(f->db, "t", columns, 2, &copy, &f->err));
    ok(f, db_copy_row(&copy, row, &f->err));
    db_copy_abort(&copy);
    db_tx_end(&tx);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 0);
}

static void
test_names_with_quotes_are_names(struct fixture *f)
{
    static const char *const columns[] = {"od\"d", "select"};
    struct db_value row[] = {p_i64(1), p_text("x")};
    scoped(db_copy_abort) struct db_copy copy = {0};

    script(f, "CREATE TABLE \"ta\"\"ble\" (\"od\"\"d\" bigint, \"select\" text)");
    ok(f, db_copy_begin(f->db, "ta\"ble", columns, 2, &copy, &f->err));
    ok(f, db_copy_row(&copy, row, &f->err));
    ok(f, db_copy_end(&copy, NULL, &f->err));
    assert_int_equal(number(f, "SELECT count(*) FROM \"ta\"\"ble\""), 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        db_case(test_values_come_back_as_they_went_in),
        db_case(test_column_types_are_known_before_the_first_row),
        db_case(test_parameters_are_bound_by_number_not_by_place),
        db_case(test_a_wrong_count_of_parameters_is_refused),
        db_case(test_a_nul_byte_in_text_is_refused_not_cut),
        db_case(test_lists_go_in_as_one_parameter),
        db_case(test_changes_count_rows_written_and_not_rows_read),
        db_case(test_a_statement_may_run_while_rows_of_the_same_are_read),
        db_case(test_a_prepared_statement_survives_a_change_of_its_table),
        db_case(test_more_statements_than_are_kept_prepared_all_run),
        db_case(test_describe_tells_columns_and_parameters_without_running),
        db_case(test_a_stream_gives_every_row_in_order),
        db_case(test_a_stream_left_early_leaves_the_connection_usable),
        db_case(test_a_failure_in_the_middle_of_a_stream_is_told),
        db_case(test_what_is_committed_is_seen_by_others_and_what_is_not_is_not),
        db_case(test_a_failure_inside_a_transaction_spoils_it),
        db_case(test_a_savepoint_saves_what_was_before_a_failure),
        db_case(test_a_read_transaction_sees_one_state_and_does_not_write),
        db_case(test_a_second_begin_is_refused),
        db_case(test_copy_brings_in_what_insert_would),
        db_case(test_a_copy_that_breaks_a_rule_names_the_row_and_leaves_nothing),
        db_case(test_a_value_that_its_column_does_not_take_is_told_as_a_constraint),
        db_case(test_a_copy_given_up_leaves_nothing_and_the_connection_usable),
        db_case(test_names_with_quotes_are_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
