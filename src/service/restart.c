/*
 * Restart: the work of a request once more, from where it stopped. It is a new request
 * that names the old one; which instance it goes on with is decided when it begins.
 * Here only what can be told beforehand is told: work that is done, or under way, or
 * about to be tried again by itself.
 */
#include "service/service.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "batch/execution.h"
#include "queue/job.h"
#include "queue/later.h"
#include "queue/list.h"
#include "queue/tries.h"
#include "service/bury.h"
#include "service/catalog.h"
#include "service/enter.h"
#include "service/intake.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What there is to restart. */
struct work {
    int64_t request_id; /* whose it is */
    bool goes_on;       /* from where that stopped, not from the beginning */
};

static void
put_answer(struct answer *answer, int64_t restarted, const struct request *request,
           const struct submit_answer *got, bool goes_on)
{
    struct json_out out;

    answer->status = got->reused ? 200 : 202;
    answer->request_id = got->request_id;
    json_out_init(&out, &answer->body);
    json_begin_object(&out);
    json_kv_i64(&out, "requestId", got->request_id);
    json_kv_i64(&out, "restartOf", restarted);
    json_kv_str(&out, "job", request->job);
    json_kv_str(&out, "status", "QUEUED");
    json_kv_str(&out, "lane", got->lane);
    json_kv_bool(&out, "reused", got->reused);
    json_kv_bool(&out, "goesOn", goes_on);
    json_end_object(&out);
}

static int
still_open(const struct service *service, int64_t request_id, const char *status,
           struct err *err)
{
    err_set(err, ERR_JOB_ALREADY_RUNNING,
            "request %" PRId64 " works on it and is %s; wait for its end, or stop or "
            "cancel it, then restart",
            request_id, status);
    snprintf(err->detail, sizeof(err->detail), "%" PRId64, request_id);
    service_tell_silence(service, request_id, err);
    return -(int)err->code;
}

/* Whose work it is: a restart that ended before it began names that of the request
 * that it was to go on with. */
static int
find_work(const struct service *service, const struct request *request,
          struct arena *arena, int64_t *ret_id, struct batch_stand *ret_stand,
          struct err *err)
{
    struct request at = *request;
    int r;

    for (;;) {
        r = batch_stand_of_request(service->store, at.id, ret_stand, err);
        if (r < 0 || ret_stand->instance_id || !at.restart_of)
            break;
        r = queue_get(service->store, at.restart_of, arena, &at, err);
        if (r < 0)
            break;
    }
    *ret_id = at.id;
    return r;
}

/* Is there something left to do? ret_work->goes_on: and something to go on with, as far
 * as can be seen before the run begins. */
static int
check_work(const struct service *service, const struct request *request,
           struct arena *arena, struct work *ret_work, struct err *err)
{
    struct batch_stand stand = {0};
    int r = find_work(service, request, arena, &ret_work->request_id, &stand, err);

    if (r < 0 || !stand.instance_id)
        return r;
    if (execution_state_alive(stand.state))
        return still_open(service, stand.request_id, execution_state_name(stand.state),
                          err);
    if (stand.state == EXECUTION_COMPLETED)
        return err_set(err, ERR_ALREADY_FINAL,
                       "the work of request %" PRId64 " is COMPLETED (by request "
                       "%" PRId64 "); submit the job to do it anew",
                       request->id, stand.request_id);
    ret_work->goes_on = stand.can_go_on;
    return 0;
}

static int
invalid(const struct params_errors *errors, struct err *err)
{
    char text[400];

    params_errors_text(errors, text, sizeof(text));
    return err_set(err, ERR_INVALID,
                   "what was given then does not do now; submit the job instead: %s",
                   text);
}

static int
make_order(const struct service *service, const struct caller *caller,
           const struct queue_job *job, const struct request *request, int64_t work,
           struct arena *arena, struct submit_order *ret_order, struct err *err)
{
    scoped(json_drop) json_t *given = NULL;
    scoped(json_drop) json_t *params = NULL;
    struct params_errors errors = {0};
    struct intake intake = {
        .job = job,
        .requester = request->requester,
        .subject = caller->name,
        .source = caller->source,
        .has_priority = true,
        .priority = request->priority,
        .restart = -1,
    };
    int r =
        json_parse(request->given, strlen(request->given), JSON_DEPTH_MAX, &given, err);

    if (r < 0)
        return r;
    params = params_without_confirm(job, given);
    intake.params = params;
    r = intake_order(service->estimates, &intake, arena, ret_order, &errors, err);
    if (r != INTAKE_OK)
        return r < 0 ? r : invalid(&errors, err);
    ret_order->next = request->next;
    ret_order->restart_of = work;
    return 0;
}

static int
submit_again(const struct service *service, const struct caller *caller,
             const struct request *request, int64_t work, struct arena *arena,
             struct submit_answer *ret_got, struct err *err)
{
    scoped(catalog_putp) struct catalog_state *jobs = catalog_get(service->catalog);
    const struct queue_job *job = catalog_job(jobs, request->job);
    struct enter_act act = {
        .actor = caller->name, .act = "restart", .request_id = request->id};
    struct submit_order order = {0};
    int r;

    if (!job)
        return err_set(err, ERR_JOB_NOT_FOUND, "there is no job %.100s any more",
                       request->job);
    r = make_order(service, caller, job, request, work, arena, &order, err);
    if (r == 0)
        r = service_enter(service, &order, 1, &act, ret_got, NULL, err);
    return r;
}

/* The last try stands for all of them. */
static int
live_try(const struct service *service, int64_t request_id, struct arena *arena,
         struct request *ret_request, struct err *err)
{
    struct request_try *tries = NULL;
    size_t count = 0;
    int r = queue_tries(service->store, request_id, arena, &tries, &count, err);

    if (r < 0)
        return r;
    return queue_get(service->store, tries[count - 1].id, arena, ret_request, err);
}

int
service_restart(const struct service *service, const struct caller *caller,
                int64_t request_id, struct answer *ret_answer, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    struct submit_answer got = {0};
    struct request request = {0};
    struct work work = {0};
    int r = live_try(service, request_id, &arena, &request, err);

    if (r == 0 && request.status == REQUEST_RUNNING &&
        service_bury(service, request.id) == 1)
        r = live_try(service, request_id, &arena, &request, err);
    if (r < 0)
        return r;
    if (request.status == REQUEST_QUEUED && request.retry_of) {
        r = queue_lift(service->store, request.id, err);
        got = (struct submit_answer){.request_id = request.id, .reused = true};
        work.goes_on = true;
        snprintf(got.lane, sizeof(got.lane), "%s", request.lane);
    } else if (!request_status_final(request.status)) {
        r = still_open(service, request.id, request_status_name(request.status), err);
    } else {
        r = check_work(service, &request, &arena, &work, err);
        if (r == 0 && request.outcome == OUTCOME_COMPLETED) /* a task's, too */
            r = err_set(err, ERR_ALREADY_FINAL,
                        "request %" PRId64
                        " is COMPLETED; submit the job to do it anew",
                        request.id);
        if (r == 0)
            r = submit_again(service, caller, &request, work.request_id, &arena, &got,
                             err);
    }
    if (r < 0)
        return r;
    put_answer(ret_answer, request_id, &request, &got, work.goes_on);
    return 0;
}
