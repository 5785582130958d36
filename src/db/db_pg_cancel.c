/*
 * PostgreSQL: cancelling. libpq asks on a connection of its own and waits until the
 * server closes that, which a server that hangs never does. So it is asked on a thread
 * of its own, which whoever cancels does not wait for; one thread for a connection, and
 * what it needs is kept until it has come back, though the connection be closed.
 */
#include "db/pg.h"

#include "base/arena.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct pg_cancel {
    PGcancel *handle;
    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t answered;
    int holders; /* the connection, and the thread that asks */
    bool asking;
};

struct pg_cancel *
pg_cancel_new(PGconn *conn)
{
    struct pg_cancel *cancel = xcalloc(1, sizeof(*cancel));
    pthread_condattr_t attr;

    cancel->handle = PQgetCancel(conn);
    cancel->holders = 1;
    pthread_mutex_init(&cancel->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&cancel->answered, &attr);
    pthread_condattr_destroy(&attr);
    return cancel;
}

void
pg_cancel_drop(struct pg_cancel *cancel)
{
    bool last;

    if (!cancel)
        return;
    pthread_mutex_lock(&cancel->lock);
    last = --cancel->holders == 0;
    pthread_mutex_unlock(&cancel->lock);
    if (!last)
        return;
    PQfreeCancel(cancel->handle);
    pthread_cond_destroy(&cancel->answered);
    pthread_mutex_destroy(&cancel->lock);
    free(cancel);
}

/* Failing to cancel is no failure: a limit on the wait stands behind it. */
static void *
ask(void *arg)
{
    struct pg_cancel *cancel = arg;
    char reason[256];

    (void)PQcancel(cancel->handle, reason, sizeof(reason));
    pthread_mutex_lock(&cancel->lock);
    cancel->asking = false;
    pthread_cond_broadcast(&cancel->answered);
    pthread_mutex_unlock(&cancel->lock);
    pg_cancel_drop(cancel);
    return NULL;
}

void
pg_cancel_ask(struct pg_db *pg)
{
    struct pg_cancel *cancel = pg->cancel;
    pthread_attr_t attr;
    pthread_t thread;

    if (!cancel || !cancel->handle)
        return;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_mutex_lock(&cancel->lock);
    if (!cancel->asking && pthread_create(&thread, &attr, ask, cancel) == 0) {
        cancel->asking = true;
        cancel->holders++;
    }
    pthread_mutex_unlock(&cancel->lock);
    pthread_attr_destroy(&attr);
}

/* What is asked for one statement must not end the next one. */
void
pg_cancel_settle(struct pg_db *pg)
{
    struct pg_cancel *cancel = pg->cancel;
    struct timespec until;
    int waited = 0;

    if (!cancel)
        return;
    pthread_mutex_lock(&cancel->lock);
    if (cancel->asking) {
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += PG_GRACE_MS / 1000;
        while (cancel->asking && waited == 0)
            waited = pthread_cond_timedwait(&cancel->answered, &cancel->lock, &until);
        if (cancel->asking)
            pg->base.usable = false;
    }
    pthread_mutex_unlock(&cancel->lock);
}

void
pg_cancel(struct db *db)
{
    pg_cancel_ask(pg_of(db));
}
