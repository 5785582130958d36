/* Rows into both databases. */
#include "sql_test.h"

#include "io/write_sql.h"

static const struct column columns[] = {
    {"id", CELL_INT}, {"name", CELL_TEXT}, {"price", CELL_DECIMAL}, {"day", CELL_DATE}};

static void
make_rows(struct io_test *t, struct row_set *rows, int from, int to)
{
    row_set_clear(rows, 4);
    for (int i = from; i < to; i++) {
        struct cell *cells = row_set_add(rows);
        char text[32];

        cell_set_i64(&cells[0], CELL_INT, i);
        (void)snprintf(text, sizeof(text), "n'%d\t한\\", i);
        ok(t,
           cell_set_text(rows, &cells[1], CELL_TEXT, text, strlen(text), "n", &t->err));
        if (i % 2)
            ok(t,
               cell_set_text(rows, &cells[2], CELL_DECIMAL, "0.10", 4, "p", &t->err));
        cell_set_i64(&cells[3], CELL_DATE, 19782);
    }
}

/* Write rows from..to by a definition, as two chunks; the last may stay uncommitted. */
static int
write_rows(struct sql_test *s, const char *def_text, int from, int to, bool commit)
{
    scoped(writer_freep) struct writer *writer = NULL;
    scoped(buf_release) struct buf state = {0};
    json_t *def = json_of(def_text);
    struct row_set rows;
    int r;

    row_set_init(&rows, 0);
    buf_init(&state, 0);
    ok(&s->t, write_sql_new(&s->t.io, def, &writer, &s->t.err));
    ok(&s->t, writer_open(writer, NULL, &s->t.err));
    ok(&s->t, writer_begin(writer, columns, array_len(columns), &s->t.err));
    make_rows(&s->t, &rows, from, (from + to) / 2);
    r = writer_write(writer, &rows, &s->t.err);
    if (r == 0)
        r = writer_commit(writer, &state, &s->t.err);
    make_rows(&s->t, &rows, (from + to) / 2, to);
    if (r == 0)
        r = writer_write(writer, &rows, &s->t.err);
    if (r == 0 && commit)
        r = writer_commit(writer, &state, &s->t.err);
    writer_freep(&writer);
    row_set_release(&rows);
    json_decref(def);
    return r;
}

static void
expect_count(struct sql_test *s, const char *text, int64_t want)
{
    const struct db_sql sql = {.name = "count", .text = text};
    int64_t got = -1;

    ok(&s->t, db_query_i64(s->read, &sql, NULL, 0, &got, &s->t.err));
    if (got != want)
        fail_msg("%s gives %lld, not %lld", text, (long long)got, (long long)want);
}

static const char table_sql[] = "CREATE TABLE city (id int PRIMARY KEY, name text NOT "
                                "NULL, price numeric, day date)";

static void
rows_are_inserted_and_uncommitted_ones_are_not(enum testdb_kind kind)
{
    static const char def[] =
        "{\"database\":\"shop\",\"checkpoint\":\"none\",\"table\":\"city\"}";
    struct sql_test s = {0};

    if (!begin(&s, kind, "{}"))
        skip();
    ok(&s.t, db_script(s.write, table_sql, &s.t.err));
    ok(&s.t, write_rows(&s, def, 0, 2000, true));
    expect_count(&s, "SELECT count(*) FROM city", 2000);
    expect_count(&s, "SELECT count(*) FROM city WHERE price IS NULL", 1000);
    expect_count(&s, "SELECT count(*) FROM city WHERE day = '2024-02-29'", 2000);
    ok(&s.t, write_rows(&s, def, 2000, 3000, false));
    expect_count(&s, "SELECT count(*) FROM city", 2500);
    fails(&s.t, ERR_DB_CONSTRAINT, "write to database shop",
          write_rows(&s, def, 2400, 2600, true));
    expect_count(&s, "SELECT count(*) FROM city", 2500);
    fails(&s.t, ERR_DB, "nowhere",
          write_rows(
              &s,
              "{\"database\":\"shop\",\"checkpoint\":\"none\",\"table\":\"nowhere\"}",
              0, 2, true));
    end(&s);
}

static void
upsert_replaces_by_its_key(enum testdb_kind kind)
{
    static const char def[] =
        "{\"database\":\"shop\",\"checkpoint\":\"none\",\"table\":\"city\",\"mode\":"
        "\"upsert\",\"key\":[\"id\"]}";
    struct sql_test s = {0};

    if (!begin(&s, kind, "{}"))
        skip();
    ok(&s.t, db_script(s.write, table_sql, &s.t.err));
    ok(&s.t,
       db_script(s.write, "INSERT INTO city VALUES (5, 'old', 1, NULL)", &s.t.err));
    ok(&s.t, write_rows(&s, def, 0, 10, true));
    ok(&s.t, write_rows(&s, def, 5, 20, true));
    expect_count(&s, "SELECT count(*) FROM city", 20);
    expect_count(&s, "SELECT count(*) FROM city WHERE name = 'old'", 0);
    fails(
        &s.t, ERR_CONFIG, "no column \"nr\"",
        write_rows(&s,
                   "{\"database\":\"shop\",\"checkpoint\":\"none\",\"table\":\"city\","
                   "\"mode\":\"upsert\",\"key\":[\"nr\"]}",
                   0, 2, true));
    end(&s);
}

