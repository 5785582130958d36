/* Jobs with how they stand, workers. */
#include "service/service.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "config/config.h"
#include "liveness/worker_row.h"
#include "queue/definition.h"
#include "queue/job.h"
#include "service/crew.h"

#include <string.h>

static void
put_id(struct json_out *out, const char *key, int64_t id)
{
    if (id)
        json_kv_i64(out, key, id);
    else
        json_kv_null(out, key);
}

static void
put_last(struct json_out *out, const struct job_state *state)
{
    json_key(out, "lastExecution");
    if (!state->last_execution_id) {
        json_put_null(out);
        return;
    }
    json_begin_object(out);
    json_kv_i64(out, "executionId", state->last_execution_id);
    json_kv_i64(out, "instanceId", state->last_instance_id);
    json_kv_str(out, "state", state->last_state);
    json_kv_time_us(out, "startedAt", state->last_started_at_us);
    json_kv_time_us(out, "endedAt", state->last_ended_at_us);
    json_kv_time_us(out, "lastUpdated", state->last_updated_us);
    json_end_object(out);
}

static void
put_keys(struct json_out *out, const struct queue_job *job, const struct crew *crew)
{
    json_key(out, "keys");
    json_begin_array(out);
    for (size_t i = 0; i < job->needs_key_count; i++) {
        json_begin_object(out);
        json_kv_str(out, "name", job->needs_keys[i]);
        json_kv_bool(out, "configured", crew_holds_key(crew, job->needs_keys[i]));
        json_end_object(out);
    }
    json_end_array(out);
}

static int
put_job(struct json_out *out, const struct job_state *state, const struct crew *crew,
        struct err *err)
{
    scoped(queue_job_free_ptr) struct queue_job *job = NULL;
    int r = queue_job_parse(state->definition, &job, err);

    if (r < 0)
        return err_prefix(err, "job %s in the store", state->job);
    json_begin_object(out);
    json_kv_str(out, "job", state->job);
    json_kv_str(out, "title", job->title);
    json_kv_str(out, "description", job->description);
    json_kv_str(out, "kind", job->kind == QUEUE_KIND_TASK ? "task" : "batch");
    json_kv_str(out, "duplicates", queue_duplicates_word(job->duplicates));
    json_kv_str(out, "lane", job->lane);
    json_kv_bool(out, "makesResult", job->makes_result);
    json_kv_value(out, "params", json_object_get(job->definition, "params"));
    put_keys(out, job, crew);
    json_kv_i64(out, "queued", state->queued);
    json_kv_i64(out, "running", state->running);
    json_kv_bool(out, "paused", state->paused_by != NULL);
    json_kv_str(out, "pausedBy", state->paused_by);
    json_kv_time_us(out, "pausedAt", state->paused_at_us);
    put_id(out, "activeRequestId", state->active_request_id);
    put_id(out, "lastRequestId", state->last_request_id);
    put_last(out, state);
    json_end_object(out);
    return 0;
}

int
service_jobs(const struct service *service, struct answer *ret_answer, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    struct job_state *states = NULL;
    struct crew crew = {0};
    struct json_out out;
    size_t count = 0;
    int r = queue_jobs(service->store, &arena, &states, &count, err);

    if (r == 0)
        r = crew_read(service, &arena, &crew, err);
    json_out_init(&out, &ret_answer->body);
    json_begin_object(&out);
    json_key(&out, "items");
    json_begin_array(&out);
    for (size_t i = 0; r == 0 && i < count; i++)
        if (!states[i].withdrawn)
            r = put_job(&out, &states[i], &crew, err);
    if (r < 0)
        return r;
    json_end_array(&out);
    json_end_object(&out);
    ret_answer->status = 200;
    return 0;
}

int
service_job(const struct service *service, const char *job, struct answer *ret_answer,
            struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    struct job_state *states = NULL;
    struct crew crew = {0};
    struct json_out out;
    size_t count = 0;
    int r = queue_jobs(service->store, &arena, &states, &count, err);

    if (r == 0)
        r = crew_read(service, &arena, &crew, err);
    if (r < 0)
        return r;
    json_out_init(&out, &ret_answer->body);
    ret_answer->status = 200;
    for (size_t i = 0; i < count; i++)
        if (strcmp(states[i].job, job) == 0 && !states[i].withdrawn)
            return put_job(&out, &states[i], &crew, err);
    return err_set(err, ERR_JOB_NOT_FOUND,
                   "there is no job %.100s; GET /api/v1/jobs lists those there are",
                   job);
}

/* --- workers --- */

int
service_workers(const struct service *service, struct answer *ret_answer,
                struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    struct worker_row *rows = NULL;
    struct json_out out;
    int64_t now_us = 0;
    size_t count = 0;
    int r = worker_list(service->store, &arena, &rows, &count, &now_us, err);

    if (r < 0)
        return r;
    ret_answer->status = 200;
    json_out_init(&out, &ret_answer->body);
    json_begin_object(&out);
    json_key(&out, "items");
    json_begin_array(&out);
    for (size_t i = 0; i < count; i++) {
        json_begin_object(&out);
        json_kv_str(&out, "worker", rows[i].id);
        json_kv_str(&out, "seat", rows[i].seat);
        json_kv_str(&out, "host", rows[i].host);
        json_kv_i64(&out, "pid", rows[i].pid);
        json_kv_bool(&out, "live",
                     !service->sole_owner && now_us - rows[i].beat_at_us <
                                                 service->config->worker.dead_after_us);
        json_kv_raw(&out, "lanes", rows[i].lanes);
        json_kv_raw(&out, "inUse", rows[i].in_use);
        json_kv_raw(&out, "jobs", rows[i].jobs);
        json_kv_raw(&out, "keys", rows[i].keys);
        json_kv_str(&out, "version", rows[i].version);
        json_kv_time_us(&out, "startedAt", rows[i].started_at_us);
        json_kv_time_us(&out, "beatAt", rows[i].beat_at_us);
        json_end_object(&out);
    }
    json_end_array(&out);
    json_end_object(&out);
    return 0;
}
