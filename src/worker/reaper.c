/*
 * Repairs, each `worker.reap`: what the store or a process left behind by going away.
 * Read worker_reap first. In order: outcomes that wait in the spool are recorded; what
 * we claimed but do not carry is closed (claiming and carrying are both the loop's, so
 * nothing is in between); what is asked to be ended by hand is ended; what dead workers
 * held is closed; what waits in a lane that nobody serves is taken over; each hour the
 * house is kept (leavings.c).
 *
 * Who is dead is said by the store's clock, and only by somebody whose own beats have
 * arrived without a gap for one whole dead_after: after an outage, or after a jump of
 * that clock, all others look dead although they live.
 */
#include "worker/worker_private.h"

#include "base/err.h"
#include "base/json.h"
#include "base/plant.h"
#include "base/log.h"
#include "base/strs.h"
#include "batch/execution.h"
#include "batch/lost.h"
#include "batch/recovery.h"
#include "config/config.h"
#include "liveness/worker_row.h"
#include "queue/takeover.h"
#include "run/result_store.h"
#include "run/run_lost.h"
#include "store/store.h"
#include "store/wake.h"
#include "worker/spool.h"

#include <stdlib.h>
#include <string.h>

#define RETRY_US       US_PER_S          /* after a failure */
#define SOON_US        (200 * US_PER_MS) /* between two that somebody asked for */
#define HOUSE_EVERY_US US_PER_HOUR
#define DEAD_JITTER_US (500 * US_PER_MS) /* not all of us in the same moment */

/* --- the spool --- */

int
worker_replay(struct worker *worker, struct err *err)
{
    struct spool_counts counts = {0};
    int r;

    if (spool_count(worker->spool) == 0)
        return 0;
    r = spool_replay(worker->spool, &worker->env, &counts, err);
    if (counts.recorded > 0)
        log_line(worker->options.log, LOG_INFO,
                 "recorded outcomes that had waited for the store",
                 log_i64("requests", counts.recorded));
    if (counts.stale > 0)
        log_line(worker->options.log, LOG_WARN,
                 "dropped outcomes whose requests had been closed by others meanwhile",
                 log_i64("requests", counts.stale));
    if (counts.refused > 0)
        log_line(worker->options.log, LOG_ERROR,
                 "put aside outcomes that cannot be recorded: see *.refused in the "
                 "folder spool",
                 log_i64("requests", counts.refused));
    return r;
}

/* --- closing --- */

static void
log_closed(struct worker *worker, const struct lost_request *lost, const char *holder)
{
    log_line(worker->options.log, LOG_WARN, "closed a request that nobody carried",
             log_i64("request", lost->request_id), log_str("job", lost->job),
             log_str("outcome", request_outcome_name(lost->outcome)),
             log_str("worker", holder));
}

static void
log_whole(struct worker *worker, const struct lost_request *held)
{
    log_line(worker->options.log, LOG_INFO,
             "recorded as COMPLETED what had done all its work",
             log_i64("request", held->request_id), log_str("job", held->job));
}

/* What stays when the store does not answer is found by worker_drop_leavings. */
static void
drop_parts(struct worker *worker, const struct lost_request *lost)
{
    if (!run_drop_parts(&worker->env, lost->token))
        worker->house_at_us = 0;
}

/* All the work was done, only nobody said so: 1, and the request is COMPLETED. */
static int
complete(struct worker *worker, const struct lost_request *held, struct err *err)
{
    int r = run_record_whole(&worker->env, held->request_id, held->token, err);

    if (r != RUN_WHOLE)
        return r;
    drop_parts(worker, held);
    log_whole(worker, held);
    store_wake(worker->options.store, WAKE_DONE | WAKE_READY);
    return 1;
}

int
worker_close_held_by(struct worker *worker, const char *id, struct queue_gate gate,
                     const char *reason, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    struct run_rescued rescued;
    int r = run_rescue(&worker->env, id, gate, reason, &arena, &rescued, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < rescued.n_whole; i++)
        log_whole(worker, &rescued.whole[i]);
    for (size_t i = 0; i < rescued.n_lost; i++)
        log_closed(worker, &rescued.lost[i], id);
    if (rescued.parts_left)
        worker->house_at_us = 0;
    return 0;
}

