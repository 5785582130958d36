/*
 * Coming and leaving. Who holds the seat's lock knows that every earlier boot of
 * this seat is dead: what they held is closed at once, and only that; the work
 * of other seats is not ours to judge here.
 */
#include "worker/worker_private.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fsio.h"
#include "base/json.h"
#include "base/log.h"
#include "batch/lost.h"
#include "config/config.h"
#include "liveness/worker_row.h"
#include "run/result_store.h"
#include "store/store.h"
#include "store/wake.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BOOT_ID_FILE "/proc/sys/kernel/random/boot_id"

const char *
worker_lanes_json(struct worker *worker, bool in_use, struct arena *arena)
{
    scoped(buf_release) struct buf buf = {0};
    struct json_out out;

    buf_init(&buf, 64 * 1024);
    json_out_init(&out, &buf);
    json_begin_object(&out);
    for (size_t i = 0; i < worker->n_lanes; i++)
        json_kv_i64(&out, worker->lanes[i].name,
                    in_use ? worker->lanes[i].in_use : worker->lanes[i].slots);
    json_end_object(&out);
    return arena_strdup(arena, buf_str(&buf));
}

static const char *
names_json(const char *const *names, size_t count, struct arena *arena)
{
    scoped(buf_release) struct buf buf = {0};
    struct json_out out;

    buf_init(&buf, 1 << 20);
    json_out_init(&out, &buf);
    json_begin_array(&out);
    for (size_t i = 0; i < count; i++)
        json_put_str(&out, names[i]);
    json_end_array(&out);
    return arena_strdup(arena, buf_str(&buf));
}

/* --- what we can run --- */

static bool
holds_key(const char *name)
{
    const char *value = getenv(name);

    return value && value[0];
}

static bool
can_run(const struct config_job *job)
{
    if (!job->steps)
        return false;
    for (size_t i = 0; i < job->needs_key_count; i++)
        if (!holds_key(job->needs_keys[i]))
            return false;
    return true;
}

static void
choose_jobs_and_lanes(struct worker *worker)
{
    const struct config *config = worker->options.config;

    worker->jobs = arena_array(&worker->arena, const char *, config->job_count + 1);
    for (size_t i = 0; i < config->job_count; i++)
        if (can_run(&config->jobs[i]))
            worker->jobs[worker->n_jobs++] = config->jobs[i].name;
    for (size_t i = 0; i < config->lane_count; i++)
        if (config->lanes[i].slots > 0 && worker->n_lanes < WORKER_LANES_MAX)
            worker->lanes[worker->n_lanes++] = (struct lane){
                .name = config->lanes[i].name, .slots = (int)config->lanes[i].slots};
}

/* --- earlier boots --- */

static int
close_boot(struct worker *worker, const char *id, struct arena *arena, struct err *err)
{
    struct lost_request *lost = NULL;
    size_t count = 0;
    int r;

    r = batch_close_lost(worker->options.store, id,
                         "The worker ended while this ran (killed, or the machine went "
                         "down). Ask for it again.",
                         arena, &lost, &count, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++) {
        result_store_drop_parts(worker->options.results, lost[i].request_id,
                                lost[i].token.number);
        log_line(worker->options.log, LOG_WARN, "closed a request of an earlier boot",
                 log_i64("request", lost[i].request_id), log_str("job", lost[i].job),
                 log_str("outcome", request_outcome_name(lost[i].outcome)),
                 log_str("worker", id));
    }
    return worker_remove(worker->options.store, id, err);
}

static int
clean_seat(struct worker *worker, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    const char **ids = NULL;
    size_t count = 0;
    int r;

    fs_remove_tree_quietly(worker->env.temp_folder);
    r = worker_earlier_boots(worker->options.store, worker->seat.id, worker->id, &arena,
                             &ids, &count, err);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = close_boot(worker, ids[i], &arena, err);
    if (r == 0 && count > 0)
        store_wake(worker->options.store, WAKE_DONE | WAKE_READY);
    return r;
}

/* --- announcing --- */

int
worker_announce(struct worker *worker, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    scoped(buf_release) struct buf boot = {0};
    const struct config *config = worker->options.config;
    const char **held = arena_array(&arena, const char *, config->key_count + 1);
    size_t n_held = 0;
    struct err ignored = {0};
    char host[256] = "";
    struct worker_row row;

    gethostname(host, sizeof(host) - 1);
    for (size_t i = 0; i < config->key_count; i++)
        if (holds_key(config->keys[i]))
            held[n_held++] = config->keys[i];
    buf_init(&boot, 256);
    if (fs_read_file(BOOT_ID_FILE, 256, &boot, &ignored) == 0 && boot.len > 0)
        boot.data[strcspn(boot.data, "\n")] = '\0';
    row = (struct worker_row){
        .id = worker->id,
        .seat = worker->seat.id,
        .host = host,
        .pid = getpid(),
        .boot_id = buf_str(&boot),
        .lanes = worker_lanes_json(worker, false, &arena),
        .in_use = worker_lanes_json(worker, true, &arena),
        .keys = names_json(held, n_held, &arena),
        .jobs = names_json(worker->jobs, worker->n_jobs, &arena),
        .version = worker->options.version,
    };
    return worker_register(worker->options.store, &row, err);
}

int
worker_startup(struct worker *worker, struct err *err)
{
    const struct config *config = worker->options.config;
    int r;

    worker->env.temp_folder = arena_printf(&worker->arena, "%s/tmp", config->state);
    choose_jobs_and_lanes(worker);
    r = fs_mkdir_private(config->state, err);
    if (r == 0)
        r = seat_take(config->state, config->worker.seat, &worker->seat, err);
    if (r == 0)
        r = worker_id_make(worker->id, sizeof(worker->id), err);
    if (r == 0)
        r = clean_seat(worker, err);
    if (r == 0)
        r = worker_announce(worker, err);
    return r;
}

void
worker_leave(struct worker *worker)
{
    struct err err = {0};

    if (worker_remove(worker->options.store, worker->id, &err) < 0)
        log_line(worker->options.log, LOG_WARN,
                 "could not take this worker's row away; it is removed at the next "
                 "start",
                 log_str("reason", err.text));
}
