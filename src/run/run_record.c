/*
 * Recording: how the run ended is decided already; here it only has to reach the
 * store. While the store is away the outcome is kept where it outlives us, and tried
 * again with growing pauses, so that finished work is not repeated because a write
 * failed.
 */
#include "run/run_private.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/retry.h"
#include "queue/finish.h"

bool
run_record_later(int r)
{
    return r == -ERR_STORE || r == -ERR_STORE_BUSY || r == -ERR_COMMIT_UNKNOWN ||
           r == -ERR_DB_CONFLICT || r == -ERR_TIMEOUT || r == -ERR_DISK_FULL;
}

static enum execution_state
execution_end(enum request_outcome outcome)
{
    if (outcome == OUTCOME_COMPLETED)
        return EXECUTION_COMPLETED;
    return outcome == OUTCOME_STOPPED ? EXECUTION_STOPPED : EXECUTION_FAILED;
}

int
run_record_once(struct store *store, const struct finish_order *order, struct err *err)
{
    return batch_finish(store, order->execution_id, execution_end(order->outcome),
                        order->detail, order, err);
}

static bool
keep(struct run *run, const struct finish_order *order)
{
    struct err ignored = {0}; /* the sweep judges then; the report says why it failed */

    return run->env->keep && run->env->keep(run->env->keep_arg, order, &ignored) == 0;
}

int
run_record(struct run *run, const struct finish_order *order, bool *ret_kept,
           struct err *err)
{
    const struct clock *clock = run->env->clock;
    int64_t give_up_us = clock_mono_us(clock) + run->env->record_retry_us;
    struct backoff backoff = {.base_ms = 100, .max_ms = 2000, .jitter = 0.5};
    bool kept = false;
    int r;

    for (;;) {
        r = run_record_once(run->env->store, order, err);
        if (r < 0 && run_record_later(r) && !kept)
            kept = keep(run, order);
        *ret_kept = kept;
        if (r >= 0 || !run_record_later(r) || atomic_load(&run->cut) ||
            clock_mono_us(clock) >= give_up_us)
            return r;
        clock_pause_ms(backoff_next_ms(&backoff));
        err_clear(err);
    }
}
