/*
 * A worker without threads, at a desk of its own: what its loop would call is called by
 * the test, and both clocks stand still until they are moved.
 */
#ifndef TESTS_STORE_WORKER_DESK_H
#define TESTS_STORE_WORKER_DESK_H

#include "tests/store/queue/common.h"

#include "batch/execution.h"
#include "config/config.h"
#include "run/result_store.h"
#include "worker/spool.h"
#include "worker/worker_private.h"

struct desk {
    struct harness *h;
    struct config config;
    struct config_job jobs[2]; /* "task" writes a file, "other" into the store */
    struct config_lane lane;
    struct clock_settable clock; /* monotonic time of this process */
    char folder[64];
    struct worker worker; /* "w1", 4 slots in lane normal; its row is there */
};

/* Ends with the test's teardown of desk_close. */
void desk_open(struct desk *desk, struct harness *h);
void desk_close(struct desk *desk);

/* Another worker's row, beating now. lanes: JSON. */
void desk_neighbour(struct desk *desk, const char *id, const char *lanes);
void desk_beat(struct desk *desk, const char *id);

/* Time passes in the store and here alike. */
void desk_pass(struct desk *desk, int64_t us);

/* Our beats have arrived since so long ago. */
void desk_trusted_for(struct desk *desk, int64_t us);

/* This request is being carried by us. */
void desk_hold(struct desk *desk, int64_t request_id);

/* Begin the execution of a claimed request, with one step begun out of planned. */
int64_t desk_begin(struct desk *desk, int64_t request_id, const struct claim *claim,
                   int64_t planned, const char *effect);
/* The last chunk of that step: it is COMPLETED. */
void desk_complete_step(struct desk *desk, int64_t request_id,
                        const struct claim *claim, int64_t bytes);
/* Publish text as the result x.csv. */
void desk_publish(struct desk *desk, int64_t request_id, const struct claim *claim,
                  const char *text);
/* A part as a run that is under way leaves it; is it there? */
void desk_make_part(struct desk *desk, int64_t request_id, const struct claim *claim);
bool desk_has_part(struct desk *desk, int64_t request_id, const struct claim *claim);
bool desk_has_result(struct desk *desk, int64_t request_id);

#endif
