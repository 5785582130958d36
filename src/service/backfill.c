/*
 * Backfills: what is asked is spread out, each item checked as a submit would check it,
 * and those whose work is done already are passed over: an instance of the job with the
 * very same parameters is COMPLETED. A task has no instances, so none of its items are.
 */
#include "service/service.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/map.h"
#include "base/strs.h"
#include "batch/done.h"
#include "queue/backfill.h"
#include "queue/job.h"
#include "queue/submit.h"
#include "service/catalog.h"
#include "service/spread.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX      ((size_t)1 << 20)
#define REQUESTER_MAX 200
#define LIST_DEFAULT  50

struct ask {
    const struct service *service;
    const struct queue_job *job;
    struct complaint *complaint;
    struct arena arena;
    struct backfill_order order;
    bool again;
    const char **items;      /* texts */
    const char **identities; /* of the same */
    size_t count;
};

static void
ask_release(struct ask *ask)
{
    arena_release(&ask->arena);
}

static int
invalid(const struct ask *ask, struct err *err)
{
    char text[400];

    params_errors_text(&ask->complaint->errors, text, sizeof(text));
    return err_set(err, ERR_INVALID, "%s", text);
}

/* --- the body --- */

static void
read_number(const json_t *body, const char *key, int64_t min, int64_t max,
            int64_t *value, struct params_errors *errors)
{
    const json_t *given = json_object_get(body, key);
    char pointer[32];

    if (!given || json_is_null(given))
        return;
    snprintf(pointer, sizeof(pointer), "/%s", key);
    if (!json_is_integer(given) || json_integer_value(given) < min ||
        json_integer_value(given) > max)
        params_errors_add(errors, pointer,
                          "must be a whole number from %" PRId64 " to %" PRId64, min,
                          max);
    else
        *value = json_integer_value(given);
}

static void
read_words(struct ask *ask, const json_t *body, struct params_errors *errors)
{
    const json_t *on_failure = json_object_get(body, "onFailure");
    const json_t *requester = json_object_get(body, "requester");
    const json_t *again = json_object_get(body, "again");
    const char *word = json_string_value(on_failure);

    if (on_failure && !str_eq(word, "hold") && !str_eq(word, "go-on"))
        params_errors_add(errors, "/onFailure", "must be \"go-on\" or \"hold\"");
    ask->order.hold_on_failure = str_eq(word, "hold");
    if (again && !json_is_boolean(again))
        params_errors_add(errors, "/again", "must be true or false");
    ask->again = json_is_true(again);
    if (requester &&
        (!json_is_string(requester) || json_string_length(requester) == 0 ||
         json_string_length(requester) > REQUESTER_MAX))
        params_errors_add(errors, "/requester", "must be a text of 1 to %d bytes",
                          REQUESTER_MAX);
    else if (requester)
        ask->order.requester = json_string_value(requester);
}

static void
check_members(const json_t *body, struct params_errors *errors)
{
    static const char *const known[] = {"params",   "parallel",  "onFailure",
                                        "priority", "requester", "again"};
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)body, key, value)
    {
        bool found = false;
        char pointer[160];

        for (size_t i = 0; i < array_len(known) && !found; i++)
            found = str_eq(known[i], key);
        snprintf(pointer, sizeof(pointer), "/%.150s", key);
        if (!found)
            params_errors_add(errors, pointer,
                              "is not known here; there are params, parallel, "
                              "onFailure, priority, requester, again");
    }
}

/* --- the items --- */

static const char *
text_of(struct ask *ask, const json_t *json, struct err *err)
{
    scoped(buf_release) struct buf buf = {0};

    buf_init(&buf, TEXT_MAX);
    if (json_canonical(json, &buf, err) < 0)
        return NULL;
    return arena_strndup(&ask->arena, buf_str(&buf), buf.len);
}

/* Faults of the first item that has some are told; the others have them too, mostly. */
static int
add_item(struct ask *ask, const json_t *given, struct err *err)
{
    scoped(json_drop) json_t *effective = NULL;

    if (params_check(ask->job, given, &effective, &ask->complaint->errors) != PARAMS_OK)
        return invalid(ask, err);
    ask->items[ask->count] = text_of(ask, given, err);
    ask->identities[ask->count] = text_of(ask, effective, err);
    if (!ask->items[ask->count] || !ask->identities[ask->count])
        return -(int)err->code;
    ask->count++;
    return 0;
}

