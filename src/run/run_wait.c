/*
 * Waiting for a store that is away. Work that is done is not thrown away, and work that
 * is to be gone on with is not ended, because the store did not answer for a while:
 * each call of a run that decides about its going on is made again, until the store
 * answers, the run's time is over, or somebody cuts it off.
 */
#include "run/run_private.h"

#include "base/clock.h"
#include "base/err.h"

/* It holds nobody up: without the store nothing else could be claimed. */
#define WAIT_US (10 * US_PER_MINUTE)

struct run_patience
run_patience(const struct run *run)
{
    return (struct run_patience){
        .until_us = clock_mono_us(run->env->clock) + WAIT_US,
        .backoff = {.base_ms = 50, .max_ms = 2000, .jitter = 0.5},
    };
}

bool
run_wait(struct run *run, struct run_patience *patience, struct err *err)
{
    if (run_wish(run) >= RUN_TIMEOUT || atomic_load(&run->cut) ||
        clock_mono_us(run->env->clock) >= patience->until_us)
        return false;
    clock_pause_ms(backoff_next_ms(&patience->backoff));
    err_clear(err);
    return true;
}

bool
run_wait_after(struct run *run, struct run_patience *patience, int r, struct err *err)
{
    return r < 0 && run_record_later(r) && run_wait(run, patience, err);
}
