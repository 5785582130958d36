/* Schedules: how they stand and what they will do; holding one back; the requests
 * that they ask for. */
#include "service/service.h"

#include "base/arena.h"
#include "base/civil.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "schedule/schedule.h"
#include "service/intake.h"
#include "store/store.h"
#include "store/wake.h"

#include <stdio.h>
#include <stdlib.h>

#define LOCAL_SIZE 64

/* "2026-11-29T04:30:00+09:00" */
static void
format_local(int64_t local_s, int offset_s, char ret[LOCAL_SIZE])
{
    char text[CIVIL_TEXT_SIZE];
    int minutes = abs(offset_s) / 60;

    civil_format_us(local_s * US_PER_S, 0, text);
    text[strlen(text) - 1] = '\0';
    snprintf(ret, LOCAL_SIZE, "%s%c%02d:%02d", text, offset_s < 0 ? '-' : '+',
             minutes / 60 % 100, minutes % 60);
}

static void
put_slot(struct json_out *out, const struct slot_time *slot)
{
    char local[LOCAL_SIZE];
    char meant[CIVIL_TEXT_SIZE];

    format_local(slot->at_us / US_PER_S + slot->offset_s, slot->offset_s, local);
    json_begin_object(out);
    json_kv_time_us(out, "at", slot->at_us);
    json_kv_str(out, "local", local);
    if (slot->mark != SLOT_PLAIN)
        json_kv_str(out, "dst", slot_mark_word(slot->mark));
    if (slot->mark == SLOT_GAP) {
        civil_format_us(slot->local_s * US_PER_S, 0, meant);
        meant[strlen(meant) - 1] = '\0';
        json_kv_str(out, "meant", meant);
    }
    json_end_object(out);
}

static void
put_next(struct json_out *out, const struct schedule *schedule, int64_t after_us,
         int count)
{
    struct slot_time slot = {.at_us = after_us};

    json_key(out, "next");
    json_begin_array(out);
    for (int i = 0; i < count && schedule_next(&schedule->rule, slot.at_us, &slot); i++)
        put_slot(out, &slot);
    json_end_array(out);
}

static void
put_last(struct json_out *out, const struct schedule_row *row)
{
    json_key(out, "lastSlot");
    if (!row->slot_time_us) {
        json_put_null(out);
        return;
    }
    json_begin_object(out);
    json_kv_time_us(out, "at", row->slot_time_us);
    json_kv_time_us(out, "until", row->slot_last_us);
    json_kv_i64(out, "slots", row->slot_count);
    json_kv_str(out, "state", row->slot_state);
    if (row->request_id)
        json_kv_i64(out, "requestId", row->request_id);
    else
        json_kv_null(out, "requestId");
    json_kv_str(out, "detail", row->slot_detail);
    json_end_object(out);
}

static void
put_schedule(struct json_out *out, const struct schedule_row *row, int64_t now_us,
             int count)
{
    scoped(schedule_free_ptr) struct schedule *schedule = NULL;
    struct err note = {0};
    int64_t after_us = row->decided_to_us > now_us ? row->decided_to_us : now_us;

    json_begin_object(out);
    json_kv_str(out, "schedule", row->name);
    if (schedule_parse(row->definition, &schedule, &note) < 0) {
        json_kv_str(out, "problem", note.text);
    } else {
        json_kv_str(out, "job", schedule->job);
        json_kv_str(out, "cron", schedule->cron);
        json_kv_str(out, "zone", schedule->zone_name);
        json_kv_str(out, "gap", schedule_gap_word(schedule->rule.gap));
        json_kv_str(out, "overlap", schedule_overlap_word(schedule->rule.overlap));
        json_kv_value(out, "missed", json_object_get(schedule->definition, "missed"));
        json_kv_value(out, "params", schedule->params);
    }
    json_kv_bool(out, "paused", row->paused_by || (schedule && schedule->paused));
    json_kv_str(out, "pausedBy",
                !row->paused_by && schedule && schedule->paused ? "configuration"
                                                                : row->paused_by);
    json_kv_time_us(out, "pausedAt", row->paused_at_us);
    if (schedule)
        put_next(out, schedule, after_us, count);
    put_last(out, row);
    json_end_object(out);
}

int
service_schedules(const struct service *service, int next, struct answer *ret_answer,
                  struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    struct schedule_row *rows = NULL;
    struct json_out out;
    size_t count = 0;
    int64_t now_us = 0;
    int r = schedule_states(service->store, &arena, &rows, &count, &now_us, err);

    if (r < 0)
        return r;
    json_out_init(&out, &ret_answer->body);
    json_begin_object(&out);
    json_key(&out, "items");
    json_begin_array(&out);
    for (size_t i = 0; i < count; i++)
        put_schedule(&out, &rows[i], now_us, next);
    json_end_array(&out);
    json_end_object(&out);
    ret_answer->status = 200;
    return 0;
}

int
service_schedule_pause(const struct service *service, const struct caller *caller,
                       const char *name, bool pause, struct answer *ret_answer,
                       struct err *err)
{
    struct json_out out;
    int r = pause ? schedule_pause(service->store, name, caller->name, err)
                  : schedule_resume(service->store, name, caller->name, err);

    if (r < 0)
        return r;
    if (r != SCHEDULE_AS_IT_WAS)
        store_wake(service->store, WAKE_DEFS);
    json_out_init(&out, &ret_answer->body);
    json_begin_object(&out);
    json_kv_str(&out, "schedule", name);
    json_kv_bool(&out, "paused", pause);
    json_kv_bool(&out, "changed", r != SCHEDULE_AS_IT_WAS);
    json_end_object(&out);
    ret_answer->status = 200;
    return 0;
}

int
service_schedule_order(void *arg, const struct queue_job *job, const json_t *params,
                       struct arena *arena, struct submit_order *ret_order,
                       struct err *err)
{
    const struct service *service = (const struct service *)arg;
    struct intake intake = {.job = job,
                            .params = params,
                            .requester = "scheduler",
                            .source = SOURCE_SCHEDULE,
                            .restart = -1};
    struct params_errors errors = {0};
    char text[240];
    int r = intake_order(service->estimates, &intake, arena, ret_order, &errors, err);

    if (r != INTAKE_INVALID)
        return r;
    params_errors_text(&errors, text, sizeof(text));
    return err_set(err, ERR_INVALID, "%s", text);
}
