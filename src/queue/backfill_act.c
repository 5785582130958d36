/*
 * What people do to a backfill: hold it, let it go on, cancel it.
 */
#include "queue/backfill_private.h"

#include "base/err.h"
#include "queue/cancel.h"
#include "store/store.h"
#include "store/wake.h"

#include <inttypes.h>

struct change {
    int64_t id;
    bool hold;
    const char *actor;
};

static int
lock_known(struct db *db, int64_t id, struct backfill_group *group, struct err *err)
{
    int r = backfill_lock(db, id, group, err);

    return r != 0 ? r
                  : err_set(err, ERR_NOT_FOUND, "there is no backfill %" PRId64, id);
}

static int
note(struct backfill_group *group, const char *actor, const char *act, struct err *err)
{
    return store_audit(group->sub.db, actor, act,
                       arena_printf(&group->sub.arena, "backfill %" PRId64, group->id),
                       NULL, err);
}

static int
go_on(struct backfill_group *group, struct err *err)
{
    struct db *db = group->sub.db;
    int r = db_run(db, store_sql(db, STMT_BACKFILL_AGAIN), err, p_i64(group->id),
                   p_i64(group->hold_on_failure));

    group->state = "RUNNING";
    group->next_n = 1;
    return r < 0 ? r : backfill_let_in(group, err);
}

static int
hold_fn(struct db *db, void *arg, struct err *err)
{
    const struct change *change = arg;
    scoped(backfill_release) struct backfill_group group = {0};
    int r = lock_known(db, change->id, &group, err);

    if (r < 0)
        return r;
    if (str_eq(group.state, change->hold ? "HELD" : "RUNNING"))
        return BACKFILL_AS_IT_WAS;
    if (str_eq(group.state, "DONE") || str_eq(group.state, "CANCELLED"))
        return err_set(err, ERR_ALREADY_FINAL, "backfill %" PRId64 " is %s", change->id,
                       group.state);
    if (change->hold) {
        backfill_hold_for(&group,
                          arena_printf(&group.sub.arena, "by %s", change->actor));
        r = backfill_save(&group, err);
    } else {
        r = go_on(&group, err);
    }
    if (r >= 0)
        r = note(&group, change->actor, change->hold ? "pause" : "resume", err);
    return r < 0 ? r : BACKFILL_CHANGED;
}

int
queue_backfill_hold(struct store *store, int64_t id, bool hold, const char *actor,
                    struct err *err)
{
    struct change change = {.id = id, .hold = hold, .actor = actor};
    int r = store_write(store, STORE_NORMAL, hold_fn, &change, err);

    if (r == BACKFILL_CHANGED && !hold)
        store_wake(store, WAKE_READY);
    return r;
}

static int
cancel_fn(struct db *db, void *arg, struct err *err)
{
    const struct change *change = arg;
    scoped(backfill_release) struct backfill_group group = {0};
    int r = lock_known(db, change->id, &group, err);

    if (r < 0)
        return r;
    if (str_eq(group.state, "DONE"))
        return err_set(err, ERR_ALREADY_FINAL,
                       "backfill %" PRId64 " is DONE and stays as it is", change->id);
    if (str_eq(group.state, "CANCELLED"))
        return 0;
    group.state = "CANCELLED";
    group.why = arena_printf(&group.sub.arena, "by %s", change->actor);
    r = db_run(db, store_sql(db, STMT_BACKFILL_DROP_WAITING), err, p_i64(change->id));
    if (r >= 0)
        r = backfill_save(&group, err);
    if (r >= 0)
        r = note(&group, change->actor, "cancel", err);
    return r < 0 ? r : 0;
}

struct open_list {
    int64_t id;
    struct arena arena;
    int64_t *ids;
    size_t count;
};

static void
open_list_release(struct open_list *list)
{
    arena_release(&list->arena);
}

static int
open_fn(struct db *db, void *arg, struct err *err)
{
    struct open_list *list = arg;
    scoped(db_rows_end) struct db_rows rows = {0};
    int r = db_ask(db, store_sql(db, STMT_BACKFILL_OPEN_REQUESTS), &rows, err,
                   p_i64(list->id));

    list->ids = arena_array(&list->arena, int64_t, BACKFILL_PARALLEL_MAX);
    list->count = 0;
    while (r >= 0 && list->count < BACKFILL_PARALLEL_MAX &&
           (r = db_next(&rows, err)) > 0)
        list->ids[list->count++] = db_i64(&rows, 0);
    return r < 0 ? r : 0;
}

int
queue_backfill_cancel(struct store *store, int64_t id, const char *actor,
                      struct err *err)
{
    struct change change = {.id = id, .actor = actor};
    scoped(open_list_release) struct open_list list = {.id = id};
    int r = store_write(store, STORE_NORMAL, cancel_fn, &change, err);

    if (r == 0)
        r = store_read(store, open_fn, &list, err);
    for (size_t i = 0; i < list.count && r >= 0; i++) {
        r = queue_cancel(store, list.ids[i], actor, err);
        if (r == -ERR_ALREADY_FINAL || r == -ERR_NOT_FOUND) {
            err_clear(err);
            r = 0;
        }
    }
    return r < 0 ? r : 0;
}
