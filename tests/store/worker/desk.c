/* See desk.h. */
#include "tests/store/worker/desk.h"

#include "base/fsio.h"
#include "liveness/worker_row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const job_names[] = {"task", "other"};

static void
make_config(struct desk *desk)
{
    desk->jobs[0] = (struct config_job){
        .name = "task",
        .steps = json_pack("[{s:s, s:{s:s}}]", "name", "one", "write", "file", "x.csv"),
    };
    desk->jobs[1] = (struct config_job){
        .name = "other",
        .steps = json_pack("[{s:s}]", "name", "one"),
    };
    desk->lane = (struct config_lane){.name = "normal", .slots = 4};
    desk->config = (struct config){.jobs = desk->jobs,
                                   .job_count = array_len(desk->jobs),
                                   .lanes = &desk->lane,
                                   .lane_count = 1,
                                   .state = desk->folder};
    desk->config.worker.heartbeat_us = 10 * US_PER_S;
    desk->config.worker.dead_after_us = 60 * US_PER_S;
    desk->config.worker.takeover_after_us = 2 * US_PER_HOUR;
    desk->config.worker.reap_us = 30 * US_PER_S;
}

static void
make_worker(struct desk *desk)
{
    struct worker *worker = &desk->worker;
    struct result_store *results = NULL;
    char path[128];
    struct err err = {0};

    snprintf(path, sizeof(path), "%s/results", desk->folder);
    assert_ok(result_store_open(path, store_id(desk->h->store), &results, &err), &err);
    worker->options = (struct worker_options){.config = &desk->config,
                                              .store = desk->h->store,
                                              .results = results,
                                              .clock = &desk->clock.clock};
    snprintf(worker->id, sizeof(worker->id), "w1");
    worker->env = (struct run_env){.config = &desk->config,
                                   .store = desk->h->store,
                                   .results = results,
                                   .clock = &desk->clock.clock,
                                   .worker = worker->id};
    worker->n_jobs = array_len(job_names);
    worker->jobs = arena_array(&worker->arena, const char *, worker->n_jobs);
    memcpy(worker->jobs, job_names, sizeof(job_names));
    worker->n_lanes = 1;
    worker->lanes = arena_array(&worker->arena, struct lane, 1);
    worker->lanes[0] = (struct lane){.name = "normal", .slots = 4};
    list_init(&worker->held);
    pthread_mutex_init(&worker->lock, NULL);
    snprintf(path, sizeof(path), "%s/spool", desk->folder);
    assert_ok(spool_open(path, &worker->spool, &err), &err);
}

void
desk_open(struct desk *desk, struct harness *h)
{
    *desk = (struct desk){.h = h};
    snprintf(desk->folder, sizeof(desk->folder), "/tmp/pawl-desk-XXXXXX");
    assert_non_null(mkdtemp(desk->folder));
    clock_settable_init(&desk->clock, HARNESS_NOW);
    clock_advance(&desk->clock, US_PER_DAY);
    make_config(desk);
    make_worker(desk);
    desk_neighbour(desk, "w1", "{\"normal\":4}");
    desk_trusted_for(desk, US_PER_HOUR);
}

void
desk_close(struct desk *desk)
{
    list_each_safe(node, &desk->worker.held) free(list_entry(node, struct slot, held));
    spool_free(desk->worker.spool);
    arena_release(&desk->worker.arena);
    pthread_mutex_destroy(&desk->worker.lock);
    for (size_t i = 0; i < array_len(desk->jobs); i++)
        json_decref(desk->jobs[i].steps);
    result_store_close((struct result_store *)(uintptr_t)desk->worker.options.results);
    fs_remove_tree_quietly(desk->folder);
}

void
desk_neighbour(struct desk *desk, const char *id, const char *lanes)
{
    struct worker_row row = {
        .id = id,
        .seat = id,
        .host = "host",
        .pid = 1,
        .boot_id = "b",
        .lanes = lanes,
        .in_use = "{}",
        .keys = "[]",
        .jobs = "[]",
        .version = "1",
    };
    struct err err = {0};

    assert_ok(worker_register(desk->h->store, &row, &err), &err);
}

void
desk_beat(struct desk *desk, const char *id)
{
    struct err err = {0};

    assert_int_equal(worker_beat(desk->h->store, id, "{}", &err), WORKER_BEAT_OK);
}

