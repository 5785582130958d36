#include "base/clock.h"

#include <assert.h>
#include <errno.h>
#include <time.h>

static int64_t
read_clock(clockid_t id)
{
    struct timespec ts;
    int r = clock_gettime(id, &ts);

    assert(r == 0);
    (void)r;
    return (int64_t)ts.tv_sec * US_PER_S + ts.tv_nsec / 1000;
}

static int64_t
real_wall_us(const struct clock *clock)
{
    return read_clock(CLOCK_REALTIME);
}

static int64_t
real_mono_us(const struct clock *clock)
{
    return read_clock(CLOCK_MONOTONIC);
}

const struct clock *
clock_real(void)
{
    static const struct clock real = {.wall_us = real_wall_us, .mono_us = real_mono_us};

    return &real;
}

void
clock_pause_ms(int64_t ms)
{
    struct timespec rest = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    assert(ms >= 0);
    while (nanosleep(&rest, &rest) < 0 && errno == EINTR)
        ;
}

/* Atomic, since the test's thread moves what another thread may be reading. */

static int64_t
settable_wall_us(const struct clock *clock)
{
    const struct clock_settable *settable = (const struct clock_settable *)clock;

    return __atomic_load_n(&settable->wall_us, __ATOMIC_ACQUIRE);
}

static int64_t
settable_mono_us(const struct clock *clock)
{
    const struct clock_settable *settable = (const struct clock_settable *)clock;

    return __atomic_load_n(&settable->mono_us, __ATOMIC_ACQUIRE);
}

void
clock_settable_init(struct clock_settable *settable, int64_t wall_us)
{
    settable->clock.wall_us = settable_wall_us;
    settable->clock.mono_us = settable_mono_us;
    settable->wall_us = wall_us;
    settable->mono_us = US_PER_S; /* not 0, which often means "never" */
}

void
clock_set_wall(struct clock_settable *settable, int64_t wall_us)
{
    __atomic_store_n(&settable->wall_us, wall_us, __ATOMIC_RELEASE);
}

void
clock_advance(struct clock_settable *settable, int64_t us)
{
    assert(us >= 0);
    __atomic_add_fetch(&settable->wall_us, us, __ATOMIC_ACQ_REL);
    __atomic_add_fetch(&settable->mono_us, us, __ATOMIC_ACQ_REL);
}
