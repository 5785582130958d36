/* Backfills as people look at them. */
#include "queue/backfill.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/strs.h"
#include "queue/read.h"
#include "store/store.h"

#include <inttypes.h>

#define ITEMS_SHOWN 100
#define LIST_MAX    200

struct reading {
    int64_t id;
    int64_t most;
    struct arena *arena;
    struct backfill one;
    struct backfill *list;
    size_t count;
};

static int
read_counts(struct db *db, struct backfill *backfill, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int r = db_ask(db, store_sql(db, STMT_BACKFILL_COUNTS), &rows, err,
                   p_i64(backfill->id));

    while (r >= 0 && (r = db_next(&rows, err)) > 0) {
        const struct {
            const char *state;
            int64_t *count;
        } places[] = {
            {"WAITING", &backfill->waiting},     {"OPEN", &backfill->open},
            {"COMPLETED", &backfill->completed}, {"STOPPED", &backfill->stopped},
            {"FAILED", &backfill->failed},       {"CANCELLED", &backfill->cancelled},
        };

        for (size_t i = 0; i < array_len(places); i++)
            if (str_eq(db_text(&rows, 0), places[i].state))
                *places[i].count = db_i64(&rows, 1);
    }
    return r;
}

static int
read_items(struct db *db, struct arena *arena, struct backfill *backfill,
           struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int r = db_ask(db, store_sql(db, STMT_BACKFILL_ITEMS), &rows, err,
                   p_i64(backfill->id), p_i64(ITEMS_SHOWN));

    backfill->items = arena_array(arena, struct backfill_item, ITEMS_SHOWN);
    while (r >= 0 && backfill->n_items < ITEMS_SHOWN && (r = db_next(&rows, err)) > 0)
        backfill->items[backfill->n_items++] = (struct backfill_item){
            .n = db_i64(&rows, 0),
            .given = queue_read_text(&rows, 1, arena),
            .state = queue_read_text(&rows, 2, arena),
            .request_id = db_i64(&rows, 3),
            .detail = queue_read_text(&rows, 4, arena),
        };
    return r < 0 ? r : 0;
}

static int
read_one(struct db *db, int64_t id, struct arena *arena, struct backfill *ret,
         struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int r = db_ask(db, store_sql(db, STMT_BACKFILL_GET), &rows, err, p_i64(id));

    if (r == 0)
        r = db_next(&rows, err);
    if (r == 0)
        return err_set(err, ERR_NOT_FOUND,
                       "there is no backfill %" PRId64 "; `pawl backfills` lists them",
                       id);
    if (r < 0)
        return r;
    *ret = (struct backfill){
        .id = db_i64(&rows, 0),
        .job = queue_read_text(&rows, 1, arena),
        .requester = queue_read_text(&rows, 2, arena),
        .given = queue_read_text(&rows, 3, arena),
        .parallel = db_i64(&rows, 4),
        .hold_on_failure = db_i64(&rows, 5) != 0,
        .total = db_i64(&rows, 6),
        .passed_over = db_i64(&rows, 7),
        .state = queue_read_text(&rows, 8, arena),
        .why = queue_read_text(&rows, 9, arena),
        .created_at_us = db_i64(&rows, 10),
        .ended_at_us = db_i64(&rows, 11),
    };
    db_rows_end(&rows);
    return read_counts(db, ret, err);
}

static int
get_fn(struct db *db, void *arg, struct err *err)
{
    struct reading *reading = arg;
    int r = read_one(db, reading->id, reading->arena, &reading->one, err);

    return r < 0 ? r : read_items(db, reading->arena, &reading->one, err);
}

int
queue_backfill_get(struct store *store, int64_t id, struct arena *arena,
                   struct backfill *ret_backfill, struct err *err)
{
    struct reading reading = {.id = id, .arena = arena};
    int r = store_read(store, get_fn, &reading, err);

    if (r < 0)
        return r;
    *ret_backfill = reading.one;
    return 0;
}

static int
list_fn(struct db *db, void *arg, struct err *err)
{
    struct reading *reading = arg;
    int64_t ids[LIST_MAX];
    scoped(db_rows_end) struct db_rows rows = {0};
    size_t n = 0;
    int r =
        db_ask(db, store_sql(db, STMT_BACKFILL_LIST), &rows, err, p_i64(reading->most));

    while (r >= 0 && n < LIST_MAX && (r = db_next(&rows, err)) > 0)
        ids[n++] = db_i64(&rows, 0);
    db_rows_end(&rows);
    reading->list = arena_array(reading->arena, struct backfill, n);
    reading->count = n;
    for (size_t i = 0; i < n && r >= 0; i++)
        r = read_one(db, ids[i], reading->arena, &reading->list[i], err);
    return r < 0 ? r : 0;
}

int
queue_backfill_list(struct store *store, int64_t most, struct arena *arena,
                    struct backfill **ret_list, size_t *ret_count, struct err *err)
{
    struct reading reading = {.most = most < LIST_MAX ? most : LIST_MAX,
                              .arena = arena};
    int r = store_read(store, list_fn, &reading, err);

    if (r < 0)
        return r;
    *ret_list = reading.list;
    *ret_count = reading.count;
    return 0;
}
