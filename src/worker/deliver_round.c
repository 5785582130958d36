/*
 * A receiver that cannot be reached is left alone for a while, so it delays the others
 * once and not with each of its deliveries.
 */
#include "worker/deliver_private.h"

#include "base/err.h"
#include "base/log.h"
#include "config/config.h"
#include "queue/delivery.h"
#include "queue/list.h"
#include "queue/request.h"
#include "store/store.h"

static int64_t
now_us(const struct deliver *deliver)
{
    return clock_mono_us(deliver->options.clock);
}

bool
deliver_is_over(struct deliver *deliver)
{
    bool over;

    pthread_mutex_lock(&deliver->lock);
    over =
        deliver->hurry || (deliver->finishing && now_us(deliver) >= deliver->until_us);
    pthread_mutex_unlock(&deliver->lock);
    return over;
}

static bool
is_over(void *arg)
{
    return deliver_is_over((struct deliver *)arg);
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

/* Whoever may write into the store has put it there; we never do. */
static int
drop(struct deliver *deliver, const struct delivery *delivery, struct err *err)
{
    static const char why[] = "its request is not over";

    log_line(deliver->options.log, LOG_WARN,
             "what waits for a webhook is dropped: its request is not over",
             log_str("webhook", delivery->webhook),
             log_i64("request", delivery->request_id));
    return queue_delivery_give_up(deliver->options.store, delivery, why, err);
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
    if (!request_status_final(request.status))
        return drop(deliver, delivery, err);
    r = is_over(deliver) ? -ERR_CANCELLED
                         : hook_send(&send, &request, &arena, &try, why, sizeof(why));
    if (r < 0)
        return queue_delivery_give_back(deliver->options.store, delivery, err);
    return settle(deliver, hook, delivery, &try, why, &arena, err);
}

/* --- rounds --- */

int64_t
deliver_earlier_us(int64_t a, int64_t b)
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

/* Is it due, and may be tried? If not, *next_us says when at the latest. */
static bool
is_its_turn(const struct deliver *deliver, const struct hook *hook, int64_t due_us,
            int64_t store_us, int64_t *next_us)
{
    int64_t at_us;

    if (!due_us)
        return false;
    if (due_us <= store_us && !is_paused(deliver, hook))
        return true;
    at_us = now_us(deliver) + (due_us - store_us);
    if (at_us < hook->paused_until_us)
        at_us = hook->paused_until_us;
    *next_us = deliver_earlier_us(*next_us, at_us);
    return false;
}

/* The store may refuse one webhook's rows and take those of the others. */
static void
note_refusal(struct deliver *deliver, struct hook *hook, int r, const struct err *err)
{
    if (r >= 0) {
        hook->refused = false;
        return;
    }
    if (!hook->refused)
        log_line(deliver->options.log, LOG_WARN,
                 "a webhook cannot be told: the store fails with it; trying again",
                 log_str("webhook", hook->config->name), log_str("reason", err->text));
    hook->refused = true;
    hook->paused_until_us = now_us(deliver) + DELIVER_AWAY_US;
}

/* DELIVERY_TAKEN: one was tried. */
static int
tell_one(struct deliver *deliver, struct hook *hook, int64_t since_us)
{
    struct delivery delivery;
    struct err err = {0};
    int r =
        queue_delivery_take(deliver->options.store, hook->config->name, since_us,
                            hook_lease_us(hook->config->timeout_us), &delivery, &err);
    int told = r == DELIVERY_TAKEN ? tell(deliver, hook, &delivery, &err) : r;

    note_refusal(deliver, hook, told, &err);
    return r;
}

/*
 * Its turn: while a slow one is waited for, a quick one must not have to wait with each
 * call for one of the other's. Returns how many were tried, or what tell_one said of
 * the first.
 */
static int
tell_some(struct deliver *deliver, struct hook *hook, int64_t since_us,
          int64_t *slowest_us)
{
    int64_t began_us = now_us(deliver);
    int64_t at_us = began_us;
    int64_t longest_us = 0;
    int told = 0;
    int r;

    do {
        int64_t call_at_us = at_us;

        r = tell_one(deliver, hook, since_us);
        told += r == DELIVERY_TAKEN;
        at_us = now_us(deliver);
        if (at_us - call_at_us > longest_us)
            longest_us = at_us - call_at_us;
    } while (r == DELIVERY_TAKEN && told < DELIVER_TURN_MAX &&
             at_us - began_us + longest_us < deliver->slowest_us &&
             !is_paused(deliver, hook) && !deliver_is_over(deliver));
    if (longest_us > *slowest_us)
        *slowest_us = longest_us;
    return told > 0 ? told : r;
}

int
deliver_round(struct deliver *deliver, int64_t since_us, int64_t *ret_next_us,
              struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    int64_t *due_us = arena_array(&arena, int64_t, deliver->count);
    int64_t store_us = 0;
    int64_t next_us = 0;
    int64_t slowest_us = 0;
    int tried = 0;
    int r = queue_deliveries_due(deliver->options.store, deliver->names, deliver->count,
                                 due_us, &store_us, err);

    if (r < 0)
        return r;
    if (since_us) /* by the store's clock */
        since_us += store_us - now_us(deliver);
    for (size_t i = 0; i < deliver->count && !deliver_is_over(deliver); i++) {
        struct hook *hook = &deliver->hooks[i];

        if (!is_its_turn(deliver, hook, due_us[i], store_us, &next_us))
            continue;
        r = tell_some(deliver, hook, since_us, &slowest_us);
        if (r > 0)
            tried += r;
        else if (r < 0)
            next_us = deliver_earlier_us(next_us, hook->paused_until_us);
        else /* another was faster; soon the store knows until when it has it */
            next_us =
                deliver_earlier_us(next_us, now_us(deliver) + DELIVER_LOOK_GAP_US);
    }
    deliver->slowest_us = slowest_us;
    *ret_next_us = next_us;
    return tried;
}
