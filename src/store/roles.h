/*
 * The roles of a store on PostgreSQL, docs/postgresql.md: pawl_owner, pawl_api,
 * pawl_worker, pawl_reader and pawl_submit. What they are and may do is SQL, built into
 * the binary from src/sql/roles/; all of it may be applied any number of times.
 */
#ifndef STORE_ROLES_H
#define STORE_ROLES_H

#include "base/compiler.h"

#include <stdbool.h>

struct buf;
struct db;
struct err;
struct store;

struct roles_report {
    int made;     /* roles that were missing and are there now */
    int missing;  /* and still are: this role may make none */
    bool granted; /* they may do what this binary wants them to, and no more */
};

/*
 * Make the roles, give the schema to pawl_owner if it is ours, grant, set: as much as
 * the connected role may do; the report tells. PostgreSQL only. Any thread.
 */
int roles_apply(struct store *store, struct roles_report *ret,
                struct err *err) must_check;

/* The grants alone, if the roles are there and the schema is ours; within the caller's
 * transaction, which has the lock of migrations. */
int roles_grant_in(struct db *db, struct err *err) must_check;

/* What an administrator is to run: all of it as one transaction, for psql. */
void roles_script(struct buf *out);

#endif
