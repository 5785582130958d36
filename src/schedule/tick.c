/*
 * A round reads all schedules with the store's time, plans what is due, makes the
 * order of its request (checks and an estimate, outside of any transaction), and
 * fires. No clock of this machine decides anything: the sleep is measured by the
 * monotonic one and may end early or late; schedule_fire asks the store again.
 *
 * What was understood of a definition is kept until it changes, and read anew every
 * ten minutes, for the zones' files may have changed under a process that lives long.
 */
#include "schedule/tick.h"

#include "base/arena.h"
#include "base/civil.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/strs.h"
#include "queue/job.h"
#include "queue/submit.h"
#include "schedule/fire.h"
#include "schedule/schedule.h"
#include "store/store.h"
#include "store/wake.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOK_US      (10 * US_PER_MINUTE) /* at the schedules, whatever happens */
#define SLEEP_MIN_US (1 * US_PER_MS) /* the store's clock may lag behind the sleep */
#define PAUSE_MIN_US (1 * US_PER_S)  /* after a failure, then doubled */
#define PAUSE_MAX_US (30 * US_PER_S)
#define NOT_OURS_US  (20 * US_PER_MS)
#define FRESH_FOR_US LOOK_US
#define US_TO_NS     1000

/* A definition as it was understood. */
struct known {
    struct known *next;
    char *name;
    char *hash;
    struct schedule *schedule; /* NULL: it was not */
    int64_t read_at_us;        /* monotonic */
    bool seen;                 /* in the round under way */
};

struct scheduler {
    struct scheduler_options options;
    struct known *known; /* the thread's */

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t wake;
    bool stopping;
    bool woken;

    pthread_t thread;
    bool started;
    int subscription;
};

/* --- definitions --- */

static void
known_free(struct known *known)
{
    schedule_free(known->schedule);
    free(known->name);
    free(known->hash);
    free(known);
}

static struct known **
find_known(struct scheduler *scheduler, const char *name)
{
    struct known **at = &scheduler->known;

    while (*at && !str_eq((*at)->name, name))
        at = &(*at)->next;
    return at;
}

/* NULL: not understood, said once in the log. */
static struct schedule *
understand(struct scheduler *scheduler, const struct schedule_row *row)
{
    struct known **at = find_known(scheduler, row->name);
    struct known *known = *at;
    int64_t now_us = clock_mono_us(clock_real());
    struct err err = {0};
    bool told = false;

    if (known && str_eq(known->hash, row->hash)) {
        known->seen = true;
        if (now_us - known->read_at_us < FRESH_FOR_US)
            return known->schedule;
        told = known->schedule == NULL;
    }
    if (known) {
        *at = known->next;
        known_free(known);
    }
    known = xcalloc(1, sizeof(*known));
    known->name = xstrdup(row->name);
    known->hash = xstrdup(row->hash);
    known->read_at_us = now_us;
    known->seen = true;
    known->next = scheduler->known;
    scheduler->known = known;
    if (schedule_parse(row->definition, &known->schedule, &err) < 0 && !told)
        log_line(scheduler->options.log, LOG_ERROR, "a schedule cannot be followed",
                 log_str("schedule", row->name), log_str("reason", err.text));
    return known->schedule;
}

static void
forget_withdrawn(struct scheduler *scheduler)
{
    struct known **at = &scheduler->known;

    while (*at) {
        struct known *known = *at;

        if (known->seen) {
            known->seen = false;
            at = &known->next;
        } else {
            *at = known->next;
            known_free(known);
        }
    }
}

/* --- the request --- */

struct job_call {
    const char *name;
    struct queue_job *job; /* NULL: there is none */
};

static int
job_fn(struct db *db, void *arg, struct err *err)
{
    struct job_call *call = (struct job_call *)arg;
    scoped(db_rows_end) struct db_rows rows = {0};
    int r =
        db_ask(db, store_sql(db, STMT_SCHEDULE_JOB), &rows, err, p_text(call->name));

    if (r == 0)
        r = db_next(&rows, err);
    if (r <= 0)
        return r;
    queue_job_free(call->job);
    call->job = NULL;
    return queue_job_parse(db_text(&rows, 0), &call->job, err);
}

/* Fills order or refusal of fire; *ret_job is to be freed after the firing. */
static int
prepare(struct scheduler *scheduler, const struct schedule *schedule,
        struct arena *arena, struct fire *fire, struct queue_job **ret_job,
        struct err *err)
{
    struct job_call call = {.name = schedule->job};
    struct submit_order *order = arena_new(arena, struct submit_order);
    int r = store_read(scheduler->options.store, job_fn, &call, err);

