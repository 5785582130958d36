/*
 * The flow of one request. Read run_carry_out first: prepare (run_prepare.c) → steps →
 * publish → record. Whatever happens on the way becomes one `struct end`, which is
 * decided before anything is recorded.
 */
#include "run/run_private.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/fsio.h"
#include "base/json.h"
#include "base/plant.h"
#include "config/config.h"
#include "io/formats.h"
#include "queue/finish.h"
#include "queue/job.h"
#include "run/parts.h"
#include "run/result_store.h"
#include "store/store.h"
#include "store/wake.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How it ended, before it is recorded. */
struct end {
    enum request_outcome outcome;
    char detail[512];
    struct step_result made; /* the finished part, if a step made one */
    struct request_result result;
    struct result_file file;
    bool spent; /* no call is left today, or for this request */
};

struct run *
run_new(const struct run_env *env, int64_t request_id, const char *job,
        struct claim_token token)
{
    struct run *run = xcalloc(1, sizeof(*run));

    run->env = env;
    run->request_id = request_id;
    run->token = token;
    snprintf(run->job_name, sizeof(run->job_name), "%s", job);
    pthread_mutex_init(&run->lock, NULL);
    return run;
}

void
run_free(struct run *run)
{
    if (!run)
        return;
    run_stopping_end(run);
    run_databases_close(run);
    run_calls_release(run);
    json_decref(run->params);
    json_decref(run->bound);
    queue_job_free(run->rules);
    arena_release(&run->arena);
    pthread_mutex_destroy(&run->lock);
    free(run);
}

int64_t
run_request_id(const struct run *run)
{
    return run->request_id;
}

const char *
run_job(const struct run *run)
{
    return run->job_name;
}

void
run_ask(struct run *run, enum run_wish wish)
{
    int seen = atomic_load(&run->wish);

    while (seen < (int)wish)
        if (atomic_compare_exchange_weak(&run->wish, &seen, (int)wish)) {
            if (wish >= RUN_TIMEOUT)
                run_databases_cut(run);
            else if (wish == RUN_STOP)
                run_stopping_tell(run);
            return;
        }
}

void
run_limit(struct run *run, int64_t deadline_us)
{
    run->deadline_us = deadline_us;
}

void
run_cut(struct run *run)
{
    atomic_store(&run->cut, true);
    run_databases_cut(run);
}

static void
end_with(struct end *end, enum request_outcome outcome, const char *detail)
{
    end->outcome = outcome;
    snprintf(end->detail, sizeof(end->detail), "%s", detail);
}

/* Stopped, and what to do to go on. */
static void
end_stopped(struct end *end, const struct run *run, const char *how)
{
    const char *behind = "goes on after the last committed chunk";

    end->outcome = OUTCOME_STOPPED;
    if (run->confirmed)
        snprintf(end->detail, sizeof(end->detail),
                 "%s. Ask for it again with its confirmation; it begins anew.", how);
    else if (run->job && run->job->duplicates == CONFIG_DUPLICATES_REFUSE)
        snprintf(end->detail, sizeof(end->detail),
                 "%s. Ask for it again: the new request %s.", how, behind);
    else
        snprintf(end->detail, sizeof(end->detail), "%s. `pawl restart %" PRId64 "` %s.",
                 how, run->request_id, behind);
}

/* A failure, seen in the light of what was wished: a statement that was cut off
 * because of a cancel is a cancel, not an error; and who may not wait any longer for a
 * store that is away has been stopped. */
static void
end_with_failure(struct run *run, struct end *end, const struct err *err)
{
    enum run_wish wish = run_wish(run);
    bool is_cut = atomic_load(&run->cut) && run_record_later(-(int)err->code);

    if (wish == RUN_CANCEL)
        end_with(end, OUTCOME_CANCELLED, "Cancelled while it ran.");
    else if (wish == RUN_TIMEOUT)
        end_with(end, OUTCOME_TIMEOUT,
                 "It ran longer than the job's `timeout`; raise it or ask for less.");
    else if (wish == RUN_STOP && (is_cut || err->code == ERR_TIMEOUT))
        end_stopped(end, run, "Cut off because the worker shut down");
    else
        end_with(end, OUTCOME_ERROR, err->text);
}

