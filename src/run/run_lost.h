/*
 * What a dead worker left: all that it held, or one execution by hand. What had done
 * all its work is recorded as COMPLETED, the rest is closed, and files go that nobody
 * needs. The caller knows, or lets a gate find out, that the worker is dead. Any
 * thread.
 */
#ifndef RUN_RUN_LOST_H
#define RUN_RUN_LOST_H

#include "batch/execution.h"
#include "batch/stale.h"
#include "queue/lost.h"
#include "run/run.h"

/* Lists in the caller's arena. */
struct run_rescued {
    struct lost_request *whole; /* recorded as COMPLETED */
    size_t n_whole;
    struct lost_request *lost; /* closed: WORKER_LOST or CANCELLED */
    size_t n_lost;
    bool parts_left; /* not all parts could be looked at; the next look at all does */
};

int run_rescue(const struct run_env *env, const char *worker, struct queue_gate gate,
               const char *reason, struct arena *arena, struct run_rescued *ret,
               struct err *err) must_check;

/* Remove the parts of a claim that is gone; false: they could not be looked at. */
bool run_drop_parts(const struct run_env *env, struct claim_token token);

struct run_recovered {
    int64_t request_id;
    enum execution_state state; /* it ended as, or had ended as */
    struct batch_holder holder;
};

/*
 * As batch_recover, but work that is all done is recorded as such. env->results may be
 * NULL: then nobody looks. An enum batch_recovered, or < 0.
 */
int run_recover(const struct run_env *env, int64_t execution_id, const char *actor,
                struct run_recovered *ret, struct err *err) must_check;

#endif
