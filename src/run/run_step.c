/*
 * What a step calls upward: has somebody asked us to end, how far are we, here
 * is a chunk to commit, give me a database. Every write goes under the token; as
 * soon as one tells that the claim is gone, the run stops itself.
 */
#include "run/run_private.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/plant.h"
#include "queue/job.h"
#include "queue/progress.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>

void
run_stage(struct run *run, const char *stage)
{
    if (!run->env->stage || run->stage == stage)
        return;
    run->stage = stage;
    run->env->stage(run->env->stage_arg, run->request_id, run->step_name, stage);
}

static enum io_stop
step_stopped(struct io_ctx *io)
{
    run_stage(io->owner, "working");
    switch (run_wish(io->owner)) {
    case RUN_GO_ON:
        return IO_GO_ON;
    case RUN_STOP:
    case RUN_TIMEOUT:
        return IO_STOP;
    case RUN_CANCEL:
    case RUN_LOST:
        return IO_CANCEL;
    }
    return IO_CANCEL;
}

/* Progress is for watchers: one that cannot be written is left out, never fatal. */
static void
step_progress(struct io_ctx *io, int64_t done, int64_t total, const char *message)
{
    struct run *run = io->owner;
    int64_t now_us = clock_mono_us(run->env->clock);
    struct queue_flags flags = {0};
    struct err ignored = {0};
    int r;

    if (run->progress_at_us && now_us - run->progress_at_us < run->env->progress_gap_us)
        return;
    run->progress_at_us = now_us;
    r = queue_progress(run->env->store, run->request_id, run->token,
                       done + run->rows_elsewhere, total,
                       message ? message : run->step_name, &flags, &ignored);
    if (r == QUEUE_PROGRESS_LOST)
        run_ask(run, RUN_LOST);
    if (r == QUEUE_PROGRESS_OK && flags.cancel)
        run_ask(run, RUN_CANCEL);
    if (r == QUEUE_PROGRESS_OK && flags.stop)
        run_ask(run, RUN_STOP);
}

static int
step_database(struct io_ctx *io, const char *name, enum io_db_use use,
              struct db **ret_db, struct err *err)
{
    return run_database(io->owner, name, use, ret_db, err);
}

struct commit {
    struct run *run;
    const struct step_checkpoint *cp;
    const struct checkpoint *checkpoint;
    bool rows_done; /* in another database */
};

/* The chunk's rows and its checkpoint are one transaction: a lost claim must roll
 * the rows back too, so here it is a failure. */
static int
commit_with_rows(struct db *db, void *arg, struct err *err)
{
    struct commit *commit = arg;
    int r = run_store_db_begin(commit->run, db, err);

    if (r < 0)
        return r;
    r = commit->cp->apply(commit->cp->apply_arg, db, err);
    run_store_db_end(commit->run);
    if (r < 0 || planted("cursor_apart"))
        return r;
    r = batch_checkpoint_in(db, commit->checkpoint, err);
    if (r == BATCH_LOST)
        return err_set(err, ERR_STALE_TOKEN, "the claim is gone");
    return r;
}

/* Does anybody wish that it ends, who cannot say so because he waits for it? */
static void
watch(void *arg)
{
    struct run *run = arg;
    const struct run_env *env = run->env;

    if (store_is_wished(env->store, run->request_id) ||
        (run->is_hand && store_is_wished(env->store, run->parent.parent_id)))
        run_ask(run, RUN_CANCEL);
    if (run->deadline_us && clock_mono_us(env->clock) >= run->deadline_us)
        run_ask(run, RUN_TIMEOUT);
    if (env->cut && env->cut(env->cut_arg)) {
        run_ask(run, RUN_STOP);
        run_cut(run);
    }
}

static int
commit_once(struct run *run, struct commit *commit, struct err *err)
{
    bool apply = commit->cp->apply && !commit->rows_done;
    int r = 0;

    if (apply)
        r = store_write_watched(run->env->store, commit_with_rows, commit, watch, run,
                                err);
    if (r < 0 || (apply && !planted("cursor_apart")))
        return r;
    return batch_checkpoint(run->env->store, commit->checkpoint, err);
}

/*
 * After a failure one look tells whether the chunk was committed nonetheless. Where the
 * look fails too, a second commit is refused by the order of chunks, and looked at
 * again.
 */
