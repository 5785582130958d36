/*
 * A step in partitions. The run of the step cuts it, asks for hands, and works like one
 * of them: it takes a free partition, carries it out, takes the next; so the step gets
 * done even when no slot is free for a hand. When none is left to take it waits for
 * those that hands hold, and then joins them. An error in one partition is an error of
 * the step: whoever met it leaves it FAILED with the message, and the run fails with
 * that.
 */
#include "run/run_private.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "batch/partition.h"
#include "config/config.h"
#include "io/formats.h"
#include "queue/claim.h"
#include "queue/hand.h"
#include "queue/job.h"
#include "store/store.h"
#include "store/wake.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define NAP_MS         20 /* between looks at what was wished here, in memory */
#define LOOK_GAP_US    (100 * US_PER_MS)
#define SCAN_US        (30 * US_PER_S)
#define SCAN_SILENT_US (2 * US_PER_S) /* where no pushes arrive */

struct parts {
    struct run *run;
    const json_t *def;
    struct batch_share share;
    int64_t total_rows;
    bool keeps_one; /* it could not be let go of; our end does that */
    atomic_bool woken;
};

/* --- one partition --- */

static void
set_ctx(struct run *run, struct step_ctx *ctx, const struct step_point *point)
{
    const struct step_counts *counts = &point->counts;

    run->chunk = point->chunk;
    ctx->reader_position = point->position;
    ctx->writer_state = point->writer_state;
    ctx->counters = (struct step_counters){
        .read = counts->read,
        .written = counts->written,
        .filtered = counts->filtered,
        .skipped = counts->skipped,
        .commits = counts->commits,
        .rollbacks = counts->rollbacks,
    };
}

/* BATCH_OK, BATCH_LOST or < 0. */
static int
begin_partition(struct parts *parts, struct batch_partition *partition,
                struct step_ctx *ctx, struct err *err)
{
    struct run *run = parts->run;
    const char *database = format_foreign(json_object_get(parts->def, "write"));
    int r = BATCH_OK;

    run->chunk = partition->point.chunk;
    if (database)
        r = run_foreign_begin(run, &partition->point, database, err);
    if (r == BATCH_OK)
        set_ctx(run, ctx, &partition->point);
    return r;
}

/* What stands in the way of another try of it is told to all; that somebody wanted us
 * to end is not its fault. */
static int
settle(struct parts *parts, const struct batch_partition *partition, int outcome,
       const struct err *failure, struct err *err)
{
    struct run_patience patience = run_patience(parts->run);
    bool failed =
        outcome < 0 && run_wish(parts->run) == RUN_GO_ON && !run_record_later(outcome);
    int r;

    if (outcome == STEP_COMPLETED || outcome == STEP_LOST)
        return BATCH_OK;
    do
        r = batch_partition_let_go(parts->run->env->store, &parts->share, partition,
                                   failed ? failure->text : NULL, err);
    while (run_wait_after(parts->run, &patience, r, err));
    return r;
}

/* NULL: rows are cut by their numbers. */
static const char *
key_of(const struct parts *parts)
{
    return json_string_value(
        json_object_get(json_object_get(parts->def, "partition"), "key"));
}

static const char *
bounds(struct run *run, const struct batch_cut *cut)
{
    const char *lower =
        cut->has_lower ? arena_printf(&run->arena, "%" PRId64, cut->lower) : "first";
    const char *upper = cut->has_upper
                            ? arena_printf(&run->arena, "below %" PRId64, cut->upper)
                            : "last";

    return arena_printf(&run->arena, "%s to %s", lower, upper);
}

