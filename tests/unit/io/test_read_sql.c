/* Rows out of both databases. */
#include "sql_test.h"

#include "io/cell_text.h"
#include "io/read_sql.h"

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

on_both(types_keep_their_values);
on_both(a_range_of_a_key_is_read_and_its_extent_told);
on_both(parameters_are_bound);
on_both(a_position_goes_on_behind_the_rows_given);
on_both(a_query_that_was_changed_since_the_stop_is_told);
on_both(a_key_goes_on_behind_the_last_row_committed);

int
main(void)
{
    const struct CMUnitTest tests[] = {
        both(types_keep_their_values),
        both(a_range_of_a_key_is_read_and_its_extent_told),
        both(parameters_are_bound),
        both(a_position_goes_on_behind_the_rows_given),
        both(a_query_that_was_changed_since_the_stop_is_told),
        both(a_key_goes_on_behind_the_last_row_committed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
