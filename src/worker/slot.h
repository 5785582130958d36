/*
 * Slots: places in lanes, and the threads that fill them. An idle slot is a
 * counter; a thread exists only for running work, is used again for the next
 * and goes away after a while without any. The worker's loop thread owns the
 * struct; threads of the pool reach the loop through one inbox.
 */
#ifndef WORKER_SLOT_H
#define WORKER_SLOT_H

#include "base/inbox.h"
#include "base/list.h"
#include "run/run.h"

#include <stdint.h>

struct slots;

/* One running request. The loop owns it from slot_fill to slots_take_done. */
struct slot {
    struct list held;        /* in the loop's list of held runs */
    struct inbox_node done;  /* on its way back */
    struct slot *next_ready; /* on its way to a thread */
    struct run *run;
    struct run_report report;
    int64_t request_id;
    int64_t token;
    int64_t deadline_us; /* monotonic; 0 = none */
    int lane;            /* index into the worker's lanes */
};

/* wake is called from a slot's thread when a run is over. */
struct slots *slots_new(void (*wake)(void *arg), void *arg);

/* Every slot must have come back. Waits for the threads. */
void slots_free(struct slots *slots);

/* Let a thread carry out slot->run. When no further thread can be had it waits for
 * a busy one; with none at all the caller's thread does it: late, but never lost. */
void slots_fill(struct slots *slots, struct slot *slot);

/* Those that are over, linked by done.next; NULL when none. */
struct inbox_node *slots_take_done(struct slots *slots);

#endif
