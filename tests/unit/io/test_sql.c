/* Rows out of and into both databases. */
#include "io_test.h"

#include "db/db.h"
#include "io/cell_text.h"
#include "io/read_sql.h"
#include "io/write_sql.h"
#include "testdb.h"

struct sql_test {
    struct io_test t;
    struct testdb testdb;
    struct db *read;
    struct db *write;
};

static int
give_database(struct io_ctx *io, const char *name, enum io_db_use use,
              struct db **ret_db, struct err *err)
{
    struct io_test *t = io->owner;
    struct sql_test *s = container_of(t, struct sql_test, t);

    if (strcmp(name, "shop") != 0)
        return err_set(err, ERR_CONFIG, "there is no database \"%s\"", name);
    *ret_db = use == IO_DB_READ ? s->read : s->write;
    return 0;
}

/* false: no such server, skip. */
static bool
begin(struct sql_test *s, enum testdb_kind kind, const char *params)
{
    if (!testdb_init(&s->testdb, kind))
        return false;
    io_test_init(&s->t, params);
    s->t.io.database = give_database;
    s->read = testdb_open(&s->testdb);
    s->write = testdb_open(&s->testdb);
    return true;
}

static void
end(struct sql_test *s)
{
    db_close(s->read);
    db_close(s->write);
    testdb_release(&s->testdb);
    io_test_release(&s->t);
}

static void
show(const struct cell *cell, struct buf *out)
{
    char text[CELL_TEXT_MAX];

    buf_addf(out, "%s ", cell_type_name(cell->type));
    switch ((enum cell_type)cell->type) {
    case CELL_INT:
    case CELL_BOOL:
        buf_addf(out, "%lld", (long long)cell->i);
        break;
    case CELL_REAL:
        buf_add(out, text, text_real(text, cell->real));
        break;
    case CELL_DATE:
        buf_add(out, text, text_date(text, cell->i));
        break;
    case CELL_TIMESTAMP:
        buf_add(out, text, text_timestamp(text, cell->i, cell->zoneless, 'T'));
        break;
    case CELL_TEXT:
    case CELL_DECIMAL:
    case CELL_BYTES:
        buf_add(out, cell->text, cell->len);
        break;
    case CELL_NULL:
    case CELL_TYPE_COUNT:
        break;
    }
    buf_add_char(out, '|');
}

/* All rows of a read definition, in chunks of `chunk`, as "type value|…\n". */
static int
read_rows(struct sql_test *s, const char *def_text, const char *position, size_t chunk,
          struct buf *out)
{
    scoped(reader_freep) struct reader *reader = NULL;
    json_t *def = json_of(def_text);
    struct row_set rows;
    int r;

    row_set_init(&rows, 0);
    ok(&s->t, read_sql_new(&s->t.io, def, &reader, &s->t.err));
    r = reader_open(reader, position, &s->t.err);
    for (int more = r == 0; more && r >= 0; more = r == READER_MORE) {
        r = reader_read_chunk(reader, chunk, &rows, &s->t.err);
        for (size_t i = 0; r >= 0 && i < rows.count; i++) {
            for (size_t k = 0; k < rows.width; k++)
                show(&row_set_row(&rows, i)[k], out);
            buf_add_char(out, '\n');
        }
    }
    row_set_release(&rows);
    reader_freep(&reader);
    json_decref(def);
    return r < 0 ? r : 0;
}

