/*
 * An empty database for one test: a file in a temporary folder, or a database in the
 * cluster of PAWL_TEST_PG, reached straight or through PgBouncer. Making one there
 * takes a second, so a process has one, emptied by testdb_init: use one PostgreSQL
 * testdb at a time. It is dropped at exit; nothing is left behind.
 */
#ifndef TESTS_TESTDB_H
#define TESTS_TESTDB_H

#include "base/compiler.h"

#include <stdbool.h>

struct db;

enum testdb_kind { TESTDB_SQLITE, TESTDB_PG, TESTDB_PGBOUNCER, TESTDB_KIND_COUNT };

struct testdb {
    enum testdb_kind kind;
    char url[320];
    char direct_url[320]; /* the same database, not through PgBouncer */
    char folder[64];      /* SQLite's; "" on PostgreSQL */
};

const char *testdb_word(enum testdb_kind kind);

/* false: the environment names no such server, skip the test. Trouble ends it. */
bool testdb_init(struct testdb *testdb, enum testdb_kind kind);
void testdb_release(struct testdb *testdb);

/* A connection as to a user's database (creating the file), which does not wait for
 * the disk; ends the test on trouble. */
struct db *testdb_open(const struct testdb *testdb);

#endif
