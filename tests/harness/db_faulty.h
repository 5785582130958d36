/*
 * A driver that wraps a real connection and fails on purpose: the n-th call that can
 * fail, once or from then on. What the caller sees is ERR_STORE, and of a commit whose
 * answer is lost ERR_COMMIT_UNKNOWN. Sweep n from 1 until db_faulty_hit stays false.
 */
#ifndef TESTS_DB_FAULTY_H
#define TESTS_DB_FAULTY_H

#include <stdbool.h>

struct db;

enum faulty_how {
    FAULTY_ONCE,        /* the connection stays usable */
    FAULTY_FOREVER,     /* as if the server went away: db_usable turns false */
    FAULTY_COMMIT_LOST, /* as FOREVER, but a commit is done before it "fails" */
};

/* Takes real over; db_close closes both. fail_at counts from 1, 0 = never. */
struct db *db_faulty_new(struct db *real, int fail_at, enum faulty_how how);

/* Start counting anew. */
void db_faulty_arm(struct db *db, int fail_at, enum faulty_how how);

/* Calls seen since then, and whether one was made to fail. */
int db_faulty_calls(const struct db *db);
bool db_faulty_hit(const struct db *db);

/* Calls made to fail by any connection of this process: also after it was closed. */
int db_faulty_hits(void);

#endif
