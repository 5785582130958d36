/*
 * How long a receiver is asked again: after 1 s first, twice as long each time up to
 * six hours, for about three days. The wait is spread, so that those who failed
 * together do not come back together. The time since the request ended may say nothing
 * of how long we have tried: no worker was there, or the clock has jumped.
 */
#include "worker/hook.h"

#include "base/clock.h"
#include "base/retry.h"
#include "base/strs.h"

#include <time.h>

#define FIRST_WAIT_MS    1000
#define LONGEST_WAIT_MS  (6 * US_PER_HOUR / US_PER_MS)
#define LONGEST_PAUSE_MS (5 * US_PER_MINUTE / US_PER_MS)
#define JITTER           0.25
#define ASKED_PAUSE_US   US_PER_HOUR /* for one event it may have asked for more */
#define PATIENCE_US      (3 * US_PER_DAY)
#define LEASE_LEAST_US   (10 * US_PER_S)
#define LEASE_MORE_US    US_PER_S
#define TRIES_AT_LEAST   12 /* an hour, also where age_us is no measure: see below */

static int64_t
wait_us(int before, int64_t longest_ms)
{
    struct backoff backoff = {
        .base_ms = FIRST_WAIT_MS,
        .max_ms = longest_ms,
        .jitter = JITTER,
        .attempts = before,
    };

    return backoff_next_ms(&backoff) * US_PER_MS;
}

enum hook_verdict
hook_judge(const struct hook_try *try, int64_t *ret_wait_us)
{
    int64_t wait = wait_us(try->attempts - 1, LONGEST_WAIT_MS);

    if (try->status >= 200 && try->status < 300)
        return HOOK_HEARD;
    if (try->status == 410)
        return HOOK_NEVER;
    if ((try->status == 429 || try->status == 503) && try->asked_wait_us > wait)
        wait = try->asked_wait_us;
    if (try->attempts >= TRIES_AT_LEAST && try->age_us + wait > PATIENCE_US)
        return HOOK_NEVER;
    *ret_wait_us = wait;
    return HOOK_AGAIN;
}

bool
hook_is_away(int status)
{
    return status == 0 || status == 429 || (status >= 502 && status <= 504);
}

int64_t
hook_pause_us(const struct hook_try *try, int failures)
{
    int64_t pause = wait_us(failures - 1, LONGEST_PAUSE_MS);

    int64_t asked = try->asked_wait_us;

    if (asked > ASKED_PAUSE_US)
        asked = ASKED_PAUSE_US;
    return (try->status == 429 || try->status == 503) && asked > pause ? asked : pause;
}

int64_t
hook_lease_us(int64_t timeout_us)
{
    int64_t lease_us = 2 * timeout_us + LEASE_MORE_US;

    return lease_us < LEASE_LEAST_US ? LEASE_LEAST_US : lease_us;
}

int64_t
hook_asked_wait_us(const char *retry_after, int64_t wall_us)
{
    struct tm tm = {0};
    int64_t wait = 0;
    const char *end;

    if (!retry_after)
        return 0;
    if (str_to_i64(retry_after, &wait)) {
        wait = wait > US_PER_DAY / US_PER_S ? US_PER_DAY : wait * US_PER_S;
        return wait > 0 ? wait : 0;
    }
    end = strptime(retry_after, "%a, %d %b %Y %H:%M:%S GMT", &tm);
    if (!end || *end)
        return 0;
    wait = (int64_t)timegm(&tm) * US_PER_S - wall_us;
    return wait < 0 ? 0 : wait > US_PER_DAY ? US_PER_DAY : wait;
}