static int
commit_chunk(struct run *run, struct commit *commit, struct err *err)
{
    struct run_patience patience = run_patience(run);
    int r = commit_once(run, commit, err);

    while (r < 0 && (run_record_later(r) || patience.backoff.attempts > 0)) {
        struct err ignored = {0};
        int there =
            batch_checkpoint_there(run->env->store, commit->checkpoint, &ignored);

        if (there == 1) {
            err_clear(err);
            return BATCH_OK;
        }
        if (!run_record_later(r) && !(there < 0 && run_record_later(there)))
            return r;
        if (!run_wait(run, &patience, err))
            return r;
        r = commit_once(run, commit, err);
    }
    return r;
}

static int
step_checkpoint(void *arg, const struct step_checkpoint *cp, struct err *err)
{
    struct run *run = arg;
    struct checkpoint checkpoint = {
        .request_id = run->request_id,
        .token = run->token,
        .execution_id = run->execution_id,
        .step_id = run->step_id,
        .point = {.counts = {.read = cp->counters.read,
                             .written = cp->counters.written,
                             .filtered = cp->counters.filtered,
                             .skipped = cp->counters.skipped,
                             .commits = cp->counters.commits,
                             .rollbacks = cp->counters.rollbacks},
                  .chunk = run->chunk + 1,
                  .position = cp->reader_position,
                  .writer_state = cp->writer_state},
        .last = cp->last,
        .share = run->share,
        .partition = run->partition,
    };
    struct commit commit = {.run = run, .cp = cp, .checkpoint = &checkpoint};
    int r = BATCH_OK;

    if (run_wish(run) == RUN_LOST && !planted("no_fence"))
        return STEP_LOST;
    run_stage(run, "committing");
    if (run->foreign) {
        r = run_foreign_commit(run, cp, &checkpoint.point, err);
        commit.rows_done = true;
        if (r == BATCH_OK)
            run_stage(run, "copying");
    }
    if (r == BATCH_OK)
        r = commit_chunk(run, &commit, err);
    if (r == BATCH_LOST || r == -ERR_STALE_TOKEN) {
        if (!run->is_hand) /* of a hand it may be the claim that it works for */
            run_ask(run, RUN_LOST);
        return STEP_LOST;
    }
    if (r < 0)
        return err_prefix(err, "chunk %lld", (long long)checkpoint.point.chunk);
    run_stage(run, "committed");
    run->chunk++;
    run->committed = true;
    return 0;
}

/* The first one counts. */
static void
step_note(void *arg, const char *text)
{
    struct run *run = arg;

    if (run->note[0])
        return;
    snprintf(run->note, sizeof(run->note), "step %s: %s", run->step_name, text);
    run->noted_step = run->step_id;
}

/* What steps bind: a parameter that is declared, not given and without a default is
 * null there. It is no part of the parameters that make an instance. */
static const json_t *
bound_params(struct run *run)
{
    if (run->bound)
        return run->bound;
    run->bound = json_copy(run->params);
    for (size_t i = 0; run->rules && i < run->rules->param_count; i++)
        if (!json_object_get(run->bound, run->rules->params[i].name))
            json_object_set_new(run->bound, run->rules->params[i].name, json_null());
    return run->bound;
}

const char *
run_work(struct run *run)
{
    return arena_printf(&run->arena, "%s/%lld/%s", store_id(run->env->store),
                        (long long)run->instance_id, run->step_name);
}

void
run_step_prepare(struct run *run, struct io_ctx *io, struct step_ctx *ctx)
{
    *io = (struct io_ctx){
        .owner = run,
        .stopped = step_stopped,
        .progress = step_progress,
        .database = step_database,
        .params = bound_params(run),
        .temp_folder = run->temp_folder,
        .part_path = run->part_path,
        .work = run_work(run),
        .arena = &run->arena,
    };
    run_calls_prepare(run, io);
    *ctx = (struct step_ctx){
        .io = io,
        .total_rows = -1,
        .checkpoint = step_checkpoint,
        .checkpoint_arg = run,
        .note = step_note,
        .note_arg = run,
    };
    run->chunk = 0;
    run->rows_elsewhere = run->partition ? run->rows_elsewhere : 0;
    run->foreign = NULL;
    run->progress_at_us = 0;
}
