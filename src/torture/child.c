/*
 * One process of the job: open the scratch store, close what the one before held, take
 * a request, carry it out as a worker would, and tell how it ended. run_stage_fn tells
 * where the run is; at the place that was chosen the process kills itself by SIGKILL,
 * which nothing can catch and nothing is tidied up after.
 */
#include "torture/private.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/fsio.h"
#include "base/strs.h"
#include "batch/execution.h"
#include "batch/lost.h"
#include "queue/lost.h"
#include "queue/submit.h"
#include "run/result_store.h"
#include "run/run.h"
#include "store/store.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define WORKER          "torture"
#define PROGRESS_GAP_US US_PER_HOUR

struct child {
    const struct child_order *order;
    int fd;
    struct arena arena;
    struct store *store;
    struct result_store *results;
    struct run_env env;
    int places;
    int commits;
    struct spot spot;
    int64_t request_id;
};

static void
tell(struct child *child, const struct said *said)
{
    const char *at = (const char *)said;
    size_t left = sizeof(*said);

    while (left > 0) {
        ssize_t n = write(child->fd, at, left);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            _exit(1); /* nobody listens any more */
        at += n;
        left -= (size_t)n;
    }
}

static _Noreturn void
die(struct child *child)
{
    struct said said = {
        .kind = SAID_SPOT, .spot = child->spot, .places = child->places};

    tell(child, &said);
    for (;;) {
        kill(getpid(), SIGKILL);
        pause();
    }
}

/* A partition of a step is called NAME#NUMBER. */
static int
index_of(const struct plan *plan, const char *step)
{
    size_t len = step ? strcspn(step, "#") : 0;

    for (size_t i = 0; step && i < json_array_size(plan->job->steps); i++) {
        const char *name = plan_step_name(plan, i);

        if (strlen(name) == len && memcmp(name, step, len) == 0)
            return (int)i;
    }
    return -1;
}

/* Between steps nothing is done that belongs to one. */
static bool
is_of_step(const char *stage)
{
    return str_eq(stage, "working") || str_eq(stage, "committing") ||
           str_eq(stage, "copying") || str_eq(stage, "committed");
}

/* Told on any thread, as often as chance has it. */
static bool
is_of_call(const char *stage)
{
    return str_eq(stage, "reserving") || str_eq(stage, "calling");
}

static void
on_stage(void *arg, int64_t request_id, const char *step, const char *stage)
{
    struct child *child = arg;
    const struct child_order *order = child->order;
    int at = is_of_step(stage) ? index_of(order->plan, step) : -1;

    if (is_of_call(stage))
        return;
    if (at != child->spot.step)
        child->spot.chunk = 0;
    child->spot.step = at;
    snprintf(child->spot.stage, sizeof(child->spot.stage), "%s", stage);
    child->places++;
    if (str_eq(stage, "committed")) {
        child->spot.chunk++;
        child->commits++;
    }
    if (child->places == order->die_at)
        die(child);
    if (order->die_commits && child->commits >= order->die_commits &&
        str_eq(stage, "committing"))
        die(child);
}

/* Where no order is asked for, SQLite may give another one at any time: here it does,
 * so that what relies on it is found. */
static int
on_opened(void *arg, struct db *db, struct err *err)
{
    const struct child *child = arg;

    if (!child->order->follow || db_kind(db) != DB_SQLITE)
        return 0;
    return db_script(db, "PRAGMA reverse_unordered_selects = ON", err);
}

static int
open_all(struct child *child, struct err *err)
{
    const struct place *place = child->order->place;
    struct store_options options = {.url = place->config.store.url, .role = WORKER};
    int r = store_open(&options, &child->store, err);

    if (r == 0)
        r = result_store_open(place->config.results, store_id(child->store),
                              &child->results, err);
    child->env = (struct run_env){
        .config = &place->config,
        .store = child->store,
        .results = child->results,
        .clock = clock_real(),
        .worker = WORKER,
        .temp_folder = arena_printf(&child->arena, "%s/tmp", place->config.state),
        .record_retry_us = US_PER_MINUTE,
        .progress_gap_us = PROGRESS_GAP_US,
        .stage = on_stage,
        .stage_arg = child,
        .opened = on_opened,
        .opened_arg = child,
    };
    return r;
}

