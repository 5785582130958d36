/*
 * Who is dead is judged by the workers (worker/reaper.c): only they know whether the
 * beats of all arrive. A caller that is in the way of a dead one's claim wakes them, so
 * that they look now and not at their next round. Two cases have no such judge. Where
 * this process owns an SQLite store and is no server, every other process that had it
 * is gone. And `pawl run` on a store that has no workers waits for one beat more than a
 * living one would let it: as long as it takes to see that an outage is over.
 */
#include "service/bury.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/strs.h"
#include "batch/stale.h"
#include "config/config.h"
#include "liveness/worker_row.h"
#include "run/run_lost.h"
#include "service/crew.h"
#include "service/service.h"
#include "store/store.h"
#include "store/wake.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define WAIT_US (2 * US_PER_S)
#define LOOK_US (100 * US_PER_MS) /* also where no wake-up can reach us */

static const char died[] = "The worker died while this ran (no beat of it arrived any "
                           "more). Ask for it again.";

/* --- waiting --- */

struct bell {
    pthread_mutex_t lock;
    pthread_cond_t rings;
    bool rung;
};

static void
on_wake(void *arg, unsigned mask)
{
    struct bell *bell = arg;

    (void)mask;
    pthread_mutex_lock(&bell->lock);
    bell->rung = true;
    pthread_cond_signal(&bell->rings);
    pthread_mutex_unlock(&bell->lock);
}

static void
await_ring(struct bell *bell)
{
    int64_t until_us = clock_mono_us(clock_real()) + LOOK_US;
    struct timespec until = {.tv_sec = until_us / US_PER_S,
                             .tv_nsec = until_us % US_PER_S * 1000};
    int r = 0;

    pthread_mutex_lock(&bell->lock);
    while (!bell->rung && r == 0)
        r = pthread_cond_timedwait(&bell->rings, &bell->lock, &until);
    bell->rung = false;
    pthread_mutex_unlock(&bell->lock);
}

int
service_await(const struct service *service, int64_t most_us, int (*done)(void *arg),
              void *arg)
{
    int64_t until_us = clock_mono_us(clock_real()) + most_us;
    struct bell bell = {.lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_condattr_t attr;
    int subscription;
    int r;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&bell.rings, &attr);
    pthread_condattr_destroy(&attr);
    subscription = store_subscribe(service->store, WAKE_DONE, on_wake, &bell);
    while ((r = done(arg)) == 0 && clock_mono_us(clock_real()) < until_us)
        await_ring(&bell);
    store_unsubscribe(service->store, subscription);
    pthread_cond_destroy(&bell.rings);
    pthread_mutex_destroy(&bell.lock);
    return r;
}

/* --- who is dead, who could say so --- */

static bool
is_dead(const struct service *service, const struct batch_holder *holder)
{
    return holder->silence_us < 0 ||
           holder->silence_us > service->config->worker.dead_after_us;
}

/* -1: the store did not say. */
static int
has_judge(const struct service *service)
{
    scoped(arena_release) struct arena arena = {0};
    struct crew crew = {0};
    struct err ignored = {0};

    if (crew_read(service, &arena, &crew, &ignored) < 0)
        return -1;
    return crew_has_judge(&crew);
}

struct watch {
    const struct service *service;
    int64_t request_id;
    struct batch_holder holder; /* at the beginning */
    int64_t dead_after_us;      /* for the gate */
};

/* Another one, or none, holds it by now. */
static int
let_go(void *arg)
{
    struct watch *watch = arg;
    struct batch_holder now = {0};
    struct err ignored = {0};
    int r = batch_holder_of_request(watch->service->store, watch->request_id, &now,
                                    &ignored);

    return r == 0 || (r > 0 && !str_eq(now.worker, watch->holder.worker));
}

/* --- closing here --- */

static int
still_dead(struct db *db, const char *worker, void *arg, struct err *err)
{
    const struct watch *watch = arg;

    return worker_bury_in(db, worker, watch->dead_after_us, err);
}

