/*
 * The row of the schedule is taken first, by moving decided_to on from the value
 * that the plan was made from: who comes second waits for the row and then finds
 * another value. The key of schedule_slot is the second fence, for a decided_to that
 * was ever set back.
 *
 * A slot's row is put in before its request, so that a slot decided before asks for
 * nothing; a request that the queue refuses is undone by a savepoint, and the slot
 * says why.
 */
#include "schedule/fire.h"

#include "base/err.h"
#include "base/strs.h"
#include "queue/submit.h"
#include "schedule/schedule.h"
#include "store/store.h"
#include "store/wake.h"

#include <stdio.h>
#include <string.h>

#define SAVEPOINT "slot"

struct call {
    const struct fire *fire;
    struct fire_report report;
};

/* 1 ours, 0 not. Says who paused it. */
static int
advance(struct db *db, const struct fire *fire, bool *ret_paused, char *ret_why,
        size_t why_size, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int r = db_ask(db, store_sql(db, STMT_SCHEDULE_ADVANCE), &rows, err,
                   p_i64(fire->plan->to_us), p_text(fire->row->name),
                   p_i64(fire->row->decided_to_us), p_text(fire->row->hash),
                   p_i64(fire->row->paused_by != NULL));

    if (r == 0)
        r = db_next(&rows, err);
    if (r <= 0)
        return r;
    *ret_paused = fire->paused || !db_is_null(&rows, 0);
    if (!db_is_null(&rows, 0))
        snprintf(ret_why, why_size, "paused by %.200s", db_text(&rows, 0));
    else if (fire->paused)
        snprintf(ret_why, why_size, "paused by the configuration");
    return 1;
}

/* 1 added, 0 decided before. */
static int
add_slots(struct db *db, const struct fire *fire, int64_t first_us, int64_t last_us,
          int64_t count, enum slot_state state, const char *detail, struct err *err)
{
    const struct db_value params[] = {
        p_text(fire->row->name),        p_i64(first_us),   p_i64(last_us), p_i64(count),
        p_text(slot_state_word(state)), p_opt_text(detail)};
    int64_t ignored;

    return db_query_i64(db, store_sql(db, STMT_SCHEDULE_SLOT_ADD), params,
                        array_len(params), &ignored, err);
}

static int
skip_all(struct db *db, const struct fire *fire, const char *why, struct err *err)
{
    const struct slot_plan *plan = fire->plan;
    int64_t first_us = plan->idle_count > 0 ? plan->idle_first_us : plan->fire_us[0];
    int r =
        add_slots(db, fire, first_us, plan->to_us,
                  plan->idle_count + (int64_t)plan->fire_count, SLOT_SKIPPED, why, err);

    return r < 0 ? r : 0;
}

static bool
is_refusal(enum err_code code)
{
    return code == ERR_JOB_ALREADY_RUNNING || code == ERR_JOB_BEING_SUBMITTED ||
           code == ERR_INVALID;
}

/* The request of a slot; a refusal is an answer too. */
static int
submit(struct db *db, const struct fire *fire, struct fired_slot *slot, struct err *err)
{
    struct submit_answer answer = {0};
    int r;

    if (!fire->order) {
        slot->state = SLOT_REFUSED;
        str_copy(slot->detail, sizeof(slot->detail), fire->refusal);
        return 0;
    }
    r = db_savepoint(db, SAVEPOINT, err);
    if (r < 0)
        return r;
    r = queue_submit_in(db, fire->order, 1, &answer, NULL, err);
    if (r == 0) {
        slot->request_id = answer.request_id;
        slot->state = answer.reused ? SLOT_MERGED : SLOT_FIRED;
        if (answer.reused)
            str_copy(slot->detail, sizeof(slot->detail),
                     "the same was asked for already and waits");
        return db_release(db, SAVEPOINT, err);
    }
    if (!is_refusal(err->code))
        return r;
    slot->state = SLOT_REFUSED;
    str_copy(slot->detail, sizeof(slot->detail), err->text);
    err_clear(err);
    r = db_rollback_to(db, SAVEPOINT, err);
    return r == 0 ? db_release(db, SAVEPOINT, err) : r;
}

static int
fire_slot(struct db *db, const struct fire *fire, struct fire_report *report,
          int64_t slot_us, struct err *err)
{
    struct fired_slot *slot = &report->slots[report->count];
    int r = add_slots(db, fire, slot_us, slot_us, 1, SLOT_REFUSED, NULL, err);

    if (r <= 0)
        return r;
    *slot = (struct fired_slot){.slot_us = slot_us};
    r = submit(db, fire, slot, err);
    if (r == 0)
        r = db_run(db, store_sql(db, STMT_SCHEDULE_SLOT_SET), err,
                   p_text(slot_state_word(slot->state)),
                   slot->request_id ? p_i64(slot->request_id) : p_null(),
                   slot->detail[0] ? p_text(slot->detail) : p_null(),
                   p_text(fire->row->name), p_i64(slot_us));
    if (r == 0)
        report->count++;
    return r;
}

static int
fire_fn(struct db *db, void *arg, struct err *err)
{
    struct call *call = (struct call *)arg;
    const struct fire *fire = call->fire;
    const struct slot_plan *plan = fire->plan;
    char why[FIRED_DETAIL_SIZE] = "";
    int r;

    call->report.count = 0;
    r = advance(db, fire, &call->report.paused, why, sizeof(why), err);
    if (r <= 0)
        return r < 0 ? r : FIRE_NOT_OURS;
    if (call->report.paused)
        return skip_all(db, fire, why, err);
    if (plan->idle_count > 0) {
        r = add_slots(db, fire, plan->idle_first_us, plan->idle_last_us,
                      plan->idle_count, plan->idle_state,
                      plan->idle_state == SLOT_MERGED ? "missed; one run stands for all"
                                                      : "missed",
                      err);
        if (r < 0)
            return r;
    }
    r = 0;
    for (size_t i = 0; i < plan->fire_count && r == 0; i++)
        r = fire_slot(db, fire, &call->report, plan->fire_us[i], err);
    return r;
}

int
schedule_fire(struct store *store, const struct fire *fire,
              struct fire_report *ret_report, struct err *err)
{
    struct call call = {.fire = fire};
    int r = store_write(store, STORE_NORMAL, fire_fn, &call, err);

    if (r < 0)
        return r;
    if (r == FIRE_DONE) {
        *ret_report = call.report;
        if (call.report.count > 0)
            store_wake(store, WAKE_READY);
    }
    return r;
}
