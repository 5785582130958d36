/* What is seen without the store, and the way to it. */
#include "service/doctor.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fsio.h"
#include "base/json.h"
#include "base/strs.h"
#include "config/config.h"
#include "run/result_store.h"
#include "service/doctor_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define MIB                (INT64_C(1) << 20)
#define ROOM_WARNING_BYTES (1024 * MIB)
#define ROOM_ERROR_BYTES   (64 * MIB)
#define ROOM_WARNING_SHARE 20 /* less than one in so many is free */
#define WAL_WARNING_BYTES  (256 * MIB)

const char *
doctor_level_name(enum doctor_level level)
{
    static const char *const names[] = {
        [DOCTOR_OK] = "ok", [DOCTOR_WARNING] = "warning", [DOCTOR_ERROR] = "error"};

    return names[level];
}

void
doctor_say(struct doctor *doctor, enum doctor_level level, const char *name,
           const char *remedy, const char *fmt, ...)
{
    struct doctor_report *report = doctor->report;
    scoped(buf_release) struct buf text = {0};
    va_list args;

    buf_init(&text, 0);
    va_start(args, fmt);
    buf_vaddf(&text, fmt, args);
    va_end(args);
    if (report->count == report->room) {
        size_t room = report->room ? report->room * 2 : 32;
        struct doctor_line *wider =
            arena_array(doctor->arena, struct doctor_line, room);

        if (report->count > 0)
            memcpy(wider, report->lines, report->count * sizeof(*wider));
        report->lines = wider;
        report->room = room;
    }
    report->lines[report->count++] = (struct doctor_line){
        .level = level,
        .name = name,
        .text = arena_strdup(doctor->arena, buf_str(&text)),
        .remedy = level == DOCTOR_OK ? NULL : remedy,
    };
    if (level > report->worst)
        report->worst = level;
}

/* --- disks --- */

static void
look_at_room(struct doctor *doctor, const char *what, const char *folder)
{
    struct statvfs fs;
    enum doctor_level level = DOCTOR_OK;
    int64_t bytes;

    if (statvfs(folder, &fs) < 0) {
        doctor_say(doctor, DOCTOR_WARNING, "disk",
                   "it is made at the first start; see that its parent can be written",
                   "%s %s is not there", what, folder);
        return;
    }
    bytes = (int64_t)fs.f_bavail * (int64_t)fs.f_frsize;
    if (bytes < ROOM_ERROR_BYTES)
        level = DOCTOR_ERROR;
    else if (bytes < ROOM_WARNING_BYTES ||
             fs.f_bavail < fs.f_blocks / ROOM_WARNING_SHARE)
        level = DOCTOR_WARNING;
    doctor_say(doctor, level, "disk", "make room, or shorten retention.results",
               "%s %s: %" PRId64 " MiB free", what, folder, bytes / MIB);
    if (access(folder, W_OK) < 0)
        doctor_say(doctor, DOCTOR_ERROR, "disk",
                   "let the user that runs pawl write there",
                   "%s %s cannot be written by us", what, folder);
}

/* The file itself: who may read it, and how long its log has grown. */
static void
look_at_file(struct doctor *doctor)
{
    const char *url = doctor->order->url + strlen("sqlite:");
    const char *path = arena_strndup(doctor->arena, url, strcspn(url, "?"));
    const char *slash = strrchr(path, '/');
    struct stat st;

    look_at_room(doctor, "store",
                 !slash ? "."
                        : arena_strndup(doctor->arena, path,
                                        slash == path ? 1 : (size_t)(slash - path)));
    if (stat(path, &st) == 0 && (st.st_mode & 077) != 0)
        doctor_say(doctor, DOCTOR_WARNING, "privileges", "chmod 600 the file",
                   "store %s can be read by others (mode %03o)", path,
                   (unsigned)st.st_mode & 0777);
    if (stat(arena_printf(doctor->arena, "%s-wal", path), &st) == 0 &&
        st.st_size > WAL_WARNING_BYTES)
        doctor_say(doctor, DOCTOR_WARNING, "oldest-transaction",
                   "find the process that reads the store for so long, and end it",
                   "%s-wal has grown to %" PRId64 " MiB: a reader keeps it", path,
                   (int64_t)st.st_size / MIB);
}

/* --- keys --- */

static bool
holds_key(const struct doctor_order *order, const char *name)
{
    const char *value = order->env ? order->env(order->env_arg, name) : getenv(name);

    return !str_empty(value);
}

static void
look_at_keys(struct doctor *doctor)
{
    const struct config *config = doctor->order->config;
    size_t missing = 0;

    for (size_t i = 0; i < config->key_count; i++)
        if (!holds_key(doctor->order, config->keys[i])) {
            missing++;
            doctor_say(
                doctor, DOCTOR_WARNING, "keys",
                "set it in the environment of the worker, if `pawl workers` does not "
                "show it there: what needs it waits for a worker that has it",
                "key %s is named, but not in the environment here", config->keys[i]);
        }
    if (missing == 0)
        doctor_say(doctor, DOCTOR_OK, "keys", NULL, "%zu named, all in the environment",
                   config->key_count);
}