/* Of two rows with one key in a chunk the last stands, and a bad row is named. */
static void
an_upsert_takes_the_last_of_a_key_and_names_a_bad_row(enum testdb_kind kind)
{
    static const char def_text[] = "{\"database\":\"main\",\"table\":\"city\","
                                   "\"mode\":\"upsert\",\"key\":[\"id\"]}";
    scoped(writer_freep) struct writer *writer = NULL;
    json_t *def = json_of(def_text);
    struct sql_test s = {0};
    struct row_set rows;

    if (!begin(&s, kind, "{}"))
        skip();
    ok(&s.t, db_script(s.write, table_sql, &s.t.err));
    ok(&s.t, write_sql_new(&s.t.io, def, &writer, &s.t.err));
    ok(&s.t, writer_open(writer, NULL, &s.t.err));
    ok(&s.t, writer_begin(writer, columns, array_len(columns), &s.t.err));
    row_set_init(&rows, 0);
    make_rows(&s.t, &rows, 0, 12000);
    row_set_row(&rows, 7)[0].i = 3;
    row_set_row(&rows, 7)[2] = row_set_row(&rows, 1)[2];
    for (int i = 0; i < 2; i++) {
        scoped(db_tx_end) struct db_tx tx = {0};

        if (i == 1) /* name is NOT NULL */
            row_set_row(&rows, 11990)[1].type = CELL_NULL;
        ok(&s.t, db_begin(s.write, DB_WRITE, &tx, &s.t.err));
        ok(&s.t, writer_write(writer, &rows, &s.t.err));
        if (i == 0) {
            ok(&s.t, writer_apply(writer, s.write, &rows, &s.t.err));
            ok(&s.t, db_commit(&tx, &s.t.err));
        } else {
            fails(&s.t, ERR_DB_CONSTRAINT, "row 23991",
                  writer_apply(writer, s.write, &rows, &s.t.err));
        }
    }
    expect_count(&s, "SELECT count(*) FROM city", 11999);
    expect_count(&s, "SELECT count(*) FROM city WHERE id = 3 AND name LIKE 'n''7%'", 1);
    expect_count(&s, "SELECT count(*) FROM city WHERE price IS NULL", 6000);
    expect_count(&s, "SELECT count(*) FROM city WHERE day = '2024-02-29'", 11999);
    row_set_release(&rows);
    writer_freep(&writer);
    json_decref(def);
    end(&s);
}

