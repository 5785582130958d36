/* Executions with their steps, and what people do to them: stop, recover. */
#include "service/service.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "batch/execution.h"
#include "batch/skip.h"
#include "batch/recovery.h"
#include "queue/cancel.h"
#include "run/run_lost.h"
#include "service/bury.h"

#include <inttypes.h>

#define SKIPS_SHOWN     200
#define RECOVER_WAIT_US (3 * US_PER_S)

static void
put_step(struct json_out *out, const struct step_execution *step)
{
    const struct step_counts *counts = &step->point.counts;

    json_begin_object(out);
    json_kv_str(out, "name", step->name);
    json_kv_str(out, "state", execution_state_name(step->state));
    json_kv_str(out, "effect", step->effect);
    json_kv_i64(out, "executionId", step->of_execution);
    json_kv_i64(out, "read", counts->read);
    json_kv_i64(out, "written", counts->written);
    json_kv_i64(out, "filtered", counts->filtered);
    json_kv_i64(out, "skipped", counts->skipped);
    json_kv_i64(out, "commits", counts->commits);
    json_kv_i64(out, "rollbacks", counts->rollbacks);
    json_kv_i64(out, "chunk", step->point.chunk);
    json_kv_time_us(out, "startedAt", step->started_at_us);
    json_kv_time_us(out, "endedAt", step->ended_at_us);
    json_kv_time_us(out, "lastUpdated", step->last_updated_us);
    json_kv_str(out, "message", step->message);
    json_end_object(out);
}

/* Items left out: the counts of the steps say how many there are in all. */
static void
put_skips(struct json_out *out, const struct batch_skip *skips, size_t count)
{
    json_key(out, "skips");
    json_begin_array(out);
    for (size_t i = 0; i < count; i++) {
        json_begin_object(out);
        json_kv_str(out, "step", skips[i].step);
        json_kv_i64(out, "item", skips[i].item);
        json_kv_str(out, "class", skips[i].class);
        json_kv_raw(out, "values", skips[i].values);
        json_kv_str(out, "message", skips[i].message);
        json_kv_time_us(out, "at", skips[i].noted_at_us);
        json_end_object(out);
    }
    json_end_array(out);
}

int
service_execution(const struct service *service, int64_t execution_id,
                  struct answer *ret_answer, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    struct execution execution = {0};
    struct batch_skip *skips = NULL;
    size_t n_skips = 0;
    struct json_out out;
    int r = batch_execution_get(service->store, execution_id, &arena, &execution, err);

    if (r == 0)
        r = batch_skips(service->store, execution.request_id, SKIPS_SHOWN, &arena,
                        &skips, &n_skips, err);
    if (r < 0)
        return r;
    ret_answer->status = 200;
    json_out_init(&out, &ret_answer->body);
    json_begin_object(&out);
    json_kv_i64(&out, "executionId", execution.id);
    json_kv_i64(&out, "instanceId", execution.instance_id);
    json_kv_i64(&out, "instanceNumber", execution.instance_number);
    json_kv_str(&out, "job", execution.job);
    json_kv_i64(&out, "requestId", execution.request_id);
    json_kv_str(&out, "state", execution_state_name(execution.state));
    if (execution.resumed_from)
        json_kv_i64(&out, "resumedFrom", execution.resumed_from);
    else
        json_kv_null(&out, "resumedFrom");
    json_kv_raw(&out, "params", execution.params);
    json_kv_time_us(&out, "startedAt", execution.started_at_us);
    json_kv_time_us(&out, "endedAt", execution.ended_at_us);
    json_kv_time_us(&out, "lastUpdated", execution.last_updated_us);
    json_kv_str(&out, "message", execution.message);
    json_key(&out, "steps");
    json_begin_array(&out);
    for (size_t i = 0; i < execution.n_steps; i++)
        put_step(&out, &execution.steps[i]);
    json_end_array(&out);
    put_skips(&out, skips, n_skips);
    json_end_object(&out);
    return 0;
}

/* --- stop, recover --- */