/* --- the way to the store --- */

static int
open_store(struct doctor *doctor, struct db **ret_db, struct err *err)
{
    const struct doctor_order *order = doctor->order;
    struct db_options options = {
        .url = order->url,
        .store = true,
        .connect_timeout_ms =
            (int)(order->config->store.connect_timeout_us / US_PER_MS),
        .statement_timeout_ms =
            (int)(order->config->store.statement_timeout_us / US_PER_MS),
        .app_name = "pawl-doctor",
        .read_only = doctor->held,
    };

    return db_open(&options, ret_db, err);
}

/* SQLite: taken, held by another, or (< 0) not to be had. A missing file stays so. */
static int
take_lock(struct doctor *doctor, struct lockfile *lock, struct err *err)
{
    const char *url = doctor->order->url + strlen("sqlite:");
    const char *path = arena_strndup(doctor->arena, url, strcspn(url, "?"));
    char holder[LOCKFILE_TEXT_SIZE];
    int r;

    if (!fs_exists(path))
        return err_set(err, ERR_NOT_FOUND, "store %s does not exist yet", path);
    r = lockfile_take(arena_printf(doctor->arena, "%s.lock", path), "doctor", lock,
                      holder, err);
    if (r < 0)
        return r;
    doctor->held = r == LOCKFILE_HELD;
    doctor_say(doctor, DOCTOR_OK, "owner", NULL, "%s",
               doctor->held ? holder : "nobody has the store open");
    return 0;
}

static void
look_through_store(struct doctor *doctor)
{
    scoped(lockfile_release) struct lockfile lock = LOCKFILE_INIT;
    enum db_kind kind = DB_PG;
    struct err err = {0};
    char url[1024];
    int r = db_url_kind(doctor->order->url, &kind, &err);

    if (r == 0 && kind == DB_SQLITE)
        r = take_lock(doctor, &lock, &err);
    if (r == 0)
        r = open_store(doctor, &doctor->db, &err);
    if (r < 0) {
        doctor_say(
            doctor, DOCTOR_ERROR, "store",
            err.code == ERR_NOT_FOUND ? "run `pawl migrate`, or start `pawl serve`"
            : kind == DB_PG ? "see the reason; the roles and tables are made by `pawl "
                              "migrate` as an administrator, see docs/postgresql.md"
                            : "see the reason; then run doctor again",
            "%s", err.text);
        return;
    }
    doctor_say(doctor, DOCTOR_OK, "store", NULL, "%s",
               db_url_masked(doctor->order->url, url, sizeof(url)));
    if (kind == DB_SQLITE)
        look_at_file(doctor);
    doctor_look_at_store(doctor);
    db_close(doctor->db);
    doctor->db = NULL;
}

void
doctor_run(const struct doctor_order *order, struct arena *arena,
           struct doctor_report *ret_report)
{
    struct doctor doctor = {.order = order, .arena = arena, .report = ret_report};

    *ret_report = (struct doctor_report){0};
    doctor_say(&doctor, DOCTOR_OK, "pawl", NULL, "%s", order->version);
    if (geteuid() == 0)
        doctor_say(&doctor, DOCTOR_WARNING, "privileges",
                   "run pawl as a user of its own", "we run as root");
    look_through_store(&doctor);
    look_at_room(&doctor, "results", order->config->results);
    if (access(order->config->results, F_OK) == 0 &&
        !result_store_is_marked(order->config->results))
        doctor_say(&doctor, DOCTOR_WARNING, "disk",
                   "if results were kept there, mount their folder again; a new one is "
                   "marked at the next start",
                   "results %s is not marked as a store's: has its disk gone away?",
                   order->config->results);
    look_at_room(&doctor, "state", order->config->state);
    look_at_keys(&doctor);
}

void
doctor_json(const struct doctor_report *report, struct buf *buf)
{
    struct json_out out;

    json_out_init(&out, buf);
    json_begin_object(&out);
    json_kv_str(&out, "worst", doctor_level_name(report->worst));
    json_key(&out, "lines");
    json_begin_array(&out);
    for (size_t i = 0; i < report->count; i++) {
        const struct doctor_line *line = &report->lines[i];

        json_begin_object(&out);
        json_kv_str(&out, "level", doctor_level_name(line->level));
        json_kv_str(&out, "name", line->name);
        json_kv_str(&out, "text", line->text);
        json_kv_str(&out, "remedy", line->remedy);
        json_end_object(&out);
    }
    json_end_array(&out);
    json_end_object(&out);
}