    *ret_job = call.job;
    if (r < 0)
        return r;
    if (!call.job) {
        fire->refusal = arena_printf(
            arena, "there is no job %s, or it has been withdrawn", schedule->job);
        return 0;
    }
    r = scheduler->options.order(scheduler->options.arg, call.job, schedule->params,
                                 arena, order, err);
    if (r == -ERR_INVALID || r == -ERR_CONFIG || r == -ERR_ESTIMATE || r == -ERR_DB ||
        r == -ERR_DB_CONSTRAINT) {
        fire->refusal = arena_strdup(arena, err->text);
        err_clear(err);
        return 0;
    }
    if (r < 0)
        return r;
    order->source = SOURCE_SCHEDULE;
    order->requester = SCHEDULE_REQUESTER;
    fire->order = order;
    return 0;
}

/* --- firing --- */

static void
tell(struct scheduler *scheduler, const struct schedule_row *row,
     const struct slot_plan *plan, const struct fire_report *report)
{
    struct log *log = scheduler->options.log;
    char slot[CIVIL_TEXT_SIZE];

    if (plan->idle_count > 0 && !report->paused)
        log_line(log, LOG_WARN, "slots were missed", log_str("schedule", row->name),
                 log_i64("slots", plan->idle_count),
                 log_str("now", slot_state_word(plan->idle_state)));
    for (size_t i = 0; i < report->count; i++) {
        const struct fired_slot *fired = &report->slots[i];
        bool refused = fired->state == SLOT_REFUSED;

        civil_format_us(fired->slot_us, 0, slot);
        log_line(log, refused ? LOG_WARN : LOG_INFO,
                 refused ? "slot refused; it is dropped" : "slot fired",
                 log_str("schedule", row->name), log_str("slot", slot),
                 log_i64("request", fired->request_id),
                 log_str("detail", fired->detail[0] ? fired->detail : NULL));
    }
}

/* *ret_from_us: from where the next slot is to be sought. */
static int
fire_due(struct scheduler *scheduler, const struct schedule_row *row,
         const struct schedule *schedule, const struct slot_plan *plan,
         int64_t *ret_from_us, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    scoped(queue_job_free_ptr) struct queue_job *job = NULL;
    struct fire fire = {.row = row, .plan = plan, .paused = schedule->paused};
    struct fire_report report = {0};
    int r = 0;

    if (!schedule->paused && !row->paused_by && plan->fire_count > 0)
        r = prepare(scheduler, schedule, &arena, &fire, &job, err);
    log_line(scheduler->options.log, LOG_DEBUG, "firing",
             log_str("schedule", row->name));
    if (r == 0)
        r = schedule_fire(scheduler->options.store, &fire, &report, err);
    log_line(scheduler->options.log, LOG_DEBUG, "fired",
             log_str("schedule", row->name));
    if (r == FIRE_DONE) {
        tell(scheduler, row, plan, &report);
        *ret_from_us = plan->to_us;
    }
    return r;
}

/* What is due of one schedule. *ret_wait_us shrinks to its next slot. */
static int
follow(struct scheduler *scheduler, const struct schedule_row *row, int64_t now_us,
       int64_t *ret_wait_us, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    const struct schedule *schedule = understand(scheduler, row);
    int64_t from_us = row->decided_to_us;
    struct slot_plan plan;
    struct slot_time next;
    int64_t wait_us = LOOK_US;
    int r = FIRE_DONE;

    if (!schedule)
        return 0;
    if (missed_plan(&schedule->rule, &schedule->missed, from_us, now_us, &arena, &plan))
        r = fire_due(scheduler, row, schedule, &plan, &from_us, err);
    if (r < 0)
        return err_prefix(err, "schedule %s", row->name);
    if (r == FIRE_NOT_OURS)
        wait_us = NOT_OURS_US;
    else if (schedule_next(&schedule->rule, from_us, &next))
        wait_us = next.at_us - now_us;
    if (wait_us < *ret_wait_us)
        *ret_wait_us = wait_us < 0 ? 0 : wait_us;
    return 0;
}