static void
types_keep_their_values(enum testdb_kind kind)
{
    scoped(buf_release) struct buf out = {0};
    struct sql_test s = {0};

    if (!begin(&s, kind, "{}"))
        skip();
    ok(&s.t,
       db_script(s.write,
                 kind == TESTDB_SQLITE
                     ? "CREATE TABLE t (i bigint, d numeric(30,10), r real, s text, "
                       "b blob, f boolean, day date, at timestamp, atz timestamp);"
                       "INSERT INTO t VALUES (9007199254740993, '12.5', 0.1, 'é한', "
                       "x'0001', 1, '2024-02-29', '2024-02-29 10:11:12.5', "
                       "'2024-02-29 10:11:12+09');"
                       "INSERT INTO t (day) VALUES (NULL)"
                     : "CREATE TABLE t (i bigint, d numeric(30,10), r float8, s text, "
                       "b bytea, f boolean, day date, at timestamp, atz timestamptz);"
                       "INSERT INTO t VALUES (9007199254740993, "
                       "'12345678901234567890.0123456789', 0.1, 'é한', '\\x0001', "
                       "true, '2024-02-29', '2024-02-29 10:11:12.5', "
                       "'2024-02-29 10:11:12+09');"
                       "INSERT INTO t (day, d) VALUES ('infinity', 'NaN')",
                 &s.t.err));
    buf_init(&out, 0);
    ok(&s.t, read_rows(&s, "{\"sql\":\"SELECT * FROM t\",\"database\":\"shop\"}", NULL,
                       10, &out));
    if (kind == TESTDB_SQLITE)
        assert_memory_equal(
            out.data,
            "integer 9007199254740993|decimal 12.5|real 0.1|text é한|bytes "
            "\0\1|boolean "
            "1|date 2024-02-29|timestamp 2024-02-29T10:11:12.5|timestamp "
            "2024-02-29T01:11:12Z|\nnull |",
            150);
    else
        assert_memory_equal(
            out.data,
            "integer 9007199254740993|decimal 12345678901234567890.0123456789|real "
            "0.1|text é한|bytes \0\1|boolean 1|date 2024-02-29|timestamp "
            "2024-02-29T10:11:12.5|timestamp 2024-02-29T01:11:12Z|\nnull |real NaN|",
            180);
    end(&s);
}

/* What the reader gives of a range: its keys in order, as "1 2 3 ". */
static void
assert_range(struct sql_test *s, const char *def, struct io_range range,
             const char *position, const char *want)
{
    scoped(buf_release) struct buf out = {0};

    buf_init(&out, 0);
    s->t.io.range = &range;
    ok(&s->t, read_rows(s, def, position, 2, &out));
    s->t.io.range = NULL;
    assert_string_equal(buf_str(&out), want);
}

static void
a_range_of_a_key_is_read_and_its_extent_told(enum testdb_kind kind)
{
    static const char def[] =
        "{\"sql\":\"SELECT \\\"a\\\"\\\"b\\\", s FROM t WHERE s < :s"
        " -- all\",\"database\":\"shop\"}";
    json_t *json = json_of(def);
    struct io_range range = {.key = "a\"b", .has_lower = true, .lower = -3};
    struct sql_test s = {0};
    int64_t least = 0;
    int64_t greatest = 0;

    if (!begin(&s, kind, "{\"s\":\"x\"}"))
        skip();
    ok(&s.t, db_script(s.write,
                       "CREATE TABLE t (\"a\"\"b\" bigint, s text);"
                       "INSERT INTO t VALUES (7, 'a'), (-3, 'b'), (2, 'c'), (-9, 'd'), "
                       "(99, 'x')",
                       &s.t.err));
    assert_int_equal(
        read_sql_extent(&s.t.io, json, range.key, &least, &greatest, &s.t.err), 1);
    assert_int_equal(least, -9);
    assert_int_equal(greatest, 7);
    assert_range(&s, def, range, NULL,
                 "integer -3|text b|\ninteger 2|text c|\ninteger 7|text a|\n");
    assert_range(&s, def, range, "{\"rows\":2}", "integer 7|text a|\n");
    range.has_upper = true;
    range.upper = 2;
    assert_range(&s, def, range, NULL, "integer -3|text b|\n");
    range.has_lower = false;
    assert_range(&s, def, range, NULL, "integer -9|text d|\ninteger -3|text b|\n");
    fails(&s.t, ERR_CONFIG, "column s holds no whole numbers",
          read_sql_extent(&s.t.io, json, "s", &least, &greatest, &s.t.err));
    ok(&s.t,
       db_script(s.write, "UPDATE t SET \"a\"\"b\" = NULL WHERE s = 'c'", &s.t.err));
    fails(&s.t, ERR_CONFIG, "is NULL in 1 rows",
          read_sql_extent(&s.t.io, json, range.key, &least, &greatest, &s.t.err));
    ok(&s.t, db_script(s.write, "DELETE FROM t", &s.t.err));
    assert_int_equal(
        read_sql_extent(&s.t.io, json, range.key, &least, &greatest, &s.t.err), 0);
    json_decref(json);
    end(&s);
}

