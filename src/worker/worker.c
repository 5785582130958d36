/*
 * The loop of the role worker. Read worker_loop first: it names its chores in
 * order. Everything else reaches it through `wake`: the store's wake-ups, slots
 * that have come back, the wish to end. Nothing is asked of the store while
 * nothing happens, but for the safety scan.
 */
#include "worker/worker_private.h"

#include "base/err.h"
#include "base/log.h"
#include "config/config.h"
#include "queue/later.h"
#include "queue/progress.h"
#include "store/store.h"
#include "store/wake.h"
#include "worker/deliver.h"
#include "worker/spool.h"

#include <stdlib.h>
#include <time.h>

#define PAUSE_FIRST_MS   100
#define PAUSE_LONGEST_MS 2000
#define PROGRESS_GAP_US  (250 * US_PER_MS)

/* --- waking --- */

static void
on_store_wake(void *arg, unsigned mask)
{
    struct worker *worker = arg;

    pthread_mutex_lock(&worker->lock);
    worker->woken |= mask;
    pthread_cond_signal(&worker->wake);
    pthread_mutex_unlock(&worker->lock);
}

static void
on_slot_done(void *arg)
{
    struct worker *worker = arg;

    pthread_mutex_lock(&worker->lock);
    worker->done_waiting = true;
    pthread_cond_signal(&worker->wake);
    pthread_mutex_unlock(&worker->lock);
}

/* What has happened since the last look. */
struct news {
    unsigned woken;
    bool stopping;
    bool hurry;
    bool gone;
};

static struct news
take_news(struct worker *worker)
{
    struct news news;

    pthread_mutex_lock(&worker->lock);
    news = (struct news){.woken = worker->woken,
                         .stopping = worker->stopping,
                         .hurry = worker->hurry,
                         .gone = worker->gone};
    worker->woken = 0;
    worker->gone = false;
    worker->done_waiting = false;
    pthread_mutex_unlock(&worker->lock);
    return news;
}

/* --- chores --- */

static void
log_end(struct worker *worker, const struct slot *slot)
{
    const struct run_report *report = &slot->report;
    bool well = report->recorded && (report->outcome == OUTCOME_COMPLETED ||
                                     report->outcome == OUTCOME_STOPPED);

    log_line(worker->options.log, well ? LOG_INFO : LOG_WARN,
             report->recorded ? "request over"
             : report->kept   ? "request over; its outcome waits for the store"
                              : "request over, not recorded by us",
             log_i64("request", slot->request_id), log_str("job", run_job(slot->run)),
             log_str("outcome", request_outcome_name(report->outcome)),
             log_i64("rows", report->rows), log_i64("ms", report->took_us / US_PER_MS),
             log_str("detail", report->detail));
    if (report->note[0])
        log_line(worker->options.log, LOG_WARN, "what a run had to say",
                 log_i64("request", slot->request_id), log_str("note", report->note));
}

/* An outcome that was kept while the store was away is recorded by now, or waits. */
static void
settle_kept(struct worker *worker, const struct slot *slot)
{
    if (slot->report.kept && slot->report.recorded)
        spool_drop(worker->spool, slot->request_id, slot->token);
    else if (slot->report.kept)
        worker->reap_at_us = worker_now_us(worker);
}

static void
take_back_done(struct worker *worker)
{
    struct inbox_node *node = slots_take_done(worker->slots);

    while (node) {
        struct slot *slot = container_of(node, struct slot, done);

        node = node->next;
        log_end(worker, slot);
        settle_kept(worker, slot);
        list_remove(&slot->held);
        worker->n_held--;
        pthread_mutex_lock(&worker->lock);
        worker->lanes[slot->lane].in_use--;
        pthread_mutex_unlock(&worker->lock);
        run_free(slot->run);
        free(slot);
    }
}

void
worker_ask_all(struct worker *worker, enum run_wish wish)
{
    list_each(node, &worker->held)
        run_ask(list_entry(node, struct slot, held)->run, wish);
}

