/*
 * The thread sleeps until something is due, somebody says that a request has ended, or
 * the safety scan. A receiver that cannot be reached is left alone for a while, so it
 * delays the others once and not with each of its deliveries.
 */
#include "worker/deliver.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/strs.h"
#include "config/config.h"
#include "net/http_client.h"
#include "queue/delivery.h"
#include "queue/list.h"
#include "store/store.h"
#include "store/wake.h"
#include "worker/hook.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LOOK_GAP_US   (200 * US_PER_MS) /* requests may end by the thousand */
#define STORE_AWAY_US (2 * US_PER_S)
#define LEASE_MORE_US US_PER_S

struct hook {
    const struct config_webhook *config;
    struct hook_secrets secrets;
    int failures;            /* in a row, of the receiver as a whole */
    int64_t paused_until_us; /* monotonic; 0 = not */
};

struct deliver {
    struct deliver_options options;
    struct arena arena;
    struct hook *hooks;
    const char **names; /* theirs */
    size_t count;
    struct http_client *client;
    pthread_t thread;
    int subscription;
    bool started;

    /* the thread's */
    bool store_away; /* said in the log already */

    /* shared, under the lock */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool woken;
    bool finishing;
    int64_t until_us; /* monotonic; of finishing */
    bool hurry;
    pthread_cond_t end; /* who finishes waits here */
    bool ended;
};

static int64_t
now_us(const struct deliver *deliver)
{
    return clock_mono_us(deliver->options.clock);
}

static bool
is_finishing(struct deliver *deliver)
{
    bool finishing;

    pthread_mutex_lock(&deliver->lock);
    finishing = deliver->finishing;
    pthread_mutex_unlock(&deliver->lock);
    return finishing;
}

/* No more time. */
static bool
is_over(void *arg)
{
    struct deliver *deliver = arg;
    bool over;

    pthread_mutex_lock(&deliver->lock);
    over =
        deliver->hurry || (deliver->finishing && now_us(deliver) >= deliver->until_us);
    pthread_mutex_unlock(&deliver->lock);
    return over;
}

/* --- one call, and what comes of it --- */

/* Kept with the request, where those who may not know the address can read it. */
static const char *
plain_reason(const struct hook_try *try, struct arena *arena)
{
    if (try->status == 0)
        return "it cannot be reached, or did not answer in time; the worker's log "
               "tells more";
    return arena_printf(arena, "it answered HTTP %d", try->status);
}

static void
note_receiver(struct deliver *deliver, struct hook *hook, const struct hook_try *try,
              const char *why)
{
    bool heard = try->status >= 200 && try->status < 300;

    if (hook_is_away(try->status)) {
        hook->failures++;
        hook->paused_until_us = now_us(deliver) + hook_pause_us(try, hook->failures);
        if (hook->failures == 1)
            log_line(deliver->options.log, LOG_WARN,
                     "a webhook cannot be told; it is tried again, less and less often",
                     log_str("webhook", hook->config->name), log_str("reason", why));
        return;
    }
    if (hook->failures > 0 && heard)
        log_line(deliver->options.log, LOG_INFO, "a webhook can be told again",
                 log_str("webhook", hook->config->name));
    hook->failures = 0;
}

static int
give_up(struct deliver *deliver, const struct delivery *delivery,
        const struct hook_try *try, const char *why, struct arena *arena,
        struct err *err)
{
    log_line(deliver->options.log, LOG_ERROR,
             "a webhook is given up: its receiver will not hear of this request unless "
             "it asks for it (GET /api/v1/requests/ID)",
             log_str("webhook", delivery->webhook),
             log_i64("request", delivery->request_id),
             log_i64("tries", delivery->attempts), log_str("reason", why));
    return queue_delivery_give_up(deliver->options.store, delivery,
                                  plain_reason(try, arena), err);
}

static int
settle(struct deliver *deliver, struct hook *hook, const struct delivery *delivery,
       const struct hook_try *try, const char *why, struct arena *arena,
       struct err *err)
{
    struct store *store = deliver->options.store;
    int64_t wait_us = 0;

    note_receiver(deliver, hook, try, why);
    switch (hook_judge(try, &wait_us)) {
    case HOOK_HEARD:
        log_line(deliver->options.log, LOG_DEBUG, "webhook told",
                 log_str("webhook", delivery->webhook),
                 log_i64("request", delivery->request_id));
        return queue_delivery_done(store, delivery, err);
    case HOOK_NEVER:
        return give_up(deliver, delivery, try, why, arena, err);
    case HOOK_AGAIN:
        break;
    }
    if (!hook_is_away(try->status) && delivery->attempts == 1)
        log_line(deliver->options.log, LOG_WARN,
                 "a webhook was not taken; it is sent again later",
                 log_str("webhook", delivery->webhook),
                 log_i64("request", delivery->request_id), log_str("reason", why));
    return queue_delivery_again(store, delivery, wait_us, plain_reason(try, arena),
                                err);
}