static void
end_with_step(struct run *run, struct end *end, int step_outcome)
{
    enum run_wish wish = run_wish(run);
    struct err none = {0};

    if (step_outcome == STEP_STOPPED && run->why[0] && wish <= RUN_STOP) {
        end_with(end, OUTCOME_STOPPED, run->why);
        end->spent = true;
    } else if (step_outcome == STEP_STOPPED && wish == RUN_STOP) {
        end_stopped(end, run,
                    "Stopped at a chunk boundary, by a shutdown of the worker or by "
                    "request");
    } else {
        end_with_failure(run, end, &none);
    }
}

/* --- steps --- */

static int
end_step(struct run *run, int outcome, const struct err *failure, struct err *err)
{
    enum execution_state state = EXECUTION_FAILED;
    const char *note = run->noted_step == run->step_id ? run->note : "";
    const char *message = failure->text[0] ? failure->text : note;

    if (outcome == STEP_COMPLETED)
        state = EXECUTION_COMPLETED;
    else if (outcome == STEP_STOPPED)
        state = EXECUTION_STOPPED;
    return batch_step_end(run->env->store, run->request_id, run->token, run->step_id,
                          state, message[0] ? message : NULL, err);
}

static int
ask_to_begin(struct run *run, const struct batch_step_order *order,
             struct batch_step_started *ret_started, struct err *err)
{
    struct run_patience patience = run_patience(run);
    int r;

    do
        r = batch_step_start(run->env->store, order, &run->arena, ret_started, err);
    while (run_wait_after(run, &patience, r, err));
    return r;
}

/* Begin the step, or learn that an earlier execution has done it: *ret_done. A file
 * that was finished but never published must still be there, else its step is done
 * again. */
static int
begin_step(struct run *run, int ordinal, const json_t *def,
           struct batch_step_started *ret_started, struct step_result *ret_made,
           struct err *err)
{
    char kind[STEP_KIND_MAX];
    struct batch_step_order order = {
        .execution_id = run->execution_id,
        .request_id = run->request_id,
        .token = run->token,
        .name = run->step_name,
        .ordinal = ordinal,
        .effect = step_effect(def),
        .kind = kind,
        .again = step_again(def),
    };
    int r;

    step_kind(def, kind);
    r = ask_to_begin(run, &order, ret_started, err);
    if (r != BATCH_OK || !ret_started->completed)
        return r;
    r = run_made_before(run, def, ret_started, ret_made, err);
    if (r != RUN_MADE_GONE)
        return r;
    order.again = true;
    return ask_to_begin(run, &order, ret_started, err);
}

/* The parts of this run and of the one that it goes on from. */
static int
find_parts(struct run *run, const struct batch_step_started *started, struct io_ctx *io,
           struct err *err)
{
    int r = result_store_part(run->env->results, run->instance_id, run->step_name,
                              run->token.number, run->part_path, sizeof(run->part_path),
                              err);

    if (r < 0 || !started->resumed)
        return r;
    run->previous_token = started->previous_token;
    r = result_store_part(run->env->results, run->instance_id, run->step_name,
                          run->previous_token, run->part_from, sizeof(run->part_from),
                          err);
    io->part_from = run->part_from;
    return r;
}

/* Where the step goes on: BATCH_OK, BATCH_LOST, or < 0. */
static int
set_point(struct run *run, struct step_ctx *ctx, struct batch_step_started *started,
          struct err *err)
{
    const char *database = json_object_get(ctx->def, "partitions")
                               ? NULL /* each of them has its own checkpoint */
                               : format_foreign(json_object_get(ctx->def, "write"));
    const struct step_counts *counts = &started->point.counts;
    int r;

    run->step_id = started->step_id;
    run->chunk = started->point.chunk;
    r = find_parts(run, started, ctx->io, err);
    if (r == 0 && database)
        r = run_foreign_begin(run, &started->point, database, err);
    if (r != 0)
        return r;
    ctx->reader_position = started->point.position;
    ctx->writer_state = started->point.writer_state;
    ctx->counters = (struct step_counters){
        .read = counts->read,
        .written = counts->written,
        .filtered = counts->filtered,
        .skipped = counts->skipped,
        .commits = counts->commits,
        .rollbacks = counts->rollbacks,
    };
    return BATCH_OK;
}

