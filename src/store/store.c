/*
 * Opening a store, and running work on it. On SQLite this process must be the only
 * one, shown by a lock file beside the store: writes go to the one writer (group.c),
 * reads to a pool of reading connections. On PostgreSQL both use one pool.
 */
#include "store/store.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/strs.h"
#include "store/private.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CONNECTIONS_DEFAULT  8
#define LOCK_TRIES           100
#define LOCK_PAUSE_MS        50
#define WAIT_MS_DEFAULT      10000
#define STATEMENT_MS_DEFAULT 30000
#define IDLE_TX_MS_DEFAULT   10000
#define CONFLICT_RETRIES     3
#define CONFLICT_WAIT_MS     100
#define CONFLICT_JITTER_MS   50

/* --- opening --- */

static int
set_clock(struct db *db, void *arg, struct err *err)
{
    const struct store *store = (const struct store *)arg;

    if (!store->clock || db_kind(db) != DB_SQLITE)
        return 0;
    return db_sqlite_set_clock(db, store->clock, store->clock_arg, err);
}

static int
open_writer(void *arg, struct db **ret_db, struct err *err)
{
    struct store *store = (struct store *)arg;
    scoped(db_closep) struct db *db = NULL;
    int r;

    r = store->open(&store->db, &db, err);
    if (r == 0)
        r = set_clock(db, store, err);
    if (r < 0)
        return r;
    *ret_db = db;
    db = NULL;
    return 0;
}

/* The lock must be one however the file is called: through a link it lies beside the
 * file itself. Two hard links have no such place, and two journals: refused. */
static int
lock_name(const char *path, struct buf *name, struct err *err)
{
    char *real = realpath(path, NULL);
    struct stat st;

    buf_addf(name, "%s.lock", real ? real : path);
    free(real);
    if (stat(path, &st) == 0 && st.st_nlink > 1)
        return err_set(err, ERR_CONFIG,
                       "store %s is one file under %d names (hard links), which SQLite "
                       "cannot keep safe; remove the others, or copy the file",
                       path, (int)st.st_nlink);
    return 0;
}

/* A verb of the command line holds a store for a moment only. */
static bool
held_by_server(const char *holder)
{
    const char *what = strrchr(holder, ' ');

    return what && strcmp(what, " serve") == 0;
}

/* A server that starts has patience with those. */
static int
take_lockfile(struct store *store, const char *name, const char *role,
              char holder[LOCKFILE_TEXT_SIZE], struct err *err)
{
    int tries = role && strcmp(role, "serve") == 0 ? LOCK_TRIES : 1;
    int r;

    for (;;) {
        r = lockfile_take(name, role, &store->lock, holder, err);
        if (r != LOCKFILE_HELD || --tries <= 0 || held_by_server(holder))
            return r;
        clock_pause_ms(LOCK_PAUSE_MS);
    }
}

/* One process owns an SQLite store; the lock lies beside it and ends with us. */
static int
take_lock(struct store *store, const char *role, struct err *err)
{
    const char *path = store->url + strlen("sqlite:");
    scoped(buf_release) struct buf name = {0};
    char holder[LOCKFILE_TEXT_SIZE];
    int r;

    if (strcmp(path, ":memory:") == 0)
        return err_set(err, ERR_CONFIG,
                       "store sqlite::memory: would be gone with the process; give a "
                       "file: sqlite:./pawl.db");
    buf_init(&name, 0);
    r = lock_name(path, &name, err);
    if (r == 0)
        r = take_lockfile(store, buf_str(&name), role, holder, err);
    if (r < 0)
        return r;
    if (r == LOCKFILE_HELD)
        return err_set(err, ERR_STORE_HELD,
                       "store %s is in use by %s; one process owns an SQLite store: "
                       "leave it to that one, stop it first, or keep the store in "
                       "PostgreSQL",
                       path, holder);
    return 0;
}

static int
read_identity(struct store *store, struct db *db, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int r;

    r = db_ask(db, store_sql(db, STMT_STORE_IDENTITY), &rows, err);
    if (r == 0)
        r = db_next(&rows, err);
    if (r < 0)
        return r;
    if (r == 0 || !str_copy(store->id, sizeof(store->id), db_text(&rows, 0)))
        return err_set(err, ERR_SCHEMA,
                       "the store has no identity (table pawl.store is empty): it was "
                       "not made by `pawl migrate`; restore it from a backup");
    return 0;
}

/* *ret_db: the connection that has looked. Where it may migrate, which can take longer
 * than a statement may, it is good for nothing else. */