static int
close_here(struct watch *watch, struct err *err)
{
    const struct service *service = watch->service;
    scoped(arena_release) struct arena arena = {0};
    struct run_env env = {.config = service->config,
                          .store = service->store,
                          .results = service->results,
                          .clock = service->clock};
    struct run_rescued rescued = {0};
    struct queue_gate gate = {.fn = still_dead, .arg = watch};
    int r = run_rescue(&env, watch->holder.worker, gate, died, &arena, &rescued, err);

    return r < 0 ? r : rescued.n_lost + rescued.n_whole > 0;
}

static int
look_at(struct watch *watch)
{
    struct err ignored = {0};

    return batch_holder_of_request(watch->service->store, watch->request_id,
                                   &watch->holder, &ignored);
}

static int
wait_for_judge(struct watch *watch)
{
    atomic_flag *one_waits = watch->service->one_waits;
    int closed;

    if (one_waits && atomic_flag_test_and_set(one_waits))
        return 0;
    closed = service_await(watch->service, WAIT_US, let_go, watch);
    if (one_waits)
        atomic_flag_clear(one_waits);
    return closed;
}

int
service_bury(const struct service *service, int64_t request_id)
{
    struct watch watch = {.service = service, .request_id = request_id};
    struct err ignored = {0};

    if (look_at(&watch) != 1)
        return 0;
    /* Its row says nothing: whoever wrote it does not have the store any more. */
    watch.dead_after_us = -US_PER_DAY;
    if (service->sole_owner)
        return close_here(&watch, &ignored) == 1;
    if (!is_dead(service, &watch.holder) || has_judge(service) != 1)
        return 0;
    store_wake(service->store, WAKE_LOST);
    return wait_for_judge(&watch);
}

/* --- alone --- */

/* It has beaten since, or is gone. */
static int
is_heard(void *arg)
{
    struct watch *watch = arg;
    struct watch now = *watch;

    return look_at(&now) != 1 || !str_eq(now.holder.worker, watch->holder.worker) ||
           !is_dead(watch->service, &now.holder);
}

int
service_bury_alone(const struct service *service, int64_t request_id, const char *own,
                   struct err *err)
{
    struct watch watch = {.service = service,
                          .request_id = request_id,
                          .dead_after_us = service->config->worker.dead_after_us};
    int64_t beat_us = service->config->worker.heartbeat_us;

    if (look_at(&watch) != 1 || str_eq(watch.holder.worker, own) ||
        !is_dead(service, &watch.holder) || has_judge(service) != 0)
        return 0;
    if (service_await(service, beat_us + beat_us / 2, is_heard, &watch) != 0 ||
        has_judge(service) != 0)
        return 0;
    return close_here(&watch, err);
}

/* --- telling --- */

/* Since more than two beats nothing was heard of it. */
static bool
is_silent(const struct service *service, const struct batch_holder *holder)
{
    return holder->silence_us < 0 ||
           holder->silence_us > 2 * service->config->worker.heartbeat_us;
}

void
service_tell_silence(const struct service *service, int64_t request_id, struct err *err)
{
    int64_t dead_after_us = service->config->worker.dead_after_us;
    struct watch watch = {.service = service, .request_id = request_id};
    size_t used = strlen(err->text);
    int64_t left_us;

    if (look_at(&watch) != 1 || !is_silent(service, &watch.holder))
        return;
    left_us =
        is_dead(service, &watch.holder) ? 0 : dead_after_us - watch.holder.silence_us;
    if (has_judge(service) == 0)
        snprintf(
            err->text + used, sizeof(err->text) - used,
            "; its worker %.100s is silent, and no live worker is there that would "
            "close the request: start one",
            watch.holder.worker);
    else
        snprintf(
            err->text + used, sizeof(err->text) - used,
            "; its worker %.100s is silent, and unless it is heard of again a live "
            "worker closes the request in about %lld s",
            watch.holder.worker,
            (long long)((left_us + service->config->worker.reap_us) / US_PER_S + 1));
}