/* Values of every type are the same by an upsert of many as one by one. */
static void
test_an_upsert_of_many_spells_values_as_the_database_reads_them_on_pg(void **state)
{
    static const struct column all[] = {
        {"k", CELL_INT},       {"t", CELL_TEXT},       {"r", CELL_REAL},
        {"b", CELL_BOOL},      {"d", CELL_DATE},       {"ts", CELL_TIMESTAMP},
        {"by", CELL_BYTES},    {"v", CELL_TEXT},       {"j", CELL_TEXT},
        {"dec", CELL_DECIMAL}, {"null", CELL_DECIMAL},
    };
    static const struct cell_spec specs[] = {
        {CELL_INT, .i = 1},
        {CELL_TEXT, .text = "a\"b\\c{,}NULL\n한"},
        {CELL_REAL, .real = 0.1},
        {CELL_BOOL, .i = 1},
        {CELL_DATE, .i = 19782},
        {CELL_TIMESTAMP, .i = 1700000000123456},
        {CELL_BYTES, .text = "\x01\xff'"},
        {CELL_TEXT, .text = "abc"},
        {CELL_TEXT, .text = "{\"a\": [1]}"},
        {CELL_DECIMAL, .text = "12345678901234567890.5"},
        {CELL_NULL},
    };
    scoped(writer_freep) struct writer *writer = NULL;
    json_t *def = json_of("{\"database\":\"main\",\"table\":\"public.Every\","
                          "\"mode\":\"upsert\",\"key\":[\"k\"]}");
    struct sql_test s = {0};
    struct row_set rows;

    if (!begin(&s, TESTDB_PG, "{}"))
        skip();
    ok(&s.t,
       db_script(s.write,
                 "CREATE TABLE \"Every\" (k bigint PRIMARY KEY, t text, r float8, "
                 "b boolean, d date, ts timestamptz, by bytea, v varchar(3), "
                 "j jsonb, dec numeric, \"null\" numeric(5,2))",
                 &s.t.err));
    ok(&s.t, write_sql_new(&s.t.io, def, &writer, &s.t.err));
    ok(&s.t, writer_open(writer, NULL, &s.t.err));
    ok(&s.t, writer_begin(writer, all, array_len(all), &s.t.err));
    row_set_init(&rows, 0);
    row_set_clear(&rows, array_len(all));
    for (size_t i = 0; i < array_len(all); i++)
        put_spec(&s.t, &rows, i ? &row_set_row(&rows, 0)[i] : row_set_add(&rows),
                 &specs[i]);
    for (int i = 0; i < 2; i++) {
        scoped(db_tx_end) struct db_tx tx = {0};

        ok(&s.t, db_begin(s.write, DB_WRITE, &tx, &s.t.err));
        ok(&s.t, writer_apply(writer, s.write, &rows, &s.t.err));
        ok(&s.t, db_commit(&tx, &s.t.err));
    }
    expect_count(&s,
                 "SELECT count(*) FROM \"Every\" WHERE k = 1 AND "
                 "t = E'a\"b\\\\c{,}NULL\\n한' AND r = 0.1 AND b AND d = '2024-02-29' "
                 "AND ts = '2023-11-14 22:13:20.123456+00' AND by = '\\x01ff27' AND "
                 "v = 'abc' AND j = '{\"a\":[1]}' AND dec = 12345678901234567890.5 "
                 "AND \"null\" IS NULL",
                 1);
    /* Too long is refused, not cut off. */
    ok(&s.t, cell_set_text(&rows, &row_set_row(&rows, 0)[7], CELL_TEXT, "abcd", 4, "v",
                           &s.t.err));
    {
        scoped(db_tx_end) struct db_tx tx = {0};

        ok(&s.t, db_begin(s.write, DB_WRITE, &tx, &s.t.err));
        fails(&s.t, ERR_DB_CONSTRAINT, "row 1",
              writer_apply(writer, s.write, &rows, &s.t.err));
    }
    row_set_release(&rows);
    writer_freep(&writer);
    json_decref(def);
    end(&s);
}

/* Several statements for each item, then several for each row. */
static void
statements_run_for_items_first_and_then_for_rows(enum testdb_kind kind)
{
    static const struct column item_columns[] = {{"part", CELL_INT},
                                                 {"outcome", CELL_TEXT}};
    json_t *def = json_of(
        "{\"database\":\"main\",\"item\":[\"DELETE FROM city WHERE id / 10 = :part\","
        "\"INSERT INTO ledger VALUES (:part, :outcome, :run)\"],\"rows\":[\"INSERT "
        "INTO "
        "city (id, name) VALUES (:id, :name)\",\"UPDATE ledger SET n = n + 1 WHERE "
        "part "
        "= :id / 10\"]}");
    scoped(writer_freep) struct writer *writer = NULL;
    struct cell items[6] = {0};
    struct item_view view = {item_columns, 2, items, 3};
    struct sql_test s = {0};
    struct row_set rows;

    if (!begin(&s, kind, "{\"run\":0}"))
        skip();
    ok(&s.t, db_script(s.write, table_sql, &s.t.err));
    ok(&s.t, db_script(s.write,
                       "CREATE TABLE ledger (part int, outcome text, n int);"
                       "INSERT INTO city (id, name) VALUES (5, 'old'), (25, 'old'), "
                       "(35, 'stays')",
                       &s.t.err));
    ok(&s.t, write_sql_new(&s.t.io, def, &writer, &s.t.err));
    ok(&s.t, writer_open(writer, NULL, &s.t.err));
    ok(&s.t, writer_begin(writer, columns, array_len(columns), &s.t.err));
    row_set_init(&rows, 0);
    make_rows(&s.t, &rows, 2, 14);
    for (int i = 0; i < 3; i++) {
        cell_set_i64(&items[2 * i], CELL_INT, i);
        ok(&s.t,
           cell_set_text(&rows, &items[2 * i + 1], CELL_TEXT, "ok", 2, "o", &s.t.err));
    }
    rows.items = &view;
    for (int i = 0; i < 2; i++) {
        scoped(db_tx_end) struct db_tx tx = {0};

        ok(&s.t, db_begin(s.write, DB_WRITE, &tx, &s.t.err));
        ok(&s.t, writer_apply(writer, s.write, &rows, &s.t.err));
        if (i == 1) /* the first time is rolled back */
            ok(&s.t, db_commit(&tx, &s.t.err));
    }
    expect_count(&s, "SELECT count(*) FROM city", 13);
    expect_count(&s, "SELECT count(*) FROM city WHERE name = 'old'", 0);
    expect_count(&s, "SELECT n FROM ledger WHERE part = 0", 8);
    expect_count(&s, "SELECT n FROM ledger WHERE part = 1", 4);
    expect_count(&s, "SELECT n FROM ledger WHERE part = 2 AND outcome = 'ok'", 0);
    /* An item without rows is worked on too. */
    row_set_clear(&rows, 4);
    {
        scoped(db_tx_end) struct db_tx tx = {0};

        view.count = 1;
        items[1].type = CELL_NULL;
        ok(&s.t, db_begin(s.write, DB_WRITE, &tx, &s.t.err));
        ok(&s.t, writer_apply(writer, s.write, &rows, &s.t.err));
        ok(&s.t, db_commit(&tx, &s.t.err));
    }
    expect_count(&s, "SELECT count(*) FROM ledger", 4);
    expect_count(&s, "SELECT count(*) FROM city", 5);
    row_set_release(&rows);
    writer_freep(&writer);
    json_decref(def);
    end(&s);
}

