/*
 * Time as a thing one is handed, so that tests can move it. Wall time is
 * microseconds since 1970 UTC and may jump; mono time only goes forward, from
 * an arbitrary start: durations and timers use it. Any thread.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include "base/compiler.h"

#include <stdint.h>

#define US_PER_MS     INT64_C(1000)
#define US_PER_S      INT64_C(1000000)
#define US_PER_MINUTE (60 * US_PER_S)
#define US_PER_HOUR   (60 * US_PER_MINUTE)
#define US_PER_DAY    (24 * US_PER_HOUR)

struct clock {
    int64_t (*wall_us)(const struct clock *clock);
    int64_t (*mono_us)(const struct clock *clock);
};

static inline int64_t
clock_wall_us(const struct clock *clock)
{
    return clock->wall_us(clock);
}

static inline int64_t
clock_mono_us(const struct clock *clock)
{
    return clock->mono_us(clock);
}

/* The machine's. */
const struct clock *clock_real(void);

/* Do nothing for ms >= 0, whatever the clocks of others say; signals do not shorten it.
 * Between tries of what another process may free any moment, never to wait for one's
 * own threads. */
void clock_pause_ms(int64_t ms);

/* One that stands still until told; hand out &settable->clock. */
struct clock_settable {
    struct clock clock;
    int64_t wall_us;
    int64_t mono_us;
};

void clock_settable_init(struct clock_settable *settable, int64_t wall_us);
/* Jump: wall only, as an operator or NTP does. */
void clock_set_wall(struct clock_settable *settable, int64_t wall_us);
/* Time passes: both go forward by us >= 0. */
void clock_advance(struct clock_settable *settable, int64_t us);

#endif