/* --- sweep: mine, RUNNING, not held --- */

static int
by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static int64_t *
sorted_held(struct worker *worker, struct arena *arena)
{
    int64_t *ids = arena_array(arena, int64_t, worker->n_held + 1);
    size_t n = 0;

    list_each(node, &worker->held) ids[n++] =
        list_entry(node, struct slot, held)->request_id;
    qsort(ids, n, sizeof(*ids), by_value);
    return ids;
}

static int
sweep_one(struct worker *worker, struct lost_request *stray, struct err *err)
{
    int r = complete(worker, stray, err);

    if (r != 0)
        return r < 0 ? r : 0;
    r = batch_close_one(worker->options.store, stray,
                        "Its worker lost track of it (the end could not be recorded, "
                        "or it never began). Ask for it again.",
                        err);
    if (r != BATCH_OK)
        return r < 0 ? r : 0;
    drop_parts(worker, stray);
    result_store_drop_files(worker->options.results, stray->request_id);
    log_closed(worker, stray, worker->id);
    return 0;
}

/* After the spool: what still waits in there is decided, not lost. */
static int
sweep(struct worker *worker, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    struct lost_request *mine = NULL;
    size_t count = 0;
    int64_t *held;
    int r =
        queue_held_by(worker->options.store, worker->id, &arena, &mine, &count, err);

    if (r < 0 || count == 0)
        return r;
    held = sorted_held(worker, &arena);
    for (size_t i = 0; r == 0 && i < count; i++)
        if (planted("sweep_without_mark") ||
            !bsearch(&mine[i].request_id, held, worker->n_held, sizeof(*held),
                     by_value))
            r = sweep_one(worker, &mine[i], err);
    return r;
}

/* --- the dead --- */

struct burial {
    int64_t dead_after_us;
    bool done;
};

static int
bury_gate(struct db *db, const char *id, void *arg, struct err *err)
{
    struct burial *burial = arg;
    int r = worker_bury_in(db, id, burial->dead_after_us, err);

    burial->done = r > 0;
    return r;
}

static int
bury(struct worker *worker, const char *id, struct err *err)
{
    struct burial burial = {.dead_after_us =
                                planted("rescue_by_age")
                                    ? 0
                                    : worker->options.config->worker.dead_after_us};
    struct queue_gate gate = {.fn = bury_gate, .arg = &burial};
    int r =
        worker_close_held_by(worker, id, gate,
                             "The worker died while this ran (no beat of it arrived "
                             "any more). Ask for it again.",
                             err);

    if (r == 0 && burial.done)
        log_line(worker->options.log, LOG_WARN,
                 "a worker is dead; what it held is closed", log_str("worker", id));
    return r;
}

/* Monotonic time still to go until our beats have arrived for long enough. */
static int64_t
distrust_us(struct worker *worker)
{
    int64_t now_us = worker_now_us(worker);
    int64_t dead_after_us = worker->options.config->worker.dead_after_us;
    int64_t since_us;

    pthread_mutex_lock(&worker->lock);
    since_us = worker->link_since_us;
    pthread_mutex_unlock(&worker->lock);
    if (!since_us)
        return dead_after_us;
    return since_us + dead_after_us > now_us ? since_us + dead_after_us - now_us : 0;
}

struct crowd {
    struct worker_row *rows;
    size_t count;
    int64_t now_us; /* the store's */
};

static int64_t
silence_us(const struct crowd *crowd, const struct worker_row *row)
{
    return crowd->now_us - row->beat_at_us;
}

/* Our own row must be fresh by the same clock: else it was set forward. */
static bool
may_judge(struct worker *worker, const struct crowd *crowd)
{
    for (size_t i = 0; i < crowd->count; i++)
        if (str_eq(crowd->rows[i].id, worker->id))
            return silence_us(crowd, &crowd->rows[i]) <
                   worker->options.config->worker.dead_after_us / 2;
    return false;
}