static void
put_act(struct answer *answer, int status, int64_t execution_id, int64_t request_id,
        const char *state, const char *done)
{
    struct json_out out;

    answer->status = status;
    answer->request_id = request_id;
    json_out_init(&out, &answer->body);
    json_begin_object(&out);
    json_kv_i64(&out, "executionId", execution_id);
    json_kv_i64(&out, "requestId", request_id);
    json_kv_str(&out, "state", state);
    json_kv_bool(&out, done, true);
    json_end_object(&out);
}

static int
is_over(int64_t execution_id, const char *state, enum err_code code, struct err *err)
{
    return err_set(err, code, "execution %" PRId64 " has ended (%s) and stays as it is",
                   execution_id, state);
}

int
service_execution_stop(const struct service *service, const struct caller *caller,
                       int64_t execution_id, struct answer *ret_answer, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    struct execution execution = {0};
    int r = batch_execution_get(service->store, execution_id, &arena, &execution, err);

    if (r < 0)
        return r;
    if (!execution_state_alive(execution.state))
        return is_over(execution_id, execution_state_name(execution.state),
                       ERR_ALREADY_FINAL, err);
    r = queue_stop(service->store, execution.request_id, caller->name, err);
    if (r < 0)
        return r;
    put_act(ret_answer, 202, execution_id, execution.request_id,
            execution_state_name(execution.state), "stopRequested");
    return 0;
}

/* --- recover --- */

struct recover {
    const struct service *service;
    const struct run_env *env;
    int64_t execution_id;
    const char *actor;
    struct run_recovered done;
};

/* A worker took the ask away: it has done what can be done. */
static int
is_settled(void *arg)
{
    const struct recover *recover = arg;
    struct err ignored = {0};

    return batch_recovery_waits(recover->service->store, recover->execution_id,
                                &ignored) == 0;
}

/*
 * Our role may not end executions: have a worker do it. Then look again, which tells
 * what became of it; an ask that nobody took does not stay behind.
 */
static int
ask_worker(struct recover *recover, struct err *err)
{
    struct store *store = recover->service->store;
    int r = batch_recovery_ask(store, recover->execution_id, recover->actor, err);

    if (r < 0)
        return r;
    if (!service_await(recover->service, RECOVER_WAIT_US, is_settled, recover))
        r = batch_recovery_drop(store, recover->execution_id, err);
    if (r == 0)
        r = run_recover(recover->env, recover->execution_id, recover->actor,
                        &recover->done, err);
    if (r == BATCH_NOT_OURS)
        return err_set(err, ERR_NO_WORKER,
                       "execution %" PRId64 " can be ended, but no live worker did it "
                       "within %d s, and this api may not: start a worker, or use "
                       "`pawl recover` with a file whose `store` is the worker's URL",
                       recover->execution_id, (int)(RECOVER_WAIT_US / US_PER_S));
    return r == BATCH_OVER ? BATCH_RECOVERED : r;
}

int
service_execution_recover(const struct service *service, const struct caller *caller,
                          int64_t execution_id, struct answer *ret_answer,
                          struct err *err)
{
    struct run_env env = {.config = service->config,
                          .store = service->store,
                          .results = service->results,
                          .clock = service->clock};
    struct recover recover = {.service = service,
                              .env = &env,
                              .execution_id = execution_id,
                              .actor = caller->name};
    int r = run_recover(&env, execution_id, caller->name, &recover.done, err);

    if (r == BATCH_NOT_OURS)
        r = ask_worker(&recover, err);
    if (r < 0)
        return r;
    if (r == BATCH_OVER)
        return is_over(execution_id, execution_state_name(recover.done.state),
                       ERR_INVALID, err);
    if (r == BATCH_STILL_CARRIED)
        return err_set(err, ERR_JOB_ALREADY_RUNNING,
                       "execution %" PRId64 " is alive: its worker %.100s was heard "
                       "from %" PRId64 " s ago; stop or cancel it instead",
                       execution_id, recover.done.holder.worker,
                       recover.done.holder.silence_us / US_PER_S);
    put_act(ret_answer, 200, execution_id, recover.done.request_id,
            execution_state_name(recover.done.state), "recovered");
    return 0;
}
