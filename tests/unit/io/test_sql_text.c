/* :name in SQL becomes $n where it is a parameter, and nowhere else. */
#include "io_test.h"

#include "base/arena.h"
#include "db/value.h"
#include "io/sql_text.h"

static const struct rewrite_case {
    const char *sql;
    const char *want; /* NULL: an error that holds `names` */
    const char *names;
    bool sqlite;
} cases[] = {
    {"SELECT 1", "SELECT 1", ""},
    {"a = :a AND b = :b OR c = :a", "a = $1 AND b = $2 OR c = $1", "a b"},
    {":x", "$1", "x"},
    {"':a' || \":b\" || :c", "':a' || \":b\" || $1", "c"},
    {"'it''s :a' = :b", "'it''s :a' = $1", "b"},
    {"E'\\':a' = :b", "E'\\':a' = $1", "b"},
    {"E'\\' = :b", "E'\\' = $1", "b", true},
    {"ne'\\' = :b", "ne'\\' = $1", "b"},
    {"x::text = :a::int", "x::text = $1::int", "a"},
    {"-- :a\n:b", "-- :a\n$1", "b"},
    {"-- :a", "-- :a", ""},
    {"/* :a */ :b", "/* :a */ $1", "b"},
    {"/* /* :a */ :b */ :c", "/* /* :a */ :b */ $1", "c"},
    {"/* /* :a */ :c", "/* /* :a */ $1", "c", true},
    {"$$ :a $$ || :b", "$$ :a $$ || $1", "b"},
    {"$q$ :a $$ $q$ || :b", "$q$ :a $$ $q$ || $1", "b"},
    {"`:a` = :b", "`:a` = $1", "b", true},
    {"arr[1:2]", "arr[1:2]", ""},
    {"x := 5", "x := 5", ""},
    {"이름 = :이름", "이름 = $1", "이름"},
    {"a - -1 /2*3", "a - -1 /2*3", ""},
    {"SELECT 'open", NULL, "line 1, column 8"},
    {"SELECT\n  \"open", NULL, "line 2, column 3"},
    {"/* open", NULL, "line 1, column 1"},
    {"$a$ open $b$", NULL, "line 1, column 1"},
    {"a = $1", NULL, ":name, not $1"},
};

static void
test_names_are_found_where_sql_means_them(void **state)
{
    struct io_test t;

    io_test_init(&t, "{}");
    for (size_t i = 0; i < array_len(cases); i++) {
        const struct rewrite_case *c = &cases[i];
        scoped(arena_release) struct arena arena = {0};
        struct sql_text made;
        char names[64] = "";
        size_t len = 0;

        if (!c->want) {
            fails(&t, ERR_CONFIG, c->names,
                  sql_text_rewrite(c->sql, !c->sqlite, &arena, &made, &t.err));
            continue;
        }
        ok(&t, sql_text_rewrite(c->sql, !c->sqlite, &arena, &made, &t.err));
        assert_string_equal(made.text, c->want);
        for (size_t k = 0; k < made.count; k++)
            len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s",
                                    k ? " " : "", made.names[k]);
        assert_string_equal(names, c->names);
    }
    io_test_release(&t);
}

static void
test_values_keep_their_json_type(void **state)
{
    struct io_test t;
    scoped(arena_release) struct arena arena = {0};
    struct db_value v;

    io_test_init(&t, "{\"s\":\"x'; DROP\",\"i\":9007199254740993,\"r\":0.1,\"b\":true,"
                     "\"n\":null,\"li\":[1,2],\"ls\":[\"a\",1]}");
#define value_of(name, pg) sql_text_value("q", name, t.params, pg, &arena, &v, &t.err)
    ok(&t, value_of("s", true));
    assert_int_equal(v.type, DB_TEXT);
    assert_string_equal(v.s.p, "x'; DROP");
    ok(&t, value_of("i", true));
    assert_int_equal(v.type, DB_INT);
    assert_true(v.i == INT64_C(9007199254740993));
    ok(&t, value_of("r", true));
    assert_int_equal(v.type, DB_DECIMAL);
    assert_string_equal(v.s.p, "0.1");
    ok(&t, value_of("r", false));
    assert_int_equal(v.type, DB_REAL);
    ok(&t, value_of("b", true));
    assert_int_equal(v.type, DB_BOOL);
    ok(&t, value_of("n", true));
    assert_int_equal(v.type, DB_NULL);
    ok(&t, value_of("li", true));
    assert_int_equal(v.type, DB_INT_ARRAY);
    assert_int_equal(v.ints.n, 2);
    ok(&t, value_of("ls", true));
    assert_int_equal(v.type, DB_TEXT_ARRAY);
    assert_string_equal(v.texts.v[1], "1");
    io_test_release(&t);
}

static void
test_an_unknown_name_is_told_with_its_place(void **state)
{
    struct io_test t;
    scoped(arena_release) struct arena arena = {0};
    struct db_value v;

    io_test_init(&t, "{}");
    fails(&t, ERR_CONFIG, "line 2, column 11: there is no parameter :country",
          sql_text_value("SELECT *\nWHERE c = :country", "country", t.params, true,
                         &arena, &v, &t.err));
    io_test_release(&t);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_are_found_where_sql_means_them),
        cmocka_unit_test(test_values_keep_their_json_type),
        cmocka_unit_test(test_an_unknown_name_is_told_with_its_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
