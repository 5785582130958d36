#include "service/estimates.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "config/config.h"
#include "db/pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define POOL_MAX 4

struct estimate_pool {
    struct estimate_pool *next;
    char *database;
    int64_t timeout_us;
    struct db_pool *pool;
};

struct estimates {
    const struct config *config;
    const char *main_url;
    pthread_mutex_t lock; /* of the list; pools have their own */
    struct estimate_pool *pools;
};

struct estimates *
estimates_new(const struct config *config, const char *main_url)
{
    struct estimates *estimates = xcalloc(1, sizeof(*estimates));

    estimates->config = config;
    estimates->main_url = main_url;
    pthread_mutex_init(&estimates->lock, NULL);
    return estimates;
}

void
estimates_free(struct estimates *estimates)
{
    if (!estimates)
        return;
    while (estimates->pools) {
        struct estimate_pool *pool = estimates->pools;

        estimates->pools = pool->next;
        db_pool_free(pool->pool);
        free(pool->database);
        free(pool);
    }
    pthread_mutex_destroy(&estimates->lock);
    free(estimates);
}

static const char *
url_of(const struct estimates *estimates, const char *database)
{
    return strcmp(database, "main") == 0
               ? estimates->main_url
               : config_database_url(estimates->config, database);
}

static int
make_pool(struct estimates *estimates, const char *database, int64_t timeout_us,
          struct estimate_pool **ret_pool, struct err *err)
{
    int timeout_ms = (int)(timeout_us / US_PER_MS) + 1;
    struct db_pool_options options = {
        .db = {.url = url_of(estimates, database),
               .read_only = true,
               .connect_timeout_ms = timeout_ms,
               .statement_timeout_ms = timeout_ms},
        .max = POOL_MAX,
    };
    struct estimate_pool *pool;
    struct db_pool *made = NULL;
    int r;

    if (!options.db.url)
        return err_set(err, ERR_CONFIG,
                       "there is no database %s here; name it under `databases:`",
                       database);
    r = db_pool_new(&options, &made, err);
    if (r < 0)
        return r;
    pool = xcalloc(1, sizeof(*pool));
    pool->database = xstrdup(database);
    pool->timeout_us = timeout_us;
    pool->pool = made;
    pool->next = estimates->pools;
    estimates->pools = pool;
    *ret_pool = pool;
    return 0;
}

static struct estimate_pool *
find_pool(const struct estimates *estimates, const char *database, int64_t timeout_us)
{
    for (struct estimate_pool *pool = estimates->pools; pool; pool = pool->next)
        if (pool->timeout_us == timeout_us && strcmp(pool->database, database) == 0)
            return pool;
    return NULL;
}

int
estimates_get(struct estimates *estimates, const char *database, int64_t timeout_us,
              struct db **ret_db, struct err *err)
{
    struct estimate_pool *pool;
    int r = 0;

    pthread_mutex_lock(&estimates->lock);
    pool = find_pool(estimates, database, timeout_us);
    if (!pool)
        r = make_pool(estimates, database, timeout_us, &pool, err);
    pthread_mutex_unlock(&estimates->lock);
    if (r < 0)
        return r;
    return db_pool_get(pool->pool, (int)(timeout_us / US_PER_MS) + 1, ret_db, err);
}

void
estimates_put(struct estimates *estimates, const char *database, int64_t timeout_us,
              struct db *db)
{
    struct estimate_pool *pool;

    pthread_mutex_lock(&estimates->lock);
    pool = find_pool(estimates, database, timeout_us);
    pthread_mutex_unlock(&estimates->lock);
    db_pool_put(pool->pool, db);
}
