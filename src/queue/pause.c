/*
 * A pause is a row that every claim looks for. On PostgreSQL the claims that are under
 * way at its commit have not seen it: they are waited for, behind the commit, so that
 * the pause is in force whether or not the wait ends well (claims_settled in
 * src/sql/schema/pg/0026_pause.sql). On SQLite one writer comes after the other.
 */
#include "queue/pause.h"

#include "base/arena.h"
#include "base/civil.h"
#include "base/err.h"
#include "base/strs.h"
#include "store/store.h"
#include "store/wake.h"

#include <stdio.h>

static const char *const kind_names[PAUSE_KIND_COUNT] = {
    [PAUSE_JOB] = "job",
    [PAUSE_LANE] = "lane",
};

const char *
pause_kind_name(enum pause_kind kind)
{
    return kind_names[kind];
}

/* --- changing --- */

struct act {
    enum pause_kind kind;
    const char *name;
    const char *actor;
    bool pause;
};

static int
must_be_published(struct db *db, const char *job, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int r =
        db_ask(db, store_sql(db, STMT_QUEUE_DEFINITION_HASH), &rows, err, p_text(job));

    if (r == 0)
        r = db_next(&rows, err);
    if (r == 0)
        return err_set(err, ERR_JOB_NOT_FOUND,
                       "there is no job %.100s; `pawl jobs` lists those there are",
                       job);
    return r < 0 ? r : 0;
}

/* 1 changed, 0 it stands so already. */
static int
change(struct db *db, const struct act *act, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    const char *kind = pause_kind_name(act->kind);
    int r;

    if (act->pause)
        r = db_ask(db, store_sql(db, STMT_PAUSE_PUT), &rows, err, p_text(kind),
                   p_text(act->name), p_text(act->actor));
    else
        r = db_ask(db, store_sql(db, STMT_PAUSE_DROP), &rows, err, p_text(kind),
                   p_text(act->name));
    return r < 0 ? r : db_next(&rows, err);
}

static int
act_fn(struct db *db, void *arg, struct err *err)
{
    const struct act *act = (const struct act *)arg;
    char subject[160];
    int r = 0;

    if (act->pause && act->kind == PAUSE_JOB)
        r = must_be_published(db, act->name, err);
    if (r == 0)
        r = change(db, act, err);
    if (r <= 0)
        return r < 0 ? r : PAUSE_AS_IT_WAS;
    snprintf(subject, sizeof(subject), "%s %.128s", pause_kind_name(act->kind),
             act->name);
    r = store_audit(db, act->actor, act->pause ? "pause" : "resume", subject, NULL,
                    err);
    return r < 0 ? r : PAUSE_CHANGED;
}

static int
settle_fn(struct db *db, void *arg, struct err *err)
{
    int64_t settled = 0;
    int r = db_query_i64(db, store_sql(db, STMT_PAUSE_SETTLE), NULL, 0, &settled, err);

    (void)arg;
    return r < 0 ? r : 0;
}

int
queue_pause(struct store *store, enum pause_kind kind, const char *name,
            const char *actor, struct err *err)
{
    struct act act = {.kind = kind, .name = name, .actor = actor, .pause = true};
    int outcome = store_write(store, STORE_NORMAL, act_fn, &act, err);
    int r = 0;

    /* Also if it was paused already: whoever did so may still be waiting. */
    if (outcome >= 0 && store_kind(store) == DB_PG)
        r = store_write(store, STORE_NORMAL, settle_fn, NULL, err);
    return r < 0 ? r : outcome;
}

int
queue_resume(struct store *store, enum pause_kind kind, const char *name,
             const char *actor, struct err *err)
{
    struct act act = {.kind = kind, .name = name, .actor = actor};
    int r = store_write(store, STORE_NORMAL, act_fn, &act, err);

    if (r == PAUSE_CHANGED)
        store_wake(store, WAKE_READY);
    return r;
}

/* --- reading --- */

#define PAUSES_MAX 10000

struct reading {
    const char *job; /* NULL: all of them */
    const char *lane;
    struct arena *arena;
    struct pause *list;
    size_t room;
    size_t count;
};

static void
read_pause(const struct db_rows *rows, struct arena *arena, struct pause *ret)
{
    *ret = (struct pause){
        .kind =
            str_eq(db_text(rows, 0), kind_names[PAUSE_LANE]) ? PAUSE_LANE : PAUSE_JOB,
        .name = arena_strdup(arena, db_text(rows, 1)),
        .by = arena_strdup(arena, db_text(rows, 2)),
        .at_us = db_i64(rows, 3),
    };
}

static int
read_fn(struct db *db, void *arg, struct err *err)
{
    struct reading *reading = (struct reading *)arg;
    scoped(db_rows_end) struct db_rows rows = {0};
    int r;

    reading->count = 0;
    if (reading->job)
        r = db_ask(db, store_sql(db, STMT_PAUSE_OF), &rows, err, p_text(reading->job),
                   p_text(reading->lane));
    else
        r = db_ask(db, store_sql(db, STMT_PAUSE_LIST), &rows, err);
    while (r >= 0 && reading->count < reading->room && (r = db_next(&rows, err)) > 0)
        read_pause(&rows, reading->arena, &reading->list[reading->count++]);
    return r < 0 ? r : 0;
}

int
queue_pauses(struct store *store, struct arena *arena, struct pause **ret_pauses,
             size_t *ret_count, struct err *err)
{
    struct reading reading = {.arena = arena,
                              .list = arena_array(arena, struct pause, PAUSES_MAX),
                              .room = PAUSES_MAX};
    int r = store_read(store, read_fn, &reading, err);

    if (r < 0)
        return r;
    *ret_pauses = reading.list;
    *ret_count = reading.count;
    return 0;
}

int
queue_pauses_of(struct store *store, const char *job, const char *lane,
                struct arena *arena, struct pause ret_pauses[PAUSE_KIND_COUNT],
                size_t *ret_count, struct err *err)
{
    struct reading reading = {.job = job,
                              .lane = lane,
                              .arena = arena,
                              .list = ret_pauses,
                              .room = PAUSE_KIND_COUNT};
    int r = store_read(store, read_fn, &reading, err);

    if (r == 0)
        *ret_count = reading.count;
    return r;
}

int
queue_pause_refuse_in(struct db *db, const char *job, const char *lane, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    struct pause found[PAUSE_KIND_COUNT];
    struct reading reading = {.job = job,
                              .lane = lane,
                              .arena = &arena,
                              .list = found,
                              .room = PAUSE_KIND_COUNT};
    char since[CIVIL_TEXT_SIZE];
    int r = read_fn(db, &reading, err);

    if (r < 0 || reading.count == 0)
        return r;
    civil_format_us(found[0].at_us, 0, since);
    return err_set(err, ERR_PAUSED,
                   "%s %.63s is paused by %.60s since %s; `pawl resume %s %.63s` lets "
                   "it go on",
                   kind_names[found[0].kind], found[0].name, found[0].by, since,
                   kind_names[found[0].kind], found[0].name);
}
