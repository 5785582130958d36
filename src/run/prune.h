/*
 * Retention: what is kept only for a time is removed in small steps, each a page and a
 * transaction of its own, so that nobody waits for it. Nothing of a request that has
 * not ended is touched. Any thread; several may do it at the same time.
 */
#ifndef RUN_PRUNE_H
#define RUN_PRUNE_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

struct err;
struct result_store;
struct store;

#define PRUNE_PAGE     100
#define PRUNE_REQUESTS 25 /* each is asked about much */

struct prune_order {
    struct store *store;
    const struct result_store *results;
    int64_t results_us; /* files of results that are older go; 0 = none */
    int64_t keys_us;    /* Idempotency-Keys that are older; 0 = none */
    /* Requests that ended longer ago and that nothing needs, with all that hangs on
     * them; times of schedules, acts, backfills; 0 = none. prune_step raises it to
     * keys_us. */
    int64_t history_us;
    int64_t after; /* the request looked at last, 0 = begin; kept by prune_step */
};

struct prune_report {
    int64_t results;
    int64_t keys;
    int64_t requests;
    bool more; /* not all was looked at */
};

/* One page of each kind; what it removes is added to *ret. The file of a result goes
 * first: where its row cannot be marked, the next look does so. */
int prune_step(struct prune_order *order, struct prune_report *ret,
               struct err *err) must_check;

#endif
