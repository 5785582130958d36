/* What is seen through a connection to the store. A look that fails is a warning. */
#include "service/doctor_private.h"

#include "base/arena.h"
#include "base/civil.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/strs.h"
#include "config/config.h"
#include "store/migrate.h"
#include "store/store.h"

#include <inttypes.h>
#include <string.h>

#define CLOCK_WARNING_US US_PER_S
#define CLOCK_ERROR_US   (30 * US_PER_S)
#define OLD_WARNING_US   (10 * US_PER_MINUTE)
#define SESSIONS_FREE    8

static void
say_failed(struct doctor *doctor, const char *name, const struct err *err)
{
    doctor_say(doctor, DOCTOR_WARNING, name,
               "see the reason; a role of the store may look at all of this",
               "cannot be looked at: %s", err->text);
}

/* The first row of a statement without parameters; false (and a line) if none. */
static bool
first_row(struct doctor *doctor, enum stmt stmt, const char *name,
          struct db_rows *ret_rows)
{
    struct err err = {0};
    int r = db_ask(doctor->db, store_sql(doctor->db, stmt), ret_rows, &err);

    if (r == 0)
        r = db_next(ret_rows, &err);
    if (r < 0)
        say_failed(doctor, name, &err);
    return r > 0;
}

/* --- the database --- */

static void
say_setting(struct doctor *doctor, enum doctor_level if_other, const char *setting,
            const char *got, const char *want, const char *remedy)
{
    bool fits = str_eq(got, want);

    doctor_say(doctor, fits ? DOCTOR_OK : if_other, "settings", remedy, "%s is %s%s%s",
               setting, got, fits ? "" : ", not ", fits ? "" : want);
}

static void
look_at_sqlite(struct doctor *doctor)
{
    scoped(db_rows_end) struct db_rows rows = {0};

    if (!first_row(doctor, STMT_DOCTOR_PRAGMAS, "settings", &rows))
        return;
    doctor_say(doctor, DOCTOR_OK, "database", NULL, "SQLite %s", db_text(&rows, 0));
    say_setting(doctor, DOCTOR_ERROR, "journal_mode", db_text(&rows, 1), "wal",
                "put the store on a local disk and start pawl serve, which sets it");
    if (doctor->held)
        doctor_say(
            doctor, DOCTOR_OK, "settings", NULL,
            "synchronous belongs to the owner's connection, which does not start "
            "without FULL; stop it to read it back here");
    else
        say_setting(doctor, DOCTOR_ERROR, "synchronous",
                    db_i64(&rows, 2) == 2 ? "FULL" : "less than FULL", "FULL",
                    "without it commits can be lost; use an unchanged SQLite");
}

static void
look_at_settings(struct doctor *doctor)
{
    scoped(db_rows_end) struct db_rows rows = {0};

    if (!first_row(doctor, STMT_DOCTOR_SETTINGS, "settings", &rows))
        return;
    doctor_say(doctor, DOCTOR_OK, "database", NULL, "PostgreSQL %s%s",
               db_text(&rows, 0), db_pooled(doctor->db) ? ", through a pooler" : "");
    say_setting(doctor, DOCTOR_ERROR, "fsync", db_text(&rows, 1), "on",
                "set fsync = on in postgresql.conf: a power cut loses the store");
    say_setting(doctor, DOCTOR_WARNING, "full_page_writes", db_text(&rows, 2), "on",
                "set full_page_writes = on, unless the disk writes whole pages");
    /* remote_apply and remote_write are on, and more. */
    say_setting(doctor, DOCTOR_ERROR, "synchronous_commit",
                str_starts_with(db_text(&rows, 3), "remote_") ? "on"
                                                              : db_text(&rows, 3),
                "on", "ALTER ROLE … SET synchronous_commit = on");
    say_setting(doctor, DOCTOR_WARNING, "default_transaction_isolation",
                db_text(&rows, 7), "read committed",
                "ALTER ROLE … SET default_transaction_isolation = 'read committed'");
    doctor_say(doctor, DOCTOR_OK, "timeouts", NULL,
               "statement_timeout %s, lock_timeout %s, "
               "idle_in_transaction_session_timeout %s",
               db_text(&rows, 4), db_text(&rows, 5), db_text(&rows, 6));
    if (db_i64(&rows, 8))
        doctor_say(doctor, DOCTOR_ERROR, "database", "use the URL of the primary",
                   "the server is a standby, nothing can be written");
}

