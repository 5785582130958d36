/*
 * Connections shared between threads. A thread takes one, uses it alone and
 * puts it back; one that was lost meanwhile is dropped instead. After a failed
 * connect the pool waits before it tries again (100 ms doubling to 5 s, with
 * jitter), so that a server that comes back is not met by a stampede. All
 * functions are for any thread; db_pool_free only when every connection is back.
 */
#ifndef DB_POOL_H
#define DB_POOL_H

#include "base/compiler.h"
#include "db/db.h"

struct db_pool;

typedef int (*db_open_fn)(const struct db_options *options, struct db **ret_db,
                          struct err *err);

struct db_pool_options {
    struct db_options db; /* copied, with its strings */
    int max;              /* connections alive at once, 1…1000 */
    db_open_fn open;      /* NULL = db_open */
    /* Called once on each new connection (e.g. set the clock); NULL = none. */
    int (*prepare)(struct db *db, void *arg, struct err *err);
    void *arg;
};

int db_pool_new(const struct db_pool_options *options, struct db_pool **ret_pool,
                struct err *err) must_check;
void db_pool_free(struct db_pool *pool);

/* A connection that was made elsewhere with the same options becomes one of the pool's.
 * Before the first db_pool_get. */
void db_pool_adopt(struct db_pool *pool, struct db *db);

/* Wait at most timeout_ms for a connection. -ERR_STORE_BUSY: all are in use;
 * -ERR_STORE and others: connecting failed, the newest reason. */
int db_pool_get(struct db_pool *pool, int timeout_ms, struct db **ret_db,
                struct err *err) must_check;

/* Give back; accepts NULL. A transaction still open is rolled back. */
void db_pool_put(struct db_pool *pool, struct db *db);

/* The process is about to end: from now on, and for those who wait already, a wait for
 * a connection lasts no longer than half a second. */
void db_pool_hurry(struct db_pool *pool);

/* Close idle connections (a server restart, a reload). */
void db_pool_drop_idle(struct db_pool *pool);

/* Alive now, idle among them. */
void db_pool_counts(struct db_pool *pool, int *ret_open, int *ret_idle);

#endif
