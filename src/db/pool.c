/*
 * The pool. No lock is held across a call to the database: a place is reserved
 * first (open counts it), then the connection is made or checked outside of the
 * lock. Idle connections are kept as a stack, so that the few in use stay warm.
 */
#include "db/pool.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/retry.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define POOL_MAX        1000
#define PROBE_MS        60000
#define CHECK_IDLE_MS   5000 /* idle longer than this: ask whether it still lives */
#define HURRIED_WAIT_MS 500

struct idle {
    struct db *db;
    int64_t since_ms;
};

struct db_pool {
    struct db_options options;
    struct db_pool_options hooks; /* open, prepare, arg, max; its db is options */
    struct db_setting *settings;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct idle *idle;
    int n_idle;
    int n_open;
    struct backoff backoff;
    int64_t next_try_ms; /* no connect before this; 0 = at once */
    struct err last;     /* why the newest connect failed */
    int64_t hurried_ms;  /* since then nobody waits for long; 0 = all may */
};

static int64_t
now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static char *
copy_text(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

static void
copy_options(struct db_pool *pool, const struct db_options *from)
{
    struct db_options *to = &pool->options;

    *to = *from;
    to->url = xstrdup(from->url);
    to->app_name = copy_text(from->app_name);
    pool->settings = xcalloc(from->n_session_settings + 1, sizeof(*pool->settings));
    for (size_t i = 0; i < from->n_session_settings; i++) {
        pool->settings[i].name = xstrdup(from->session_settings[i].name);
        pool->settings[i].value = xstrdup(from->session_settings[i].value);
    }
    to->session_settings = pool->settings;
}

/* Our own copies, which only the pointers to const hide. */
static void
free_text(const char *text)
{
    free((void *)(uintptr_t)text);
}

static void
free_options(struct db_pool *pool)
{
    for (size_t i = 0; i < pool->options.n_session_settings; i++) {
        free_text(pool->settings[i].name);
        free_text(pool->settings[i].value);
    }
    free(pool->settings);
    free_text(pool->options.url);
    free_text(pool->options.app_name);
}

int
db_pool_new(const struct db_pool_options *options, struct db_pool **ret_pool,
            struct err *err)
{
    struct db_pool *pool;
    pthread_condattr_t attr;
    enum db_kind kind;
    int r;

    if (options->max < 1 || options->max > POOL_MAX)
        return err_set(err, ERR_CONFIG, "pool: %d connections; allowed are 1 to %d",
                       options->max, POOL_MAX);
    r = db_url_kind(options->db.url, &kind, err);
    if (r < 0)
        return r;
    pool = xcalloc(1, sizeof(*pool));
    copy_options(pool, &options->db);
    pool->hooks = *options;
    if (!pool->hooks.open)
        pool->hooks.open = db_open;
    pool->idle = xcalloc((size_t)options->max, sizeof(*pool->idle));
    pool->backoff = (struct backoff){.base_ms = 100, .max_ms = 5000, .jitter = 0.5};
    pthread_mutex_init(&pool->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->changed, &attr);
    pthread_condattr_destroy(&attr);
    *ret_pool = pool;
    return 0;
}

void
db_pool_free(struct db_pool *pool)
{
    if (!pool)
        return;
    db_pool_drop_idle(pool);
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->lock);
    free(pool->idle);
    free_options(pool);
    free(pool);
}

void
db_pool_adopt(struct db_pool *pool, struct db *db)
{
    pthread_mutex_lock(&pool->lock);
    pool->n_open++;
    pthread_mutex_unlock(&pool->lock);
    db_pool_put(pool, db);
}

