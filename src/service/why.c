/*
 * Why is it not running, or not finished? Each reason is a stored fact, named by
 * a stable code, told in a sentence, with what to do where something can be done.
 * The first reason is the one that holds it up; others follow if they hold too.
 */
#include "service/service.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/civil.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "batch/execution.h"
#include "batch/stale.h"
#include "config/config.h"
#include "liveness/worker_row.h"
#include "queue/job.h"
#include "queue/list.h"
#include "queue/pause.h"
#include "queue/tries.h"
#include "queue/why.h"
#include "service/budgets.h"
#include "service/catalog.h"
#include "service/crew.h"

#include <inttypes.h>
#include <string.h>

/* What the live workers can do for one request. */
struct offer {
    int64_t live;
    int64_t serve_lane; /* slots of its lane, on all live workers */
    int64_t know_job;
    int64_t slots_for_it; /* of those that serve the lane and have the job */
    const char *missing_key;
};

static void
reason(struct json_out *out, const char *code, const char *text)
{
    json_begin_object(out);
    json_kv_str(out, "code", code);
    json_kv_str(out, "text", text);
    json_end_object(out);
}

static int64_t
slots_of(const char *json_object_text, const char *lane)
{
    struct err ignored = {0};
    scoped(json_drop) json_t *lanes = NULL;
    int64_t slots = 0;

    if (!json_object_text || json_parse(json_object_text, strlen(json_object_text),
                                        JSON_DEPTH_MAX, &lanes, &ignored) < 0)
        return 0;
    return json_get_i64(lanes, lane, &slots, &ignored) < 0 ? 0 : slots;
}

static const char *
key_nobody_holds(const struct queue_job *job, const struct crew *crew)
{
    for (size_t k = 0; job && k < job->needs_key_count; k++)
        if (!crew_holds_key(crew, job->needs_keys[k]))
            return job->needs_keys[k];
    return NULL;
}

static int
look_at_workers(const struct service *service, const struct request *request,
                struct arena *arena, struct offer *offer, struct err *err)
{
    scoped(catalog_putp) struct catalog_state *jobs = catalog_get(service->catalog);
    struct crew crew = {0};
    const char *key;
    int r = crew_read(service, arena, &crew, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < crew.count; i++) {
        bool knows = crew_list_has(crew.rows[i].jobs, request->job);
        int64_t slots = slots_of(crew.rows[i].lanes, request->lane);

        offer->live++;
        offer->serve_lane += slots;
        offer->know_job += knows;
        offer->slots_for_it += knows ? slots : 0;
    }
    key = key_nobody_holds(catalog_job(jobs, request->job), &crew);
    offer->missing_key = key ? arena_strdup(arena, key) : NULL;
    return 0;
}

static void
put_worker_reasons(struct json_out *out, const struct request *request,
                   const struct offer *offer, struct arena *arena)
{
    if (offer->live == 0)
        reason(out, "NO_WORKER",
               "No worker is alive; start one with `pawl worker` or `pawl serve`.");
    else if (offer->missing_key)
        reason(out, "KEY_MISSING",
               arena_printf(arena,
                            "No live worker holds the key %s, which the job needs; set "
                            "it in the environment of a worker.",
                            offer->missing_key));
    else if (offer->know_job == 0)
        reason(out, "JOB_UNKNOWN",
               arena_printf(arena,
                            "No live worker has the job %s in its configuration; give "
                            "it to one.",
                            request->job));
    else if (offer->serve_lane == 0)
        reason(out, "LANE_UNSERVED",
               arena_printf(arena,
                            "No live worker has slots in the lane %s; give it some in "
                            "`lanes:`.",
                            request->lane));
    else if (offer->slots_for_it == 0)
        reason(out, "JOB_NOT_IN_LANE",
               arena_printf(arena,
                            "No live worker that has the job %s serves the lane %s.",
                            request->job, request->lane));
}