static void
obey_flags(struct worker *worker)
{
    scoped(arena_release) struct arena arena = {0};
    struct queue_flagged *flagged =
        arena_array(&arena, struct queue_flagged, worker->n_held + 1);
    struct err ignored = {0}; /* the run sees its flags with its next progress too */
    size_t count = 0;

    if (worker->n_held == 0 ||
        queue_flags_of_worker(worker->options.store, worker->id, worker->n_held,
                              flagged, &count, &ignored) < 0)
        return;
    list_each(node, &worker->held)
    {
        struct slot *slot = list_entry(node, struct slot, held);

        for (size_t i = 0; i < count; i++) {
            if (flagged[i].request_id != slot->request_id)
                continue;
            if (flagged[i].flags.cancel)
                run_ask(slot->run, RUN_CANCEL);
            else if (flagged[i].flags.stop)
                run_ask(slot->run, RUN_STOP);
        }
    }
}

static bool
is_ours(const struct slot *slot, const struct lost_request *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].request_id == slot->request_id &&
            list[i].token.number == slot->token)
            return true;
    return false;
}

/* Give up the runs whose claims are gone. Those that we have claimed since we were
 * declared dead go on: nobody has closed them. */
static int
give_up_lost(struct worker *worker, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    struct lost_request *list = NULL;
    size_t count = 0;
    int r =
        queue_held_by(worker->options.store, worker->id, &arena, &list, &count, err);

    if (r < 0)
        return r;
    list_each(node, &worker->held)
    {
        struct slot *slot = list_entry(node, struct slot, held);

        if (!is_ours(slot, list, count))
            run_ask(slot->run, RUN_LOST);
    }
    return 0;
}

/* Our row was removed, and what we held then is closed. Start anew as the same one:
 * first the row, so that nobody takes what we hold now for a dead one's. */
static void
come_back(struct worker *worker)
{
    struct err err = {0};
    int r = worker_announce(worker, &err);

    log_line(worker->options.log, LOG_ERROR,
             "this worker was declared dead (its beats did not arrive); runs that it "
             "lost are given up");
    if (r == 0)
        r = give_up_lost(worker, &err);
    if (r < 0) /* then the runs learn of it by their own writes */
        log_line(worker->options.log, LOG_ERROR, "cannot announce this worker again",
                 log_str("reason", err.text));
}

/* Returns the next deadline, monotonic; 0 = none. */
static int64_t
end_overdue(struct worker *worker)
{
    int64_t now_us = worker_now_us(worker);
    int64_t next_us = 0;

    list_each(node, &worker->held)
    {
        struct slot *slot = list_entry(node, struct slot, held);

        if (!slot->deadline_us)
            continue;
        if (slot->deadline_us <= now_us) {
            run_ask(slot->run, RUN_TIMEOUT);
            slot->deadline_us = 0;
        } else if (!next_us || slot->deadline_us < next_us) {
            next_us = slot->deadline_us;
        }
    }
    return next_us;
}

/* When is something due next? */
static int
learn_due(struct worker *worker, struct err *err)
{
    int64_t due_us = 0;
    int64_t now_us = 0;
    int r = queue_next_due(worker->options.store, &due_us, &now_us, err);

    if (r < 0)
        return r;
    worker->due_at_us =
        due_us ? worker_now_us(worker) + (due_us > now_us ? due_us - now_us : 0) : 0;
    return 0;
}

/* Promote and expire what is due, and learn when the next is. */
static int
move_due(struct worker *worker, struct err *err)
{
    int64_t moved = 0;
    int64_t expired = 0;
    int r;

    r = queue_promote(worker->options.store, &moved, err);
    if (r == 0)
        r = queue_expire(worker->options.store, &expired, err);
    if (r == 0)
        r = learn_due(worker, err);
    return r;
}

static bool
is_due(int64_t at_us, int64_t now_us)
{
    return at_us && at_us <= now_us;
}

/* On a wake-up the claim comes first: somebody waits for it. What is due meanwhile is
 * learned behind it and moved in the next round. */
