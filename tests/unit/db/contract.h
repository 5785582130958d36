/*
 * Tests that run on every database: db_case(fn) makes three of fn, each with a fresh
 * database and one open connection. script/test sets PAWL_TEST_PG and
 * PAWL_TEST_PGBOUNCER; where they are missing those cases are skipped.
 */
#ifndef TESTS_UNIT_DB_CONTRACT_H
#define TESTS_UNIT_DB_CONTRACT_H

#include "base/err.h"
#include "db/db.h"
#include "testdb.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

struct fixture {
    struct testdb testdb;
    enum testdb_kind kind;
    struct db *db;
    struct err err;
};

typedef void (*contract_fn)(struct fixture *f);

struct contract_case {
    contract_fn fn;
    enum testdb_kind kind;
};

static inline void
contract_run(void **state)
{
    const struct contract_case *c = *state;
    struct fixture f = {.kind = c->kind};

    if (!testdb_init(&f.testdb, c->kind))
        skip();
    f.db = testdb_open(&f.testdb);
    c->fn(&f);
    db_close(f.db);
    testdb_release(&f.testdb);
}

#define db_case_on(name, which, word)                                                  \
    {                                                                                  \
#name " on " word, contract_run, NULL, NULL, &(struct contract_case)           \
        {                                                                              \
            name, which                                                                \
        }                                                                              \
    }
#define db_case(name)                                                                  \
    db_case_on(name, TESTDB_SQLITE, "sqlite"), db_case_on(name, TESTDB_PG, "pg"),      \
        db_case_on(name, TESTDB_PGBOUNCER, "pgbouncer")

/* The call must be well; else its message is the test's. */
#define ok(f, call)                                                                    \
    do {                                                                               \
        if ((call) < 0)                                                                \
            fail_msg("%s: %s [%s]", #call, (f)->err.text, (f)->err.detail);            \
    } while (0)

/* The call must fail with this code; the note is forgotten. */
#define fails(f, want, call)                                                           \
    do {                                                                               \
        if ((call) != -(int)(want) || (f)->err.code != (want))                         \
            fail_msg("%s: not %s but %s: %s [%s]", #call, err_word(want),              \
                     err_word((f)->err.code), (f)->err.text, (f)->err.detail);         \
    } while (0)

static inline void
script(struct fixture *f, const char *text)
{
    ok(f, db_script(f->db, text, &f->err));
}

/* The number a query gives. */
static inline int64_t
number(struct fixture *f, const char *text)
{
    struct db_sql sql = {.name = "number", .text = text, .flags = DB_ONCE};
    int64_t value = INT64_MIN;

    ok(f, db_query_i64(f->db, &sql, NULL, 0, &value, &f->err));
    return value;
}

#endif