/* An enum step_outcome, or < 0. */
static int
carry_partition(struct parts *parts, struct batch_partition *partition, struct err *err)
{
    struct run *run = parts->run;
    const char *step_name = run->step_name;
    const struct io_range range = {
        .key = key_of(parts),
        .has_lower = partition->cut.has_lower,
        .has_upper = partition->cut.has_upper,
        .lower = partition->cut.lower,
        .upper = partition->cut.upper,
    };
    struct step_result made = {0};
    struct err note = {0};
    struct step_ctx ctx;
    struct io_ctx io;
    int settled;
    int r;

    run_step_prepare(run, &io, &ctx);
    ctx.def = parts->def;
    ctx.total_rows = parts->total_rows;
    io.range = &range;
    run->share = &parts->share;
    run->partition = partition;
    /* Its rows in other tables (skipped items, a foreign checkpoint) bear this name. */
    run->step_name =
        arena_printf(&run->arena, "%s#%" PRId64, parts->share.step, partition->n);
    io.work = run_work(run);
    r = begin_partition(parts, partition, &ctx, err);
    if (r == BATCH_OK)
        r = step_run(&ctx, &made, err);
    else if (r == BATCH_LOST)
        r = STEP_LOST;
    run->step_name = step_name;
    run->share = NULL;
    run->partition = NULL;
    run->foreign = NULL;
    if (r < 0)
        err_prefix(err, "partition %" PRId64 " (%s)", partition->n,
                   bounds(run, &partition->cut));
    settled = settle(parts, partition, r, err, &note);
    if (settled == BATCH_LOST)
        return STEP_LOST;
    parts->keeps_one = settled < 0;
    store_wake(run->env->store, WAKE_DONE);
    return r;
}

static bool
asked_to_end(struct parts *parts, int *ret_outcome)
{
    switch (run_wish(parts->run)) {
    case RUN_GO_ON:
        return false;
    case RUN_STOP:
    case RUN_TIMEOUT:
        *ret_outcome = STEP_STOPPED;
        return true;
    case RUN_CANCEL:
        *ret_outcome = STEP_CANCELLED;
        return true;
    case RUN_LOST:
        *ret_outcome = STEP_LOST;
        return true;
    }
    return false;
}

/* --- calls to the store, which wait while it is away --- */

static int
take(struct parts *parts, struct batch_partition *partition, struct err *err)
{
    struct run *run = parts->run;
    struct run_patience patience = run_patience(run);
    int r;

    do
        r = batch_partition_take(run->env->store, &parts->share, &run->arena, partition,
                                 err);
    while (run_wait_after(run, &patience, r, err));
    return r;
}

static int
look(struct parts *parts, struct batch_partitions *stand, struct err *err)
{
    struct run *run = parts->run;
    struct run_patience patience = run_patience(run);
    int r;

    do
        r = batch_partitions_stand(run->env->store, parts->share.instance_id,
                                   parts->share.step, stand, err);
    while (run_wait_after(run, &patience, r, err));
    return r;
}

static int
are_there(struct parts *parts, struct err *err)
{
    struct run *run = parts->run;
    struct run_patience patience = run_patience(run);
    int r;

    do
        r = batch_partitions_there(run->env->store, parts->share.instance_id,
                                   parts->share.step, err);
    while (run_wait_after(run, &patience, r, err));
    return r;
}

static int
load_parent(struct run *run, struct request *parent, struct err *err)
{
    struct run_patience patience = run_patience(run);
    size_t loaded = 0;
    int r;

    do
        r = queue_load(run->env->store, run->request_id, run->request_id, &run->arena,
                       parent, &loaded, err);
    while (run_wait_after(run, &patience, r, err));
    return r;
}

static int
join(struct parts *parts, struct err *err)
{
    struct run *run = parts->run;
    struct run_patience patience = run_patience(run);
    int r;

    do
        r = batch_partitions_join(run->env->store, &parts->share, run->step_id, err);
    while (run_wait_after(run, &patience, r, err));
    return r;
}

/* --- partitions, one after the other --- */

/* Take and carry out until none is free. STEP_COMPLETED: then. */
static int
work_off(struct parts *parts, struct err *err)
{
    struct run *run = parts->run;

    for (;;) {
        struct batch_partitions stand = {0};
        struct batch_partition partition = {0};
        int r;

        if (asked_to_end(parts, &r))
            return r;
        r = take(parts, &partition, err);
        if (r == BATCH_LOST)
            return STEP_LOST;
        if (r == BATCH_OK)
            r = look(parts, &stand, err);
        if (r == BATCH_NONE_FREE || stand.failed > 0)
            return STEP_COMPLETED;
        if (r < 0)
            return r;
        run->rows_elsewhere = stand.counts.read - partition.point.counts.read;
        r = carry_partition(parts, &partition, err);
        if (r != STEP_COMPLETED)
            return r;
    }
}