static int
spread_out(struct ask *ask, const json_t *params, struct err *err)
{
    scoped(json_drop) json_t *items = NULL;
    const json_t *item;
    size_t i;
    int r = 0;

    if (spread_params(ask->job, params, BACKFILL_ITEMS_MAX, &items,
                      &ask->complaint->errors) != PARAMS_OK)
        return invalid(ask, err);
    ask->items = arena_array(&ask->arena, const char *, json_array_size(items));
    ask->identities = arena_array(&ask->arena, const char *, json_array_size(items));
    json_array_foreach(items, i, item)
    {
        if (r == 0)
            r = add_item(ask, item, err);
    }
    ask->order.given = text_of(ask, params, err);
    return r < 0 || ask->order.given ? r : -(int)err->code;
}

/* --- those that are done --- */

static void
note_done(void *arg, const char *identity)
{
    bool *done = map_get(arg, identity);

    if (done)
        *done = true;
}

/* Leave out what is COMPLETED already. */
static int
pass_over(struct ask *ask, struct err *err)
{
    scoped(map_release) struct map wanted = {0};
    bool *done = arena_array(&ask->arena, bool, ask->count);
    size_t n = 0;
    int r;

    map_init(&wanted, NULL);
    for (size_t i = 0; i < ask->count; i++)
        if (!map_has(&wanted, ask->identities[i]))
            map_put(&wanted, ask->identities[i], &done[i]);
    r = batch_done_identities(ask->service->store, ask->job->name, note_done, &wanted,
                              err);
    for (size_t i = 0; i < ask->count; i++)
        if (!*(const bool *)map_get(&wanted, ask->identities[i]))
            ask->items[n++] = ask->items[i];
    ask->order.passed_over = (int64_t)(ask->count - n);
    ask->count = n;
    return r;
}

static int
prepare(struct ask *ask, const struct caller *caller, const json_t *body,
        struct err *err)
{
    struct params_errors *errors = &ask->complaint->errors;
    const json_t *params = json_object_get(body, "params");
    int64_t priority = ask->job->priority;
    int r;

    ask->order.job = ask->job;
    ask->order.requester = caller->name;
    ask->order.parallel = 1;
    check_members(body, errors);
    if (!json_is_object(params) || json_object_size(params) == 0)
        params_errors_add(errors, "/params",
                          "must be an object; a backfill needs at least one parameter, "
                          "such as a range \"2026-01-01..2026-03-31\"");
    read_number(body, "parallel", 1, BACKFILL_PARALLEL_MAX, &ask->order.parallel,
                errors);
    read_number(body, "priority", QUEUE_PRIORITY_MIN, QUEUE_PRIORITY_MAX, &priority,
                errors);
    read_words(ask, body, errors);
    ask->order.priority = (int)priority;
    if (errors->count > 0)
        return invalid(ask, err);
    r = spread_out(ask, params, err);
    if (r == 0 && !ask->again)
        r = pass_over(ask, err);
    ask->order.items = ask->items;
    ask->order.count = ask->count;
    return r;
}

/* --- answers --- */

static void
put_items(struct json_out *out, const struct backfill *backfill)
{
    json_key(out, "items");
    json_begin_array(out);
    for (size_t i = 0; i < backfill->n_items; i++) {
        const struct backfill_item *item = &backfill->items[i];

        json_begin_object(out);
        json_kv_i64(out, "n", item->n);
        json_kv_raw(out, "params", item->given);
        json_kv_str(out, "state", item->state);
        if (item->request_id)
            json_kv_i64(out, "requestId", item->request_id);
        else
            json_kv_null(out, "requestId");
        json_kv_str(out, "detail", item->detail);
        json_end_object(out);
    }
    json_end_array(out);
}

