/*
 * A test of both databases: on_both(fn); makes test_fn_on_sqlite and test_fn_on_pg of
 * fn(enum testdb_kind), both(fn) lists them.
 */
#ifndef TESTS_ON_BOTH_H
#define TESTS_ON_BOTH_H

#include "testdb.h"

/* The declaration at the end takes the semicolon. */
#define on_both(fn)                                                                    \
    static void test_##fn##_on_sqlite(void **state)                                    \
    {                                                                                  \
        fn(TESTDB_SQLITE);                                                             \
    }                                                                                  \
    static void test_##fn##_on_pg(void **state)                                        \
    {                                                                                  \
        fn(TESTDB_PG);                                                                 \
    }                                                                                  \
    struct testdb

#define both(fn)                                                                       \
    cmocka_unit_test(test_##fn##_on_sqlite), cmocka_unit_test(test_##fn##_on_pg)

#endif