static int
look_for_work(struct worker *worker, unsigned woken, struct err *err)
{
    const struct config *config = worker->options.config;
    int64_t now_us = worker_now_us(worker);
    bool scan = is_due(worker->scan_at_us, now_us);
    bool move = scan || is_due(worker->due_at_us, now_us);
    int r = 0;

    /* Who asks for a repair cannot wake us where nothing is pushed. */
    if (scan && !store_has_listen(worker->options.store))
        worker_reap_soon(worker);
    if (is_due(worker->reap_at_us, now_us))
        worker_reap(worker);
    if (scan || woken & WAKE_READY)
        worker_lanes_wake(worker);
    /* Flags, too, may have been set while no wake-up could reach us. */
    if (scan)
        obey_flags(worker);
    if (move)
        r = move_due(worker, err);
    if (r == 0)
        r = worker_claim(worker, err);
    if (r == 0 && !move && woken & WAKE_READY)
        r = learn_due(worker, err);
    if (r == 0 && scan)
        worker->scan_at_us = now_us + (store_has_listen(worker->options.store)
                                           ? config->worker.safety_scan_us
                                           : config->worker.poll_us);
    return r;
}

/* The store is away: say so once, then try again with longer pauses. */
static void
note_store(struct worker *worker, int r, const struct err *err)
{
    if (r < 0) {
        if (!worker->store_away)
            log_line(worker->options.log, LOG_ERROR,
                     "cannot claim; trying again until the store answers",
                     log_str("reason", err->text));
        worker->store_away = true;
        worker->pause_ms = worker->pause_ms ? worker->pause_ms * 2 : PAUSE_FIRST_MS;
        if (worker->pause_ms > PAUSE_LONGEST_MS)
            worker->pause_ms = PAUSE_LONGEST_MS;
        worker->scan_at_us = worker_now_us(worker) + worker->pause_ms * US_PER_MS;
        /* The scan looks after these as well; before it nothing shall wake us. */
        worker->due_at_us = 0;
        worker_lanes_wake(worker);
        return;
    }
    if (worker->store_away)
        log_line(worker->options.log, LOG_INFO, "the store answers again");
    worker->store_away = false;
    worker->pause_ms = 0;
}

/* --- the loop --- */

static int64_t
earliest(int64_t a, int64_t b)
{
    if (!a || !b)
        return a ? a : b;
    return a < b ? a : b;
}

static void
wait_for_news(struct worker *worker, int64_t until_us)
{
    struct timespec until = {.tv_sec = until_us / US_PER_S,
                             .tv_nsec = (until_us % US_PER_S) * 1000};
    int r = 0;

    pthread_mutex_lock(&worker->lock);
    while (r == 0 && !worker->woken && !worker->done_waiting && !worker->gone &&
           !(worker->stopping && !worker->drain_until_us) &&
           !(worker->hurry && !worker->cut))
        r = until_us ? pthread_cond_timedwait(&worker->wake, &worker->lock, &until)
                     : pthread_cond_wait(&worker->wake, &worker->lock);
    pthread_mutex_unlock(&worker->lock);
}

static void *
worker_loop(void *arg)
{
    struct worker *worker = arg;

    for (;;) {
        struct news news = take_news(worker);
        struct err err = {0};
        int64_t until_us;

        take_back_done(worker);
        if (news.gone)
            come_back(worker);
        if (news.woken & WAKE_FLAG)
            obey_flags(worker);
        if (news.woken & WAKE_LOST)
            worker_reap_soon(worker);
        until_us = end_overdue(worker);
        if (news.stopping)
            worker_drain(worker, news.hurry);
        else
            note_store(worker, look_for_work(worker, news.woken, &err), &err);
        if (news.stopping && worker_drained(worker))
            break;
        if (news.stopping)
            until_us = earliest(until_us, worker->drain_until_us);
        else
            until_us = earliest(earliest(earliest(until_us, worker->reap_at_us),
                                         worker_claim_again_us(worker)),
                                earliest(worker->due_at_us, worker->scan_at_us));
        wait_for_news(worker, until_us);
    }
    return NULL;
}

/* --- life --- */

static int
keep_outcome(void *arg, const struct finish_order *order, struct err *err)
{
    return spool_put(arg, order, err);
}

