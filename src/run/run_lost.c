#include "run/run_lost.h"

#include "base/arena.h"
#include "base/err.h"
#include "batch/lost.h"
#include "config/config.h"
#include "run/parts.h"
#include "run/result_store.h"
#include "store/store.h"
#include "store/wake.h"

bool
run_drop_parts(const struct run_env *env, struct claim_token token)
{
    struct err ignored = {0};
    int64_t dropped = 0;

    return parts_drop_uncovered(env->store, env->results, 0, token.number, &dropped,
                                &ignored) == 0;
}

/* Those of the list that are whole are recorded so, and moved to its beginning. */
static int
record_whole(const struct run_env *env, struct lost_request *list, size_t count,
             struct run_rescued *rescued, struct err *err)
{
    rescued->whole = list;
    for (size_t i = 0; i < count; i++) {
        int r = run_record_whole(env, list[i].request_id, list[i].token, err);

        if (r < 0)
            return r;
        if (r != RUN_WHOLE)
            continue;
        list[rescued->n_whole] = list[i];
        list[rescued->n_whole++].outcome = OUTCOME_COMPLETED;
        rescued->parts_left |= !run_drop_parts(env, list[i].token);
    }
    if (rescued->n_whole > 0)
        store_wake(env->store, WAKE_DONE | WAKE_READY);
    return 0;
}

int
run_rescue(const struct run_env *env, const char *worker, struct queue_gate gate,
           const char *reason, struct arena *arena, struct run_rescued *ret,
           struct err *err)
{
    struct run_rescued rescued = {0};
    struct lost_request *held = NULL;
    size_t count = 0;
    int r = queue_held_by(env->store, worker, arena, &held, &count, err);

    if (r == 0)
        r = record_whole(env, held, count, &rescued, err);
    if (r == 0)
        r = batch_close_lost_if(env->store, worker, gate, reason, arena, &rescued.lost,
                                &rescued.n_lost, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < rescued.n_lost; i++) {
        rescued.parts_left |= !run_drop_parts(env, rescued.lost[i].token);
        result_store_drop_files(env->results, rescued.lost[i].request_id);
    }
    if (rescued.n_lost > 0)
        store_wake(env->store, WAKE_DONE | WAKE_READY);
    *ret = rescued;
    return 0;
}

/* --- by hand --- */

/* Work that is all done is not thrown away because its worker died. RUN_WHOLE: it is
 * recorded. */
static int
complete(const struct run_env *env, int64_t execution_id, int64_t request_id,
         struct err *err)
{
    struct claim_token token;
    int r = batch_holding_token(env->store, execution_id,
                                env->config->worker.dead_after_us, &token, err);

    return r == 1 ? run_record_whole(env, request_id, token, err) : r;
}

int
run_recover(const struct run_env *env, int64_t execution_id, const char *actor,
            struct run_recovered *ret, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    struct execution execution = {0};
    struct lost_request lost = {0};
    int r = batch_execution_get(env->store, execution_id, &arena, &execution, err);

    if (r < 0)
        return r;
    *ret = (struct run_recovered){.request_id = execution.request_id,
                                  .state = execution.state};
    if (execution_state_alive(execution.state) && env->results)
        r = complete(env, execution_id, execution.request_id, err);
    if (r < 0)
        return r;
    if (r == RUN_WHOLE) {
        ret->state = EXECUTION_COMPLETED;
        return BATCH_RECOVERED;
    }
    r = batch_recover(env->store, execution_id, env->config->worker.dead_after_us,
                      actor, &lost, &ret->holder, err);
    if (r != BATCH_RECOVERED)
        return r;
    ret->state = EXECUTION_FAILED;
    if (env->results) /* it may have published and died before it could say so */
        run_discard_files(env, ret->request_id);
    return r;
}
