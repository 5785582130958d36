/*
 * The heart: a thread of its own, so that no work can delay a beat. It goes on
 * through the drain and stops when the loop has ended.
 */
#include "worker/worker_private.h"

#include "base/err.h"
#include "base/log.h"
#include "config/config.h"
#include "liveness/worker_row.h"

#include <time.h>

static void
add_us(struct timespec *ts, int64_t us)
{
    ts->tv_sec += us / 1000000;
    ts->tv_nsec += (us % 1000000) * 1000;
    if (ts->tv_nsec >= 1000000000) {
        ts->tv_nsec -= 1000000000;
        ts->tv_sec++;
    }
}

/* False when the loop has ended. in_use is written under the lock. */
static bool
wait_for_beat(struct worker *worker, struct arena *arena, const char **ret_in_use)
{
    struct timespec until;
    bool ended;

    clock_gettime(CLOCK_MONOTONIC, &until);
    add_us(&until, worker->options.config->worker.heartbeat_us);
    pthread_mutex_lock(&worker->lock);
    while (!worker->ended &&
           pthread_cond_timedwait(&worker->heartbeat, &worker->lock, &until) == 0)
        ;
    ended = worker->ended;
    *ret_in_use = worker_lanes_json(worker, true, arena);
    pthread_mutex_unlock(&worker->lock);
    return !ended;
}

/* Who may judge others by their beats: only one whose own arrive without a gap. */
static void
note_beat(struct worker *worker, int r, int64_t gap_us)
{
    int64_t longest_us = worker->options.config->worker.dead_after_us / 2;
    bool whole = r == WORKER_BEAT_OK && gap_us >= 0 && gap_us <= longest_us;

    pthread_mutex_lock(&worker->lock);
    if (r == WORKER_BEAT_GONE) {
        worker->gone = true;
        pthread_cond_signal(&worker->wake);
    }
    if (r != WORKER_BEAT_OK)
        worker->link_since_us = 0;
    else if (!whole || !worker->link_since_us)
        worker->link_since_us = worker_now_us(worker);
    pthread_mutex_unlock(&worker->lock);
}

void *
worker_heart(void *arg)
{
    scoped(arena_release) struct arena arena = {0};
    struct worker *worker = arg;
    const char *in_use = NULL;
    bool missed = false;

    while (wait_for_beat(worker, &arena, &in_use)) {
        struct err err = {0};
        int64_t gap_us = 0;
        int r =
            worker_beat_gap(worker->options.store, worker->id, in_use, &gap_us, &err);

        note_beat(worker, r, gap_us);
        if (r < 0 && !missed)
            log_line(worker->options.log, LOG_WARN,
                     "heartbeat missed; it is tried again at each beat",
                     log_str("reason", err.text));
        if (r >= 0 && missed)
            log_line(worker->options.log, LOG_INFO, "heartbeat is back");
        missed = r < 0;
        arena_clear(&arena);
    }
    return NULL;
}