static void
put_backfill(struct json_out *out, const struct backfill *backfill, bool items)
{
    int64_t ended = backfill->total - backfill->waiting - backfill->open;

    json_begin_object(out);
    json_kv_i64(out, "backfillId", backfill->id);
    json_kv_str(out, "job", backfill->job);
    json_kv_str(out, "state", backfill->state);
    json_kv_str(out, "why", backfill->why);
    json_kv_raw(out, "params", backfill->given);
    json_kv_str(out, "requester", backfill->requester);
    json_kv_i64(out, "parallel", backfill->parallel);
    json_kv_str(out, "onFailure", backfill->hold_on_failure ? "hold" : "go-on");
    json_kv_i64(out, "total", backfill->total);
    json_kv_i64(out, "passedOver", backfill->passed_over);
    json_kv_i64(out, "waiting", backfill->waiting);
    json_kv_i64(out, "open", backfill->open);
    json_kv_i64(out, "completed", backfill->completed);
    json_kv_i64(out, "failed", backfill->failed);
    json_kv_i64(out, "stopped", backfill->stopped);
    json_kv_i64(out, "cancelled", backfill->cancelled);
    json_kv_i64(out, "percent",
                backfill->total > 0 ? 100 * ended / backfill->total : 100);
    json_kv_time_us(out, "createdAt", backfill->created_at_us);
    json_kv_time_us(out, "endedAt", backfill->ended_at_us);
    if (items)
        put_items(out, backfill);
    json_end_object(out);
}

static int
answer_with(const struct service *service, int64_t id, int status,
            struct answer *ret_answer, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    struct backfill backfill = {0};
    struct json_out out;
    int r = queue_backfill_get(service->store, id, &arena, &backfill, err);

    if (r < 0)
        return r;
    ret_answer->status = status;
    json_out_init(&out, &ret_answer->body);
    put_backfill(&out, &backfill, true);
    return 0;
}

int
service_backfill(const struct service *service, const struct caller *caller,
                 const char *job, const json_t *body, struct answer *ret_answer,
                 struct complaint *complaint, struct err *err)
{
    scoped(catalog_putp) struct catalog_state *jobs = catalog_get(service->catalog);
    scoped(ask_release) struct ask ask = {
        .service = service, .job = catalog_job(jobs, job), .complaint = complaint};
    int64_t id = 0;
    int r;

    if (!ask.job)
        return err_set(err, ERR_JOB_NOT_FOUND,
                       "there is no job %.100s; GET /api/v1/jobs lists those there are",
                       job);
    r = prepare(&ask, caller, body, err);
    if (r == 0)
        r = queue_backfill(service->store, &ask.order, &id, err);
    return r < 0 ? r : answer_with(service, id, 202, ret_answer, err);
}

int
service_backfill_show(const struct service *service, int64_t backfill_id,
                      struct answer *ret_answer, struct err *err)
{
    return answer_with(service, backfill_id, 200, ret_answer, err);
}

int
service_backfill_list(const struct service *service, struct answer *ret_answer,
                      struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    struct backfill *list = NULL;
    struct json_out out;
    size_t count = 0;
    int r =
        queue_backfill_list(service->store, LIST_DEFAULT, &arena, &list, &count, err);

    if (r < 0)
        return r;
    ret_answer->status = 200;
    json_out_init(&out, &ret_answer->body);
    json_begin_object(&out);
    json_key(&out, "items");
    json_begin_array(&out);
    for (size_t i = 0; i < count; i++)
        put_backfill(&out, &list[i], false);
    json_end_array(&out);
    json_end_object(&out);
    return 0;
}

int
service_backfill_cancel(const struct service *service, const struct caller *caller,
                        int64_t backfill_id, struct answer *ret_answer, struct err *err)
{
    int r = queue_backfill_cancel(service->store, backfill_id, caller->name, err);

    return r < 0 ? r : answer_with(service, backfill_id, 202, ret_answer, err);
}

int
service_backfill_hold(const struct service *service, const struct caller *caller,
                      const char *name, bool pause, struct answer *ret_answer,
                      struct err *err)
{
    struct json_out out;
    struct err note = {0};
    int64_t id = 0;
    int r;

    if (parse_i64("", name, 1, INT64_MAX, &id, &note) < 0)
        return err_set(err, ERR_INVALID,
                       "%.60s is not the number of a backfill; `pawl backfills` lists "
                       "them",
                       name);
    r = queue_backfill_hold(service->store, id, pause, caller->name, err);
    if (r < 0)
        return r;
    ret_answer->status = 200;
    json_out_init(&out, &ret_answer->body);
    json_begin_object(&out);
    json_kv_i64(&out, "backfill", id);
    json_kv_bool(&out, "paused", pause);
    json_kv_bool(&out, "changed", r == BACKFILL_CHANGED);
    json_end_object(&out);
    return 0;
}