/* --- the run of the step --- */

/* *ret_count partitions of about the same width, the outer two open at their ends. */
static int
cut(struct parts *parts, struct io_ctx *io, struct batch_cut *cuts, size_t *ret_count,
    struct err *err)
{
    const json_t *read = json_object_get(parts->def, "read");
    const char *key = key_of(parts);
    size_t wanted =
        (size_t)json_integer_value(json_object_get(parts->def, "partitions"));
    const struct reader_kind *kind;
    int64_t least = 0;
    int64_t greatest = 0;
    int r = format_choose_reader(read, &kind, err);

    if (r == 0)
        r = kind->extent(io, read, key, &least, &greatest, err);
    if (r < 0)
        return r;
    *ret_count = batch_cut_range(least, greatest, wanted, cuts);
    return 0;
}

/* Cut it, or find it cut; and ask for hands. BATCH_OK, BATCH_LOST or < 0. */
static int
open_parts(struct parts *parts, struct io_ctx *io, struct err *err)
{
    struct run *run = parts->run;
    const struct batch_share *share = &parts->share;
    struct batch_cut cuts[BATCH_PARTITIONS_MAX];
    struct batch_partitions stand = {0};
    struct request parent = {0};
    struct hand_order hands = {
        .job = run->rules,
        .parent = &parent,
        .parent_token = share->token.number,
        .execution_id = run->execution_id,
        .step = share->step,
    };
    struct run_patience patience;
    size_t count = 0;
    int64_t left;
    int r = are_there(parts, err);

    if (r == 0)
        r = cut(parts, io, cuts, &count, err);
    else if (r == 1)
        r = look(parts, &stand, err);
    if (r >= 0)
        r = load_parent(run, &parent, err);
    if (r < 0)
        return r;
    left = (int64_t)count + stand.count - stand.completed;
    /* maxCalls is counted by request: then nobody may call beside us. */
    hands.count = left > 1 && run->max_calls < 0 ? (size_t)(left - 1) : 0;
    patience = run_patience(run);
    do
        r = batch_partitions_open(run->env->store, share,
                                  key_of(parts) ? key_of(parts) : "", cuts, count,
                                  &hands, err);
    while (run_wait_after(run, &patience, r, err));
    return r;
}

static void
on_wake(void *arg, unsigned mask)
{
    struct parts *parts = arg;

    (void)mask;
    atomic_store(&parts->woken, true);
}

/* Until something may have changed, or somebody wants us to end as `until` says. */
static void
wait_for_news(struct parts *parts, enum run_wish until)
{
    const struct run *run = parts->run;
    int64_t now_us = clock_mono_us(run->env->clock);
    int64_t scan_us = store_has_listen(run->env->store) ? SCAN_US : SCAN_SILENT_US;
    int64_t gap_us = now_us + LOOK_GAP_US;
    int64_t end_us = now_us + scan_us;

    while (now_us < end_us && run_wish(run) < until && !atomic_load(&run->cut)) {
        if (now_us >= gap_us && atomic_exchange(&parts->woken, false))
            return;
        clock_pause_ms(NAP_MS);
        now_us = clock_mono_us(run->env->clock);
    }
}

/* Let no more hands begin, ask those that have to end, and see that they do, for what
 * ended must have ended. Who may not wait does not: our end takes their right to write.
 */
static void
see_them_off(struct parts *parts)
{
    struct run *run = parts->run;
    struct run_patience patience = run_patience(run);
    struct batch_partitions stand = {0};
    struct err ignored = {0};
    int r;

    do
        r = queue_hands_end(run->env->store, run->request_id, &ignored);
    while (run_wait_after(run, &patience, r, &ignored));
    if (r < 0)
        return;
    for (;;) {
        if (run_wish(run) >= RUN_TIMEOUT || atomic_load(&run->cut) ||
            look(parts, &stand, &ignored) < 0 || stand.held <= parts->keeps_one)
            return;
        wait_for_news(parts, RUN_TIMEOUT);
    }
}

