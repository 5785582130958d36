/*
 * A backfill: one job asked for with many sets of parameters, as one group. Its items
 * are let in a few at a time; the next one is let in by the transaction that records
 * the end of the one before (follow.h), so a group goes on wherever its requests end,
 * and never has more of them open than it may.
 *
 * An item has ended when its last try has. One that was STOPPED holds the group, since
 * what stopped it (a budget, a person) would stop the next one too; so does one that
 * FAILED, if the group was asked for so. Going on means doing that item again. Any
 * thread.
 */
#ifndef QUEUE_BACKFILL_H
#define QUEUE_BACKFILL_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct err;
struct queue_job;
struct store;

#define BACKFILL_ITEMS_MAX    10000
#define BACKFILL_PARALLEL_MAX 1000

struct backfill_order {
    const struct queue_job *job;
    const char *requester;
    const char *given; /* JSON: what was asked, before it was spread out */
    int priority;
    int64_t parallel;         /* open at once; 1 where the job refuses duplicates */
    bool hold_on_failure;     /* else the group goes on */
    const char *const *items; /* JSON objects: the parameters of each */
    size_t count;             /* at most BACKFILL_ITEMS_MAX; 0: DONE at once */
    int64_t passed_over;      /* left out because they are done already */
};

/* Store the group and let in its first items, in one transaction. */
int queue_backfill(struct store *store, const struct backfill_order *order,
                   int64_t *ret_id, struct err *err) must_check;

enum backfill_change { BACKFILL_CHANGED = 0, BACKFILL_AS_IT_WAS = 1 };

/* Hold: no more items are let in; what is open goes on. -ERR_NOT_FOUND,
 * -ERR_ALREADY_FINAL. */
int queue_backfill_hold(struct store *store, int64_t id, bool hold, const char *actor,
                        struct err *err) must_check;

/* Nothing more is let in; what is open is cancelled, each request as queue_cancel does.
 * Done once more it cancels what a crash in between left open. */
int queue_backfill_cancel(struct store *store, int64_t id, const char *actor,
                          struct err *err) must_check;

struct backfill_item {
    int64_t n; /* from 1 */
    const char *given;
    const char *state;  /* OPEN COMPLETED STOPPED FAILED CANCELLED WAITING */
    int64_t request_id; /* of its last try; 0 = none */
    const char *detail;
};

/* Strings in the arena. Times 0 = not yet. */
struct backfill {
    int64_t id;
    const char *job;
    const char *requester;
    const char *given;
    int64_t parallel;
    bool hold_on_failure;
    int64_t total;
    int64_t passed_over;
    const char *state; /* RUNNING HELD CANCELLED DONE */
    const char *why;   /* NULL, or why it is HELD or CANCELLED */
    int64_t created_at_us;
    int64_t ended_at_us;
    int64_t waiting, open, completed, stopped, failed, cancelled;
    struct backfill_item *items; /* those that run or went wrong, the first 100 */
    size_t n_items;
};

/* -ERR_NOT_FOUND. */
int queue_backfill_get(struct store *store, int64_t id, struct arena *arena,
                       struct backfill *ret_backfill, struct err *err) must_check;

/* Newest first, at most `most`. */
int queue_backfill_list(struct store *store, int64_t most, struct arena *arena,
                        struct backfill **ret_list, size_t *ret_count,
                        struct err *err) must_check;

#endif
