/*
 * Claiming for lanes. A claim goes on behind the last one of its lane, so that
 * it need not walk rows already taken; a sweep from the start finds what was
 * committed late or ranks higher. Sweeps happen at each wake-up, when the way
 * behind the cursor is empty, and at least once a second under load. Who meets another
 * worker's claim passes its rows by, and looks again a moment later.
 */
#include "worker/worker_private.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "config/config.h"

#include <stdlib.h>

#define SWEEP_EVERY_US   US_PER_S
#define AGAIN_FIRST_US   (20 * US_PER_MS)
#define AGAIN_LONGEST_US US_PER_S
#define CLAIM_MAX        256

/* The held mark is set on this thread before anything else can look at the claim. */
static void
hold(struct worker *worker, int lane, const struct claim *claim, int64_t request_id)
{
    const struct config_job *job = config_job_find(worker->options.config, claim->job);
    struct slot *slot = xcalloc(1, sizeof(*slot));

    slot->run = run_new(&worker->env, request_id, claim->job, claim->token);
    slot->request_id = request_id;
    slot->token = claim->token.number;
    slot->lane = lane;
    if (job && job->timeout_us)
        slot->deadline_us = worker_now_us(worker) + job->timeout_us;
    run_limit(slot->run, slot->deadline_us);
    list_push_back(&worker->held, &slot->held);
    worker->n_held++;
    pthread_mutex_lock(&worker->lock);
    worker->lanes[lane].in_use++;
    pthread_mutex_unlock(&worker->lock);
    log_line(worker->options.log, LOG_INFO, "request running",
             log_i64("request", request_id), log_str("job", claim->job),
             log_str("lane", claim->lane));
    slots_fill(worker->slots, slot);
}

static struct claim_want
want_of(const struct worker *worker, const struct lane *lane,
        struct claim_cursor *cursor)
{
    int free_slots = lane->slots - lane->in_use;

    return (struct claim_want){
        .worker = worker->id,
        .lane = lane->name,
        .jobs = worker->jobs,
        .n_jobs = worker->n_jobs,
        .max = free_slots < CLAIM_MAX ? free_slots : CLAIM_MAX,
        .cursor = cursor,
    };
}

/* Returns how many were claimed, or < 0. */
static int
claim_once(struct worker *worker, int at, struct claim_cursor *cursor, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    struct claim_want want = want_of(worker, &worker->lanes[at], cursor);
    struct claim claims[CLAIM_MAX];
    size_t count = 0;
    int taken = 0;
    int r;

    log_line(worker->options.log, LOG_DEBUG, "claiming", log_str("lane", want.lane));
    r = queue_claim(worker->options.store, &want, &arena, claims, &count, err);
    log_line(worker->options.log, LOG_DEBUG, "claimed",
             log_i64("spans", (int64_t)count));
    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++)
        for (int64_t id = claims[i].first_id; id <= claims[i].last_id; id++, taken++)
            hold(worker, at, &claims[i], id);
    return taken;
}

static bool
has_free(const struct lane *lane)
{
    return lane->in_use < lane->slots;
}

/* A sweep has left slots free: is the lane empty, or were others claiming in it? */
static int
settle_lane(struct worker *worker, struct lane *lane, struct err *err)
{
    struct claim_want want = want_of(worker, lane, NULL);
    int r = queue_claim_left(worker->options.store, &want, err);

    if (r < 0)
        return r;
    lane->empty = r == 0;
    lane->pause_us = lane->pause_us ? lane->pause_us * 2 : AGAIN_FIRST_US;
    if (lane->pause_us > AGAIN_LONGEST_US)
        lane->pause_us = AGAIN_LONGEST_US;
    if (lane->empty)
        lane->pause_us = 0;
    lane->again_at_us = lane->empty ? 0 : worker_now_us(worker) + lane->pause_us;
    return 0;
}

static int
claim_lane(struct worker *worker, int at, struct err *err)
{
    struct lane *lane = &worker->lanes[at];
    int64_t now_us = worker_now_us(worker);
    int r = 0;

    if (lane->cursor.set && now_us - lane->swept_at_us < SWEEP_EVERY_US)
        r = claim_once(worker, at, &lane->cursor, err);
    if (r < 0 || !has_free(lane))
        return r;
    lane->cursor = (struct claim_cursor){0};
    lane->swept_at_us = now_us;
    do
        r = claim_once(worker, at, &lane->cursor, err);
    while (r == CLAIM_MAX && has_free(lane));
    if (r > 0)
        lane->pause_us = 0;
    if (r < 0 || !has_free(lane))
        return r;
    return settle_lane(worker, lane, err);
}

int
worker_claim(struct worker *worker, struct err *err)
{
    int64_t now_us = worker_now_us(worker);

    for (size_t i = 0; i < worker->n_lanes; i++) {
        struct lane *lane = &worker->lanes[i];
        int r;

        if (lane->empty || !has_free(lane) || lane->again_at_us > now_us ||
            worker->n_jobs == 0)
            continue;
        r = claim_lane(worker, (int)i, err);
        if (r < 0)
            return r;
    }
    return 0;
}

int64_t
worker_claim_again_us(const struct worker *worker)
{
    int64_t next_us = 0;

    for (size_t i = 0; i < worker->n_lanes; i++) {
        const struct lane *lane = &worker->lanes[i];

        if (lane->again_at_us && has_free(lane) &&
            (!next_us || lane->again_at_us < next_us))
            next_us = lane->again_at_us;
    }
    return next_us;
}

void
worker_lanes_wake(struct worker *worker)
{
    for (size_t i = 0; i < worker->n_lanes; i++) {
        struct lane *lane = &worker->lanes[i];

        lane->empty = false;
        lane->cursor = (struct claim_cursor){0};
        lane->again_at_us = 0;
        lane->pause_us = 0;
    }
}