/* Come back when the quietest of the others would be dead. */
static void
look_ahead(struct worker *worker, const struct crowd *crowd, int64_t *next_us)
{
    int64_t dead_after_us = worker->options.config->worker.dead_after_us;

    for (size_t i = 0; i < crowd->count; i++) {
        int64_t left_us = dead_after_us - silence_us(crowd, &crowd->rows[i]);

        if (str_eq(crowd->rows[i].id, worker->id))
            continue;
        left_us += (int64_t)(rand_u64() % (uint64_t)DEAD_JITTER_US);
        if (left_us < RETRY_US)
            left_us = RETRY_US;
        if (left_us < *next_us)
            *next_us = left_us;
    }
}

static int
bury_dead(struct worker *worker, const struct crowd *crowd, struct arena *arena,
          struct err *err)
{
    const char **ids = NULL;
    size_t count = 0;
    int r;

    if (!may_judge(worker, crowd))
        return 0;
    r = worker_dead(
        worker->options.store,
        planted("rescue_by_age") ? 0 : worker->options.config->worker.dead_after_us,
        arena, &ids, &count, err);
    for (size_t i = 0; r == 0 && i < count; i++)
        if (!str_eq(ids[i], worker->id))
            r = bury(worker, ids[i], err);
    return r;
}

/* --- lanes that nobody serves --- */

static bool
row_serves(const struct worker_row *row, const char *lane)
{
    scoped(json_drop) json_t *lanes = NULL;
    struct err ignored = {0};

    if (json_parse(row->lanes, strlen(row->lanes), JSON_DEPTH_MAX, &lanes, &ignored) <
        0)
        return false;
    return json_integer_value(json_object_get(lanes, lane)) > 0;
}

static bool
is_served(struct worker *worker, const struct crowd *crowd, const char *lane)
{
    int64_t dead_after_us = worker->options.config->worker.dead_after_us;

    for (size_t i = 0; i < worker->n_lanes; i++)
        if (str_eq(worker->lanes[i].name, lane))
            return true;
    for (size_t i = 0; i < crowd->count; i++)
        if (silence_us(crowd, &crowd->rows[i]) < dead_after_us &&
            row_serves(&crowd->rows[i], lane))
            return true;
    return false;
}

/* The lane with most free slots; NULL when all are taken. */
static struct lane *
freest_lane(struct worker *worker)
{
    struct lane *best = NULL;

    for (size_t i = 0; i < worker->n_lanes; i++) {
        struct lane *lane = &worker->lanes[i];

        if (lane->in_use < lane->slots &&
            (!best || lane->slots - lane->in_use > best->slots - best->in_use))
            best = lane;
    }
    return best;
}

static int
take_over_lane(struct worker *worker, const char *from, struct err *err)
{
    struct lane *lane = freest_lane(worker);
    struct take_over order = {
        .from = from,
        .jobs = worker->jobs,
        .n_jobs = worker->n_jobs,
        .older_than_us = worker->options.config->worker.takeover_after_us,
    };
    int r;

    if (!lane)
        return 0;
    order.to = lane->name;
    order.most = lane->slots - lane->in_use;
    r = queue_take_over(worker->options.store, &order, err);
    if (r <= 0)
        return r;
    lane->empty = false;
    lane->cursor = (struct claim_cursor){0};
    log_line(worker->options.log, LOG_WARN,
             "took over what waited in a lane that no live worker serves",
             log_str("lane", from), log_str("into", lane->name), log_i64("spans", r));
    return 0;
}

static int
take_over(struct worker *worker, const struct crowd *crowd, struct arena *arena,
          struct err *err)
{
    const char **lanes = NULL;
    size_t count = 0;
    int r = queue_ready_lanes(worker->options.store, arena, &lanes, &count, err);

    for (size_t i = 0; r == 0 && i < count; i++)
        if (!is_served(worker, crowd, lanes[i]))
            r = take_over_lane(worker, lanes[i], err);
    return r;
}