static int
prepare_schema(struct store *store, bool migrate, struct db **ret_db, struct err *err)
{
    struct db_options options = store->db;
    scoped(db_closep) struct db *db = NULL;
    int r;

    if (migrate)
        options.statement_timeout_ms = 0;
    r = store->open(&options, &db, err);
    if (r == 0)
        r = set_clock(db, store, err);
    if (r < 0)
        return r;
    r = migrate ? migrate_up(db, &store->schema, err)
                : migrate_check(db, &store->schema, err);
    if (r == 0)
        r = read_identity(store, db, err);
    if (r < 0)
        return r;
    *ret_db = db;
    db = NULL;
    return 0;
}

static int
open_pool(struct store *store, int connections, struct err *err)
{
    struct db_pool_options options = {
        .db = store->db,
        .max = connections > 0 ? connections : CONNECTIONS_DEFAULT,
        .open = store->open,
        .prepare = set_clock,
        .arg = store,
    };

    options.db.read_only = store->kind == DB_SQLITE;
    return db_pool_new(&options, &store->pool, err);
}

static int
open_wake(struct store *store, const struct store_options *options, struct err *err)
{
    struct wake_options wake = {
        .kind = store->kind,
        .listen_url = options->listen_url ? options->listen_url : store->url,
        .db = store->db,
        .open = store->open,
        .pool = store->pool,
    };

    return wake_new(&wake, &store->wake, err);
}

static void
keep_options(struct store *store, const struct store_options *options)
{
    /* To plan a statement anew for each parameter costs several times what it costs;
     * where a pooler is between, the roles have it (src/sql/roles/4_settings.sql). */
    static const struct db_setting settings[] = {
        {"plan_cache_mode", "force_generic_plan"}};

    store->url = xstrdup(options->url);
    store->app_name = xstrdup(options->app_name ? options->app_name : "pawl");
    store->open = options->open ? options->open : db_open;
    store->clock = options->clock;
    store->clock_arg = options->clock_arg;
    store->wait_ms = options->wait_ms > 0 ? options->wait_ms : WAIT_MS_DEFAULT;
    store->db = (struct db_options){
        .url = store->url,
        .store = true,
        .allow_network_fs = options->allow_network_fs,
        .app_name = store->app_name,
        .connect_timeout_ms = options->connect_timeout_ms,
        .statement_timeout_ms = options->statement_timeout_ms > 0
                                    ? options->statement_timeout_ms
                                    : STATEMENT_MS_DEFAULT,
        .idle_tx_timeout_ms =
            options->idle_tx_ms > 0 ? options->idle_tx_ms : IDLE_TX_MS_DEFAULT,
        .session_settings = settings,
        .n_session_settings = options->plan_once ? array_len(settings) : 0,
    };
}

/* The server's own words do not say where its roles come from. */
static void
tell_of_roles(struct err *err)
{
    size_t len = strlen(err->text);

    if (strstr(err->text, "role \"") && strstr(err->text, "does not exist"))
        snprintf(err->text + len, sizeof(err->text) - len,
                 "; `pawl migrate`, once with an administrator's URL in PAWL_STORE, "
                 "makes pawl's roles");
}

int
store_open(const struct store_options *options, struct store **ret_store,
           struct err *err)
{
    scoped(store_closep) struct store *store = xcalloc(1, sizeof(*store));
    /* On SQLite it stays open until another is: the last one puts the WAL away. */
    scoped(db_closep) struct db *first = NULL;
    int r;

    store->lock.fd = -1;
    keep_options(store, options);
    r = db_url_kind(options->url, &store->kind, err);
    if (r == 0 && store->kind == DB_SQLITE)
        r = take_lock(store, options->role ? options->role : "pawl", err);
    if (r == 0)
        r = prepare_schema(store, options->migrate, &first, err);
    if (r < 0 && store->kind == DB_PG)
        tell_of_roles(err);
    if (r == 0)
        r = open_pool(store, options->connections, err);
    if (r == 0 && store->kind == DB_PG && !options->migrate) {
        db_pool_adopt(store->pool, first);
        first = NULL;
    }
    if (r == 0 && store->kind == DB_SQLITE)
        r = group_new(open_writer, store, &store->group, err);
    if (r == 0)
        r = open_wake(store, options, err);
    if (r < 0)
        return r;
    *ret_store = store;
    store = NULL;
    return 0;
}

void
store_close(struct store *store)
{
    if (!store)
        return;
    wake_free(store->wake);
    if (store->pool)
        db_pool_free(store->pool);
    group_free(store->group); /* last: closing the writer puts the WAL away */
    lockfile_release(&store->lock);
    free(store->url);
    free(store->app_name);
    free(store);
}

void
store_closep(struct store **store)
{
    store_close(*store);
    *store = NULL;
}

void
store_hurry(struct store *store)
{
    if (store->pool)
        db_pool_hurry(store->pool);
}

