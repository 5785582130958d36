#include "batch/skip.h"

#include "base/arena.h"
#include "base/err.h"
#include "batch/execution.h"
#include "queue/hold.h"
#include "store/store.h"

struct noting {
    int64_t request_id;
    struct claim_token token;
    int64_t instance_id;
    const struct batch_skip *skip;
};

static int
note_fn(struct db *db, void *arg, struct err *err)
{
    const struct noting *noting = arg;
    const struct batch_skip *skip = noting->skip;
    int r = queue_hold_in(db, noting->request_id, &noting->token, err);

    if (r <= 0)
        return r < 0 ? r : BATCH_LOST;
    r = db_run(db, store_sql(db, STMT_BATCH_SKIP_NOTE), err, p_i64(noting->instance_id),
               p_text(skip->step), p_i64(skip->item), p_text(skip->class),
               p_i64(noting->request_id), p_text(skip->values), p_text(skip->message));
    return r < 0 ? r : BATCH_OK;
}

int
batch_skip_note(struct store *store, int64_t request_id, struct claim_token token,
                int64_t instance_id, const struct batch_skip *skip, struct err *err)
{
    struct noting noting = {request_id, token, instance_id, skip};

    return store_write(store, STORE_NORMAL, note_fn, &noting, err);
}

struct listing {
    int64_t request_id;
    int64_t max;
    struct arena *arena;
    struct batch_skip *skips;
    size_t count;
};

static int
list_fn(struct db *db, void *arg, struct err *err)
{
    struct listing *listing = arg;
    struct arena *arena = listing->arena;
    scoped(db_rows_end) struct db_rows rows = {0};
    int r;

    listing->count = 0;
    listing->skips = arena_array(arena, struct batch_skip, (size_t)listing->max);
    r = db_ask(db, store_sql(db, STMT_BATCH_SKIPS_OF_REQUEST), &rows, err,
               p_i64(listing->request_id), p_i64(listing->max));
    while (r >= 0 && (r = db_next(&rows, err)) > 0)
        listing->skips[listing->count++] = (struct batch_skip){
            .step = arena_strdup(arena, db_text(&rows, 0)),
            .item = db_i64(&rows, 1),
            .class = arena_strdup(arena, db_text(&rows, 2)),
            .values = arena_strdup(arena, db_text(&rows, 3)),
            .message = arena_strdup(arena, db_text(&rows, 4)),
            .noted_at_us = db_i64(&rows, 5),
        };
    return r < 0 ? r : 0;
}

int
batch_skips(struct store *store, int64_t request_id, int64_t max, struct arena *arena,
            struct batch_skip **ret_skips, size_t *ret_count, struct err *err)
{
    struct listing listing = {.request_id = request_id, .max = max, .arena = arena};
    int r = store_read(store, list_fn, &listing, err);

    if (r < 0)
        return r;
    *ret_skips = listing.skips;
    *ret_count = listing.count;
    return 0;
}
