/*
 * Taking requests in: the body is checked as a whole (unknown members are
 * errors, every wrong one is listed), turned into orders, and given to the queue.
 */
#include "service/service.h"

#include "base/arena.h"
#include "base/civil.h"
#include "base/err.h"
#include "base/json.h"
#include "base/strs.h"
#include "config/config.h"
#include "queue/chain.h"
#include "queue/job.h"
#include "queue/list.h"
#include "queue/submit.h"
#include "service/budgets.h"
#include "service/catalog.h"
#include "service/enter.h"
#include "service/intake.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NEXT_MAX            100 /* links of a chain */
#define REQUESTER_MAX       200
#define IDEMPOTENCY_KEY_MAX 255

static const char *const members[] = {"params",    "requester", "priority",
                                      "notBefore", "expiresAt", "next",
                                      "after",     "restart",   "maxCalls"};
static const char *const bulk_members[] = {
    "params", "requester", "priority", "notBefore", "expiresAt",     "next",
    "after",  "restart",   "maxCalls", "job",       "idempotencyKey"};

/* --- reading the body --- */

static void
check_members(const json_t *body, const char *const *known, size_t n_known,
              struct params_errors *errors)
{
    const char *key;
    json_t *value;
    char pointer[160];

    json_object_foreach((json_t *)(uintptr_t)body, key, value)
    {
        bool found = false;

        for (size_t i = 0; i < n_known && !found; i++)
            found = strcmp(known[i], key) == 0;
        if (found)
            continue;
        snprintf(pointer, sizeof(pointer), "/%.150s", key);
        if (str_nearest(key, known, n_known))
            params_errors_add(errors, pointer, "is not known here; did you mean %s?",
                              str_nearest(key, known, n_known));
        else
            params_errors_add(errors, pointer, "is not known here; leave it out");
    }
}

static void
read_time(const json_t *body, const char *key, int64_t *ret_us,
          struct params_errors *errors)
{
    const json_t *value = json_object_get(body, key);
    char pointer[32];

    snprintf(pointer, sizeof(pointer), "/%s", key);
    if (!value || json_is_null(value))
        return;
    if (!json_is_string(value) ||
        !civil_parse_time(json_string_value(value), json_string_length(value), ret_us))
        params_errors_add(errors, pointer,
                          "must be a time with zone such as 2026-11-29T20:00:00Z");
}

static void
read_i64(const json_t *body, const char *key, bool *ret_has, int64_t *ret,
         struct params_errors *errors)
{
    const json_t *value = json_object_get(body, key);
    char pointer[32];

    snprintf(pointer, sizeof(pointer), "/%s", key);
    if (!value || json_is_null(value))
        return;
    if (!json_is_integer(value)) {
        params_errors_add(errors, pointer, "must be a whole number");
        return;
    }
    *ret_has = true;
    *ret = json_integer_value(value);
}

static void
read_requester(const json_t *body, const struct caller *caller, const char **ret,
               struct params_errors *errors)
{
    const json_t *value = json_object_get(body, "requester");

    *ret = caller->name;
    if (!value || json_is_null(value))
        return;
    if (!json_is_string(value) || json_string_length(value) == 0 ||
        json_string_length(value) > REQUESTER_MAX)
        params_errors_add(errors, "/requester", "must be a text of 1 to %d bytes",
                          REQUESTER_MAX);
    else
        *ret = json_string_value(value);
}

/* The mapped parameters of an entry: names of its job, and values of the one before. */
static void
check_mapping(const json_t *params, const struct queue_job *job,
              const struct queue_job *before, const char *pointer,
              struct params_errors *errors)
{
    char source[CHAIN_NAME_SIZE];
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)params, name, value)
    {
        char at[160];

        snprintf(at, sizeof(at), "%s/params/%.60s", pointer, name);
        if (!queue_job_param(job, name))
            params_errors_add(errors, at, "is not a parameter of job %s", job->name);
        else if (chain_value_param(value, source, sizeof(source)) &&
                 !queue_job_param(before, source))
            params_errors_add(errors, at,
                              "job %s, which comes before, has no parameter %s",
                              before->name, source);
    }
}

