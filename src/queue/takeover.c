/* Which lane a request asked for stays in its own row; only the ready row moves. */
#include "queue/takeover.h"

#include "base/arena.h"
#include "base/err.h"
#include "store/store.h"
#include "store/wake.h"

#define LANES_MAX 1000

struct lanes {
    struct arena *arena;
    const char **names;
    size_t count;
};

static int
lanes_fn(struct db *db, void *arg, struct err *err)
{
    struct lanes *lanes = (struct lanes *)arg;
    scoped(db_rows_end) struct db_rows rows = {0};
    int r;

    lanes->count = 0;
    r = db_ask(db, store_sql(db, STMT_QUEUE_READY_LANES), &rows, err);
    while (r >= 0 && lanes->count < LANES_MAX && (r = db_next(&rows, err)) > 0)
        lanes->names[lanes->count++] = arena_strdup(lanes->arena, db_text(&rows, 0));
    return r < 0 ? r : 0;
}

int
queue_ready_lanes(struct store *store, struct arena *arena, const char ***ret_lanes,
                  size_t *ret_count, struct err *err)
{
    struct lanes lanes = {.arena = arena,
                          .names = arena_array(arena, const char *, LANES_MAX)};
    int r = store_read(store, lanes_fn, &lanes, err);

    if (r < 0)
        return r;
    *ret_lanes = lanes.names;
    *ret_count = lanes.count;
    return 0;
}

static int
move_fn(struct db *db, void *arg, struct err *err)
{
    const struct take_over *order = (const struct take_over *)arg;
    int r = db_run(db, store_sql(db, STMT_QUEUE_TAKE_OVER), err, p_text(order->to),
                   p_text(order->from), p_text_array(order->jobs, order->n_jobs),
                   p_i64(order->older_than_us), p_i64(order->most));

    return r < 0 ? r : (int)db_changes(db);
}

int
queue_take_over(struct store *store, const struct take_over *order, struct err *err)
{
    struct take_over copy = *order;
    int r;

    if (order->n_jobs == 0 || order->most <= 0)
        return 0;
    r = store_write(store, STORE_NORMAL, move_fn, &copy, err);
    if (r > 0)
        store_wake(store, WAKE_READY);
    return r;
}
