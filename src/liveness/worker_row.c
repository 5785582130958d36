/* Rows of the table worker. Every time in them is the store's. */
#include "liveness/worker_row.h"

#include "base/arena.h"
#include "base/err.h"
#include "store/store.h"

#define GROW 32

static int
register_fn(struct db *db, void *arg, struct err *err)
{
    const struct worker_row *row = (const struct worker_row *)arg;

    return db_run(db, store_sql(db, STMT_WORKER_REGISTER), err, p_text(row->id),
                  p_text(row->seat), p_text(row->host), p_i64(row->pid),
                  p_text(row->boot_id), p_text(row->lanes), p_text(row->in_use),
                  p_text(row->keys), p_text(row->jobs), p_text(row->version));
}

int
worker_register(struct store *store, const struct worker_row *row, struct err *err)
{
    struct worker_row copy = *row;

    return store_write(store, STORE_NORMAL, register_fn, &copy, err);
}

struct beat {
    const char *id;
    const char *in_use;
    int64_t gap_us;
};

static int
beat_fn(struct db *db, void *arg, struct err *err)
{
    struct beat *beat = (struct beat *)arg;
    const struct db_value id = p_text(beat->id);
    int r = db_query_i64(db, store_sql(db, STMT_WORKER_BEAT_AGE), &id, 1, &beat->gap_us,
                         err);

    if (r == 0)
        return WORKER_BEAT_GONE;
    if (r > 0)
        r = db_run(db, store_sql(db, STMT_WORKER_BEAT), err, p_text(beat->in_use),
                   p_text(beat->id));
    if (r < 0)
        return r;
    return db_changes(db) > 0 ? WORKER_BEAT_OK : WORKER_BEAT_GONE;
}

int
worker_beat_gap(struct store *store, const char *id, const char *in_use,
                int64_t *ret_gap_us, struct err *err)
{
    struct beat beat = {.id = id, .in_use = in_use};
    int r = store_write(store, STORE_BEAT, beat_fn, &beat, err);

    if (r == WORKER_BEAT_OK)
        *ret_gap_us = beat.gap_us;
    return r;
}

int
worker_beat(struct store *store, const char *id, const char *in_use, struct err *err)
{
    int64_t gap_us = 0;

    return worker_beat_gap(store, id, in_use, &gap_us, err);
}

int
worker_bury_in(struct db *db, const char *id, int64_t dead_after_us, struct err *err)
{
    const struct db_value name = p_text(id);
    int64_t there = 0;
    int r =
        db_run(db, store_sql(db, STMT_WORKER_BURY), err, name, p_i64(dead_after_us));

    if (r < 0 || db_changes(db) > 0)
        return r < 0 ? r : 1;
    r = db_query_i64(db, store_sql(db, STMT_WORKER_THERE), &name, 1, &there, err);
    return r < 0 ? r : there == 0;
}

struct name {
    const char *text;
};

static int
remove_fn(struct db *db, void *arg, struct err *err)
{
    const struct name *id = (const struct name *)arg;

    return db_run(db, store_sql(db, STMT_WORKER_REMOVE), err, p_text(id->text));
}

int
worker_remove(struct store *store, const char *id, struct err *err)
{
    struct name name = {.text = id};

    return store_write(store, STORE_NORMAL, remove_fn, &name, err);
}

/* --- lists: read into an arena that grows by whole blocks --- */

static const char *
text(const struct db_rows *rows, int column, struct arena *arena)
{
    return db_is_null(rows, column) ? NULL : arena_strdup(arena, db_text(rows, column));
}

struct list {
    struct arena *arena;
    struct worker_row *rows;
    size_t count;
    int64_t now_us;
};

static void
row_read(struct list *list, const struct db_rows *rows)
{
    struct arena *arena = list->arena;

    list->rows[list->count++] = (struct worker_row){
        .id = text(rows, 0, arena),
        .seat = text(rows, 1, arena),
        .host = text(rows, 2, arena),
        .pid = db_i64(rows, 3),
        .boot_id = text(rows, 4, arena),
        .started_at_us = db_i64(rows, 5),
        .beat_at_us = db_i64(rows, 6),
        .lanes = text(rows, 7, arena),
        .in_use = text(rows, 8, arena),
        .keys = text(rows, 9, arena),
        .jobs = text(rows, 10, arena),
        .version = text(rows, 11, arena),
    };
    list->now_us = db_i64(rows, 12);
}

static int
list_fn(struct db *db, void *arg, struct err *err)
{
    struct list *list = (struct list *)arg;
    scoped(db_rows_end) struct db_rows rows = {0};
    int r;

    list->count = 0;
    r = db_ask(db, store_sql(db, STMT_WORKER_LIST), &rows, err);
    if (r < 0)
        return r;
    while ((r = db_next(&rows, err)) > 0) {
        if (list->count % GROW == 0) {
            struct worker_row *more =
                arena_array(list->arena, struct worker_row, list->count + GROW);

            if (list->count)
                memcpy(more, list->rows, list->count * sizeof(*more));
            list->rows = more;
        }
        row_read(list, &rows);
    }
    return r;
}

int
worker_list(struct store *store, struct arena *arena, struct worker_row **ret_rows,
            size_t *ret_count, int64_t *ret_now_us, struct err *err)
{
    struct list list = {.arena = arena};
    int r = store_read(store, list_fn, &list, err);

    if (r < 0)
        return r;
    *ret_rows = list.rows;
    *ret_count = list.count;
    if (ret_now_us)
        *ret_now_us = list.now_us;
    return 0;
}

struct ids {
    enum stmt stmt;
    struct db_value params[2];
    size_t n_params;
    struct arena *arena;
    const char **list;
    size_t count;
};

static int
ids_fn(struct db *db, void *arg, struct err *err)
{
    struct ids *ids = (struct ids *)arg;
    scoped(db_rows_end) struct db_rows rows = {0};
    int r;

    ids->count = 0;
    r = db_query(db, store_sql(db, ids->stmt), ids->params, ids->n_params, &rows, err);
    if (r < 0)
        return r;
    while ((r = db_next(&rows, err)) > 0) {
        if (ids->count % GROW == 0) {
            const char **more =
                arena_array(ids->arena, const char *, ids->count + GROW);

            if (ids->count)
                memcpy(more, ids->list, ids->count * sizeof(*more));
            ids->list = more;
        }
        ids->list[ids->count++] = text(&rows, 0, ids->arena);
    }
    return r;
}

static int
read_ids(struct store *store, struct ids *ids, const char ***ret_ids, size_t *ret_count,
         struct err *err)
{
    int r = store_read(store, ids_fn, ids, err);

    if (r < 0)
        return r;
    *ret_ids = ids->list;
    *ret_count = ids->count;
    return 0;
}

int
worker_earlier_boots(struct store *store, const char *seat, const char *own_id,
                     struct arena *arena, const char ***ret_ids, size_t *ret_count,
                     struct err *err)
{
    struct ids ids = {.stmt = STMT_WORKER_EARLIER_BOOTS,
                      .params = {p_text(seat), p_text(own_id)},
                      .n_params = 2,
                      .arena = arena};

    return read_ids(store, &ids, ret_ids, ret_count, err);
}

int
worker_dead(struct store *store, int64_t dead_after_us, struct arena *arena,
            const char ***ret_ids, size_t *ret_count, struct err *err)
{
    struct ids ids = {.stmt = STMT_WORKER_DEAD,
                      .params = {p_i64(dead_after_us)},
                      .n_params = 1,
                      .arena = arena};

    return read_ids(store, &ids, ret_ids, ret_count, err);
}