static const struct queue_job *
check_entry(const json_t *entry, const struct catalog_state *jobs,
            const struct queue_job *before, const char *pointer,
            struct params_errors *errors)
{
    const json_t *params = json_object_get(entry, "params");
    const char *name = chain_entry_job(entry);
    const struct queue_job *job = name ? catalog_job(jobs, name) : NULL;

    if (!job) {
        params_errors_add(errors, pointer, "is not the name of a job here");
        return NULL;
    }
    if (!json_is_object(entry))
        return job;
    if ((params && !json_is_object(params)) ||
        json_object_size(entry) != (params ? 2u : 1u))
        params_errors_add(errors, pointer,
                          "must be the name of a job, or {job, params}");
    else if (before)
        check_mapping(params, job, before, pointer, errors);
    return job;
}

static void
read_next(const json_t *body, const struct catalog_state *jobs,
          const struct queue_job *before, const json_t **ret,
          struct params_errors *errors)
{
    const json_t *value = json_object_get(body, "next");
    const json_t *entry;
    size_t i;

    if (!value || json_is_null(value))
        return;
    *ret = value;
    if (!json_is_array(value) || json_array_size(value) > NEXT_MAX) {
        params_errors_add(errors, "/next", "must be a list of at most %d jobs",
                          NEXT_MAX);
        return;
    }
    json_array_foreach(value, i, entry)
    {
        char pointer[32];

        snprintf(pointer, sizeof(pointer), "/next/%zu", i);
        before = check_entry(entry, jobs, before, pointer, errors);
    }
}

static void
read_after(const json_t *body, struct arena *arena, struct intake *intake,
           struct params_errors *errors)
{
    const json_t *value = json_object_get(body, "after");
    size_t count = json_array_size(value);
    int64_t *after;

    if (!value || json_is_null(value))
        return;
    if (!json_is_array(value) || count > QUEUE_AFTER_MAX) {
        params_errors_add(errors, "/after",
                          "must be a list of at most %d numbers of requests",
                          QUEUE_AFTER_MAX);
        return;
    }
    after = arena_array(arena, int64_t, count + 1);
    for (size_t i = 0; i < count; i++) {
        const json_t *id = json_array_get(value, i);
        char pointer[32];

        after[i] = json_integer_value(id);
        if (json_is_integer(id) && after[i] > 0)
            continue;
        snprintf(pointer, sizeof(pointer), "/after/%zu", i);
        params_errors_add(errors, pointer, "must be the number of a request");
    }
    intake->after = after;
    intake->n_after = count;
}

static void
read_restart(const json_t *body, int *ret, struct params_errors *errors)
{
    const json_t *value = json_object_get(body, "restart");

    *ret = -1;
    if (!value || json_is_null(value))
        return;
    if (!json_is_boolean(value))
        params_errors_add(errors, "/restart", "must be true or false");
    else
        *ret = json_is_true(value);
}

static void
read_body(const json_t *body, const struct caller *caller,
          const struct catalog_state *jobs, struct arena *arena, struct intake *intake,
          struct params_errors *errors)
{
    intake->params = json_object_get(body, "params");
    intake->subject = caller->name;
    intake->source = caller->source;
    if (intake->params && !json_is_object(intake->params))
        params_errors_add(errors, "/params", "must be an object");
    read_requester(body, caller, &intake->requester, errors);
    read_i64(body, "priority", &intake->has_priority, &intake->priority, errors);
    read_i64(body, "maxCalls", &intake->has_max_calls, &intake->max_calls, errors);
    read_time(body, "notBefore", &intake->not_before_us, errors);
    read_time(body, "expiresAt", &intake->expires_at_us, errors);
    read_next(body, jobs, intake->job, &intake->next, errors);
    read_after(body, arena, intake, errors);
    read_restart(body, &intake->restart, errors);
}

