/* Jobs and lanes held back, and the lanes with how they stand. */
#include "service/service.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/strs.h"
#include "config/config.h"
#include "liveness/worker_row.h"
#include "queue/list.h"
#include "queue/pause.h"
#include "service/catalog.h"

/* A lane as it is known from anywhere: the file, a worker, what is queued. */
struct lane {
    const char *name;
    int64_t slots; /* of live workers */
    struct lane_count count;
};

struct lanes {
    struct arena *arena;
    struct lane *list;
    size_t count;
    size_t room;
};

static struct lane *
lane_of(struct lanes *lanes, const char *name)
{
    for (size_t i = 0; i < lanes->count; i++)
        if (str_eq(lanes->list[i].name, name))
            return &lanes->list[i];
    if (lanes->count == lanes->room) {
        size_t room = lanes->room ? lanes->room * 2 : 16;
        struct lane *wider = arena_array(lanes->arena, struct lane, room);

        if (lanes->count > 0)
            memcpy(wider, lanes->list, lanes->count * sizeof(*wider));
        lanes->list = wider;
        lanes->room = room;
    }
    lanes->list[lanes->count] = (struct lane){.name = arena_strdup(lanes->arena, name)};
    return &lanes->list[lanes->count++];
}

static void
add_worker(struct lanes *lanes, const struct worker_row *row, bool live)
{
    struct err ignored = {0};
    scoped(json_drop) json_t *slots = NULL;
    const char *name;
    json_t *value;

    if (json_parse(row->lanes, strlen(row->lanes), JSON_DEPTH_MAX, &slots, &ignored) <
        0)
        return;
    json_object_foreach(slots, name, value) lane_of(lanes, name)->slots +=
        live ? json_integer_value(value) : 0;
}

static int
collect(const struct service *service, struct lanes *lanes, struct err *err)
{
    const struct config *config = service->config;
    struct worker_row *rows = NULL;
    struct lane_count *counts = NULL;
    size_t n_rows = 0;
    size_t n_counts = 0;
    int64_t now_us = 0;
    int r = queue_count_lanes(service->store, lanes->arena, &counts, &n_counts, err);

    if (r == 0)
        r = worker_list(service->store, lanes->arena, &rows, &n_rows, &now_us, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < config->lane_count; i++)
        lane_of(lanes, config->lanes[i].name);
    for (size_t i = 0; i < n_rows; i++)
        add_worker(lanes, &rows[i],
                   now_us - rows[i].beat_at_us < config->worker.dead_after_us);
    for (size_t i = 0; i < n_counts; i++)
        lane_of(lanes, counts[i].lane)->count = counts[i];
    return 0;
}

static void
put_lane(struct json_out *out, const struct lane *lane)
{
    json_begin_object(out);
    json_kv_str(out, "lane", lane->name);
    json_kv_i64(out, "slots", lane->slots);
    json_kv_i64(out, "running", lane->count.running);
    json_kv_i64(out, "ready", lane->count.ready);
    json_kv_i64(out, "later", lane->count.later);
    json_kv_time_us(out, "oldestReady", lane->count.oldest_ready_us);
    json_kv_bool(out, "paused", lane->count.paused_by != NULL);
    json_kv_str(out, "pausedBy", lane->count.paused_by);
    json_kv_time_us(out, "pausedAt", lane->count.paused_at_us);
    json_end_object(out);
}

int
service_lanes(const struct service *service, struct answer *ret_answer, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    struct lanes lanes = {.arena = &arena};
    struct json_out out;
    int r = collect(service, &lanes, err);

    if (r < 0)
        return r;
    json_out_init(&out, &ret_answer->body);
    json_begin_object(&out);
    json_key(&out, "items");
    json_begin_array(&out);
    for (size_t i = 0; i < lanes.count; i++)
        put_lane(&out, &lanes.list[i]);
    json_end_array(&out);
    json_end_object(&out);
    ret_answer->status = 200;
    return 0;
}

/* A typing mistake must not look like a pause. */
static int
must_be_known(const struct service *service, enum pause_kind kind, const char *name,
              struct err *err)
{
    scoped(catalog_putp) struct catalog_state *jobs = catalog_get(service->catalog);
    scoped(arena_release) struct arena arena = {0};
    struct lanes lanes = {.arena = &arena};
    size_t known;
    int r;

    if (kind == PAUSE_JOB && !catalog_job(jobs, name))
        return err_set(err, ERR_JOB_NOT_FOUND,
                       "there is no job %.100s; `pawl jobs` lists those there are",
                       name);
    if (kind == PAUSE_JOB)
        return 0;
    r = collect(service, &lanes, err);
    if (r < 0)
        return r;
    known = lanes.count;
    lane_of(&lanes, name);
    if (lanes.count > known)
        return err_set(err, ERR_NOT_FOUND,
                       "there is no lane %.100s; `pawl lanes` lists those there are",
                       name);
    return 0;
}

int
service_hold(const struct service *service, const struct caller *caller,
             const char *kind, const char *name, bool pause, struct answer *ret_answer,
             struct err *err)
{
    enum pause_kind what = str_eq(kind, "lane") ? PAUSE_LANE : PAUSE_JOB;
    struct json_out out;
    int r = 0;

    if (str_eq(kind, "schedule"))
        return service_schedule_pause(service, caller, name, pause, ret_answer, err);
    if (str_eq(kind, "backfill"))
        return service_backfill_hold(service, caller, name, pause, ret_answer, err);
    if (pause && what == PAUSE_LANE)
        r = must_be_known(service, what, name, err);
    if (r == 0)
        r = pause ? queue_pause(service->store, what, name, caller->name, err)
                  : queue_resume(service->store, what, name, caller->name, err);
    if (r == PAUSE_AS_IT_WAS && !pause && must_be_known(service, what, name, err) < 0)
        return -(int)err->code;
    if (r < 0)
        return r;
    json_out_init(&out, &ret_answer->body);
    json_begin_object(&out);
    json_kv_str(&out, pause_kind_name(what), name);
    json_kv_bool(&out, "paused", pause);
    json_kv_bool(&out, "changed", r == PAUSE_CHANGED);
    json_end_object(&out);
    ret_answer->status = 200;
    return 0;
}
