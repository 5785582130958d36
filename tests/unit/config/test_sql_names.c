/* Where `:name` is a parameter, and where it is not. */
#include "config/sql_names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static const struct {
    const char *sql;
    const char *names; /* joined by blanks */
} rows[] = {
    {"", ""},
    {"SELECT 1", ""},
    {"SELECT :a", "a"},
    {"SELECT :a, :b_2,:C", "a b_2 C"},
    {"SELECT x::int, :a::text", "a"},
    {"SELECT ':a', :b", "b"},
    {"SELECT 'it''s :a', :b", "b"},
    {"SELECT \"col:a\", `x:y`, :b", "b"},
    {"SELECT E'a\\':b', :c", "c"},
    {"SELECT e'\\\\', :c", "c"},
    {"SELECT type'a\\', :c", "c"},
    {"SELECT 1 -- :a\n, :b", "b"},
    {"SELECT 1 -- :a", ""},
    {"SELECT /* :a */ :b", "b"},
    {"SELECT /* :a", ""},
    {"SELECT $$ :a $$, :b", "b"},
    {"SELECT $f$ :a $$ :c $f$, :b", "b"},
    {"SELECT $1, :b", "b"},
    {"SELECT $f$ :a", ""},
    {"SELECT a$b$c, :d", "d"},
    {"SELECT 'open :a", ""},
    {"SELECT x[1:2], y[1:n]", "n"},
    {"SELECT :1, : a, :", ""},
    {"SELECT 서울, :도시, :b", "b"},
    {":a:b", "a b"},
    {":a::b", "a"},
    {"x := :a", "a"},
};

static void
test_names_are_found_outside_of_quotes_and_comments(void **state)
{
    size_t i;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char name[SQL_NAME_MAX + 1];
        char got[256] = "";
        const char *at;

        for (at = rows[i].sql; sql_names_next(&at, name);) {
            if (got[0] != '\0')
                strncat(got, " ", sizeof(got) - strlen(got) - 1);
            strncat(got, name, sizeof(got) - strlen(got) - 1);
        }
        if (strcmp(got, rows[i].names) != 0)
            fail_msg("%s gave \"%s\"", rows[i].sql, got);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_are_found_outside_of_quotes_and_comments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