static int
failed_elsewhere(const struct batch_partitions *stand, struct err *err)
{
    return err_set(err, ERR_INVALID, "%s", stand->message);
}

/* Work, wait, until all are COMPLETED. */
static int
carry_all(struct parts *parts, struct io_ctx *io, struct err *err)
{
    struct run *run = parts->run;

    for (;;) {
        struct batch_partitions stand = {0};
        int r = work_off(parts, err);

        if (r != STEP_COMPLETED)
            return r;
        r = look(parts, &stand, err);
        if (r < 0)
            return r;
        if (stand.failed > 0)
            return failed_elsewhere(&stand, err);
        if (stand.completed == stand.count)
            return STEP_COMPLETED;
        run->rows_elsewhere = 0;
        io->progress(io, stand.counts.read, parts->total_rows, NULL);
        if (stand.held > 0)
            wait_for_news(parts, RUN_STOP);
    }
}

int
run_parts(struct run *run, struct step_ctx *ctx, struct err *err)
{
    struct parts parts = {
        .run = run,
        .def = ctx->def,
        .share = {.instance_id = run->instance_id,
                  .step = run->step_name,
                  .request_id = run->request_id,
                  .token = run->token,
                  .parent_id = run->request_id,
                  .parent_token = run->token},
        .total_rows = ctx->total_rows,
    };
    struct err note = {0};
    int subscription;
    int outcome = open_parts(&parts, ctx->io, err);

    if (outcome != BATCH_OK)
        return outcome < 0 ? outcome : STEP_LOST;
    subscription = store_subscribe(run->env->store, WAKE_DONE, on_wake, &parts);
    outcome = carry_all(&parts, ctx->io, err);
    if (outcome != STEP_COMPLETED && outcome != STEP_LOST)
        see_them_off(&parts);
    store_unsubscribe(run->env->store, subscription);
    if (outcome == STEP_LOST)
        return outcome;
    if (join(&parts, &note) == BATCH_LOST)
        return STEP_LOST;
    if (outcome == STEP_COMPLETED && note.code) {
        *err = note;
        return -(int)note.code;
    }
    return outcome;
}

/* --- a hand --- */

int
run_hand_prepare(struct run *run, struct err *err)
{
    struct run_patience patience = run_patience(run);
    struct execution execution = {0};
    int r;

    run->is_hand = true;
    do
        r = queue_hand_get(run->env->store, run->request_id, &run->arena, &run->parent,
                           err);
    while (run_wait_after(run, &patience, r, err));
    if (r <= 0)
        return r;
    do
        r = batch_execution_get(run->env->store, run->parent.execution_id, &run->arena,
                                &execution, err);
    while (run_wait_after(run, &patience, r, err));
    if (r == 0)
        r = queue_job_parse(run->job->definition, &run->rules, err);
    if (r == 0)
        r = json_parse(execution.params, strlen(execution.params), JSON_DEPTH_MAX,
                       &run->params, err);
    run->instance_id = execution.instance_id;
    return r < 0 ? r : 1;
}

int
run_hand(struct run *run, struct err *err)
{
    struct parts parts = {
        .run = run,
        .def = run_step_named(run, run->parent.step),
        .share = {.instance_id = run->instance_id,
                  .step = run->parent.step,
                  .request_id = run->request_id,
                  .token = run->token,
                  .parent_id = run->parent.parent_id,
                  .parent_token = run->parent.parent_token},
        .total_rows = -1,
    };
    struct run_patience patience;
    int r;

    if (!parts.def || !json_object_get(parts.def, "partitions"))
        return STEP_COMPLETED; /* another version of the job: nothing for us to do */
    run->step_name = run->parent.step;
    r = work_off(&parts, err);
    if (r != STEP_LOST)
        return r;
    /* Whose claim is gone, the parent's or ours? */
    patience = run_patience(run);
    do
        r = queue_claim_holds(run->env->store, run->request_id, run->token, err);
    while (run_wait_after(run, &patience, r, err));
    return r < 0 ? r : r == 1 ? STEP_COMPLETED : STEP_LOST;
}