static int
tell(struct deliver *deliver, struct hook *hook, const struct delivery *delivery,
     struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    struct hook_try try = {.attempts = delivery->attempts,
                           .age_us = delivery->now_us - delivery->created_at_us};
    const struct hook_send send = {
        .client = deliver->client,
        .webhook = hook->config,
        .secrets = &hook->secrets,
        .store_id = store_id(deliver->options.store),
        .clock = deliver->options.clock,
        .is_over = is_over,
        .is_over_arg = deliver,
    };
    struct request request = {0};
    char why[500];
    int r =
        queue_get(deliver->options.store, delivery->request_id, &arena, &request, err);

    if (r == -ERR_NOT_FOUND) { /* retention was faster */
        err_clear(err);
        return queue_delivery_done(deliver->options.store, delivery, err);
    }
    if (r < 0)
        return r;
    r = is_over(deliver) ? -ERR_CANCELLED
                         : hook_send(&send, &request, &arena, &try, why, sizeof(why));
    if (r < 0)
        return queue_delivery_give_back(deliver->options.store, delivery, err);
    return settle(deliver, hook, delivery, &try, why, &arena, err);
}

/* --- rounds --- */

static int64_t
earliest(int64_t a, int64_t b)
{
    if (!a || !b)
        return a ? a : b;
    return a < b ? a : b;
}

static bool
is_paused(const struct deliver *deliver, const struct hook *hook)
{
    return hook->paused_until_us > now_us(deliver);
}

/* One of each webhook that has something due. *ret_next_us: when the others are,
 * monotonic; 0 = none waits. Returns how many were tried. */
static int
tell_some(struct deliver *deliver, bool fresh, int64_t *ret_next_us, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    int64_t *due_us = arena_array(&arena, int64_t, deliver->count);
    int64_t store_us = 0;
    int tried = 0;
    int r;

    *ret_next_us = 0;
    r = queue_deliveries_due(deliver->options.store, deliver->names, deliver->count,
                             due_us, &store_us, err);
    for (size_t i = 0; i < deliver->count && r >= 0 && !is_over(deliver); i++) {
        struct hook *hook = &deliver->hooks[i];
        struct delivery delivery;

        if (!due_us[i])
            continue;
        if (due_us[i] > store_us || is_paused(deliver, hook)) {
            int64_t at_us = now_us(deliver) + (due_us[i] - store_us);

            if (at_us < hook->paused_until_us)
                at_us = hook->paused_until_us;
            *ret_next_us = earliest(*ret_next_us, at_us);
            continue;
        }
        r = queue_delivery_take(deliver->options.store, hook->config->name, fresh,
                                2 * hook->config->timeout_us + LEASE_MORE_US, &delivery,
                                err);
        if (r == DELIVERY_TAKEN) {
            tried++;
            r = tell(deliver, hook, &delivery, err);
        }
    }
    return r < 0 ? r : tried;
}

static void
note_store(struct deliver *deliver, int r, const struct err *err)
{
    if (r < 0 && !deliver->store_away)
        log_line(
            deliver->options.log, LOG_WARN,
            "cannot look for webhooks to tell; trying again until the store answers",
            log_str("reason", err->text));
    deliver->store_away = r < 0;
}

/* All that is due. Returns when to look again, monotonic. */
static int64_t
tell_all(struct deliver *deliver)
{
    const struct config *config = deliver->options.config;
    int64_t next_us = 0;
    struct err err = {0};
    int64_t scan_us;
    int r;

    do
        r = tell_some(deliver, is_finishing(deliver), &next_us, &err);
    while (r > 0 && !is_over(deliver));
    note_store(deliver, r, &err);
    if (r < 0)
        return now_us(deliver) + STORE_AWAY_US;
    scan_us = store_has_listen(deliver->options.store) ? config->worker.safety_scan_us
                                                       : config->worker.poll_us;
    return earliest(next_us, now_us(deliver) + scan_us);
}

static void
wait_until(struct deliver *deliver, int64_t until_us, bool unless_woken)
{
    struct timespec until = {.tv_sec = until_us / US_PER_S,
                             .tv_nsec = (until_us % US_PER_S) * 1000};
    int r = 0;

    pthread_mutex_lock(&deliver->lock);
    while (r == 0 && !deliver->finishing && !deliver->hurry &&
           !(unless_woken && deliver->woken))
        r = pthread_cond_timedwait(&deliver->wake, &deliver->lock, &until);
    if (unless_woken)
        deliver->woken = false;
    pthread_mutex_unlock(&deliver->lock);
}

