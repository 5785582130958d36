/* What is told from texts alone: is there an order, which URL leads to the copy. */
#include "torture/private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void
test_an_order_is_found_only_where_it_orders_the_rows(void **state)
{
    static const struct {
        const char *sql;
        bool ordered;
    } rows[] = {
        {"SELECT id FROM city ORDER BY id", true},
        {"SELECT id FROM city\norder\t by id", true},
        {"(SELECT id FROM a) UNION SELECT id FROM b ORDER BY 1", true},
        {"SELECT id FROM city", false},
        {"SELECT id FROM (SELECT id FROM city ORDER BY id)", false},
        {"SELECT row_number() OVER (ORDER BY id) FROM city", false},
        {"SELECT 'ORDER BY id' FROM city", false},
        {"SELECT id AS \"order by\" FROM city", false},
        {"SELECT id FROM city -- ORDER BY id", false},
        {"SELECT id FROM city -- sorted\nORDER BY id", true},
        {"SELECT id FROM city /* ORDER BY id */", false},
        {"SELECT id FROM city /* ) */ ORDER BY id", true},
        {"SELECT reorder by FROM city", false},
        {"SELECT id FROM city WHERE a = 'it''s' ORDER BY id", true},
        {"SELECT id FROM city WHERE a = 'never closed ORDER BY id", false},
        {"", false},
    };

    for (size_t i = 0; i < array_len(rows); i++)
        if (plan_has_order(rows[i].sql) != rows[i].ordered)
            fail_msg("%s", rows[i].sql);
}

static void
test_the_url_of_a_copy_differs_in_nothing_but_the_database(void **state)
{
    static const struct {
        const char *url;
        const char *copy;
    } rows[] = {
        {"postgresql://u:p@h:1/db", "postgresql://u:p@h:1/c"},
        {"postgresql://u@h/db?sslmode=require", "postgresql://u@h/c?sslmode=require"},
        {"postgres://h", "postgres://h/c"},
        {"postgresql://h?user=u", "postgresql://h/c?user=u"},
        {"postgresql:///db?host=/run/pg", "postgresql:///c?host=/run/pg"},
    };
    struct arena arena = {0};

    for (size_t i = 0; i < array_len(rows); i++)
        assert_string_equal(place_pg_url(rows[i].url, "c", &arena), rows[i].copy);
    arena_release(&arena);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_order_is_found_only_where_it_orders_the_rows),
        cmocka_unit_test(test_the_url_of_a_copy_differs_in_nothing_but_the_database),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