static void
put_holders(struct json_out *out, const struct why_lane *lane)
{
    json_key(out, "holders");
    json_begin_array(out);
    for (size_t i = 0; i < lane->n_holders; i++) {
        json_begin_object(out);
        json_kv_i64(out, "requestId", lane->holders[i].first_id);
        json_kv_i64(out, "lastRequestId", lane->holders[i].last_id);
        json_kv_str(out, "job", lane->holders[i].job);
        json_kv_str(out, "worker", lane->holders[i].worker);
        json_end_object(out);
    }
    json_end_array(out);
}

static void
put_lane_full(struct json_out *out, const struct request *request,
              const struct offer *offer, const struct why_lane *lane,
              struct arena *arena)
{
    bool full = offer->slots_for_it > 0 && lane->running >= offer->serve_lane;

    if (!full && lane->ahead <= 0)
        return;
    json_begin_object(out);
    json_kv_str(out, "code", full ? "LANE_FULL" : "IN_LINE");
    json_kv_str(out, "text",
                arena_printf(arena,
                             "%" PRId64 " of %" PRId64
                             " slots of the lane %s are in use; %" PRId64
                             " requests are before this one.",
                             lane->running, offer->serve_lane, request->lane,
                             lane->ahead));
    json_kv_i64(out, "slots", offer->serve_lane);
    json_kv_i64(out, "running", lane->running);
    json_kv_i64(out, "ahead", lane->ahead);
    put_holders(out, lane);
    json_end_object(out);
}

/* It would begin, and stop at its first call. */
static int
put_budget(const struct service *service, struct json_out *out,
           const struct request *request, struct arena *arena, struct err *err)
{
    scoped(catalog_putp) struct catalog_state *jobs = catalog_get(service->catalog);
    const struct queue_job *job = catalog_job(jobs, request->job);
    char until[CIVIL_TEXT_SIZE];
    int64_t until_us = 0;
    int r = job && job->calls_budget
                ? budget_spent_until(service, job->calls_budget, &until_us, err)
                : 0;

    if (r < 0 || until_us == 0)
        return r;
    civil_format_us(until_us, 0, until);
    json_begin_object(out);
    json_kv_str(out, "code", "BUDGET_SPENT");
    json_kv_str(out, "text",
                arena_printf(arena,
                             "No call of the budget %s is left until %s: begun before, "
                             "it stops at its first.",
                             job->calls_budget, until));
    json_kv_str(out, "budget", job->calls_budget);
    json_kv_time_us(out, "until", until_us);
    json_end_object(out);
    return 0;
}

static int
put_ready_reasons(const struct service *service, struct json_out *out,
                  const struct request *request, struct arena *arena, struct err *err)
{
    struct why_lane lane = {0};
    struct offer offer = {0};
    int r = look_at_workers(service, request, arena, &offer, err);

    if (r == 0)
        r = queue_why_lane(service->store, request->id, request->lane, arena, &lane,
                           err);
    if (r < 0)
        return r;
    put_worker_reasons(out, request, &offer, arena);
    put_lane_full(out, request, &offer, &lane, arena);
    return put_budget(service, out, request, arena, err);
}

/* "requests 1, 2 and 3 are"; several: there are more than are told. */
static const char *
waits_text(const int64_t *ids, size_t count, bool several, struct arena *arena)
{
    scoped(buf_release) struct buf text = {0};

    buf_init(&text, 0);
    buf_addf(&text, "request%s ", count == 1 ? "" : "s");
    for (size_t i = 0; i < count; i++) {
        bool last = i + 1 == count && !several;

        buf_addf(&text, "%s%" PRId64, i == 0 ? "" : last ? " and " : ", ", ids[i]);
    }
    buf_addf(&text, "%s %s", several ? " and others" : "", count == 1 ? "is" : "are");
    return arena_strdup(arena, buf_str(&text));
}