static int
find_job(const struct catalog_state *jobs, const char *name,
         const struct queue_job **ret_job, struct err *err)
{
    *ret_job = catalog_job(jobs, name);
    if (!*ret_job)
        return err_set(err, ERR_JOB_NOT_FOUND,
                       "there is no job %.100s; GET /api/v1/jobs lists those there are",
                       name);
    return 0;
}

static int
invalid(const struct params_errors *errors, struct err *err)
{
    char text[400];

    params_errors_text(errors, text, sizeof(text));
    return err_set(err, ERR_INVALID, "%s", text);
}

static int
check_key(const char *key, struct err *err)
{
    if (key && (!key[0] || strlen(key) > IDEMPOTENCY_KEY_MAX))
        return err_set(err, ERR_INVALID, "an Idempotency-Key has 1 to %d bytes",
                       IDEMPOTENCY_KEY_MAX);
    return 0;
}

static int
make_order(const struct service *service, struct intake *intake, struct arena *arena,
           struct submit_order *order, struct complaint *complaint, struct err *err)
{
    int r;

    if (complaint->errors.count > 0)
        return invalid(&complaint->errors, err);
    r = intake_order(service->estimates, intake, arena, order, &complaint->errors, err);
    if (r == INTAKE_INVALID)
        return invalid(&complaint->errors, err);
    return r;
}

/* --- answering --- */

/* A new or a reused one is QUEUED; what an idempotency key leads to may be over. */
static int
status_of(const struct service *service, const struct submit_answer *got,
          enum request_status *ret_status, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    struct request request = {0};
    int r = 0;

    *ret_status = REQUEST_QUEUED;
    if (got->how != SUBMIT_REPLAYED)
        return 0;
    r = queue_get(service->store, got->request_id, &arena, &request, err);
    if (r == 0)
        *ret_status = request.status;
    return r;
}

static void
put_answer(struct json_out *out, const struct submit_order *order,
           const struct submit_answer *got, enum request_status status,
           const struct forecast *forecast)
{
    json_begin_object(out);
    json_kv_i64(out, "requestId", got->request_id);
    json_kv_str(out, "job", order->job->name);
    json_kv_str(out, "status", request_status_name(status));
    json_kv_str(out, "lane", got->lane);
    if (order->has_estimate)
        json_kv_i64(out, "estimate", order->estimate);
    else
        json_kv_null(out, "estimate");
    forecast_put(out, forecast);
    json_kv_bool(out, "reused", got->reused);
    json_end_object(out);
}

int
service_submit(const struct service *service, const struct caller *caller,
               const char *job, const json_t *body, const char *idempotency_key,
               const char *digest, struct answer *ret_answer,
               struct complaint *complaint, struct err *err)
{
    scoped(catalog_putp) struct catalog_state *jobs = catalog_get(service->catalog);
    scoped(arena_release) struct arena arena = {0};
    struct intake intake = {.idempotency_key = idempotency_key, .body_digest = digest};
    struct submit_order order = {0};
    struct submit_answer got = {0};
    struct forecast forecast = {0};
    enum request_status status = REQUEST_QUEUED;
    struct json_out out;
    int r;

    r = find_job(jobs, job, &intake.job, err);
    if (r == 0)
        r = check_key(idempotency_key, err);
    if (r < 0)
        return r;
    check_members(body, members, array_len(members), &complaint->errors);
    read_body(body, caller, jobs, &arena, &intake, &complaint->errors);
    r = make_order(service, &intake, &arena, &order, complaint, err);
    if (r == 0)
        r = forecast_calls(service, &order, &forecast, err);
    if (r == 0)
        r = service_enter(service, &order, 1, NULL, &got, NULL, err);
    if (r == 0)
        r = status_of(service, &got, &status, err);
    if (r < 0)
        return r;
    ret_answer->status = got.reused ? 200 : 202;
    ret_answer->request_id = got.request_id;
    json_out_init(&out, &ret_answer->body);
    put_answer(&out, &order, &got, status, &forecast);
    return 0;
}

