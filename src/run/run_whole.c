/*
 * Judging a run whose process is gone, or which could not tell its end: the same
 * question for the start of a seat, the sweep and the reaper. All of the work is done
 * when every planned step is COMPLETED and, where a step makes a file, that file lies
 * published and is as long as its last checkpoint says. Which steps are planned says
 * the configuration: an instance that is gone on with after a change of its job also
 * has steps that the job had before.
 */
#include "run/run_private.h"

#include "base/err.h"
#include "base/json.h"
#include "config/config.h"
#include "io/formats.h"
#include "queue/finish.h"
#include "queue/list.h"
#include "run/result_store.h"

#include <string.h>

struct whole {
    struct execution execution;
    struct result_file file;
    char name[256];
    struct request_result result;
};

static const json_t *
definition_of(const struct config_job *job, const char *step_name)
{
    const json_t *def;
    size_t i;

    json_array_foreach(job->steps, i, def)
    {
        const char *name = json_string_value(json_object_get(def, "name"));

        if (name && strcmp(name, step_name) == 0)
            return def;
    }
    return NULL;
}

/* Forget the steps that the job does not have any more. False: it is another job by
 * now, or not known here, and nobody can say. */
static bool
keep_planned(const struct config_job *job, struct execution *execution)
{
    size_t kept = 0;

    if (!job || (int64_t)json_array_size(job->steps) != execution->planned)
        return false;
    for (size_t i = 0; i < execution->n_steps; i++)
        if (definition_of(job, execution->steps[i].name))
            execution->steps[kept++] = execution->steps[i];
    execution->n_steps = kept;
    return true;
}

static bool
all_completed(const struct execution *execution)
{
    if (!execution_state_alive(execution->state) || execution->planned <= 0 ||
        (int64_t)execution->n_steps != execution->planned)
        return false;
    for (size_t i = 0; i < execution->n_steps; i++)
        if (execution->steps[i].state != EXECUTION_COMPLETED)
            return false;
    return true;
}

/* The step whose file is the result: the last that makes one. */
static const struct step_execution *
file_step(const struct execution *execution)
{
    for (size_t i = execution->n_steps; i > 0; i--) {
        const char *effect = execution->steps[i - 1].effect;

        if (effect && strcmp(effect, format_effect_name(IO_EFFECT_FILE)) == 0)
            return &execution->steps[i - 1];
    }
    return NULL;
}

/* 1, or 0 when the step makes no file by this configuration. */
static int
find_type(const struct run_env *env, struct whole *whole, const char *step_name,
          struct err *err)
{
    const struct execution *execution = &whole->execution;
    const struct config_job *job = config_job_find(env->config, execution->job);
    const json_t *def = definition_of(job, step_name);
    const json_t *write = json_object_get(def, "write");
    const struct writer_kind *kind = NULL;
    scoped(json_drop) json_t *params = NULL;
    int r;

    if (!write)
        return 0;
    r = json_parse(execution->params, strlen(execution->params), JSON_DEPTH_MAX,
                   &params, err);
    if (r == 0)
        r = format_choose_writer(write, params, &kind, err);
    if (r < 0)
        return r;
    whole->result.type = kind ? kind->content_type : NULL;
    return whole->result.type != NULL;
}

/* 1: the result lies there as it should. */
static int
find_result(const struct run_env *env, int64_t request_id,
            const struct step_execution *step, struct whole *whole, struct err *err)
{
    int64_t rows = -1;
    int64_t bytes = -1;
    int r = run_read_finished(step->point.writer_state, &rows, &bytes, err);

    if (r == 1)
        r = find_type(env, whole, step->name, err);
    if (r <= 0)
        return r;
    r = result_store_find(env->results, request_id, whole->name, &whole->file, err);
    if (r == -ERR_NOT_FOUND) {
        err_clear(err);
        return 0;
    }
    if (r < 0 || whole->file.bytes != bytes)
        return r < 0 ? r : 0;
    whole->result.known = true;
    whole->result.path = whole->file.path;
    whole->result.name = whole->name;
    whole->result.bytes = whole->file.bytes;
    whole->result.rows = rows;
    whole->result.sha256 = whole->file.sha256;
    return 1;
}

static int
judge(const struct run_env *env, int64_t request_id, struct claim_token token,
      struct arena *arena, struct whole *whole, struct err *err)
{
    const struct step_execution *step;
    int r = batch_execution_of_request(env->store, request_id, arena, &whole->execution,
                                       err);

    if (r == -ERR_NOT_FOUND) {
        err_clear(err);
        return 0;
    }
    if (r < 0)
        return r;
    if (whole->execution.token != token.number ||
        !keep_planned(config_job_find(env->config, whole->execution.job),
                      &whole->execution) ||
        !all_completed(&whole->execution))
        return 0;
    step = file_step(&whole->execution);
    return step ? find_result(env, request_id, step, whole, err) : 1;
}

int
run_record_whole(const struct run_env *env, int64_t request_id,
                 struct claim_token token, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    struct whole whole = {.result = {.rows = -1}};
    struct finish_order order = {
        .request_id = request_id,
        .token = token,
        .outcome = OUTCOME_COMPLETED,
        .result = &whole.result,
    };
    int r = judge(env, request_id, token, &arena, &whole, err);

    if (r <= 0)
        return r < 0 ? r : RUN_NOT_WHOLE;
    order.execution_id = whole.execution.id;
    r = run_record_once(env->store, &order, err);
    if (r < 0)
        return r;
    return r == BATCH_OK ? RUN_WHOLE : RUN_NOT_WHOLE;
}

void
run_discard_files(const struct run_env *env, int64_t request_id)
{
    scoped(arena_release) struct arena arena = {0};
    struct request request = {0};
    struct err ignored = {0};

    if (queue_get(env->store, request_id, &arena, &request, &ignored) == 0 &&
        request.outcome != OUTCOME_COMPLETED && request.place == PLACE_OUTCOME)
        result_store_drop_files(env->results, request_id);
}
