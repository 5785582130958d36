/* Reading the schedules of the store, and holding one back. */
#include "schedule/schedule.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>

#define GROW         64
#define STATE_COLUMN 7 /* where the newest slot begins */

struct reading {
    struct arena *arena;
    bool with_slots;
    struct schedule_row *list;
    size_t count;
    int64_t now_us;
};

static const char *
text_at(const struct db_rows *rows, int column, struct arena *arena)
{
    return db_is_null(rows, column) ? NULL : arena_strdup(arena, db_text(rows, column));
}

static void
add_row(struct reading *reading, const struct db_rows *rows)
{
    struct schedule_row *row;

    if (reading->count % GROW == 0) {
        struct schedule_row *bigger =
            arena_array(reading->arena, struct schedule_row, reading->count + GROW);

        if (reading->count > 0)
            memcpy(bigger, reading->list, reading->count * sizeof(*bigger));
        reading->list = bigger;
    }
    row = &reading->list[reading->count++];
    *row = (struct schedule_row){
        .name = text_at(rows, 0, reading->arena),
        .hash = text_at(rows, 1, reading->arena),
        .definition = text_at(rows, 2, reading->arena),
        .decided_to_us = db_i64(rows, 3),
        .paused_at_us = db_i64(rows, 4),
        .paused_by = text_at(rows, 5, reading->arena),
    };
    reading->now_us = db_i64(rows, 6);
    if (!reading->with_slots)
        return;
    row->slot_time_us = db_i64(rows, STATE_COLUMN);
    row->slot_last_us = db_i64(rows, STATE_COLUMN + 1);
    row->slot_count = db_i64(rows, STATE_COLUMN + 2);
    row->slot_state = text_at(rows, STATE_COLUMN + 3, reading->arena);
    row->request_id = db_i64(rows, STATE_COLUMN + 4);
    row->slot_detail = text_at(rows, STATE_COLUMN + 5, reading->arena);
}

static int
read_fn(struct db *db, void *arg, struct err *err)
{
    struct reading *reading = (struct reading *)arg;
    scoped(db_rows_end) struct db_rows rows = {0};
    enum stmt stmt = reading->with_slots ? STMT_SCHEDULE_STATES : STMT_SCHEDULE_ROWS;
    int r = db_ask(db, store_sql(db, stmt), &rows, err);

    reading->count = 0;
    reading->now_us = 0;
    if (r < 0)
        return r;
    while ((r = db_next(&rows, err)) > 0)
        add_row(reading, &rows);
    return r;
}

static int
read_all(struct store *store, struct reading *reading, struct schedule_row **ret_rows,
         size_t *ret_count, int64_t *ret_now_us, struct err *err)
{
    int r = store_read(store, read_fn, reading, err);

    if (r < 0)
        return r;
    *ret_rows = reading->list;
    *ret_count = reading->count;
    *ret_now_us = reading->now_us;
    return 0;
}

int
schedule_rows(struct store *store, struct arena *arena, struct schedule_row **ret_rows,
              size_t *ret_count, int64_t *ret_now_us, struct err *err)
{
    struct reading reading = {.arena = arena};

    return read_all(store, &reading, ret_rows, ret_count, ret_now_us, err);
}

int
schedule_states(struct store *store, struct arena *arena,
                struct schedule_row **ret_rows, size_t *ret_count, int64_t *ret_now_us,
                struct err *err)
{
    struct reading reading = {.arena = arena, .with_slots = true};

    return read_all(store, &reading, ret_rows, ret_count, ret_now_us, err);
}

/* --- pause, resume --- */

struct act {
    const char *name;
    const char *actor;
    bool pause;
};

/* 1 changed, 0 it stands so already. */
static int
change(struct db *db, const struct act *act, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int r;

    if (act->pause)
        r = db_ask(db, store_sql(db, STMT_SCHEDULE_PAUSE), &rows, err,
                   p_text(act->actor), p_text(act->name));
    else
        r = db_ask(db, store_sql(db, STMT_SCHEDULE_RESUME), &rows, err,
                   p_text(act->name));
    return r < 0 ? r : db_next(&rows, err);
}

/* Why nothing changed. */
static int
explain(struct db *db, const struct act *act, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    scoped(json_drop) json_t *definition = NULL;
    bool by_file = false;
    int r = db_ask(db, store_sql(db, STMT_SCHEDULE_GET), &rows, err, p_text(act->name));

    if (r == 0)
        r = db_next(&rows, err);
    if (r < 0)
        return r;
    if (r == 0)
        return err_set(err, ERR_NOT_FOUND,
                       "there is no schedule %.100s; `pawl schedules` lists them",
                       act->name);
    if (act->pause)
        return SCHEDULE_AS_IT_WAS;
    r = json_parse(db_text(&rows, 0), db_text_len(&rows, 0), JSON_DEPTH_MAX,
                   &definition, err);
    if (r == 0)
        r = json_get_bool(definition, "paused", &by_file, err);
    if (r < 0)
        return r;
    if (by_file)
        return err_set(err, ERR_INVALID,
                       "schedule %.100s is paused by the configuration; take `paused: "
                       "true` out of it",
                       act->name);
    return SCHEDULE_AS_IT_WAS;
}

static int
act_fn(struct db *db, void *arg, struct err *err)
{
    const struct act *act = (const struct act *)arg;
    char subject[160];
    int r = change(db, act, err);

    if (r == 0)
        return explain(db, act, err);
    if (r < 0)
        return r;
    snprintf(subject, sizeof(subject), "schedule %.128s", act->name);
    r = store_audit(db, act->actor, act->pause ? "pause" : "resume", subject, NULL,
                    err);
    if (r < 0)
        return r;
    return act->pause ? SCHEDULE_PAUSED : SCHEDULE_RESUMED;
}

int
schedule_pause(struct store *store, const char *name, const char *actor,
               struct err *err)
{
    struct act act = {.name = name, .actor = actor, .pause = true};

    return store_write(store, STORE_NORMAL, act_fn, &act, err);
}

int
schedule_resume(struct store *store, const char *name, const char *actor,
                struct err *err)
{
    struct act act = {.name = name, .actor = actor};

    return store_write(store, STORE_NORMAL, act_fn, &act, err);
}
