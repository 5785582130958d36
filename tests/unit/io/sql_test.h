/* What the tests of reading and writing tables share: a database, and an io_ctx. */
#ifndef TESTS_UNIT_IO_SQL_TEST_H
#define TESTS_UNIT_IO_SQL_TEST_H

#include "io_test.h"

#include "db/db.h"
#include "on_both.h"
#include "testdb.h"

struct sql_test {
    struct io_test t;
    struct testdb testdb;
    struct db *read;
    struct db *write;
};

static inline int
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
static inline bool
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

static inline void
end(struct sql_test *s)
{
    db_close(s->read);
    db_close(s->write);
    testdb_release(&s->testdb);
    io_test_release(&s->t);
}

#endif