/* As the next start of a seat does. 1: all the work of the one before was done. */
static int
close_before(struct child *child, int64_t *ret_before, struct err *err)
{
    struct lost_request *held = NULL;
    struct lost_request *lost = NULL;
    size_t count = 0;
    int r = queue_held_by(child->store, WORKER, &child->arena, &held, &count, err);

    if (r < 0 || count == 0)
        return r;
    *ret_before = held[0].request_id;
    r = run_record_whole(&child->env, held[0].request_id, held[0].token, err);
    if (r == RUN_WHOLE)
        return 1;
    return r < 0 ? r
                 : batch_close_lost(child->store, WORKER, "killed", &child->arena,
                                    &lost, &count, err);
}

static int
take(struct child *child, int64_t before, struct claim_token *ret_token,
     struct err *err)
{
    const struct plan *plan = child->order->plan;
    struct submit_answer answer = {0};
    struct submit_order order = {
        .job = plan->rules,
        .given = plan->given,
        .canonical = plan->canonical,
        .requester = WORKER,
        .source = SOURCE_CLI,
        .restart = -1,
        .restart_of = before,
        .lane = plan->job->lane,
    };
    int r = queue_submit_claimed(child->store, &order, WORKER, &answer, ret_token, err);

    child->request_id = answer.request_id;
    return r;
}

/* --- how it ended --- */

static int
tell_steps(struct child *child, struct err *err)
{
    struct execution execution = {0};
    int r = batch_execution_of_request(child->store, child->request_id, &child->arena,
                                       &execution, err);

    for (size_t i = 0; r == 0 && i < execution.n_steps; i++) {
        const struct step_execution *step = &execution.steps[i];
        const struct step_counts *counts = &step->point.counts;
        struct said said = {.kind = SAID_STEP,
                            .step = {.read = counts->read,
                                     .written = counts->written,
                                     .filtered = counts->filtered,
                                     .skipped = counts->skipped,
                                     .commits = counts->commits}};

        snprintf(said.step.name, sizeof(said.step.name), "%s", step->name);
        snprintf(said.step.note, sizeof(said.step.note), "%s",
                 step->message ? step->message : "");
        tell(child, &said);
    }
    return r;
}

static int
tell_end(struct child *child, struct err *err)
{
    struct said said = {.kind = SAID_END, .completed = true, .places = child->places};
    struct result_file file = {0};
    int r = tell_steps(child, err);

    if (r == 0)
        r = result_store_find(child->results, child->request_id, said.result, &file,
                              err);
    if (r == -ERR_NOT_FOUND) {
        err_clear(err);
        said.result[0] = '\0';
        r = 0;
    }
    if (r < 0)
        return r;
    snprintf(said.sha256, sizeof(said.sha256), "%s", file.sha256);
    tell(child, &said);
    return 0;
}

static void
tell_failure(struct child *child, const char *why)
{
    struct said said = {.kind = SAID_END, .places = child->places};

    snprintf(said.detail, sizeof(said.detail), "%s", why);
    tell(child, &said);
}

/* 0, or < 0; a run that did not complete has been told of. */
static int
carry(struct child *child, struct err *err)
{
    struct claim_token token = {0};
    struct run_report report = {0};
    int64_t before = 0;
    struct run *run;
    int r = child->order->follow ? close_before(child, &before, err) : 0;

    if (r == 1) {
        child->request_id = before;
        return tell_end(child, err);
    }
    if (r == 0)
        r = take(child, before, &token, err);
    if (r < 0)
        return r;
    run = run_new(&child->env, child->request_id, child->order->plan->job->name, token);
    run_carry_out(run, &report);
    run_free(run);
    if (report.outcome == OUTCOME_COMPLETED && report.recorded)
        return tell_end(child, err);
    tell_failure(child, report.detail);
    return 0;
}

void
child_main(const struct child_order *order, int fd)
{
    static struct child child;
    struct err err = {0};
    int r;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    child = (struct child){.order = order, .fd = fd, .spot = {.step = -1}};
    r = open_all(&child, &err);
    if (r == 0)
        r = carry(&child, &err);
    if (r < 0)
        tell_failure(&child, err.text);
    result_store_close(child.results);
    store_close(child.store);
    arena_release(&child.arena);
    _exit(0);
}