int
scheduler_round(struct scheduler *scheduler, int64_t *ret_wait_us, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    struct schedule_row *rows = NULL;
    int64_t read_at_us = clock_mono_us(clock_real());
    int64_t wait_us = LOOK_US;
    int64_t now_us = 0;
    size_t count = 0;
    int failed = 0;
    int r =
        schedule_rows(scheduler->options.store, &arena, &rows, &count, &now_us, err);

    if (r < 0)
        return r;
    now_us += scheduler->options.skew_us;
    for (size_t i = 0; i < count; i++) {
        struct err note = {0};

        /* One that fails keeps none of the others from its time. */
        r = follow(scheduler, &rows[i], now_us, &wait_us, &note);
        if (r < 0 && failed == 0) {
            failed = r;
            *err = note;
        }
    }
    forget_withdrawn(scheduler);
    if (failed < 0)
        return failed;
    wait_us -= clock_mono_us(clock_real()) - read_at_us;
    *ret_wait_us = wait_us < 0 ? 0 : wait_us;
    return 0;
}

/* --- the thread --- */

static void
on_store_wake(void *arg, unsigned mask)
{
    struct scheduler *scheduler = arg;

    (void)mask;
    pthread_mutex_lock(&scheduler->lock);
    scheduler->woken = true;
    pthread_cond_signal(&scheduler->wake);
    pthread_mutex_unlock(&scheduler->lock);
}

/* False: it is over. */
static bool
sleep_for(struct scheduler *scheduler, int64_t wait_us)
{
    struct timespec until;
    bool stopping;
    int r = 0;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += wait_us / US_PER_S;
    until.tv_nsec += wait_us % US_PER_S * US_TO_NS;
    if (until.tv_nsec >= US_PER_S * US_TO_NS) {
        until.tv_nsec -= US_PER_S * US_TO_NS;
        until.tv_sec++;
    }
    pthread_mutex_lock(&scheduler->lock);
    while (!scheduler->stopping && !scheduler->woken && r == 0)
        r = pthread_cond_timedwait(&scheduler->wake, &scheduler->lock, &until);
    scheduler->woken = false;
    stopping = scheduler->stopping;
    pthread_mutex_unlock(&scheduler->lock);
    return !stopping;
}

static void *
scheduler_main(void *arg)
{
    struct scheduler *scheduler = arg;
    int64_t pause_us = 0;
    int64_t wait_us = 0;

    do {
        struct err err = {0};

        if (scheduler_round(scheduler, &wait_us, &err) == 0) {
            if (pause_us > 0)
                log_line(scheduler->options.log, LOG_INFO,
                         "schedules are followed again");
            pause_us = 0;
            continue;
        }
        if (pause_us == 0)
            log_line(scheduler->options.log, LOG_WARN,
                     "schedules cannot be followed; it is tried again",
                     log_str("reason", err.text));
        pause_us = pause_us == 0 ? PAUSE_MIN_US : pause_us * 2;
        if (pause_us > PAUSE_MAX_US)
            pause_us = PAUSE_MAX_US;
        wait_us = pause_us;
    } while (sleep_for(scheduler, wait_us < SLEEP_MIN_US ? SLEEP_MIN_US : wait_us));
    return NULL;
}

/* --- life --- */

int
scheduler_new(const struct scheduler_options *options, struct scheduler **ret_scheduler,
              struct err *err)
{
    struct scheduler *scheduler = xcalloc(1, sizeof(*scheduler));
    pthread_condattr_t monotonic;

    (void)err;
    scheduler->options = *options;
    pthread_mutex_init(&scheduler->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&scheduler->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    *ret_scheduler = scheduler;
    return 0;
}

int
scheduler_start(struct scheduler *scheduler, struct err *err)
{
    int r;

    scheduler->subscription =
        store_subscribe(scheduler->options.store, WAKE_DEFS, on_store_wake, scheduler);
    r = pthread_create(&scheduler->thread, NULL, scheduler_main, scheduler);
    if (r != 0) {
        store_unsubscribe(scheduler->options.store, scheduler->subscription);
        return err_errno(err, ERR_INTERNAL, r, "starting the thread of the scheduler");
    }
    scheduler->started = true;
    return 0;
}

void
scheduler_stop(struct scheduler *scheduler)
{
    pthread_mutex_lock(&scheduler->lock);
    scheduler->stopping = true;
    pthread_cond_signal(&scheduler->wake);
    pthread_mutex_unlock(&scheduler->lock);
}

void
scheduler_free(struct scheduler *scheduler)
{
    if (!scheduler)
        return;
    if (scheduler->started) {
        scheduler_stop(scheduler);
        pthread_join(scheduler->thread, NULL);
        store_unsubscribe(scheduler->options.store, scheduler->subscription);
    }
    while (scheduler->known) {
        struct known *known = scheduler->known;

        scheduler->known = known->next;
        known_free(known);
    }
    pthread_cond_destroy(&scheduler->wake);
    pthread_mutex_destroy(&scheduler->lock);
    free(scheduler);
}
