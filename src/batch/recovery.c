#include "batch/recovery.h"

#include "base/arena.h"
#include "base/err.h"
#include "store/store.h"
#include "store/wake.h"

#define RECOVERIES_MAX 100

static int
ask_fn(struct db *db, void *arg, struct err *err)
{
    const struct recovery *ask = (const struct recovery *)arg;

    return db_run(db, store_sql(db, STMT_BATCH_RECOVERY_ASK), err,
                  p_i64(ask->execution_id), p_text(ask->actor));
}

int
batch_recovery_ask(struct store *store, int64_t execution_id, const char *actor,
                   struct err *err)
{
    struct recovery ask = {.execution_id = execution_id, .actor = actor};
    int r = store_write(store, STORE_NORMAL, ask_fn, &ask, err);

    if (r == 0)
        store_wake(store, WAKE_LOST);
    return r;
}

static int
drop_fn(struct db *db, void *arg, struct err *err)
{
    return db_run(db, store_sql(db, STMT_BATCH_RECOVERY_DROP), err,
                  p_i64(*(const int64_t *)arg));
}

int
batch_recovery_drop(struct store *store, int64_t execution_id, struct err *err)
{
    return store_write(store, STORE_NORMAL, drop_fn, &execution_id, err);
}

struct listing {
    struct arena *arena;
    struct recovery *list;
    size_t count;
};

static int
list_fn(struct db *db, void *arg, struct err *err)
{
    struct listing *listing = (struct listing *)arg;
    scoped(db_rows_end) struct db_rows rows = {0};
    int r = db_ask(db, store_sql(db, STMT_BATCH_RECOVERIES), &rows, err,
                   p_i64(RECOVERIES_MAX));

    if (r < 0)
        return r;
    listing->list = arena_array(listing->arena, struct recovery, RECOVERIES_MAX);
    listing->count = 0;
    while ((r = db_next(&rows, err)) > 0)
        listing->list[listing->count++] = (struct recovery){
            .execution_id = db_i64(&rows, 0),
            .actor = arena_strdup(listing->arena, db_text(&rows, 1)),
        };
    return r;
}

int
batch_recoveries(struct store *store, struct arena *arena, struct recovery **ret_list,
                 size_t *ret_count, struct err *err)
{
    struct listing listing = {.arena = arena};
    int r = store_read(store, list_fn, &listing, err);

    if (r < 0)
        return r;
    *ret_list = listing.list;
    *ret_count = listing.count;
    return 0;
}

static int
waits_fn(struct db *db, void *arg, struct err *err)
{
    const struct db_value id = p_i64(*(const int64_t *)arg);
    int64_t waits = 0;
    int r =
        db_query_i64(db, store_sql(db, STMT_BATCH_RECOVERY_WAITS), &id, 1, &waits, err);

    return r < 0 ? r : waits > 0;
}

int
batch_recovery_waits(struct store *store, int64_t execution_id, struct err *err)
{
    return store_read(store, waits_fn, &execution_id, err);
}
