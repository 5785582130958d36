/*
 * Before the first step: the job as it is configured here, the request's parameters as
 * the job wants them, and the execution, which either goes on with the work of an
 * earlier one or begins anew.
 */
#include "run/run_private.h"

#include "base/err.h"
#include "base/fsio.h"
#include "base/json.h"
#include "config/config.h"
#include "queue/claim.h"
#include "queue/job.h"
#include "queue/params.h"
#include "run/parts.h"

#include <inttypes.h>
#include <string.h>

#define CANONICAL_MAX (1 << 20)

static int
canonical_text(struct run *run, const json_t *json, const char **ret, struct err *err)
{
    scoped(buf_release) struct buf canonical = {0};
    int r;

    buf_init(&canonical, CANONICAL_MAX);
    r = json_canonical(json, &canonical, err);
    if (r == 0)
        *ret = arena_strndup(&run->arena, buf_str(&canonical), canonical.len);
    return r;
}

/* Parameters as the definition wants them now, what it says by default filled in. */
static int
fit_params(const struct queue_job *job, const json_t *params, json_t **ret_effective,
           struct err *err)
{
    struct params_errors errors = {0};
    char text[400];
    int r = params_check(job, params, ret_effective, &errors);

    if (r == PARAMS_INVALID) {
        params_errors_text(&errors, text, sizeof(text));
        return err_set(err, ERR_INVALID,
                       "the parameters do not fit the job as it is defined now: %s",
                       text);
    }
    return r;
}

/* Those of effective that the request gave itself, as canonical text. */
static int
given_text(struct run *run, const json_t *given, const json_t *effective,
           const char **ret, struct err *err)
{
    scoped(json_drop) json_t *own = json_object();
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)given, name, value)
    {
        json_t *normal = json_object_get(effective, name);

        if (normal)
            json_object_set(own, name, normal);
    }
    return canonical_text(run, own, ret, err);
}

/* Which work the request wants: docs/restart.md has the rules. */
static void
say_go_on(struct run *run, const struct request *request,
          struct batch_start_order *order)
{
    if (request->restart == 0 || order->confirmed)
        return;
    if (request->restart_of || request->retry_of) {
        order->go_on = BATCH_GO_ON_OF;
        order->of = request->restart_of ? request->restart_of : request->retry_of;
    } else if (run->job->duplicates == CONFIG_DUPLICATES_REFUSE) {
        order->go_on = BATCH_GO_ON;
    }
}

/* What the request asks for: parameters, and which work to go on with. */
static int
read_request(struct run *run, const struct request *request,
             struct batch_start_order *order, struct err *err)
{
    scoped(json_drop) json_t *given = NULL;
    int r = queue_job_parse(run->job->definition, &run->rules, err);

    if (r == 0)
        r = json_parse(request->given, strlen(request->given), JSON_DEPTH_MAX, &given,
                       err);
    if (r == 0)
        r = fit_params(run->rules, given, &run->params, err);
    if (r == 0)
        r = canonical_text(run, run->params, &order->params, err);
    if (r == 0)
        r = given_text(run, given, run->params, &order->given, err);
    if (r < 0)
        return r;
    order->identity = order->params;
    order->confirmed = params_has_confirm(run->rules, given);
    run->confirmed = order->confirmed;
    say_go_on(run, request, order);
    return 0;
}

/* Going on means: with the parameters of the first run. */
static int
take_params(struct run *run, const char *text, struct err *err)
{
    scoped(json_drop) json_t *first = NULL;
    json_t *effective = NULL;
    int r = json_parse(text, strlen(text), JSON_DEPTH_MAX, &first, err);

    if (r == 0)
        r = fit_params(run->rules, first, &effective, err);
    if (r < 0)
        return err_prefix(err, "going on with the run that stopped (ask with restart "
                               "false to begin anew)");
    json_decref(run->params);
    run->params = effective;
    return 0;
}

