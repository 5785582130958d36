/*
 * The connections of one run: opened when a step asks, closed with the run. The
 * store itself can only be read this way ("main"); rows go into it inside the
 * checkpoint's transaction, on a connection of the store, which is one of the run's
 * only as long as the job's own statements run on it.
 */
#include "run/run_private.h"

#include "base/err.h"
#include "config/config.h"
#include "db/db.h"

#include <string.h>

static struct db *
find(const struct run *run, const char *name, enum io_db_use use)
{
    for (size_t i = 0; i < run->n_databases; i++)
        if (run->databases[i].use == use && strcmp(run->databases[i].name, name) == 0)
            return run->databases[i].db;
    return NULL;
}

static int
open_one(struct run *run, const char *name, enum io_db_use use, struct db **ret_db,
         struct err *err)
{
    struct db_options options = {
        .url = config_database_url(run->env->config, name),
        .read_only = use == IO_DB_READ,
        /* Rows are read and worked on before a writing transaction begins; a reading
         * one may be a stream that waits for a chunk to be written. */
        .idle_tx_timeout_ms =
            use == IO_DB_WRITE ? config_idle_tx_ms(run->env->config) : 0,
    };

    if (!options.url)
        return err_set(err, ERR_CONFIG,
                       "there is no database %s; name it under `databases:`", name);
    if (use == IO_DB_WRITE && strcmp(name, "main") == 0)
        return err_set(err, ERR_INTERNAL, "the store is written only by checkpoints");
    if (db_open(&options, ret_db, err) < 0)
        return err_prefix(err, "database %s", name);
    if (use == IO_DB_READ && run->env->opened &&
        run->env->opened(run->env->opened_arg, *ret_db, err) < 0) {
        db_close(*ret_db);
        return err_prefix(err, "database %s", name);
    }
    return 0;
}

/* Connecting takes a while, and who asked meanwhile had nothing to cut off. */
static int
check_wish(const struct run *run, const char *name, struct err *err)
{
    if (run_wish(run) >= RUN_TIMEOUT || atomic_load(&run->cut))
        return err_set(err, ERR_TIMEOUT, "database %s: the run is to end", name);
    return 0;
}

int
run_database(struct run *run, const char *name, enum io_db_use use, struct db **ret_db,
             struct err *err)
{
    struct db *db = find(run, name, use);
    int r;

    if (!db) {
        if (run->n_databases == RUN_DATABASES_MAX)
            return err_set(err, ERR_CONFIG,
                           "a job can use at most %d databases at once; split it",
                           RUN_DATABASES_MAX);
        r = open_one(run, name, use, &db, err);
        if (r < 0)
            return r;
        pthread_mutex_lock(&run->lock);
        run->databases[run->n_databases++] = (struct run_database){
            .name = arena_strdup(&run->arena, name), .use = use, .db = db};
        pthread_mutex_unlock(&run->lock);
        r = check_wish(run, name, err);
        if (r < 0)
            return r;
    }
    *ret_db = db;
    return 0;
}

int
run_database_again(struct run *run, const char *name, enum io_db_use use,
                   struct db **ret_db, struct err *err)
{
    struct db *old = find(run, name, use);
    struct db *db = NULL;
    int r = open_one(run, name, use, &db, err);

    if (r < 0)
        return r;
    pthread_mutex_lock(&run->lock);
    for (size_t i = 0; i < run->n_databases; i++)
        if (run->databases[i].db == old)
            run->databases[i].db = db;
    pthread_mutex_unlock(&run->lock);
    db_close(old);
    *ret_db = db;
    return check_wish(run, name, err);
}

int
run_store_db_begin(struct run *run, struct db *db, struct err *err)
{
    int r;

    pthread_mutex_lock(&run->lock);
    r = check_wish(run, "main", err); /* who asks later finds the connection */
    if (r == 0) {
        db_cancellable_begin(db);
        run->store_db = db;
    }
    pthread_mutex_unlock(&run->lock);
    return r;
}

void
run_store_db_end(struct run *run)
{
    pthread_mutex_lock(&run->lock);
    db_cancellable_end(run->store_db);
    run->store_db = NULL;
    pthread_mutex_unlock(&run->lock);
}

void
run_databases_cut(struct run *run)
{
    pthread_mutex_lock(&run->lock);
    for (size_t i = 0; i < run->n_databases; i++)
        db_cancel(run->databases[i].db);
    if (run->store_db)
        db_cancel(run->store_db);
    pthread_mutex_unlock(&run->lock);
}

void
run_databases_close(struct run *run)
{
    pthread_mutex_lock(&run->lock);
    for (size_t i = 0; i < run->n_databases; i++)
        db_close(run->databases[i].db);
    run->n_databases = 0;
    pthread_mutex_unlock(&run->lock);
}