static void
parameters_are_bound(enum testdb_kind kind)
{
    scoped(buf_release) struct buf out = {0};
    struct sql_test s = {0};
    bool sqlite = kind == TESTDB_SQLITE;
    const char *lists =
        sqlite
            ? "{\"sql\":\"SELECT id FROM t WHERE id IN (SELECT value FROM "
              "json_each(:ids)) AND s IN (SELECT value FROM json_each(:names)) ORDER "
              "BY id\",\"database\":\"shop\"}"
            : "{\"sql\":\"SELECT id FROM t WHERE id = ANY(:ids) AND s = ANY(:names) "
              "ORDER BY id\",\"database\":\"shop\"}";

    if (!begin(&s, kind,
               "{\"name\":\"o'x\",\"min\":2,\"low\":0.25,\"ids\":[1,3],\"names\":["
               "\"a\",\"o'x\"]}"))
        skip();
    ok(&s.t, db_script(s.write,
                       "CREATE TABLE t (id int, s text, p numeric);"
                       "INSERT INTO t VALUES (1,'a',0.2),(2,'b',0.3),(3,'o''x',0.4)",
                       &s.t.err));
    buf_init(&out, 0);
    ok(&s.t,
       read_rows(&s,
                 "{\"sql\":\"SELECT id FROM t WHERE s = :name AND id >= :min AND p "
                 "> :low AND s <> ':name' AND id >= :min\",\"database\":\"shop\"}",
                 NULL, 10, &out));
    assert_string_equal(buf_str(&out), "integer 3|\n");
    buf_clear(&out);
    ok(&s.t, read_rows(&s, lists, NULL, 10, &out));
    assert_string_equal(buf_str(&out), "integer 1|\ninteger 3|\n");
    fails(&s.t, ERR_CONFIG, "there is no parameter :who",
          read_rows(&s, "{\"sql\":\"SELECT :who\",\"database\":\"shop\"}", NULL, 1,
                    &out));
    fails(&s.t, ERR_DB, "database shop",
          read_rows(&s,
                    "{\"sql\":\"SELECT nothing FROM nowhere\",\"database\":\"shop\"}",
                    NULL, 1, &out));
    fails(&s.t, ERR_CONFIG, "gives no columns",
          read_rows(&s, "{\"sql\":\"DELETE FROM t\",\"database\":\"shop\"}", NULL, 1,
                    &out));
    fails(&s.t, ERR_CONFIG, "there is no database \"lost\"",
          read_rows(&s, "{\"sql\":\"SELECT 1\",\"database\":\"lost\"}", NULL, 1, &out));
    end(&s);
}

static void
a_position_goes_on_behind_the_rows_given(enum testdb_kind kind)
{
    static const char def[] = "{\"sql\":\"SELECT id FROM t ORDER BY "
                              "id\",\"database\":\"shop\"}";
    static const char requery[] = "{\"sql\":\"SELECT id FROM t ORDER BY "
                                  "id\",\"database\":\"shop\",\"restart\":\"requery\"}";
    scoped(buf_release) struct buf out = {0};
    struct sql_test s = {0};

    if (!begin(&s, kind, "{}"))
        skip();
    ok(&s.t, db_script(s.write,
                       "CREATE TABLE t (id int);"
                       "INSERT INTO t VALUES (1),(2),(3),(4)",
                       &s.t.err));
    buf_init(&out, 0);
    ok(&s.t, read_rows(&s, def, "{\"rows\":3}", 1, &out));
    assert_string_equal(buf_str(&out), "integer 4|\n");
    buf_clear(&out);
    ok(&s.t, read_rows(&s, requery, "{}", 3, &out));
    assert_string_equal(buf_str(&out),
                        "integer 1|\ninteger 2|\ninteger 3|\ninteger 4|\n");
    fails(&s.t, ERR_INVALID, "the data changed",
          read_rows(&s, def, "{\"rows\":5}", 1, &out));
    end(&s);
}