/* --- many --- */

static int
order_of_item(const struct service *service, const struct caller *caller,
              const struct catalog_state *jobs, const json_t *item, struct arena *arena,
              struct submit_order *order, struct complaint *complaint, struct err *err)
{
    struct intake intake = {0};
    const char *name = NULL;
    int r;

    if (!json_is_object(item))
        return err_set(err, ERR_INVALID, "each request must be an object");
    check_members(item, bulk_members, array_len(bulk_members), &complaint->errors);
    r = json_get_str(item, "job", &name, err);
    if (r == JSON_ABSENT)
        return err_set(err, ERR_INVALID, "each request needs a `job`");
    if (r == 0)
        r = find_job(jobs, name, &intake.job, err);
    if (r == 0)
        r = json_get_str(item, "idempotencyKey", &intake.idempotency_key, err);
    if (r >= 0)
        r = check_key(intake.idempotency_key, err);
    if (r < 0)
        return r;
    read_body(item, caller, jobs, arena, &intake, &complaint->errors);
    if (intake.idempotency_key)
        intake.body_digest = intake_digest(item, arena);
    return make_order(service, &intake, arena, order, complaint, err);
}

static int
orders_of_body(const struct service *service, const struct caller *caller,
               const struct catalog_state *jobs, const json_t *body,
               struct arena *arena, struct submit_order **ret_orders, size_t *ret_count,
               struct complaint *complaint, struct err *err)
{
    const json_t *list = json_object_get(body, "requests");
    size_t count = json_array_size(list);
    struct submit_order *orders;

    if (!json_is_array(list) || count == 0 ||
        count > (size_t)service->config->api.max_bulk)
        return err_set(err, ERR_INVALID,
                       "the body must be {\"requests\": [...]} with 1 to %" PRId64
                       " of them",
                       service->config->api.max_bulk);
    orders = arena_array(arena, struct submit_order, count);
    for (size_t i = 0; i < count; i++) {
        complaint->index = i;
        complaint->has_index = true;
        if (order_of_item(service, caller, jobs, json_array_get(list, i), arena,
                          &orders[i], complaint, err) < 0)
            return err_prefix(err, "requests/%zu", i);
    }
    complaint->has_index = false;
    *ret_orders = orders;
    *ret_count = count;
    return 0;
}

int
service_submit_many(const struct service *service, const struct caller *caller,
                    const json_t *body, struct answer *ret_answer,
                    struct complaint *complaint, struct err *err)
{
    scoped(catalog_putp) struct catalog_state *jobs = catalog_get(service->catalog);
    scoped(arena_release) struct arena arena = {0};
    const struct forecast no_forecast = {0}; /* one by one they would not add up */
    struct submit_order *orders = NULL;
    struct submit_answer *got;
    struct json_out out;
    size_t refused = 0;
    size_t count = 0;
    int r;

    r = orders_of_body(service, caller, jobs, body, &arena, &orders, &count, complaint,
                       err);
    if (r < 0)
        return r;
    got = arena_array(&arena, struct submit_answer, count);
    r = service_enter(service, orders, count, NULL, got, &refused, err);
    if (r < 0) {
        complaint->has_index = refused < count;
        complaint->index = refused;
        return complaint->has_index ? err_prefix(err, "requests/%zu", refused) : r;
    }
    ret_answer->status = 202;
    json_out_init(&out, &ret_answer->body);
    json_begin_object(&out);
    json_key(&out, "requests");
    json_begin_array(&out);
    for (size_t i = 0; i < count && r == 0; i++) {
        enum request_status status = REQUEST_QUEUED;

        r = status_of(service, &got[i], &status, err);
        if (r == 0)
            put_answer(&out, &orders[i], &got[i], status, &no_forecast);
    }
    json_end_array(&out);
    json_end_object(&out);
    return r;
}
