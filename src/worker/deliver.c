/*
 * The thread sleeps until something is due, somebody says that a request has ended, or
 * the safety scan; deliver_round.c does the rest.
 */
#include "worker/deliver_private.h"

#include "base/err.h"
#include "base/log.h"
#include "base/strs.h"
#include "config/config.h"
#include "net/http_client.h"
#include "store/store.h"
#include "store/wake.h"

#include <stdlib.h>
#include <time.h>

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

/* 0 = all is told: the end has not come. */
static int64_t
only_since_us(struct deliver *deliver)
{
    int64_t since_us;

    pthread_mutex_lock(&deliver->lock);
    since_us = deliver->finishing ? deliver->since_us : 0;
    pthread_mutex_unlock(&deliver->lock);
    return since_us;
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
        r = deliver_round(deliver, only_since_us(deliver), &next_us, &err);
    while (r > 0 && !deliver_is_over(deliver));
    note_store(deliver, r, &err);
    if (r < 0)
        return now_us(deliver) + DELIVER_AWAY_US;
    scan_us = store_has_listen(deliver->options.store) ? config->worker.safety_scan_us
                                                       : config->worker.poll_us;
    return deliver_earlier_us(next_us, now_us(deliver) + scan_us);
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

        if (last || deliver_is_over(deliver))
            break;
        wait_until(deliver, looked_us + DELIVER_LOOK_GAP_US, false);
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

        if (str_empty(value)) {
            log_line(deliver->options.log, LOG_WARN,
                     "a webhook is left to other workers: its key is not in the "
                     "environment of this process",
                     log_str("webhook", webhook->name), log_str("key", webhook->key));
            continue;
        }
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
deliver_finish(struct deliver *deliver, int64_t since_us, int64_t until_us)
{
    struct timespec until = {.tv_sec = until_us / US_PER_S,
                             .tv_nsec = (until_us % US_PER_S) * 1000};
    int r = 0;

    if (!deliver || !deliver->started)
        return;
    pthread_mutex_lock(&deliver->lock);
    deliver->finishing = true;
    deliver->since_us = since_us;
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