/* The note of a reader that goes on there; "" for none. */
static void
note_at(struct sql_test *s, const char *def_text, const char *position, char ret[200])
{
    scoped(reader_freep) struct reader *reader = NULL;
    json_t *def = json_of(def_text);

    ok(&s->t, read_sql_new(&s->t.io, def, &reader, &s->t.err));
    ok(&s->t, reader_open(reader, position, &s->t.err));
    snprintf(ret, 200, "%s", reader->note ? reader->note : "");
    reader_freep(&reader);
    json_decref(def);
}

/* A22: the rows are counted by another query than they were read by. */
static void
a_query_that_was_changed_since_the_stop_is_told(enum testdb_kind kind)
{
    static const char def[] = "{\"sql\":\"SELECT id FROM t ORDER BY id\","
                              "\"database\":\"shop\"}";
    static const char other[] =
        "{\"sql\":\"SELECT id FROM t WHERE id > 1 ORDER BY id\","
        "\"database\":\"shop\"}";
    scoped(reader_freep) struct reader *reader = NULL;
    scoped(buf_release) struct buf position = {0};
    json_t *json = json_of(def);
    struct sql_test s = {0};
    struct row_set rows;
    char note[200];

    if (!begin(&s, kind, "{}")) {
        json_decref(json);
        skip();
    }
    ok(&s.t, db_script(s.write,
                       "CREATE TABLE t (id int);"
                       "INSERT INTO t VALUES (1),(2),(3),(4)",
                       &s.t.err));
    row_set_init(&rows, 0);
    buf_init(&position, 1000);
    ok(&s.t, read_sql_new(&s.t.io, json, &reader, &s.t.err));
    ok(&s.t, reader_open(reader, NULL, &s.t.err));
    ok(&s.t, reader_read_chunk(reader, 2, &rows, &s.t.err));
    ok(&s.t, reader_position(reader, &position, &s.t.err));
    row_set_release(&rows);
    reader_freep(&reader);
    json_decref(json);

    note_at(&s, def, buf_str(&position), note);
    assert_string_equal(note, "");
    note_at(&s, other, buf_str(&position), note);
    assert_non_null(strstr(note, "its first 2 rows count as read"));
    note_at(&s, other, "{\"rows\":2}", note); /* from before there was a mark */
    assert_string_equal(note, "");
    end(&s);
}

