/*
 * Recording: how the run ended is decided already; here it only has to reach the
 * store. While the store is away it is tried again, with growing pauses, so that
 * finished work is not repeated because a write failed.
 */
#include "run/run_private.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/retry.h"
#include "queue/finish.h"

#include <time.h>

static bool
worth_another_try(int r)
{
    return r == -ERR_STORE || r == -ERR_STORE_BUSY || r == -ERR_COMMIT_UNKNOWN ||
           r == -ERR_DB_CONFLICT || r == -ERR_TIMEOUT;
}

static void
pause_ms(int64_t ms)
{
    struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000};

    nanosleep(&ts, NULL);
}

int
run_record(struct run *run, enum execution_state state, const char *message,
           const struct finish_order *order, struct err *err)
{
    const struct clock *clock = run->env->clock;
    int64_t give_up_us = clock_mono_us(clock) + run->env->record_retry_us;
    struct backoff backoff = {.base_ms = 100, .max_ms = 5000, .jitter = 0.5};
    int r;

    for (;;) {
        r = batch_finish(run->env->store, run->execution_id, state, message, order,
                         err);
        if (r >= 0 || !worth_another_try(r) || clock_mono_us(clock) >= give_up_us)
            return r;
        pause_ms(backoff_next_ms(&backoff));
        err_clear(err);
    }
}