/* The way of a run, for who asks for that much (log.level: debug). */
static void
log_stage(void *arg, int64_t request_id, const char *step, const char *stage)
{
    const struct worker *worker = arg;

    log_line(worker->options.log, LOG_DEBUG, "stage", log_i64("request", request_id),
             log_str("stage", stage));
}

int
worker_new(const struct worker_options *options, struct worker **ret_worker,
           struct err *err)
{
    struct worker *worker = xcalloc(1, sizeof(*worker));
    pthread_condattr_t attr;
    int r;

    worker->options = *options;
    worker->seat = (struct seat)SEAT_INIT;
    worker->env = (struct run_env){
        .config = options->config,
        .store = options->store,
        .results = options->results,
        .clock = options->clock,
        .worker = worker->id,
        .record_retry_us = options->config->worker.record_retry_us,
        .progress_gap_us = PROGRESS_GAP_US,
        .keep = keep_outcome, /* in the spool, once it is open */
        .cut = worker_is_to_be_cut,
        .cut_arg = worker,
    };
    if (log_wants(options->log, LOG_DEBUG)) {
        worker->env.stage = log_stage;
        worker->env.stage_arg = worker;
    }
    list_init(&worker->held);
    pthread_mutex_init(&worker->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&worker->wake, &attr);
    pthread_cond_init(&worker->heartbeat, &attr);
    pthread_condattr_destroy(&attr);
    worker->slots = slots_new(on_slot_done, worker);
    r = worker_startup(worker, err);
    if (r < 0) {
        worker_free(worker);
        return r;
    }
    *ret_worker = worker;
    return 0;
}

static void
end_heart(struct worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    worker->ended = true;
    pthread_cond_signal(&worker->heartbeat);
    pthread_mutex_unlock(&worker->lock);
    pthread_join(worker->heart, NULL);
}

int
worker_start(struct worker *worker, struct err *err)
{
    int r = deliver_start(worker->deliver, err);

    if (r < 0)
        return r;
    worker->scan_at_us = worker->reap_at_us = worker_now_us(worker);
    worker->link_since_us = worker_now_us(worker); /* we have just written our row */
    worker->house_at_us = worker->prune_at_us =
        worker->reap_at_us + worker->options.config->worker.reap_us; /* work first */
    worker->subscription =
        store_subscribe(worker->options.store, WAKE_READY | WAKE_FLAG | WAKE_LOST,
                        on_store_wake, worker);
    r = pthread_create(&worker->heart, NULL, worker_heart, worker);
    if (r == 0) {
        r = pthread_create(&worker->thread, NULL, worker_loop, worker);
        if (r != 0)
            end_heart(worker);
    }
    if (r != 0) {
        store_unsubscribe(worker->options.store, worker->subscription);
        deliver_finish(worker->deliver, 0, 0);
        return err_errno(err, ERR_NOMEM, r, "cannot start the worker's threads");
    }
    worker->started = true;
    return 0;
}

bool
worker_join(struct worker *worker)
{
    if (!worker->started) {
        worker_leave(worker);
        return true;
    }
    pthread_join(worker->thread, NULL);
    deliver_finish(worker->deliver, worker->stopping_since_us,
                   worker_drain_end_us(worker));
    store_hurry(worker->options.store); /* its last words, if the store hears them */
    store_unsubscribe(worker->options.store, worker->subscription);
    end_heart(worker);
    worker->started = false;
    if (worker->n_held > 0) {
        log_line(
            worker->options.log, LOG_ERROR,
            "runs did not end in time; they are closed when this seat starts again",
            log_i64("running", (int64_t)worker->n_held));
        return false;
    }
    worker_leave(worker);
    log_line(worker->options.log, LOG_INFO, "drained");
    return true;
}

void
worker_free(struct worker *worker)
{
    if (!worker)
        return;
    slots_free(worker->slots);
    deliver_free(worker->deliver);
    spool_free(worker->spool);
    seat_release(&worker->seat);
    arena_release(&worker->arena);
    pthread_cond_destroy(&worker->wake);
    pthread_cond_destroy(&worker->heartbeat);
    pthread_mutex_destroy(&worker->lock);
    free(worker);
}

const char *
worker_id(const struct worker *worker)
{
    return worker->id;
}