/* Rows that come and go before the key do no harm; two with one key are refused. */
static void
a_key_goes_on_behind_the_last_row_committed(enum testdb_kind kind)
{
#define KEYED(key)                                                                     \
    "{\"sql\":\"SELECT a, b FROM t WHERE a >= :min -- all;\",\"database\":\"shop\","   \
    "\"restart\":\"key\",\"key\":" key "}"
    static const char position[] =
        "{\"rows\":2,\"key\":[[\"int\",\"1\"],[\"text\",\"나\"]]}";
    scoped(buf_release) struct buf out = {0};
    struct sql_test s = {0};

    if (!begin(&s, kind, "{\"min\":1}"))
        skip();
    ok(&s.t, db_script(s.write,
                       "CREATE TABLE t (a int, b text);"
                       "INSERT INTO t VALUES (2,'x'),(1,'나'),(1,'가'),(3,'y'),(0,'z')",
                       &s.t.err));
    buf_init(&out, 0);
    ok(&s.t, read_rows(&s, KEYED("[\"a\",\"b\"]"), NULL, 1, &out));
    assert_string_equal(buf_str(&out), "integer 1|text 가|\ninteger 1|text 나|\n"
                                       "integer 2|text x|\ninteger 3|text y|\n");
    buf_clear(&out);
    ok(&s.t, read_rows(&s, KEYED("[\"a\",\"b\"]"), position, 2, &out));
    assert_string_equal(buf_str(&out), "integer 2|text x|\ninteger 3|text y|\n");
    ok(&s.t, db_script(s.write,
                       "DELETE FROM t WHERE a = 1; INSERT INTO t VALUES (1,'가'),"
                       "(2,'w')",
                       &s.t.err));
    buf_clear(&out);
    ok(&s.t, read_rows(&s, KEYED("[\"a\",\"b\"]"), position, 2, &out));
    assert_string_equal(buf_str(&out),
                        "integer 2|text w|\ninteger 2|text x|\ninteger 3|text y|\n");
    fails(&s.t, ERR_INVALID, "two rows have the same key",
          read_rows(&s, KEYED("\"a\""), NULL, 2, &out));
    /* Even when the first of them was the last row committed. */
    fails(&s.t, ERR_INVALID, "two rows have the same key",
          read_rows(&s, KEYED("[\"a\"]"), "{\"rows\":2,\"key\":[[\"int\",\"2\"]]}", 2,
                    &out));
    fails(&s.t, ERR_DB, "no_such", read_rows(&s, KEYED("\"no_such\""), NULL, 2, &out));
    /* A place by position is none by key, nor the other way round. */
    fails(&s.t, ERR_INVALID, "put `restart: position` back",
          read_rows(&s, KEYED("\"a\""), "{\"rows\":2}", 2, &out));
    fails(&s.t, ERR_INVALID, "put `restart: key` back",
          read_rows(&s, "{\"sql\":\"SELECT a FROM t\",\"database\":\"shop\"}", position,
                    2, &out));
    ok(&s.t, db_script(s.write, "INSERT INTO t VALUES (4, NULL)", &s.t.err));
    fails(&s.t, ERR_INVALID, "is NULL",
          read_rows(&s, KEYED("[\"a\",\"b\"]"), NULL, 9, &out));
    end(&s);
}

/* --- writing --- */

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
        fails(&s.t, ERR_DB, "row 1", writer_apply(writer, s.write, &rows, &s.t.err));
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

#define on_both(fn)                                                                    \
    static void test_##fn##_on_sqlite(void **state)                                    \
    {                                                                                  \
        fn(TESTDB_SQLITE);                                                             \
    }                                                                                  \
    static void test_##fn##_on_pg(void **state)                                        \
    {                                                                                  \
        fn(TESTDB_PG);                                                                 \
    }

on_both(types_keep_their_values) on_both(a_range_of_a_key_is_read_and_its_extent_told)
    on_both(parameters_are_bound) on_both(a_position_goes_on_behind_the_rows_given)
        on_both(a_query_that_was_changed_since_the_stop_is_told)
            on_both(a_key_goes_on_behind_the_last_row_committed)
                on_both(rows_are_inserted_and_uncommitted_ones_are_not)
                    on_both(upsert_replaces_by_its_key)
                        on_both(an_upsert_takes_the_last_of_a_key_and_names_a_bad_row)
                            on_both(statements_run_for_items_first_and_then_for_rows)
                                on_both(a_statement_sees_columns_and_parameters)
                                    on_both(apply_writes_inside_the_callers_transaction)

#define both(fn)                                                                       \
    cmocka_unit_test(test_##fn##_on_sqlite), cmocka_unit_test(test_##fn##_on_pg)

                                        int main(void)
{
    const struct CMUnitTest tests[] = {
        both(types_keep_their_values),
        both(a_range_of_a_key_is_read_and_its_extent_told),
        both(parameters_are_bound),
        both(a_position_goes_on_behind_the_rows_given),
        both(a_query_that_was_changed_since_the_stop_is_told),
        both(a_key_goes_on_behind_the_last_row_committed),
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