/* An enum step_outcome, or < 0. */
static int
carry_step(struct run *run, int ordinal, const json_t *def, struct step_result *made,
           struct err *err)
{
    struct batch_step_started started = {0};
    struct err note = {0};
    struct step_ctx ctx;
    struct io_ctx io;
    int outcome;
    int r;

    run->step_name = json_string_value(json_object_get(def, "name"));
    run_step_prepare(run, &io, &ctx);
    ctx.def = def;
    if (ordinal == 1)
        ctx.total_rows = run->estimate;
    r = begin_step(run, ordinal, def, &started, made, err);
    if (r == BATCH_LOST)
        return STEP_LOST;
    if (r < 0 || started.completed)
        return r < 0 ? r : STEP_COMPLETED;
    r = set_point(run, &ctx, &started, err);
    if (r == BATCH_LOST)
        return STEP_LOST;
    outcome = r < 0                                ? r
              : json_object_get(def, "partitions") ? run_parts(run, &ctx, err)
                                                   : step_run(&ctx, made, err);
    if (outcome < 0)
        err_prefix(err, "step %s", run->step_name);
    if (outcome == STEP_LOST)
        return outcome;
    /* What cannot be written now is written with the end: work that is done is not
     * undone by a store that was away for a moment. */
    r = end_step(run, outcome, err, &note);
    return r == BATCH_LOST ? STEP_LOST : outcome;
}

/* It does its part of somebody else's step; nothing of it is recorded but its end. */
static void
carry_hand(struct run *run, struct end *end)
{
    struct err err = {0};
    int outcome = run->parent_gone ? STEP_COMPLETED : run_hand(run, &err);

    if (outcome == STEP_LOST)
        run_ask(run, RUN_LOST);
    if (outcome < 0)
        end_with_failure(run, end, &err);
    else if (outcome == STEP_COMPLETED)
        end_with(end, OUTCOME_COMPLETED, "");
    else if (outcome == STEP_STOPPED && run_wish(run) == RUN_STOP)
        end_with(end, OUTCOME_STOPPED, "Stopped at a chunk boundary.");
    else
        end_with_step(run, end, outcome);
}

static void
carry_steps(struct run *run, struct end *end)
{
    struct err err = {0};
    const json_t *def;
    size_t i;

    json_array_foreach(run->job->steps, i, def)
    {
        struct step_result made = {0};
        int outcome = carry_step(run, (int)i + 1, def, &made, &err);

        if (outcome == STEP_LOST)
            run_ask(run, RUN_LOST);
        if (outcome < 0) {
            /* Then room is worth more than what could be gone on from. */
            if (err.code == ERR_DISK_FULL)
                run->committed = false;
            end_with_failure(run, end, &err);
            return;
        }
        if (outcome != STEP_COMPLETED) {
            end_with_step(run, end, outcome);
            return;
        }
        if (made.name[0])
            end->made = made;
    }
    end_with(end, OUTCOME_COMPLETED, "");
}

/* --- publish, record --- */

static void
publish(struct run *run, struct end *end)
{
    struct err err = {0};
    int r;

    if (end->outcome != OUTCOME_COMPLETED || !end->made.name[0])
        return;
    run_stage(run, "publishing");
    r = result_store_publish(run->env->results, end->made.part_path, run->request_id,
                             end->made.name, &end->file, &err);
    if (r < 0) {
        end_with(end, OUTCOME_ERROR, err.text);
        return;
    }
    end->result = (struct request_result){
        .known = true,
        .path = end->file.path,
        .name = end->made.name,
        .type = end->made.content_type,
        .bytes = end->file.bytes,
        .rows = end->made.rows,
        .sha256 = end->file.sha256,
    };
    run_stage(run, "published");
}

static void
record(struct run *run, struct end *end, struct run_report *report)
{
    struct err err = {0};
    struct finish_order order = {
        .request_id = run->request_id,
        .token = run->token,
        .outcome = end->outcome,
        .detail = end->detail[0] ? end->detail : NULL,
        .execution_id = run->execution_id,
        .result = &end->result,
        .spent = end->spent,
    };
    int r;

