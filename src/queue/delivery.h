/*
 * What is still to be told of requests that have ended, one row for a request and a
 * webhook: written with the outcome (announce.c), removed when it was told or given up.
 * Who tells it has it for the time of a lease, so that another process goes on after a
 * crash; a receiver may therefore hear the same twice. Any thread.
 */
#ifndef QUEUE_DELIVERY_H
#define QUEUE_DELIVERY_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct err;
struct store;

#define DELIVERY_ERROR_MAX 400 /* bytes of last_error */

struct delivery {
    int64_t request_id;
    const char *webhook; /* the caller's */
    int attempts;        /* this one included; who writes must have the latest */
    int64_t created_at_us;
    int64_t now_us; /* of the store */
};

/* When the next one of each webhook is due, by the store's clock; 0 = none waits. */
int queue_deliveries_due(struct store *store, const char *const *webhooks, size_t count,
                         int64_t *ret_due_us, int64_t *ret_now_us,
                         struct err *err) must_check;

enum delivery_take { DELIVERY_NONE = 0, DELIVERY_TAKEN = 1 };

/* One that is due, for lease_us. since_us: only one that was written since then, by the
 * store's clock, and never tried; 0 = any. */
int queue_delivery_take(struct store *store, const char *webhook, int64_t since_us,
                        int64_t lease_us, struct delivery *ret,
                        struct err *err) must_check;

/* It was heard. */
int queue_delivery_done(struct store *store, const struct delivery *delivery,
                        struct err *err) must_check;

/* It was not: again after wait_us. */
int queue_delivery_again(struct store *store, const struct delivery *delivery,
                         int64_t wait_us, const char *why, struct err *err) must_check;

/* We cannot try it now: as if it had not been taken. */
int queue_delivery_give_back(struct store *store, const struct delivery *delivery,
                             struct err *err) must_check;

/* Never again; why goes into the audit. */
int queue_delivery_give_up(struct store *store, const struct delivery *delivery,
                           const char *why, struct err *err) must_check;

/* Those of one request that wait. */
struct delivery_waiting {
    const char *webhook;
    int64_t due_at_us;
    int attempts;
    const char *last_error; /* NULL = none */
};

int queue_deliveries_of(struct store *store, int64_t request_id, struct arena *arena,
                        struct delivery_waiting **ret, size_t *ret_count,
                        struct err *err) must_check;

#endif