static void
a_statement_sees_columns_and_parameters(enum testdb_kind kind)
{
    static const char def[] = "{\"database\":\"shop\",\"checkpoint\":\"none\",\"rows\":"
                              "\"INSERT INTO city (id, "
                              "name, price, day) VALUES "
                              "(:id, :prefix || :name, :price, :day)\"}";
    struct sql_test s = {0};

    if (!begin(&s, kind, "{\"prefix\":\"p-\",\"id\":99}"))
        skip();
    ok(&s.t, db_script(s.write, table_sql, &s.t.err));
    ok(&s.t, write_rows(&s, def, 0, 10, true));
    expect_count(&s, "SELECT count(*) FROM city WHERE name LIKE 'p-n''%' AND id < 10",
                 10);
    fails(&s.t, ERR_DB_CONSTRAINT, "row 1", write_rows(&s, def, 0, 10, true));
    fails(&s.t, ERR_CONFIG, "no column of the rows read either",
          write_rows(&s,
                     "{\"database\":\"shop\",\"checkpoint\":\"none\",\"rows\":\"SELECT "
                     ":nobody\"}",
                     0, 2, true));
    end(&s);
}

/* `database: main`: nothing is written but inside a transaction somebody else holds. */
static void
apply_writes_inside_the_callers_transaction(enum testdb_kind kind)
{
    scoped(writer_freep) struct writer *writer = NULL;
    json_t *def = json_of("{\"database\":\"main\",\"table\":\"city\"}");
    struct sql_test s = {0};
    struct row_set rows;

    if (!begin(&s, kind, "{}"))
        skip();
    ok(&s.t, db_script(s.write, table_sql, &s.t.err));
    row_set_init(&rows, 0);
    ok(&s.t, write_sql_new(&s.t.io, def, &writer, &s.t.err));
    assert_true(writer->in_checkpoint);
    ok(&s.t, writer_open(writer, NULL, &s.t.err));
    ok(&s.t, writer_begin(writer, columns, array_len(columns), &s.t.err));
    make_rows(&s.t, &rows, 0, 10);
    ok(&s.t, writer_write(writer, &rows, &s.t.err));
    expect_count(&s, "SELECT count(*) FROM city", 0);
    for (int i = 0; i < 2; i++) { /* the first is rolled back, as a retry would */
        scoped(db_tx_end) struct db_tx tx = {0};

        ok(&s.t, db_begin(s.write, DB_WRITE, &tx, &s.t.err));
        ok(&s.t, writer_apply(writer, s.write, &rows, &s.t.err));
        if (i == 1)
            ok(&s.t, db_commit(&tx, &s.t.err));
    }
    expect_count(&s, "SELECT count(*) FROM city", 10);
    row_set_release(&rows);
    writer_freep(&writer);
    json_decref(def);
    end(&s);
}

on_both(rows_are_inserted_and_uncommitted_ones_are_not);
on_both(upsert_replaces_by_its_key);
on_both(an_upsert_takes_the_last_of_a_key_and_names_a_bad_row);
on_both(statements_run_for_items_first_and_then_for_rows);
on_both(a_statement_sees_columns_and_parameters);
on_both(apply_writes_inside_the_callers_transaction);

int
main(void)
{
    const struct CMUnitTest tests[] = {
        both(rows_are_inserted_and_uncommitted_ones_are_not),
        both(upsert_replaces_by_its_key),
        both(an_upsert_takes_the_last_of_a_key_and_names_a_bad_row),
        cmocka_unit_test(
            test_an_upsert_of_many_spells_values_as_the_database_reads_them_on_pg),
        both(statements_run_for_items_first_and_then_for_rows),
        both(a_statement_sees_columns_and_parameters),
        both(apply_writes_inside_the_callers_transaction),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