static void *
deliver_loop(void *arg)
{
    struct deliver *deliver = arg;

    for (;;) {
        /* Before the look: what ends from now on is looked for, once. */
        bool last = is_finishing(deliver);
        int64_t looked_us = now_us(deliver);
        int64_t next_us = tell_all(deliver);

        if (last || is_over(deliver))
            break;
        wait_until(deliver, looked_us + LOOK_GAP_US, false);
        wait_until(deliver, next_us, true);
    }
    pthread_mutex_lock(&deliver->lock);
    deliver->ended = true;
    pthread_cond_signal(&deliver->end);
    pthread_mutex_unlock(&deliver->lock);
    return NULL;
}

static void
on_store_wake(void *arg, unsigned mask)
{
    struct deliver *deliver = arg;

    (void)mask;
    pthread_mutex_lock(&deliver->lock);
    deliver->woken = true;
    pthread_cond_signal(&deliver->wake);
    pthread_mutex_unlock(&deliver->lock);
}

/* --- life --- */

/* Those whose key is here; one whose value is no secret is told once, and left to
 * others. */
static void
choose_hooks(struct deliver *deliver)
{
    const struct config *config = deliver->options.config;

    deliver->hooks = arena_array(&deliver->arena, struct hook, config->webhook_count);
    deliver->names = arena_array(&deliver->arena, const char *, config->webhook_count);
    for (size_t i = 0; i < config->webhook_count; i++) {
        const struct config_webhook *webhook = &config->webhooks[i];
        const char *value = getenv(webhook->key);
        struct hook *hook = &deliver->hooks[deliver->count];
        struct err err = {0};

        if (str_empty(value))
            continue;
        *hook = (struct hook){.config = webhook};
        if (hook_secrets_read(value, &deliver->arena, &hook->secrets, &err) < 0) {
            log_line(deliver->options.log, LOG_ERROR,
                     "a webhook is not told by this process: its key cannot be used",
                     log_str("webhook", webhook->name), log_str("key", webhook->key),
                     log_str("reason", err.text));
            continue;
        }
        deliver->names[deliver->count++] = webhook->name;
    }
}

int
deliver_new(const struct deliver_options *options, struct deliver **ret_deliver,
            struct err *err)
{
    struct deliver *deliver;
    pthread_condattr_t attr;
    int r;

    *ret_deliver = NULL;
    if (options->config->webhook_count == 0)
        return 0;
    deliver = xcalloc(1, sizeof(*deliver));
    deliver->options = *options;
    pthread_mutex_init(&deliver->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&deliver->wake, &attr);
    pthread_cond_init(&deliver->end, &attr);
    pthread_condattr_destroy(&attr);
    choose_hooks(deliver);
    r = deliver->count > 0 ? http_client_new(&deliver->client, err) : 0;
    if (r < 0 || deliver->count == 0) {
        deliver_free(deliver);
        return r;
    }
    *ret_deliver = deliver;
    return 0;
}

int
deliver_start(struct deliver *deliver, struct err *err)
{
    int r;

    if (!deliver)
        return 0;
    deliver->subscription =
        store_subscribe(deliver->options.store, WAKE_DONE, on_store_wake, deliver);
    r = pthread_create(&deliver->thread, NULL, deliver_loop, deliver);
    if (r != 0) {
        store_unsubscribe(deliver->options.store, deliver->subscription);
        return err_errno(err, ERR_NOMEM, r, "cannot start the thread of webhooks");
    }
    deliver->started = true;
    return 0;
}

void
deliver_finish(struct deliver *deliver, int64_t until_us)
{
    struct timespec until = {.tv_sec = until_us / US_PER_S,
                             .tv_nsec = (until_us % US_PER_S) * 1000};
    int r = 0;

    if (!deliver || !deliver->started)
        return;
    pthread_mutex_lock(&deliver->lock);
    deliver->finishing = true;
    deliver->until_us = until_us;
    pthread_cond_signal(&deliver->wake);
    while (r == 0 && !deliver->ended && !deliver->hurry)
        r = pthread_cond_timedwait(&deliver->end, &deliver->lock, &until);
    pthread_mutex_unlock(&deliver->lock);
    store_hurry(deliver->options.store); /* it may be away */
    pthread_join(deliver->thread, NULL);
    store_unsubscribe(deliver->options.store, deliver->subscription);
    deliver->started = false;
}

void
deliver_hurry(struct deliver *deliver)
{
    if (!deliver)
        return;
    pthread_mutex_lock(&deliver->lock);
    deliver->hurry = true;
    pthread_cond_signal(&deliver->wake);
    pthread_cond_signal(&deliver->end);
    pthread_mutex_unlock(&deliver->lock);
}

void
deliver_free(struct deliver *deliver)
{
    if (!deliver)
        return;
    http_client_free(deliver->client);
    arena_release(&deliver->arena);
    pthread_cond_destroy(&deliver->wake);
    pthread_cond_destroy(&deliver->end);
    pthread_mutex_destroy(&deliver->lock);
    free(deliver);
}