static void
look_at_sessions(struct doctor *doctor)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int64_t used;
    int64_t most;

    if (!first_row(doctor, STMT_DOCTOR_SESSIONS, "connections", &rows))
        return;
    used = db_i64(&rows, 0);
    most = db_i64(&rows, 1);
    doctor_say(doctor, most - used < SESSIONS_FREE ? DOCTOR_WARNING : DOCTOR_OK,
               "connections", "raise max_connections, or go through a pooler",
               "%" PRId64 " of %" PRId64 " used", used, most);
}

static void
look_at_oldest(struct doctor *doctor)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    struct err err = {0};
    struct db *db = doctor->db;
    int r = db_ask(db, store_sql(db, STMT_DOCTOR_OLDEST), &rows, &err);

    if (r == 0)
        r = db_next(&rows, &err);
    if (r < 0)
        say_failed(doctor, "oldest-transaction", &err);
    else if (r == 0)
        doctor_say(doctor, DOCTOR_OK, "oldest-transaction", NULL, "none is open");
    else
        doctor_say(doctor,
                   db_i64(&rows, 3) > OLD_WARNING_US ? DOCTOR_WARNING : DOCTOR_OK,
                   "oldest-transaction",
                   "end it (pg_terminate_backend); while it lasts its locks stay, and "
                   "rows that are gone cannot be cleaned up",
                   "open for %" PRId64 " s: pid %" PRId64 ", %.64s, %s",
                   db_i64(&rows, 3) / US_PER_S, db_i64(&rows, 0), db_text(&rows, 1),
                   db_text(&rows, 2));
}

static void
look_at_listen(struct doctor *doctor)
{
    const struct config *config = doctor->order->config;
    const char *url = config->store.listen ? config->store.listen : doctor->order->url;
    struct db_options options = {
        .url = url,
        .connect_timeout_ms = (int)(config->store.connect_timeout_us / US_PER_MS),
        .app_name = "pawl-doctor"};
    scoped(db_closep) struct db *db = NULL;
    struct err err = {0};
    int r = db_open(&options, &db, &err);

    if (r == 0 && db_pooled(db) && !config->store.listen) {
        doctor_say(doctor, DOCTOR_WARNING, "listen",
                   "set store.listen to a direct URL of the server",
                   "the store is behind a pooler: new work is only seen by polling");
        return;
    }
    if (r == 0)
        r = db_listen(db, "pawl_doctor", &err);
    doctor_say(doctor, r < 0 ? DOCTOR_WARNING : DOCTOR_OK, "listen",
               "correct store.listen; until then new work is only seen by polling",
               "%s", r < 0 ? err.text : "notifications arrive");
}

/* --- schema, clock --- */

static bool
look_at_schema(struct doctor *doctor)
{
    struct migrate_report report = {0};
    struct err err = {0};
    int r = migrate_check(doctor->db, &report, &err);

    if (r < 0)
        doctor_say(doctor, DOCTOR_ERROR, "schema",
                   "run `pawl migrate` with the newest pawl", "%s", err.text);
    else
        doctor_say(doctor, DOCTOR_OK, "schema", NULL, "at %d, as this pawl needs",
                   report.now);
    return r == 0;
}

static void
look_at_clock(struct doctor *doctor)
{
    const struct clock *clock = doctor->order->clock;
    struct db *db = doctor->db;
    struct err err = {0};
    int64_t before = clock_wall_us(clock);
    int64_t theirs = 0;
    int64_t off;
    int r = db_query_i64(db, store_sql(db, STMT_STORE_NOW), NULL, 0, &theirs, &err);

    if (r < 0) {
        say_failed(doctor, "clock", &err);
        return;
    }
    off = before + (clock_wall_us(clock) - before) / 2 - theirs;
    if (off < 0)
        off = -off;
    doctor_say(doctor,
               off > CLOCK_ERROR_US     ? DOCTOR_ERROR
               : off > CLOCK_WARNING_US ? DOCTOR_WARNING
                                        : DOCTOR_OK,
               "clock", "let both machines follow NTP; the store's clock decides",
               "%" PRId64 " ms off the store's", off / US_PER_MS);
}

