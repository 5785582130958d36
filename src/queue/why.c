#include "queue/why.h"

#include "base/arena.h"
#include "base/err.h"
#include "store/store.h"

struct look {
    int64_t request_id;
    const char *lane;
    struct arena *arena;
    struct why_lane found;
};

static int
read_holders(struct db *db, struct look *look, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int r = db_ask(db, store_sql(db, STMT_WHY_HOLDERS), &rows, err, p_text(look->lane),
                   p_i64(WHY_HOLDERS_MAX));

    if (r < 0)
        return r;
    while ((r = db_next(&rows, err)) > 0)
        look->found.holders[look->found.n_holders++] = (struct why_holder){
            .first_id = db_i64(&rows, 0),
            .last_id = db_i64(&rows, 1),
            .job = arena_strdup(look->arena, db_text(&rows, 2)),
            .worker = arena_strdup(look->arena, db_text(&rows, 3)),
        };
    return r;
}

static int
look_fn(struct db *db, void *arg, struct err *err)
{
    struct look *look = (struct look *)arg;
    struct db_value id = p_i64(look->request_id);
    struct db_value lane = p_text(look->lane);
    int r;

    look->found = (struct why_lane){.ahead = -1};
    r = db_query_i64(db, store_sql(db, STMT_WHY_AHEAD), &id, 1, &look->found.ahead,
                     err);
    if (r >= 0)
        r = db_query_i64(db, store_sql(db, STMT_WHY_RUNNING), &lane, 1,
                         &look->found.running, err);
    return r < 0 ? r : read_holders(db, look, err);
}

int
queue_why_lane(struct store *store, int64_t request_id, const char *lane,
               struct arena *arena, struct why_lane *ret_lane, struct err *err)
{
    struct look look = {.request_id = request_id, .lane = lane, .arena = arena};
    int r = store_read(store, look_fn, &look, err);

    if (r == 0)
        *ret_lane = look.found;
    return r;
}

struct waits {
    int64_t request_id;
    int64_t *ids;
    size_t count;
};

static int
read_waits(struct db *db, void *arg, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    struct waits *waits = arg;
    int r = db_ask(db, store_sql(db, STMT_WHY_WAITS), &rows, err,
                   p_i64(waits->request_id), p_i64(WHY_WAITS_MAX));

    waits->count = 0;
    while (r == 0 && (r = db_next(&rows, err)) > 0) {
        waits->ids[waits->count++] = db_i64(&rows, 0);
        r = 0;
    }
    return r;
}

int
queue_why_waits(struct store *store, int64_t request_id, int64_t ret_ids[WHY_WAITS_MAX],
                size_t *ret_count, struct err *err)
{
    struct waits waits = {.request_id = request_id, .ids = ret_ids};
    int r = store_read(store, read_waits, &waits, err);

    if (r == 0)
        *ret_count = waits.count;
    return r;
}