/* A place is free again; whoever waits may take it. */
static void
give_up_place(struct db_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->n_open--;
    pthread_cond_signal(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
}

/* Wait for a change until the moment until_ms; the lock is held. */
static void
wait_until(struct db_pool *pool, int64_t until_ms)
{
    struct timespec at = {.tv_sec = until_ms / 1000,
                          .tv_nsec = (until_ms % 1000) * 1000000};

    pthread_cond_timedwait(&pool->changed, &pool->lock, &at);
}

/* Who is in a hurry waits for a moment only, whatever was asked for. */
static int64_t
latest(const struct db_pool *pool, int64_t begin_ms, int64_t deadline_ms)
{
    int64_t hurried =
        (pool->hurried_ms > begin_ms ? pool->hurried_ms : begin_ms) + HURRIED_WAIT_MS;

    return pool->hurried_ms && hurried < deadline_ms ? hurried : deadline_ms;
}

enum take { TAKE_IDLE, TAKE_NEW, TAKE_NONE };

/*
 * Reserve an idle connection or a place for a new one. TAKE_NONE: the time is over;
 * *ret_waited_for_server says whether the server or the other users were in the way.
 */
static enum take
take(struct db_pool *pool, int64_t deadline_ms, struct idle *ret_idle,
     bool *ret_waited_for_server)
{
    int64_t begin_ms = now_ms();

    for (;;) {
        int64_t now = now_ms();
        int64_t last = latest(pool, begin_ms, deadline_ms);
        int64_t until = last;
        bool place = pool->n_open < pool->hooks.max;

        if (pool->n_idle > 0) {
            *ret_idle = pool->idle[--pool->n_idle];
            return TAKE_IDLE;
        }
        if (place && now >= pool->next_try_ms) {
            /* While the server is away one thread tries and the others wait. */
            if (pool->next_try_ms > 0)
                pool->next_try_ms = now + PROBE_MS;
            pool->n_open++;
            return TAKE_NEW;
        }
        *ret_waited_for_server = place;
        if (now >= last)
            return TAKE_NONE;
        if (place && pool->next_try_ms < until)
            until = pool->next_try_ms;
        wait_until(pool, until);
    }
}

static int
connect_one(struct db_pool *pool, struct db **ret_db, struct err *err)
{
    struct db *db = NULL;
    int r;

    r = pool->hooks.open(&pool->options, &db, err);
    if (r == 0 && pool->hooks.prepare) {
        r = pool->hooks.prepare(db, pool->hooks.arg, err);
        if (r < 0)
            db_close(db);
    }
    pthread_mutex_lock(&pool->lock);
    if (r < 0) {
        pool->n_open--;
        pool->next_try_ms = now_ms() + backoff_next_ms(&pool->backoff);
        pool->last = *err;
    } else {
        backoff_reset(&pool->backoff);
        pool->next_try_ms = 0;
        err_clear(&pool->last);
        *ret_db = db;
    }
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
    return r;
}

static bool
is_alive(const struct idle *idle)
{
    struct err ignored = {0};

    if (!db_usable(idle->db))
        return false;
    if (now_ms() - idle->since_ms < CHECK_IDLE_MS)
        return true;
    return db_ping(idle->db, &ignored) == 0;
}

static int
none_left(struct db_pool *pool, bool server, int timeout_ms, const struct err *last,
          struct err *err)
{
    if (server && last->code != ERR_NONE) {
        *err = *last;
        return -(int)last->code;
    }
    return err_set(
        err, ERR_STORE_BUSY,
        "all %d connections to the database were in use for %d ms; raise the "
        "number of connections, or try again",
        pool->hooks.max, timeout_ms);
}

int
db_pool_get(struct db_pool *pool, int timeout_ms, struct db **ret_db, struct err *err)
{
    int64_t deadline_ms = now_ms() + timeout_ms;

    for (;;) {
        struct idle idle = {0};
        struct err last;
        bool server = false;
        enum take taken;
        int r;

        pthread_mutex_lock(&pool->lock);
        taken = take(pool, deadline_ms, &idle, &server);
        last = pool->last;
        pthread_mutex_unlock(&pool->lock);

        if (taken == TAKE_NONE)
            return none_left(pool, server, timeout_ms, &last, err);
        if (taken == TAKE_IDLE) {
            if (is_alive(&idle)) {
                *ret_db = idle.db;
                return 0;
            }
            db_close(idle.db);
            give_up_place(pool);
            continue;
        }
        r = connect_one(pool, ret_db, err);
        if (r == 0 || r == -ERR_CONFIG || now_ms() >= deadline_ms)
            return r;
        err_clear(err);
    }
}

void
db_pool_put(struct db_pool *pool, struct db *db)
{
    if (!db)
        return;
    if (db_in_tx(db)) {
        struct db_tx tx = {.db = db};

        db_tx_end(&tx);
    }
    if (!db_usable(db)) {
        db_close(db);
        give_up_place(pool);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->idle[pool->n_idle++] = (struct idle){.db = db, .since_ms = now_ms()};
    pthread_cond_signal(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
}

void
db_pool_hurry(struct db_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->hurried_ms = now_ms();
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
}

void
db_pool_drop_idle(struct db_pool *pool)
{
    for (;;) {
        struct db *db = NULL;

        pthread_mutex_lock(&pool->lock);
        if (pool->n_idle > 0)
            db = pool->idle[--pool->n_idle].db;
        pthread_mutex_unlock(&pool->lock);
        if (!db)
            return;
        db_close(db);
        give_up_place(pool);
    }
}

void
db_pool_counts(struct db_pool *pool, int *ret_open, int *ret_idle)
{
    pthread_mutex_lock(&pool->lock);
    *ret_open = pool->n_open;
    *ret_idle = pool->n_idle;
    pthread_mutex_unlock(&pool->lock);
}
