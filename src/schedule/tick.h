/*
 * The scheduler: a thread that sleeps until the next slot of any schedule in the
 * store and then decides it. Any number of them may run, in any number of processes;
 * the store decides which one fires a slot, and when it is time. Started by the
 * roles serve and worker.
 */
#ifndef SCHEDULE_TICK_H
#define SCHEDULE_TICK_H

#include "base/compiler.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct arena;
struct err;
struct log;
struct queue_job;
struct scheduler;
struct store;
struct submit_order;

#define SCHEDULE_REQUESTER "scheduler"

/*
 * Make the order of a request: parameters checked, lane chosen. job lives until the
 * request is stored, the strings in the arena too. -ERR_INVALID, -ERR_CONFIG, -ERR_DB:
 * the slot is refused, with the note; other failures: tried again.
 */
typedef int (*schedule_order_fn)(void *arg, const struct queue_job *job,
                                 const json_t *params, struct arena *arena,
                                 struct submit_order *ret_order, struct err *err);

/* Borrowed; all outlive the scheduler. */
struct scheduler_options {
    struct store *store;
    struct log *log; /* NULL = silent */
    schedule_order_fn order;
    void *arg;
    int64_t skew_us; /* for tests: how wrong its idea of the store's time is */
};

int scheduler_new(const struct scheduler_options *options,
                  struct scheduler **ret_scheduler, struct err *err) must_check;
int scheduler_start(struct scheduler *scheduler, struct err *err) must_check;

/* Fire nothing more. Any thread; does not wait. */
void scheduler_stop(struct scheduler *scheduler);
/* Stops, waits for the thread if there is one. Accepts NULL. */
void scheduler_free(struct scheduler *scheduler);

/*
 * One round of the thread: decide what is due. *ret_wait_us: for how long nothing
 * will be (at most ten minutes). For the thread and for tests; one at a time.
 */
int scheduler_round(struct scheduler *scheduler, int64_t *ret_wait_us,
                    struct err *err) must_check;

#endif