static int
start_execution(struct run *run, const struct request *request, struct err *err)
{
    struct batch_start_order order = {
        .job = run->job_name,
        .one_alive = run->job->duplicates == CONFIG_DUPLICATES_REFUSE,
        .request_id = run->request_id,
        .token = run->token,
        .steps = (int64_t)json_array_size(run->job->steps),
    };
    struct run_patience patience = run_patience(run);
    struct batch_started started = {0};
    int r = read_request(run, request, &order, err);

    if (r < 0)
        return r;
    /* A conflict was tried again by the store already: who asked learns of it. */
    do
        r = batch_start(run->env->store, &order, &run->arena, &started, err);
    while (r != -ERR_DB_CONFLICT && run_wait_after(run, &patience, r, err));
    if (r == BATCH_LOST)
        run_ask(run, RUN_LOST);
    if (r == BATCH_ALIVE)
        return err_set(err, ERR_JOB_ALREADY_RUNNING,
                       "execution %" PRId64 " of this job is still alive; wait for its "
                       "end and ask again",
                       started.alive_execution_id);
    if (r == BATCH_DONE)
        return err_set(err, ERR_ALREADY_FINAL,
                       "the work that it was to go on with is COMPLETED by request "
                       "%" PRId64 " meanwhile; submit the job to do it anew",
                       started.done_request_id);
    if (r != BATCH_OK)
        return r < 0 ? r : 0;
    atomic_store(&run->execution_id, started.execution_id);
    run->instance_id = started.instance_id;
    run->goes_on = started.resumed;
    if (run_wish(run) == RUN_STOP) /* asked before there was an execution */
        run_stopping_record(run);
    if (started.resumed) {
        r = run_check_steps(run, err);
        return r < 0 ? r : take_params(run, started.params, err);
    }
    if (order.one_alive) {
        struct err ignored = {0}; /* the house is kept each hour */

        (void)!parts_drop_before(run->env->store, run->env->results, run->job_name,
                                 run->instance_id, &ignored);
    }
    return 0;
}

static int
load_request(struct run *run, struct request *request, struct err *err)
{
    struct run_patience patience = run_patience(run);
    size_t count = 0;
    int r;

    do
        r = queue_load(run->env->store, run->request_id, run->request_id, &run->arena,
                       request, &count, err);
    while (run_wait_after(run, &patience, r, err));
    if (r == 0 && count != 1)
        r = err_set(err, ERR_NOT_FOUND, "request %" PRId64 " has no row",
                    run->request_id);
    return r;
}

static int
prepare_hand(struct run *run, struct err *err)
{
    int r = run_hand_prepare(run, err);

    run->parent_gone = r == 0;
    return r < 0 ? r : 0;
}

int
run_prepare(struct run *run, enum request_outcome *ret_outcome, struct err *err)
{
    struct request request = {.estimate = -1, .max_calls = -1};
    int r;

    *ret_outcome = OUTCOME_ERROR;
    run->job = config_job_find(run->env->config, run->job_name);
    if (!run->job || !run->job->steps) {
        *ret_outcome = OUTCOME_REFUSED;
        return err_set(err, ERR_JOB_NOT_FOUND,
                       "job %s is not in this worker's configuration any more; put it "
                       "back into pawl.yaml and ask again",
                       run->job_name);
    }
    run->temp_folder =
        arena_printf(&run->arena, "%s/%" PRId64 "-%" PRId64, run->env->temp_folder,
                     run->request_id, run->token.number);
    r = fs_mkdir_private(run->temp_folder, err);
    if (r == 0)
        r = load_request(run, &request, err);
    run->estimate = request.estimate;
    run->max_calls = request.max_calls;
    if (r == 0 && request.source == SOURCE_PARTITION)
        return prepare_hand(run, err);
    if (r == 0)
        r = start_execution(run, &request, err);
    /* A neighbour of the runs' folders: those go when the worker starts. */
    run->files_folder = arena_printf(&run->arena, "%s-kept/%" PRId64,
                                     run->env->temp_folder, run->instance_id);
    if (r == -ERR_JOB_ALREADY_RUNNING || r == -ERR_ALREADY_FINAL || r == -ERR_GONE)
        *ret_outcome = OUTCOME_REFUSED;
    return r;
}
