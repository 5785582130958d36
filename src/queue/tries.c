#include "queue/tries.h"

#include "base/arena.h"
#include "base/err.h"
#include "queue/read.h"
#include "store/store.h"

#define GROW 16

int
queue_live_try_in(struct db *db, int64_t request_id, int64_t *ret_id, struct err *err)
{
    const struct db_value id = p_i64(request_id);

    return db_query_i64(db, store_sql(db, STMT_CHAIN_LIVE_TRY), &id, 1, ret_id, err);
}

struct call {
    int64_t request_id;
    struct arena *arena;
    struct request_try *list;
    size_t count;
};

static void
read_try(const struct db_rows *rows, struct arena *arena, struct request_try *ret)
{
    bool claimed = !db_is_null(rows, 4) && db_i64(rows, 4) >= db_i64(rows, 0);

    *ret = (struct request_try){
        .id = db_i64(rows, 0),
        .attempt = (int)db_i64(rows, 1),
        .status = claimed ? REQUEST_RUNNING : REQUEST_QUEUED,
        .created_at_us = db_i64(rows, 3),
        .started_at_us = db_i64(rows, 6),
        .finished_at_us = db_i64(rows, 7),
        .detail = queue_read_text(rows, 8, arena),
    };
    if (!request_source_parse(db_text(rows, 2), &ret->source))
        ret->source = SOURCE_RETRY;
    if (!db_is_null(rows, 5) && request_outcome_parse(db_text(rows, 5), &ret->outcome))
        ret->status = request_status_of(ret->outcome);
}

static int
tries_fn(struct db *db, void *arg, struct err *err)
{
    struct call *call = (struct call *)arg;
    scoped(db_rows_end) struct db_rows rows = {0};
    int r;

    call->count = 0;
    r = db_ask(db, store_sql(db, STMT_CHAIN_ATTEMPTS), &rows, err,
               p_i64(call->request_id));
    if (r < 0)
        return r;
    while ((r = db_next(&rows, err)) > 0) {
        if (call->count % GROW == 0) {
            struct request_try *more =
                arena_array(call->arena, struct request_try, call->count + GROW);

            if (call->count > 0)
                memcpy(more, call->list, call->count * sizeof(*more));
            call->list = more;
        }
        read_try(&rows, call->arena, &call->list[call->count++]);
    }
    return r;
}

int
queue_tries(struct store *store, int64_t request_id, struct arena *arena,
            struct request_try **ret_tries, size_t *ret_count, struct err *err)
{
    struct call call = {.request_id = request_id, .arena = arena};
    int r = store_read(store, tries_fn, &call, err);

    if (r < 0)
        return r;
    *ret_tries = call.list;
    *ret_count = call.count;
    return 0;
}