static int
put_waits(const struct service *service, struct json_out *out,
          const struct request *request, struct arena *arena, struct err *err)
{
    int64_t ids[WHY_WAITS_MAX];
    size_t count = 0;
    size_t shown;
    int r = queue_why_waits(service->store, request->id, ids, &count, err);

    if (r < 0)
        return r;
    shown = count < WHY_WAITS_MAX ? count : WHY_WAITS_MAX - 1;
    json_begin_object(out);
    json_kv_str(out, "code", "WAITS_FOR_OTHERS");
    json_kv_str(out, "text",
                shown == 0
                    ? "What it waited for has ended this moment; it follows by itself."
                    : arena_printf(arena, "It waits until %s COMPLETED.",
                                   waits_text(ids, shown, count > shown, arena)));
    json_key(out, "requests");
    json_begin_array(out);
    for (size_t i = 0; i < shown; i++)
        json_put_i64(out, ids[i]);
    json_end_array(out);
    json_end_object(out);
    return 0;
}

static int
put_later_reason(const struct service *service, struct json_out *out,
                 const struct request *request, struct arena *arena, struct err *err)
{
    const char *why = request->later_reason ? request->later_reason : "time";
    char when[CIVIL_TEXT_SIZE] = "";

    if (request->not_before_us)
        civil_format_us(request->not_before_us, 0, when);
    if (strcmp(why, "time") == 0 && request->retry_of)
        reason(out, "RETRY_AT",
               arena_printf(arena, "It is try %d of request %" PRId64 ", due at %s.",
                            request->attempt, request->first_try, when));
    else if (strcmp(why, "time") == 0)
        reason(out, "NOT_BEFORE",
               arena_printf(arena, "It was asked for not before %s.", when));
    else if (strcmp(why, "after") == 0)
        return put_waits(service, out, request, arena, err);
    else
        reason(
            out, "KEY_BUSY",
            "Another submit of the same job is being decided; it follows by itself.");
    return 0;
}

static int
put_pauses(const struct service *service, struct json_out *out,
           const struct request *request, struct arena *arena, struct err *err)
{
    struct pause pauses[PAUSE_KIND_COUNT];
    size_t count = 0;
    int r = queue_pauses_of(service->store, request->job, request->lane, arena, pauses,
                            &count, err);

    for (size_t i = 0; r == 0 && i < count; i++) {
        const char *kind = pause_kind_name(pauses[i].kind);
        char since[CIVIL_TEXT_SIZE];

        civil_format_us(pauses[i].at_us, 0, since);
        json_begin_object(out);
        json_kv_str(out, "code", "PAUSED");
        json_kv_str(out, "text",
                    arena_printf(arena,
                                 "The %s %s is paused by %s since %s; `pawl resume %s "
                                 "%s` lets it go on.",
                                 kind, pauses[i].name, pauses[i].by, since, kind,
                                 pauses[i].name));
        json_kv_str(out, kind, pauses[i].name);
        json_kv_str(out, "pausedBy", pauses[i].by);
        json_kv_time_us(out, "pausedAt", pauses[i].at_us);
        json_end_object(out);
    }
    return r;
}

/* Does the worker live, and if not, is there one that sees to it? */
static int
put_silence(const struct service *service, struct json_out *out,
            const struct request *request, struct arena *arena, struct err *err)
{
    struct batch_holder holder = {0};
    struct crew crew = {0};
    int r = batch_holder_of_request(service->store, request->id, &holder, err);

    /* Without a row it was declared dead, and is about to find out. */
    if (r <= 0 || holder.silence_us < service->config->worker.dead_after_us)
        return r < 0 ? r : 0;
    r = crew_read(service, arena, &crew, err);
    if (r == 0)
        reason(out, "WORKER_SILENT",
               arena_printf(
                   arena, "No beat of that worker has arrived for %" PRId64 " s; %s",
                   holder.silence_us / US_PER_S,
                   crew_has_judge(&crew) ? "a live worker closes the request."
                                         : "start a worker: it closes the request."));
    return r;
}

static int
put_running_reason(const struct service *service, struct json_out *out,
                   const struct request *request, struct arena *arena, struct err *err)
{
    if (service->sole_owner)
        reason(out, "WORKER_GONE",
               arena_printf(arena,
                            "Its worker %s is gone: nobody has this store open. Start "
                            "`pawl serve`: it closes the request, and goes on with its "
                            "work as the job says.",
                            request->worker));
    else
        reason(out, "RUNNING",
               arena_printf(arena, "It runs on worker %s.", request->worker));
    if (request->cancel_asked)
        reason(out, "CANCEL_ASKED", "A cancel was asked: it ends at its next chunk.");
    else if (request->stop_asked)
        reason(out, "STOP_ASKED", "A stop was asked: it ends at its next chunk.");
    return service->sole_owner ? 0 : put_silence(service, out, request, arena, err);
}

