/*
 * LD_PRELOAD: the wall clock is off by the number of seconds that the file of
 * PAWL_TEST_CLOCK holds (8 bytes, of this machine's order). The monotonic clock is left
 * true. For tests/crash only; nemesis.py compiles it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static const volatile int64_t *off;
static int (*real_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void
begin(void)
{
    const char *path = getenv("PAWL_TEST_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    real_gettime =
        (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    if (fd >= 0)
        off = mmap(NULL, sizeof(*off), PROT_READ, MAP_SHARED, fd, 0);
}

int
clock_gettime(clockid_t clock, struct timespec *ts)
{
    int r = real_gettime(clock, ts);

    if (r == 0 && off && off != MAP_FAILED && clock == CLOCK_REALTIME)
        ts->tv_sec += *off;
    return r;
}

int
gettimeofday(struct timeval *tv, void *zone)
{
    struct timespec ts;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &ts);
    *tv = (struct timeval){ts.tv_sec, ts.tv_nsec / 1000};
    return 0;
}

time_t
time(time_t *ret)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    if (ret)
        *ret = ts.tv_sec;
    return ts.tv_sec;
}
