/*
 * The schema: numbered files of src/sql/schema/{pg,sqlite}, built into the binary,
 * applied in order and never changed afterwards. All that is missing goes in by one
 * transaction, under a lock, so that two who migrate at once do it once.
 */
#ifndef STORE_MIGRATE_H
#define STORE_MIGRATE_H

#include "base/compiler.h"

struct db;
struct err;

struct migrate_report {
    int before; /* the newest number that was there; 0 = an empty database */
    int now;
};

/* The newest number this binary knows for the database. */
int migrate_newest(const struct db *db);

/* -ERR_SCHEMA: the database is ahead of this binary. */
int migrate_up(struct db *db, struct migrate_report *ret, struct err *err) must_check;

/* Is the schema just what this binary needs? -ERR_SCHEMA, with the remedy, if not. */
int migrate_check(struct db *db, struct migrate_report *ret,
                  struct err *err) must_check;

#endif
