/*
 * The one durable place: requests, claims, outcomes and all the rest live in a
 * store, an SQLite file owned by this process or a PostgreSQL database shared
 * with others. Rooms above write their statements in src/sql/ROOM.sql and run
 * them inside store_write and store_read; wake-ups are in store/wake.h, the
 * schema in store/migrate.h.
 *
 * All functions are for any thread. store_close only when no other call is
 * under way.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "base/compiler.h"
#include "db/db.h"
#include "store/statements.h"

#include <stdbool.h>
#include <stdint.h>

struct err;
struct store;

struct store_options {
    const char *url;        /* sqlite:path or postgresql://… */
    const char *listen_url; /* PostgreSQL, a direct connection for LISTEN; NULL: url,
                             * unless it leads to a pooler, then none */
    bool migrate;           /* bring the schema up to date before use */
    const char *role;       /* who opens, for the lock file: "serve", "submit"; NULL:
                             * "pawl" */
    bool allow_network_fs;
    int connections;          /* PostgreSQL: alive at once; SQLite: readers. 0 = 8 */
    int wait_ms;              /* for a free connection; 0 = 10 s */
    bool plan_once;           /* PostgreSQL: a statement is planned once a session, not
                               * for each parameter: what lives long and asks much */
    int connect_timeout_ms;   /* 0 = 10 s */
    int statement_timeout_ms; /* 0 = 30 s */
    /* PostgreSQL: a write in which no statement comes for so long is given up by the
     * server, so that nobody waits for a process that stands still; 0 = 10 s. */
    int idle_tx_ms;
    const char *app_name; /* NULL = "pawl" */
    db_clock_fn clock;    /* SQLite: behind pawl_now(); NULL: the machine's */
    void *clock_arg;
    /* For tests: how a connection is opened; NULL = db_open. */
    int (*open)(const struct db_options *options, struct db **ret_db, struct err *err);
};

/*
 * Open, take the lock of an SQLite store, check or bring up to date the schema.
 * -ERR_STORE_HELD: another process owns the SQLite store (the note says which).
 * -ERR_SCHEMA: the schema is newer than this binary, or older and migrate was
 * not asked. -ERR_CONFIG, -ERR_STORE as db_open.
 */
int store_open(const struct store_options *options, struct store **ret_store,
               struct err *err) must_check;
/* The process is about to end: who waits for a connection to a server that is away is
 * told so within half a second. */
void store_hurry(struct store *store);
void store_close(struct store *store); /* accepts NULL */
void store_closep(struct store **store);

enum db_kind store_kind(const struct store *store);
/* 32 hex digits, made when the store was. */
const char *store_id(const struct store *store);
/* The number of the schema before and after opening; 0: the database was empty. */
void store_schema(const struct store *store, int *ret_before, int *ret_now);

/*
 * The caller's work in a transaction. fn may run more than once (a conflict,
 * PostgreSQL; never after a commit): it must set its results anew each time and
 * touch nothing else outside. It must not begin, commit or wait for anything.
 * What it returns decides: < 0 rolls back, >= 0 commits.
 */
typedef int (*store_fn)(struct db *db, void *arg, struct err *err);

enum store_urgency {
    STORE_NORMAL,
    STORE_BEAT, /* goes before others that wait; for the beats of liveness */
};

/*
 * Run fn in a writing transaction and come back when it is durable. Returns what
 * fn returned, or a failure. -ERR_COMMIT_UNKNOWN: it may have happened; look.
 * -ERR_STORE_BUSY: no connection became free.
 *
 * SQLite: one writer thread runs all callers that wait in one transaction, each
 * in a savepoint, with one fsync for all; fn therefore runs on that thread.
 * PostgreSQL: on the caller's thread; 40001 and 40P01 are tried again 3 times, a
 * connection lost before the commit once.
 */
int store_write(struct store *store, enum store_urgency urgency, store_fn fn, void *arg,
                struct err *err) must_check;

/*
 * The same for a work that may take long, that of a job: on SQLite it holds up all
 * other writes, so that nobody else may be awake to end it. There watch is called on
 * the caller's thread every STORE_WATCH_MS until it is over, and may not write; on
 * PostgreSQL never.
 */
#define STORE_WATCH_MS 50
typedef void (*store_watch_fn)(void *arg);
int store_write_watched(struct store *store, store_fn fn, void *arg,
                        store_watch_fn watch, void *watch_arg,
                        struct err *err) must_check;

/* The same for a wish about a request, which is known before its turn to be written
 * comes: on SQLite store_is_wished is true meanwhile. */
int store_write_wish(struct store *store, int64_t request_id, store_fn fn, void *arg,
                     struct err *err) must_check;
bool store_is_wished(struct store *store, int64_t request_id);

/*
 * A chore for once an hour: PostgreSQL keeps ranges of ids open ahead of those in use.
 * Ids beyond the last range would still be stored, but not go when their range goes.
 */
int store_open_ranges(struct store *store, struct err *err) must_check;

/*
 * Run fn on a connection for reading, on the caller's thread. No transaction:
 * where several statements must see one state, fn begins one with DB_READ. fn runs
 * again when the connection turns out to be lost.
 */
int store_read(struct store *store, store_fn fn, void *arg, struct err *err) must_check;

/* The statement in the words of this database: db_run(db, store_sql(db, STMT_X), …) */
const struct db_sql *store_sql(const struct db *db, enum stmt stmt);

/* "name type, …" as declared in the header of the statement; "" = none. */
const char *store_sql_columns(enum stmt stmt);

/* Commits that made something durable, and calls of store_write they carried:
 * more calls than commits shows grouping. For metrics and tests. */
struct store_counts {
    int64_t writes;
    int64_t commits;
    int64_t retries; /* PostgreSQL */
    int64_t waiting; /* SQLite: calls that wait for the writer now */
};
void store_counts(struct store *store, struct store_counts *ret);

/* --- acts of people and repairs, recorded in the transaction of the act --- */

/* detail may be NULL. */
int store_audit(struct db *db, const char *actor, const char *act, const char *subject,
                const char *detail, struct err *err) must_check;

#endif
