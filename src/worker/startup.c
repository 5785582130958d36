/*
 * Coming and leaving. Who holds the lock of a seat's state folder knows that the
 * earlier boots of this folder are dead: what they held is closed at once, and only
 * that; the work of other seats is not ours to judge here. A configured seat may have
 * been given to two machines by mistake, each with a folder of its own: the other's
 * silence must show first that it is dead.
 */
#include "worker/worker_private.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fsio.h"
#include "base/json.h"
#include "base/log.h"
#include "base/strs.h"
#include "config/config.h"
#include "liveness/worker_row.h"
#include "store/store.h"
#include "worker/deliver.h"
#include "worker/spool.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BOOT_ID_FILE    "/proc/sys/kernel/random/boot_id"
#define SILENCE_LOOK_MS 200

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
    worker->lanes = arena_array(&worker->arena, struct lane, config->lane_count + 1);
    for (size_t i = 0; i < config->lane_count; i++)
        if (config->lanes[i].slots > 0)
            worker->lanes[worker->n_lanes++] = (struct lane){
                .name = config->lanes[i].name, .slots = (int)config->lanes[i].slots};
}

/* --- earlier boots --- */

/* Written before we announce ourselves: the id of the last boot of this folder. */
static const char *
boot_file(struct worker *worker, struct arena *arena)
{
    return arena_printf(arena, "%s/seat.boot", worker->options.config->state);
}

static bool
is_of_this_folder(struct worker *worker, const char *id)
{
    scoped(arena_release) struct arena arena = {0};
    scoped(buf_release) struct buf last = {0};
    struct err ignored = {0};

    if (!worker->options.config->worker.seat)
        return true; /* the seat's name itself comes from the folder */
    buf_init(&last, WORKER_ID_MAX);
    return fs_read_file(boot_file(worker, &arena), WORKER_ID_MAX, &last, &ignored) ==
               0 &&
           str_eq(buf_str(&last), id);
}

/* A row as it stands now: 1, or 0 when there is none. */
static int
look_at_row(struct worker *worker, const char *id, int64_t *ret_beat_at_us,
            int64_t *ret_silence_us, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    struct worker_row *rows = NULL;
    int64_t now_us = 0;
    size_t count = 0;
    int r = worker_list(worker->options.store, &arena, &rows, &count, &now_us, err);

    for (size_t i = 0; r == 0 && i < count; i++) {
        if (!str_eq(rows[i].id, id))
            continue;
        *ret_beat_at_us = rows[i].beat_at_us;
        *ret_silence_us = now_us - rows[i].beat_at_us;
        return 1;
    }
    return r;
}

/* Another folder has our seat's name: a beat of it, and it is taken. One beat that
 * does not come shows that it is dead. */
static int
await_silence(struct worker *worker, const char *id, struct err *err)
{
    const struct config *config = worker->options.config;
    int64_t enough_us = config->worker.heartbeat_us + config->worker.heartbeat_us / 2;
    int64_t first_us = 0;
    int64_t silence_us = 0;
    int64_t beat_at_us;
    int r = look_at_row(worker, id, &first_us, &silence_us, err);

    beat_at_us = first_us;
    while (r == 1 && beat_at_us == first_us && silence_us < enough_us) {
        clock_pause_ms(SILENCE_LOOK_MS);
        r = look_at_row(worker, id, &beat_at_us, &silence_us, err);
    }
    if (r == 1 && beat_at_us != first_us)
        return err_set(err, ERR_STORE_HELD,
                       "seat taken: worker %s beats at worker.seat %s with a state "
                       "folder of its own; give this worker another seat",
                       id, worker->seat.id);
    return r < 0 ? r : 0;
}

static int
close_boot(struct worker *worker, const char *id, struct err *err)
{
    int r = 0;

    if (store_kind(worker->options.store) != DB_SQLITE &&
        !is_of_this_folder(worker, id))
        r = await_silence(worker, id, err);
    if (r == 0)
        r = worker_close_held_by(worker, id, (struct queue_gate){0},
                                 "The worker ended while this ran (killed, or the "
                                 "machine went down). Ask for it again.",
                                 err);
    return r < 0 ? r : worker_remove(worker->options.store, id, err);
}

/* Those that are dead for certain: the earlier boots of our seat. An SQLite store has
 * one owner, which is us now, so there it is everybody (a `pawl run` that was killed).
 */
static int
find_dead(struct worker *worker, struct arena *arena, const char ***ret_ids,
          size_t *ret_count, struct err *err)
{
    struct store *store = worker->options.store;

    if (store_kind(store) == DB_SQLITE)
        return worker_dead(store, -US_PER_DAY, arena, ret_ids, ret_count, err);
    return worker_earlier_boots(store, worker->seat.id, worker->id, arena, ret_ids,
                                ret_count, err);
}

static int
clean_seat(struct worker *worker, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    const char **ids = NULL;
    size_t count = 0;
    int r;

    log_line(worker->options.log, LOG_DEBUG, "cleaning the seat");
    fs_remove_tree_quietly(worker->env.temp_folder);
    r = worker_replay(worker, err); /* what the earlier boots could not record */
    if (r == 0)
        r = find_dead(worker, &arena, &ids, &count, err);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = close_boot(worker, ids[i], err);
    if (r == 0)
        r = fs_replace_file(boot_file(worker, &arena), worker->id, strlen(worker->id),
                            0600, err);
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

static int
open_deliver(struct worker *worker, struct err *err)
{
    const struct deliver_options options = {
        .config = worker->options.config,
        .store = worker->options.store,
        .clock = worker->options.clock,
        .log = worker->options.log,
    };

    return deliver_new(&options, &worker->deliver, err);
}

int
worker_startup(struct worker *worker, struct err *err)
{
    const struct config *config = worker->options.config;
    int r;

    worker->env.temp_folder = arena_printf(&worker->arena, "%s/tmp", config->state);
    choose_jobs_and_lanes(worker);
    r = open_deliver(worker, err);
    if (r == 0)
        r = fs_mkdir_private(config->state, err);
    if (r == 0)
        r = seat_take(config->state, config->worker.seat, &worker->seat, err);
    if (r == 0)
        r = worker_id_make(worker->id, sizeof(worker->id), err);
    if (r == 0)
        r = spool_open(arena_printf(&worker->arena, "%s/spool", config->state),
                       &worker->spool, err);
    worker->env.keep_arg = worker->spool;
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

    /* Without a row others would close at once what our next start can record. */
    if (spool_count(worker->spool) > 0) {
        log_line(worker->options.log, LOG_WARN,
                 "leaving with outcomes that wait for the store; they are recorded at "
                 "the next start of this seat",
                 log_i64("requests", (int64_t)spool_count(worker->spool)));
        return;
    }
    if (worker_remove(worker->options.store, worker->id, &err) < 0)
        log_line(worker->options.log, LOG_WARN,
                 "could not take this worker's row away; it is removed at the next "
                 "start",
                 log_str("reason", err.text));
}