/* --- definitions --- */

static void
look_at_definition(struct doctor *doctor, const struct db_rows *rows, bool *seen,
                   size_t *odd)
{
    const struct config *config = doctor->order->config;
    const char *name = db_text(rows, 0);
    const struct config_job *job = config_job_find(config, name);

    if (job)
        seen[job - config->jobs] = true;
    if (job && str_eq(job->hash, db_text(rows, 2)))
        return;
    ++*odd;
    if (!job)
        doctor_say(doctor, DOCTOR_WARNING, "definitions",
                   "start pawl with the file that has it, or let a newer "
                   "config_version withdraw it",
                   "the store has job %s, the file does not", name);
    else
        doctor_say(doctor, DOCTOR_WARNING, "definitions",
                   "raise config_version in the file and start pawl with it, or take "
                   "the newer file",
                   "job %s in the store (version %" PRId64
                   ") is not that of the file (version %" PRId64 ")",
                   name, db_i64(rows, 1), config->version);
}

static void
look_at_definitions(struct doctor *doctor)
{
    const struct config *config = doctor->order->config;
    bool *seen = arena_array(doctor->arena, bool, config->job_count + 1);
    scoped(db_rows_end) struct db_rows rows = {0};
    struct err err = {0};
    size_t odd = 0;
    int r =
        db_ask(doctor->db, store_sql(doctor->db, STMT_DOCTOR_DEFINITIONS), &rows, &err);

    while (r == 0 && (r = db_next(&rows, &err)) > 0) {
        look_at_definition(doctor, &rows, seen, &odd);
        r = 0;
    }
    if (r < 0) {
        say_failed(doctor, "definitions", &err);
        return;
    }
    for (size_t i = 0; i < config->job_count; i++)
        if (!seen[i]) {
            odd++;
            doctor_say(doctor, DOCTOR_WARNING, "definitions",
                       "start pawl serve, api or worker with this file",
                       "job %s of the file is not in the store", config->jobs[i].name);
        }
    if (odd == 0)
        doctor_say(doctor, DOCTOR_OK, "definitions", NULL,
                   "%zu jobs, the same in store and file", config->job_count);
}

/* --- workers and lanes --- */

/* The lanes that live workers serve: an object lane → slots, added up. */
static int
served_lanes(struct doctor *doctor, json_t *lanes, struct err *err)
{
    const struct config *config = doctor->order->config;
    /* The worker of an SQLite store that nobody owns is gone, however fresh its beat.
     */
    bool left_behind = db_kind(doctor->db) == DB_SQLITE && !doctor->held;
    scoped(db_rows_end) struct db_rows rows = {0};
    int live = 0;
    int dead = 0;
    int r = db_ask(doctor->db, store_sql(doctor->db, STMT_DOCTOR_WORKERS), &rows, err,
                   p_i64(config->worker.dead_after_us));

    while (r == 0 && (r = db_next(&rows, err)) > 0) {
        scoped(json_drop) json_t *own = NULL;
        struct err note = {0};
        const char *lane;
        json_t *slots;

        r = 0;
        if (!db_bool(&rows, 2) || left_behind) {
            dead++;
            continue;
        }
        live++;
        if (json_parse(db_text(&rows, 1), db_text_len(&rows, 1), JSON_DEPTH_MAX, &own,
                       &note) < 0)
            continue;
        json_object_foreach(own, lane, slots) if (json_integer_value(slots) > 0)
            json_object_set(lanes, lane, slots);
    }
    if (r < 0)
        return r;
    doctor_say(doctor, live > 0 ? DOCTOR_OK : DOCTOR_WARNING, "workers",
               "start `pawl serve` or `pawl worker`", "%d live, %d dead", live, dead);
    return 0;
}