/* 1: it was tried again, and the last try is told. */
static int
put_next_try(const struct service *service, struct json_out *out,
             const struct request *request, struct arena *arena, struct err *err)
{
    struct request_try *tries = NULL;
    struct request last = {0};
    char due[CIVIL_TEXT_SIZE] = "";
    size_t count = 0;
    int r = queue_tries(service->store, request->id, arena, &tries, &count, err);

    if (r < 0 || count == 0 || tries[count - 1].id <= request->id)
        return r < 0 ? r : 0;
    r = queue_get(service->store, tries[count - 1].id, arena, &last, err);
    if (r < 0)
        return r;
    if (last.place == PLACE_LATER && last.not_before_us)
        civil_format_us(last.not_before_us, 0, due);
    json_begin_object(out);
    json_kv_str(out, "code", "TRIED_AGAIN");
    json_kv_str(out, "text",
                arena_printf(arena, "Request %" PRId64 " is its try %d: %s%s%s.",
                             last.id, last.attempt,
                             last.place == PLACE_OUTCOME
                                 ? request_outcome_name(last.outcome)
                                 : request_status_name(last.status),
                             due[0] ? ", due at " : "", due));
    json_kv_i64(out, "requestId", last.id);
    json_end_object(out);
    return 1;
}

/* What became of its work since, or that it can be gone on with. */
static int
put_restart_reason(const struct service *service, struct json_out *out,
                   const struct request *request, struct arena *arena, struct err *err)
{
    struct batch_stand stand = {0};
    int r;

    if (request->outcome == OUTCOME_COMPLETED || !request->execution_id)
        return 0;
    r = batch_stand_of_request(service->store, request->id, &stand, err);
    if (r < 0)
        return r;
    if (stand.can_go_on)
        reason(out, "CAN_GO_ON",
               arena_printf(arena,
                            "`pawl restart %" PRId64
                            "` goes on after the last committed chunk.",
                            request->id));
    else if (stand.request_id && stand.request_id != request->id)
        reason(out, "GONE_ON_WITH",
               arena_printf(arena,
                            "Request %" PRId64 " went on with its work and is %s.",
                            stand.request_id, execution_state_name(stand.state)));
    return 0;
}

int
service_why(const struct service *service, int64_t request_id,
            struct answer *ret_answer, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    struct request request = {0};
    struct json_out out;
    int r = queue_get(service->store, request_id, &arena, &request, err);

    if (r < 0)
        return r;
    ret_answer->status = 200;
    ret_answer->request_id = request_id;
    json_out_init(&out, &ret_answer->body);
    json_begin_object(&out);
    json_kv_i64(&out, "requestId", request_id);
    json_kv_str(&out, "status", request_status_name(request.status));
    json_key(&out, "reasons");
    json_begin_array(&out);
    switch (request.place) {
    case PLACE_LATER:
        r = put_later_reason(service, &out, &request, &arena, err);
        if (r == 0)
            r = put_pauses(service, &out, &request, &arena, err);
        break;
    case PLACE_READY:
        r = put_pauses(service, &out, &request, &arena, err);
        if (r == 0)
            r = put_ready_reasons(service, &out, &request, &arena, err);
        break;
    case PLACE_CLAIM:
        r = put_running_reason(service, &out, &request, &arena, err);
        break;
    case PLACE_OUTCOME:
    case PLACE_COUNT:
        reason(&out, request_outcome_name(request.outcome),
               request.detail ? request.detail : "It is done.");
        r = put_next_try(service, &out, &request, &arena, err);
        if (r == 0)
            r = put_restart_reason(service, &out, &request, &arena, err);
        break;
    }
    json_end_array(&out);
    json_end_object(&out);
    return r < 0 ? r : 0;
}