    report->outcome = end->outcome;
    report->rows = end->result.known ? end->result.rows : -1;
    snprintf(report->detail, sizeof(report->detail), "%s", end->detail);
    if (run_wish(run) == RUN_LOST) {
        snprintf(report->detail, sizeof(report->detail),
                 "the claim was lost: another worker has closed it");
        return;
    }
    run_stage(run, "recording");
    r = run_record(run, &order, &report->kept, &err);
    report->recorded = r == BATCH_OK;
    if (r < 0)
        snprintf(report->detail, sizeof(report->detail), "%s", err.text);
    if (r == BATCH_LOST) {
        run_ask(run, RUN_LOST);
        snprintf(report->detail, sizeof(report->detail),
                 "the claim was lost before the end could be recorded");
    }
    store_wake(run->env->store, WAKE_DONE);
}

/* Ours has all of the part that we went on from; what stays is found by the next look
 * at all (leavings.c of worker). */
static void
drop_superseded(struct run *run)
{
    struct err ignored = {0};
    int64_t dropped = 0;

    (void)!parts_drop_uncovered(run->env->store, run->env->results, run->instance_id, 0,
                                &dropped, &ignored);
}

/* Before the end is recorded: after that nobody would look for what a kill leaves. A
 * part that a chunk was committed into stays while the instance can be gone on with.
 * Whoever slept too long to know that its claim is gone leaves alone what the next run
 * makes. */
static void
tidy(struct run *run, enum request_outcome outcome)
{
    bool over = outcome == OUTCOME_COMPLETED || outcome == OUTCOME_CANCELLED;

    if (run->is_hand) /* what is kept of the instance is its parent's */
        over = false;
    else if (run->instance_id && over && run_wish(run) != RUN_LOST)
        result_store_drop_parts_until(run->env->results, run->instance_id,
                                      run->token.number);
    else if (run->instance_id && !run->committed)
        result_store_drop_parts(run->env->results, run->instance_id, run->token.number);
    else if (run->instance_id && run->goes_on && run_wish(run) != RUN_LOST)
        drop_superseded(run);
    if (run->temp_folder)
        fs_remove_tree_quietly(run->temp_folder);
    if (run->files_folder && run->instance_id && over)
        fs_remove_tree_quietly(run->files_folder);
}

/* A result that was published but belongs to no recorded outcome must not stay. When
 * the store never answered it may be recorded yet: then it stays; and where the claim
 * was lost, whoever closed it may have found our work whole. */
static void
take_back(struct run *run, const struct end *end, const struct run_report *report)
{
    if (end->result.known && !report->recorded && run_wish(run) == RUN_LOST)
        run_discard_files(run->env, run->request_id);
}

/* For the planted fault: take the published file away, or put it back. */
static void
move_result(const struct run *run, const struct end *end, bool back)
{
    char place[4096];
    char aside[4096];

    snprintf(place, sizeof(place), "%s/%s", run->env->config->results, end->file.path);
    snprintf(aside, sizeof(aside), "%s/aside-%" PRId64, run->env->config->results,
             run->request_id);
    if (end->result.known)
        (void)rename(back ? aside : place, back ? place : aside);
}

void
run_carry_out(struct run *run, struct run_report *ret_report)
{
    int64_t began_us = clock_mono_us(run->env->clock);
    enum request_outcome refused = OUTCOME_ERROR;
    struct run_report report = {.rows = -1};
    struct end end = {.outcome = OUTCOME_ERROR};
    struct err err = {0};

    run_stage(run, "preparing");
    if (run_prepare(run, &refused, &err) < 0) {
        end_with_failure(run, &end, &err);
        if (end.outcome == OUTCOME_ERROR)
            end.outcome = refused;
    } else if (run_wish(run) != RUN_LOST) {
        if (run->is_hand)
            carry_hand(run, &end);
        else
            carry_steps(run, &end);
        publish(run, &end);
    }
    run_databases_close(run);
    run_stopping_end(run);
    tidy(run, end.outcome);
    if (planted("publish_after_outcome"))
        move_result(run, &end, false);
    record(run, &end, &report);
    if (planted("publish_after_outcome") && plant_pause(5))
        move_result(run, &end, true);
    take_back(run, &end, &report);
    snprintf(report.note, sizeof(report.note), "%s", run->note);
    report.took_us = clock_mono_us(run->env->clock) - began_us;
    *ret_report = report;
}
