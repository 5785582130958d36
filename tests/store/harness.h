/*
 * Store tests on every database: each test function runs on a fresh store in SQLite,
 * in PostgreSQL and in PostgreSQL through PgBouncer.
 *
 *     static void
 *     test_a_claim_takes_the_oldest(struct harness *h)
 *     {
 *         … h->store …
 *     }
 *
 *     int
 *     main(void)
 *     {
 *         const struct CMUnitTest tests[] = {
 *             store_test(test_a_claim_takes_the_oldest),
 *         };
 *
 *         return cmocka_run_group_tests(tests, NULL, NULL);
 *     }
 *
 * script/test sets PAWL_TEST_PG and PAWL_TEST_PGBOUNCER; where they are missing these
 * runs are skipped. The clock of the store stands at HARNESS_NOW until it is moved.
 */
#ifndef TESTS_STORE_HARNESS_H
#define TESTS_STORE_HARNESS_H

#include "base/compiler.h"
#include "base/err.h"
#include "db/db.h"
#include "store/store.h"
#include "store/wake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define HARNESS_NOW INT64_C(1793491200000000) /* 2026-11-01T00:00:00Z */

enum harness_kind { HARNESS_SQLITE, HARNESS_PG, HARNESS_PGBOUNCER };

struct harness;

typedef void (*harness_fn)(struct harness *h);

struct harness_case {
    harness_fn fn;
    enum harness_kind kind;
};

struct harness {
    enum harness_kind kind;
    const struct harness_case *test;
    struct store *store; /* open, migrated */
    struct db *db;       /* a connection beside the store's, direct, for looking */

    /* How store was opened: change it and call harness_reopen, or open a second. */
    struct store_options options;

    char folder[64];      /* SQLite: holds the file */
    char url[256];        /* of the store */
    char direct_url[256]; /* the same not through PgBouncer */
    char database[64];    /* PostgreSQL: its name */
    char fingerprint[64]; /* of its schema */
    bool used;            /* an earlier test has had it (and it was emptied) */
    int64_t now_us;       /* atomic; what pawl_now() says on SQLite */
};

/* clang-format off */
#define store_test_on(test, on, name)                                                  \
    {#test " on " name, harness_run, harness_setup, harness_teardown,                  \
     &(struct harness_case){(test), (on)}}
/* clang-format on */
#define store_test_sqlite(test)    store_test_on(test, HARNESS_SQLITE, "SQLite")
#define store_test_pg(test)        store_test_on(test, HARNESS_PG, "PostgreSQL")
#define store_test_pgbouncer(test) store_test_on(test, HARNESS_PGBOUNCER, "PgBouncer")
#define store_test(test)                                                               \
    store_test_sqlite(test), store_test_pg(test), store_test_pgbouncer(test)

int harness_setup(void **state);
int harness_teardown(void **state);
void harness_run(void **state);

/* Close the store and open it again by h->options. */
void harness_reopen(struct harness *h);

/* The clock of the store, on every connection of it. */
void harness_clock_set(struct harness *h, int64_t now_us);
void harness_clock_advance(struct harness *h, int64_t us);

/* Look and meddle, beside the store. Fails the test when the SQL fails. */
void harness_sql(struct harness *h, const char *fmt, ...) printf_like(2, 3);
int64_t harness_i64(struct harness *h, const char *fmt, ...) printf_like(2, 3);
/* Malloced; NULL for NULL or no row. */
char *harness_text(struct harness *h, const char *fmt, ...) printf_like(2, 3);

/* store_write and store_read whose failure fails the test. */
int harness_write(struct harness *h, store_fn fn, void *arg);
int harness_read(struct harness *h, store_fn fn, void *arg);

/* r must not be a failure; says which if it is. */
#define assert_ok(r, err)                                                              \
    do {                                                                               \
        int r_ = (r);                                                                  \
        if (r_ < 0)                                                                    \
            fail_msg("%s: %d (%s): %s", #r, r_, err_word((err)->code), (err)->text);   \
    } while (0)

#endif