enum db_kind
store_kind(const struct store *store)
{
    return store->kind;
}

const char *
store_id(const struct store *store)
{
    return store->id;
}

void
store_schema(const struct store *store, int *ret_before, int *ret_now)
{
    *ret_before = store->schema.before;
    *ret_now = store->schema.now;
}

/* --- work --- */

/* One try of fn in a transaction. ret_lost: the connection went before the commit was
 * sent, so nothing can have happened. */
static int
write_once(struct store *store, struct db *db, store_fn fn, void *arg, bool *ret_lost,
           struct err *err)
{
    scoped(db_tx_end) struct db_tx tx = {0};
    int result;
    int r;

    *ret_lost = false;
    r = db_begin(db, DB_WRITE, &tx, err);
    result = r < 0 ? r : fn(db, arg, err);
    if (result < 0) {
        *ret_lost = !db_usable(db);
        return result;
    }
    r = db_commit(&tx, err);
    if (r < 0)
        return r;
    __atomic_fetch_add(&store->counts.commits, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&store->counts.writes, 1, __ATOMIC_RELAXED);
    return result;
}

static int
write_pooled(struct store *store, store_fn fn, void *arg, struct err *err)
{
    struct err first = *err;
    bool renewed = false;
    int conflicts = 0;

    for (;;) {
        struct db *db;
        bool lost;
        int r;

        *err = first;
        r = db_pool_get(store->pool, store->wait_ms, &db, err);
        if (r < 0)
            return r;
        r = write_once(store, db, fn, arg, &lost, err);
        db_pool_put(store->pool, db);
        if (r >= 0)
            return r;
        if (lost && !renewed) {
            /* The server was started anew: the idle connections are as dead. */
            renewed = true;
            db_pool_drop_idle(store->pool);
        } else if (r == -ERR_DB_CONFLICT && conflicts < CONFLICT_RETRIES) {
            conflicts++;
            clock_pause_ms(CONFLICT_WAIT_MS * conflicts +
                           (int64_t)rand_below(CONFLICT_JITTER_MS));
        } else {
            return r;
        }
        __atomic_fetch_add(&store->counts.retries, 1, __ATOMIC_RELAXED);
    }
}

int
store_write(struct store *store, enum store_urgency urgency, store_fn fn, void *arg,
            struct err *err)
{
    if (store->group)
        return group_write(
            store->group,
            &(struct group_call){.urgency = urgency, .fn = fn, .arg = arg}, err);
    return write_pooled(store, fn, arg, err);
}

int
store_write_watched(struct store *store, store_fn fn, void *arg, store_watch_fn watch,
                    void *watch_arg, struct err *err)
{
    if (store->group)
        return group_write(
            store->group,
            &(struct group_call){
                .fn = fn, .arg = arg, .watch = watch, .watch_arg = watch_arg},
            err);
    return write_pooled(store, fn, arg, err);
}

int
store_write_wish(struct store *store, int64_t request_id, store_fn fn, void *arg,
                 struct err *err)
{
    if (store->group)
        return group_write(
            store->group,
            &(struct group_call){.fn = fn, .arg = arg, .wish_of = request_id}, err);
    return write_pooled(store, fn, arg, err);
}

bool
store_is_wished(struct store *store, int64_t request_id)
{
    return store->group && group_is_wished(store->group, request_id);
}

static int
open_ranges(struct db *db, void *arg, struct err *err)
{
    return db_run(db, store_sql(db, STMT_STORE_OPEN_RANGES), err);
}

int
store_open_ranges(struct store *store, struct err *err)
{
    if (store->kind == DB_SQLITE)
        return 0;
    return store_write(store, STORE_NORMAL, open_ranges, NULL, err);
}

int
store_read(struct store *store, store_fn fn, void *arg, struct err *err)
{
    struct err first = *err;

    for (int tries = 0;; tries++) {
        struct db *db;
        bool lost;
        int r;

        *err = first;
        r = db_pool_get(store->pool, store->wait_ms, &db, err);
        if (r < 0)
            return r;
        r = fn(db, arg, err);
        lost = !db_usable(db);
        db_pool_put(store->pool, db);
        if (r >= 0 || !lost || tries > 0)
            return r;
        db_pool_drop_idle(store->pool);
    }
}

void
store_counts(struct store *store, struct store_counts *ret)
{
    if (store->group) {
        group_counts(store->group, ret);
        return;
    }
    *ret = (struct store_counts){0};
    ret->writes = __atomic_load_n(&store->counts.writes, __ATOMIC_RELAXED);
    ret->commits = __atomic_load_n(&store->counts.commits, __ATOMIC_RELAXED);
    ret->retries = __atomic_load_n(&store->counts.retries, __ATOMIC_RELAXED);
}