/* --- all of it --- */

/* Some time after the start, then each hour. */
static int
keep_house(struct worker *worker, struct err *err)
{
    int64_t now_us = worker_now_us(worker);
    int r;

    if (worker->house_at_us > now_us)
        return 0;
    r = store_open_ranges(worker->options.store, err);
    if (r == 0)
        r = worker_drop_leavings(worker, err);
    if (r == 0)
        worker->house_at_us = now_us + HOUSE_EVERY_US;
    return r;
}

static int
look_at_others(struct worker *worker, int64_t *next_us, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    int64_t distrusted_us = distrust_us(worker);
    struct crowd crowd = {0};
    int r = worker_list(worker->options.store, &arena, &crowd.rows, &crowd.count,
                        &crowd.now_us, err);

    if (r == 0 && distrusted_us == 0)
        r = bury_dead(worker, &crowd, &arena, err);
    if (r == 0)
        r = take_over(worker, &crowd, &arena, err);
    if (r < 0)
        return r;
    if (distrusted_us == 0)
        look_ahead(worker, &crowd, next_us);
    else if (distrusted_us < *next_us)
        *next_us = distrusted_us;
    return 0;
}

/* That the store is away, claiming and beating tell already. */
static void
note_repairs(struct worker *worker, int r, const struct err *err)
{
    bool failed = r < 0 && !run_record_later(r);

    if (failed && !worker->repairs_failed)
        log_line(worker->options.log, LOG_ERROR, "a repair failed; it is tried again",
                 log_str("reason", err->text));
    worker->repairs_failed = failed;
}

void
worker_reap_soon(struct worker *worker)
{
    int64_t soon_us = worker->reaped_at_us + SOON_US;

    if (!worker->reap_at_us || soon_us < worker->reap_at_us)
        worker->reap_at_us = soon_us;
}

/* What administrators ask of us over an api, which may not end executions itself. */
static int
recover_asked(struct worker *worker, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    struct recovery *list = NULL;
    size_t count = 0;
    int r = batch_recoveries(worker->options.store, &arena, &list, &count, err);

    for (size_t i = 0; i < count && r == 0; i++) {
        struct run_recovered done = {0};
        struct err note = {0};
        int got = run_recover(&worker->env, list[i].execution_id, list[i].actor, &done,
                              &note);

        if (got < 0 && run_record_later(got)) {
            *err = note;
            return got;
        }
        if (got != BATCH_STILL_CARRIED && got != BATCH_OVER)
            log_line(worker->options.log, got < 0 ? LOG_ERROR : LOG_WARN,
                     got < 0 ? "an execution could not be ended by hand"
                             : "ended an execution by hand",
                     log_i64("execution", list[i].execution_id),
                     log_i64("request", done.request_id), log_str("by", list[i].actor),
                     log_str("reason", note.text));
        r = batch_recovery_drop(worker->options.store, list[i].execution_id, err);
        store_wake(worker->options.store, WAKE_DONE);
    }
    return r;
}

void
worker_reap(struct worker *worker)
{
    int64_t next_us = worker->options.config->worker.reap_us;
    struct err err = {0};
    int r;

    log_line(worker->options.log, LOG_DEBUG, "repairing");
    r = worker_replay(worker, &err);
    if (r == 0)
        r = sweep(worker, &err);
    if (r == 0)
        r = recover_asked(worker, &err);
    if (r == 0)
        r = look_at_others(worker, &next_us, &err);
    if (r == 0)
        r = keep_house(worker, &err);
    if (r == 0 && worker->prune_at_us <= worker_now_us(worker))
        r = worker_prune(worker, &err);
    log_line(worker->options.log, LOG_DEBUG, "repaired");
    note_repairs(worker, r, &err);
    worker->reaped_at_us = worker_now_us(worker);
    if (worker->prune_at_us - worker->reaped_at_us < next_us)
        next_us = worker->prune_at_us - worker->reaped_at_us;
    worker->reap_at_us = worker->reaped_at_us + (r < 0 ? RETRY_US : next_us);
}
