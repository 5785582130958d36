/*
 * Inside of struct deliver, for deliver.c (the thread, its life) and deliver_round.c
 * (what it does when something is due).
 */
#ifndef WORKER_DELIVER_PRIVATE_H
#define WORKER_DELIVER_PRIVATE_H

#include "base/arena.h"
#include "base/clock.h"
#include "worker/deliver.h"
#include "worker/hook.h"

#include <pthread.h>
#include <stdbool.h>

#define DELIVER_LOOK_GAP_US (200 * US_PER_MS) /* requests may end by the thousand */
#define DELIVER_AWAY_US     (2 * US_PER_S)    /* after the store has failed */
#define DELIVER_TURN_MAX    100               /* calls in a row to one webhook */

struct hook {
    const struct config_webhook *config;
    struct hook_secrets secrets;
    int failures;            /* in a row, of the receiver as a whole */
    int64_t paused_until_us; /* monotonic; 0 = not */
    bool refused;            /* by the store; said in the log already */
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
    bool store_away;    /* said in the log already */
    int64_t slowest_us; /* the slowest call of the last round */

    /* shared, under the lock */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool woken;
    bool finishing;
    int64_t since_us; /* monotonic; of finishing */
    int64_t until_us; /* the same */
    bool hurry;
    pthread_cond_t end; /* who finishes waits here */
    bool ended;
};

/*
 * Each webhook that has something due gets its turn: one call, and more as long as they
 * take no longer than the slowest call of the last round, DELIVER_TURN_MAX at most.
 * since_us: only what was written since then (monotonic) and never tried; 0 = all.
 * *ret_next_us: when to look for the others, monotonic; 0 = none waits. Returns how
 * many were tried. A webhook with whose rows the store fails is left alone for a while
 * and keeps none of the others waiting.
 */
int deliver_round(struct deliver *deliver, int64_t since_us, int64_t *ret_next_us,
                  struct err *err) must_check;

/* No more time. */
bool deliver_is_over(struct deliver *deliver);

/* The earlier of two times, where 0 is none. */
int64_t deliver_earlier_us(int64_t a, int64_t b);

#endif
