#include "base/retry.h"

#include "base/rand.h"

#include <assert.h>

/* Evenly from 0 up to but without 1. */
static double
unit_random(const struct backoff *backoff)
{
    uint64_t bits = backoff->rand_u64 ? backoff->rand_u64() : rand_u64();

    return (double)(bits >> 11) / (double)(UINT64_C(1) << 53);
}

int64_t
backoff_next_ms(struct backoff *backoff)
{
    double factor = backoff->factor > 0 ? backoff->factor : 2;
    double wait = (double)backoff->base_ms;
    int64_t wait_ms;

    assert(backoff->base_ms > 0 && backoff->max_ms >= backoff->base_ms);
    assert(factor >= 1 && backoff->jitter >= 0 && backoff->jitter <= 1);
    for (int i = 0; i < backoff->attempts && wait < (double)backoff->max_ms; i++)
        wait *= factor;
    /* A double may be rounded past an int64, so the limit itself is not converted. */
    wait_ms = wait >= (double)backoff->max_ms ? backoff->max_ms : (int64_t)wait;
    /* A factor of 1 would otherwise walk this loop longer each time. */
    if (backoff->attempts < 64)
        backoff->attempts++;
    wait_ms -= (int64_t)((double)wait_ms * backoff->jitter * unit_random(backoff));
    return wait_ms < 1 ? 1 : wait_ms;
}

void
backoff_reset(struct backoff *backoff)
{
    backoff->attempts = 0;
}