static void
look_at_lanes(struct doctor *doctor)
{
    const struct config *config = doctor->order->config;
    scoped(json_drop) json_t *lanes = json_object();
    scoped(db_rows_end) struct db_rows rows = {0};
    struct err err = {0};
    size_t unserved = 0;
    int r = served_lanes(doctor, lanes, &err);

    if (r == 0)
        r = db_ask(doctor->db, store_sql(doctor->db, STMT_DOCTOR_WAITING), &rows, &err);
    while (r == 0 && (r = db_next(&rows, &err)) > 0) {
        r = 0;
        if (json_object_get(lanes, db_text(&rows, 0)))
            continue;
        unserved++;
        doctor_say(doctor, DOCTOR_ERROR, "lanes",
                   "give a worker slots in that lane, or cancel what waits there",
                   "%" PRId64 " requests wait in lane %s, which no live worker serves",
                   db_i64(&rows, 1), db_text(&rows, 0));
    }
    if (r < 0) {
        say_failed(doctor, "workers", &err);
        return;
    }
    for (size_t i = 0; i < config->job_count; i++)
        if (!json_object_get(lanes, config->jobs[i].lane)) {
            unserved++;
            doctor_say(doctor, DOCTOR_WARNING, "lanes",
                       "give a worker slots in that lane, or the job another one",
                       "job %s goes to lane %s, which no live worker serves",
                       config->jobs[i].name, config->jobs[i].lane);
        }
    if (unserved == 0)
        doctor_say(doctor, DOCTOR_OK, "lanes", NULL, "all in use are served");
}

/* Told, since who paused may have forgotten it. */
static void
look_at_pauses(struct doctor *doctor)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    struct err err = {0};
    int r = db_ask(doctor->db, store_sql(doctor->db, STMT_PAUSE_LIST), &rows, &err);

    while (r == 0 && (r = db_next(&rows, &err)) > 0) {
        char since[CIVIL_TEXT_SIZE];

        r = 0;
        civil_format_us(db_i64(&rows, 3), 0, since);
        doctor_say(doctor, DOCTOR_WARNING, "paused",
                   arena_printf(doctor->arena, "pawl resume %s %s", db_text(&rows, 0),
                                db_text(&rows, 1)),
                   "%s %s is paused by %s since %s", db_text(&rows, 0),
                   db_text(&rows, 1), db_text(&rows, 2), since);
    }
    if (r < 0)
        say_failed(doctor, "paused", &err);
}

/* Not heard for a while: the receiver, the key, or the name in the file. */
static void
look_at_webhooks(struct doctor *doctor)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    struct err err = {0};
    int r =
        db_ask(doctor->db, store_sql(doctor->db, STMT_DOCTOR_WEBHOOKS), &rows, &err);

    while (r == 0 && (r = db_next(&rows, &err)) > 0) {
        bool known = config_webhook_find(doctor->order->config, db_text(&rows, 0));
        bool old = db_i64(&rows, 3) - db_i64(&rows, 2) > OLD_WARNING_US;
        char since[CIVIL_TEXT_SIZE];

        r = 0;
        civil_format_us(db_i64(&rows, 2), 0, since);
        doctor_say(doctor, old || !known ? DOCTOR_WARNING : DOCTOR_OK, "webhooks",
                   known ? "look at its receiver, and at its key in the environment of "
                           "the workers; their log tells more"
                         : "name it under webhooks again; else this goes with its "
                           "requests (retention.history)",
                   "%" PRId64 " requests wait to be told to %s%s, since %s",
                   db_i64(&rows, 1), db_text(&rows, 0),
                   known ? "" : ", which the file does not name", since);
    }
    if (r < 0)
        say_failed(doctor, "webhooks", &err);
}

void
doctor_look_at_store(struct doctor *doctor)
{
    if (db_kind(doctor->db) == DB_SQLITE) {
        look_at_sqlite(doctor);
    } else {
        look_at_settings(doctor);
        doctor_look_at_rights(doctor);
        look_at_sessions(doctor);
        look_at_oldest(doctor);
        look_at_listen(doctor);
    }
    if (!look_at_schema(doctor))
        return; /* the rest would fail for that reason alone */
    look_at_clock(doctor);
    look_at_definitions(doctor);
    look_at_lanes(doctor);
    look_at_pauses(doctor);
    look_at_webhooks(doctor);
}
