/*
 * Closing what a dead worker held. The caller knows that it is dead (the lock of
 * its seat is ours, or it missed its beats); here every request it held becomes
 * FAILED/WORKER_LOST, or FAILED/CANCELLED when a cancel had been asked. Any thread.
 */
#ifndef QUEUE_LOST_H
#define QUEUE_LOST_H

#include "queue/request.h"

struct arena;
struct db;
struct err;
struct store;

struct lost_request {
    int64_t request_id;
    struct claim_token token; /* names the part files */
    enum request_outcome outcome;
    int64_t execution_id; /* 0 = it had none */
    const char *job;
};

/* Called inside the transaction for each request, so that what hangs on it is
 * closed together with it; sets execution_id. May be called again on a retry. */
typedef int (*queue_lost_fn)(struct db *db, struct lost_request *lost,
                             const char *reason, void *arg, struct err *err);

/* First thing in the transaction: is this worker still to be closed? 1 yes; 0 no,
 * nothing is done. What it locks stays locked until the end. */
typedef int (*queue_gate_fn)(struct db *db, const char *worker, void *arg,
                             struct err *err);

struct queue_gate {
    queue_gate_fn fn; /* NULL: yes */
    void *arg;
};

/* What this worker holds now, one entry per request; outcome NONE. */
int queue_held_by(struct store *store, const char *worker, struct arena *arena,
                  struct lost_request **ret_held, size_t *ret_count,
                  struct err *err) must_check;

/*
 * Close everything that this worker holds, in one transaction, and list it in
 * the arena. fn may be NULL. reason goes into detail.
 */
int queue_close_lost(struct store *store, const char *worker, const char *reason,
                     queue_lost_fn fn, void *arg, struct arena *arena,
                     struct lost_request **ret_lost, size_t *ret_count,
                     struct err *err) must_check;

/* The same behind a gate, which has taken away the worker's row or found none: a worker
 * that has one all the same has just come back, and keeps what it claimed. */
int queue_close_lost_if(struct store *store, const char *worker, struct queue_gate gate,
                        const char *reason, queue_lost_fn fn, void *arg,
                        struct arena *arena, struct lost_request **ret_lost,
                        size_t *ret_count, struct err *err) must_check;

#endif
