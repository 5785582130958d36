/*
 * The role worker: a loop on a thread of its own that claims what this process
 * can run, hands it to slots and ends it on request. Made and freed by main;
 * worker_stop and worker_hurry may be called from any thread.
 */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include "base/compiler.h"

#include <stdbool.h>

struct clock;
struct config;
struct err;
struct log;
struct result_store;
struct store;
struct worker;

/* Borrowed; all outlive the worker. */
struct worker_options {
    const struct config *config;
    struct store *store;
    const struct result_store *results;
    const struct clock *clock;
    struct log *log;
    const char *version;
};

/*
 * Take the seat, close what its earlier boots left, announce this worker.
 * -ERR_STORE_HELD: another process sits on the seat.
 */
int worker_new(const struct worker_options *options, struct worker **ret_worker,
               struct err *err) must_check;

/* Start the loop and the heartbeat. */
int worker_start(struct worker *worker, struct err *err) must_check;

/* Begin the drain: claim nothing more, ask every run to end at its next chunk. */
void worker_stop(struct worker *worker);

/* A second signal: what still runs is cut off now. */
void worker_hurry(struct worker *worker);

/* Wait for the end of the drain; true if every run was recorded. Then free. One that
 * was not started only takes its row away. */
bool worker_join(struct worker *worker);
void worker_free(struct worker *worker);

const char *worker_id(const struct worker *worker);

#endif