void
desk_pass(struct desk *desk, int64_t us)
{
    harness_clock_advance(desk->h, us);
    clock_advance(&desk->clock, us);
}

void
desk_trusted_for(struct desk *desk, int64_t us)
{
    desk->worker.link_since_us = worker_now_us(&desk->worker) - us;
}

void
desk_hold(struct desk *desk, int64_t request_id)
{
    struct slot *slot = xcalloc(1, sizeof(*slot));

    slot->request_id = request_id;
    list_push_back(&desk->worker.held, &slot->held);
    desk->worker.n_held++;
}

int64_t
desk_begin(struct desk *desk, int64_t request_id, const struct claim *claim,
           int64_t planned, const char *effect)
{
    struct batch_start_order order = {.job = claim->job,
                                      .request_id = request_id,
                                      .token = claim->token,
                                      .identity = "{}",
                                      .params = "{}",
                                      .steps = planned};
    scoped(arena_release) struct arena arena = {0};
    struct batch_step_order step_order;
    struct batch_step_started step;
    struct batch_started started = {0};
    struct err err = {0};

    assert_int_equal(batch_start(desk->h->store, &order, &arena, &started, &err),
                     BATCH_OK);
    step_order = (struct batch_step_order){.execution_id = started.execution_id,
                                           .request_id = request_id,
                                           .token = claim->token,
                                           .name = "one",
                                           .ordinal = 1,
                                           .effect = effect};
    assert_int_equal(batch_step_start(desk->h->store, &step_order, &arena, &step, &err),
                     BATCH_OK);
    return started.execution_id;
}

void
desk_complete_step(struct desk *desk, int64_t request_id, const struct claim *claim,
                   int64_t bytes)
{
    struct checkpoint checkpoint = {
        .request_id = request_id,
        .token = claim->token,
        .last = true,
        .point = {.counts = {.read = 3, .written = 3, .commits = 1}, .chunk = 1},
    };
    char state[80];
    struct err err = {0};

    snprintf(state, sizeof(state), "{\"finished\":true,\"rows\":3,\"bytes\":%lld}",
             (long long)bytes);
    checkpoint.point.position = "{}";
    checkpoint.point.writer_state = state;
    checkpoint.execution_id =
        harness_i64(desk->h, "SELECT id FROM pawl.execution WHERE request_id = %lld",
                    (long long)request_id);
    checkpoint.step_id = harness_i64(
        desk->h, "SELECT id FROM pawl.step_execution WHERE execution_id = %lld",
        (long long)checkpoint.execution_id);
    assert_int_equal(batch_checkpoint(desk->h->store, &checkpoint, &err), BATCH_OK);
}

static void
part_path(struct desk *desk, int64_t request_id, const struct claim *claim,
          char ret_path[4096])
{
    struct err err = {0};

    assert_ok(result_store_part(desk->worker.options.results, request_id, "one",
                                claim->token.number, ret_path, 4096, &err),
              &err);
}

static void
write_part(struct desk *desk, int64_t request_id, const struct claim *claim,
           const char *text, char ret_path[4096])
{
    struct err err = {0};

    part_path(desk, request_id, claim, ret_path);
    assert_ok(fs_replace_file(ret_path, text, strlen(text), 0600, &err), &err);
}

void
desk_publish(struct desk *desk, int64_t request_id, const struct claim *claim,
             const char *text)
{
    struct result_file file;
    char path[4096];
    struct err err = {0};

    write_part(desk, request_id, claim, text, path);
    assert_ok(result_store_publish(desk->worker.options.results, path, request_id,
                                   "x.csv", &file, &err),
              &err);
}

void
desk_make_part(struct desk *desk, int64_t request_id, const struct claim *claim)
{
    char path[4096];

    write_part(desk, request_id, claim, "half", path);
}

bool
desk_has_part(struct desk *desk, int64_t request_id, const struct claim *claim)
{
    char path[4096];

    part_path(desk, request_id, claim, path);
    return fs_exists(path);
}

bool
desk_has_result(struct desk *desk, int64_t request_id)
{
    struct result_file file;
    char name[256];
    struct err err = {0};

    return result_store_find(desk->worker.options.results, request_id, name, &file,
                             &err) == 0;
}
