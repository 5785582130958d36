/* Executions with their steps, and what people do to them: stop, recover. */
#include "service/service.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "batch/execution.h"
#include "batch/skip.h"
#include "batch/stale.h"
#include "config/config.h"
#include "queue/cancel.h"
#include "run/run.h"

#include <inttypes.h>

#define SKIPS_SHOWN 200

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

/* Work that is all done is not thrown away because its worker died: 1, it is recorded
 * as COMPLETED. */
static int
complete(const struct service *service, int64_t execution_id,
         const struct execution *execution, struct answer *ret_answer, struct err *err)
{
    struct run_env env = {.config = service->config,
                          .store = service->store,
                          .results = service->results,
                          .clock = service->clock};
    struct claim_token token;
    int r = batch_holding_token(service->store, execution_id,
                                service->config->worker.dead_after_us, &token, err);

    if (r == 1)
        r = run_record_whole(&env, execution->request_id, token, err);
    if (r != RUN_WHOLE)
        return r;
    put_act(ret_answer, 200, execution_id, execution->request_id, "COMPLETED",
            "recovered");
    return 1;
}

int
service_execution_recover(const struct service *service, const struct caller *caller,
                          int64_t execution_id, struct answer *ret_answer,
                          struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    struct execution execution = {0};
    struct batch_holder holder = {0};
    struct lost_request lost = {0};
    int r = batch_execution_get(service->store, execution_id, &arena, &execution, err);

    if (r == 0 && execution_state_alive(execution.state) && service->results)
        r = complete(service, execution_id, &execution, ret_answer, err);
    if (r != 0)
        return r < 0 ? r : 0;
    r = batch_recover(service->store, execution_id,
                      service->config->worker.dead_after_us, caller->name, &lost,
                      &holder, err);
    if (r < 0)
        return r;
    if (r == BATCH_OVER)
        return is_over(execution_id, execution_state_name(execution.state), ERR_INVALID,
                       err);
    if (r == BATCH_STILL_CARRIED)
        return err_set(err, ERR_JOB_ALREADY_RUNNING,
                       "execution %" PRId64 " is alive: its worker %.100s was heard "
                       "from %" PRId64 " s ago; stop or cancel it instead",
                       execution_id, holder.worker, holder.silence_us / US_PER_S);
    if (service->results) /* it may have published and died before it could say so */
        run_discard_files(
            &(struct run_env){.store = service->store, .results = service->results},
            lost.request_id);
    put_act(ret_answer, 200, execution_id, lost.request_id, "FAILED", "recovered");
    return 0;
}
