/*
 * Definitions of schedules in the store. As with jobs, what a file may replace is
 * decided in the statement itself (schedule_put).
 */
#include "schedule/schedule.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/strs.h"
#include "config/config.h"
#include "queue/definition.h"
#include "store/store.h"
#include "store/wake.h"

#define DEFINITION_MAX ((size_t)1 << 20)

struct row {
    const char *name;
    const char *definition;
    const char *rule;
    char hash[SHA256_HEX_SIZE];
};

struct publish {
    struct store *store;
    const struct row *rows;
    size_t count;
    int64_t version;
    struct publish_counts counts;
};

/* --- from the file --- */

static json_t *
missed_json(const struct config_schedule *schedule)
{
    switch (schedule->missed) {
    case CONFIG_MISSED_ONE:
        return json_string("one");
    case CONFIG_MISSED_SKIP:
        return json_string("skip");
    case CONFIG_MISSED_ALL:
        return json_pack("{s:I}", "all", (json_int_t)schedule->missed_max);
    }
    return NULL;
}

static int
make_row(const struct config_schedule *schedule, struct arena *arena, struct row *ret,
         struct err *err)
{
    scoped(buf_release) struct buf text = {0};
    const char *gap = schedule_gap_word((enum schedule_gap)schedule->gap);
    const char *overlap =
        schedule_overlap_word((enum schedule_overlap)schedule->overlap);
    scoped(json_drop) json_t *json =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:b, s:O}", "job", schedule->job,
                  "cron", schedule->cron, "zone", schedule->zone, "gap", gap, "overlap",
                  overlap, "missed", missed_json(schedule), "paused", schedule->paused,
                  "params", schedule->params);
    int r;

    buf_init(&text, DEFINITION_MAX);
    r = json_canonical(json, &text, err);
    if (r < 0)
        return err_prefix(err, "schedule %s", schedule->name);
    ret->name = schedule->name;
    ret->definition = arena_strndup(arena, buf_str(&text), text.len);
    ret->rule = arena_printf(arena, "%s | %s | %s | %s", schedule->cron, schedule->zone,
                             gap, overlap);
    sha256_hex(text.data, text.len, ret->hash);
    return 0;
}

/* --- into the store --- */

static int
put(struct db *db, const struct row *row, int64_t version,
    struct publish_counts *counts, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    const struct db_value params[] = {p_text(row->name), p_i64(version),
                                      p_text(row->hash), p_text(row->definition),
                                      p_text(row->rule)};
    int64_t ignored;
    int r = db_query_i64(db, store_sql(db, STMT_SCHEDULE_PUT), params,
                         array_len(params), &ignored, err);

    if (r != 0) {
        counts->published += r > 0;
        return r < 0 ? r : 0;
    }
    r = db_ask(db, store_sql(db, STMT_SCHEDULE_HASH), &rows, err, p_text(row->name));
    if (r == 0)
        r = db_next(&rows, err);
    if (r < 0)
        return r;
    if (r > 0 && str_eq(db_text(&rows, 0), row->hash))
        counts->unchanged++;
    else
        counts->kept++;
    return 0;
}

/* Those that nothing is to be done for; they are not locked. */
static int
look_up_standing(struct db *db, const struct publish *publish, bool *standing,
                 struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int r = db_ask(db, store_sql(db, STMT_SCHEDULE_STAND), &rows, err);

    if (r < 0)
        return r;
    while ((r = db_next(&rows, err)) > 0) {
        for (size_t i = 0; i < publish->count; i++)
            if (str_eq(publish->rows[i].name, db_text(&rows, 0)))
                standing[i] = db_i64(&rows, 1) >= publish->version &&
                              str_eq(publish->rows[i].hash, db_text(&rows, 2));
    }
    return r;
}

static int
publish_fn(struct db *db, void *arg, struct err *err)
{
    struct publish *publish = (struct publish *)arg;
    scoped(arena_release) struct arena arena = {0};
    const char **names = arena_array(&arena, const char *, publish->count + 1);
    bool *standing = arena_array(&arena, bool, publish->count + 1);
    /* The owner of an SQLite store is alone: what its file leaves out is gone. */
    bool alone = db_kind(db) == DB_SQLITE;
    int r = look_up_standing(db, publish, standing, err);

    publish->counts = (struct publish_counts){0};
    for (size_t i = 0; i < publish->count && r == 0; i++) {
        names[i] = publish->rows[i].name;
        publish->counts.unchanged += standing[i];
        if (!standing[i])
            r = put(db, &publish->rows[i], publish->version, &publish->counts, err);
    }
    if (r == 0)
        r = db_run(db, store_sql(db, STMT_SCHEDULE_WITHDRAW), err,
                   p_i64(publish->version), p_text_array(names, publish->count),
                   p_i64(alone));
    if (r == 0)
        publish->counts.withdrawn = (int)db_changes(db);
    if (r == 0 && (publish->counts.published || publish->counts.withdrawn))
        r = store_wake_in(publish->store, db, WAKE_DEFS, err);
    return r;
}

int
schedule_publish(struct store *store, const struct config *config,
                 struct publish_counts *ret_counts, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    struct row *rows = arena_array(&arena, struct row, config->schedule_count + 1);
    struct publish publish = {.store = store,
                              .rows = rows,
                              .count = config->schedule_count,
                              .version = config->version};
    int r = 0;

    for (size_t i = 0; i < config->schedule_count && r == 0; i++)
        r = make_row(&config->schedules[i], &arena, &rows[i], err);
    if (r == 0)
        r = store_write(store, STORE_NORMAL, publish_fn, &publish, err);
    if (r < 0)
        return r;
    *ret_counts = publish.counts;
    if (publish.counts.published || publish.counts.withdrawn)
        store_wake(store, WAKE_DEFS);
    return 0;
}
