/*
 * The chores of waiting requests. Each run handles at most so many spans and says how
 * many requests it moved; who gets more than none calls again.
 */
#include "queue/later.h"

#include "base/arena.h"
#include "base/err.h"
#include "queue/closing.h"
#include "queue/lifecycle.h"
#include "queue/spans.h"
#include "store/store.h"
#include "store/wake.h"

#include <assert.h>

#define SPANS_AT_ONCE 1000

/* --- due --- */

static int
promote_sqlite(struct db *db, int64_t *ret_moved, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    scoped(db_rows_end) struct db_rows rows = {0};
    struct span *spans = arena_array(&arena, struct span, SPANS_AT_ONCE);
    int64_t moved = 0;
    size_t n = 0;
    int r;

    r = db_ask(db, store_sql(db, STMT_QUEUE_DUE), &rows, err, p_i64(SPANS_AT_ONCE));
    if (r < 0)
        return r;
    while ((r = db_next(&rows, err)) > 0) {
        spans[n++] = (struct span){
            .first_id = db_i64(&rows, 0),
            .last_id = db_i64(&rows, 1),
            .job = arena_strdup(&arena, db_text(&rows, 2)),
            .lane = arena_strdup(&arena, db_text(&rows, 3)),
            .priority = (int)db_i64(&rows, 4),
            .expires_at_us = db_i64(&rows, 5),
        };
        moved += spans[n - 1].last_id - spans[n - 1].first_id + 1;
    }
    db_rows_end(&rows);
    for (size_t i = 0; i < n && r == 0; i++)
        r = db_run(db, store_sql(db, STMT_QUEUE_LATER_DELETE), err,
                   p_i64(spans[i].first_id));
    if (r == 0)
        r = queue_ready_enter(db, spans, n, err);
    *ret_moved = moved;
    return r;
}

static int
promote_fn(struct db *db, void *arg, struct err *err)
{
    int64_t *moved = (int64_t *)arg;
    const struct db_value most = p_i64(SPANS_AT_ONCE);
    int r;

    *moved = 0;
    if (db_kind(db) == DB_SQLITE)
        return promote_sqlite(db, moved, err);
    r = db_query_i64(db, store_sql(db, STMT_QUEUE_PROMOTE), &most, 1, moved, err);
    return r < 0 ? r : 0;
}

int
queue_promote(struct store *store, int64_t *ret_moved, struct err *err)
{
    int64_t moved = 0;
    int r = store_write(store, STORE_NORMAL, promote_fn, &moved, err);

    if (r < 0)
        return r;
    *ret_moved = moved;
    if (moved > 0)
        store_wake(store, WAKE_READY);
    return 0;
}

/* --- expired --- */

struct range {
    int64_t first_id;
    int64_t last_id;
};

static int
take_expired(struct db *db, enum stmt stmt, struct range *ret_ranges, size_t *count,
             int64_t *ret_now_us, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int r;

    r = db_ask(db, store_sql(db, stmt), &rows, err, p_i64(SPANS_AT_ONCE));
    if (r < 0)
        return r;
    while ((r = db_next(&rows, err)) > 0) {
        ret_ranges[(*count)++] = (struct range){db_i64(&rows, 0), db_i64(&rows, 1)};
        *ret_now_us = db_i64(&rows, 2);
    }
    return r;
}

static int
close_expired(struct db *db, const struct range *range, int64_t now_us, struct err *err)
{
    int r;

    assert(request_may_end(REQUEST_QUEUED, OUTCOME_EXPIRED));
    r = db_run(db, store_sql(db, STMT_QUEUE_EXPIRE_RANGE), err,
               p_text(request_outcome_name(OUTCOME_EXPIRED)), p_i64(now_us),
               p_text("nobody had started it when it expired"), p_i64(range->first_id),
               p_i64(range->last_id));
    if (r < 0)
        return r;
    return db_run(db, store_sql(db, STMT_QUEUE_ACTIVE_RELEASE_RANGE), err,
                  p_i64(range->first_id), p_i64(range->last_id));
}

static int
expire_fn(struct db *db, void *arg, struct err *err)
{
    int64_t *expired = (int64_t *)arg;
    scoped(arena_release) struct arena arena = {0};
    struct range *ranges = arena_array(&arena, struct range, 2 * SPANS_AT_ONCE);
    int64_t now_us = 0;
    size_t n = 0;
    int r;

    *expired = 0;
    r = take_expired(db, STMT_QUEUE_EXPIRED_LATER, ranges, &n, &now_us, err);
    if (r == 0)
        r = take_expired(db, STMT_QUEUE_EXPIRED_READY, ranges, &n, &now_us, err);
    for (size_t i = 0; i < n && r == 0; i++) {
        r = close_expired(db, &ranges[i], now_us, err);
        *expired += ranges[i].last_id - ranges[i].first_id + 1;
    }
    return r;
}

int
queue_expire(struct store *store, int64_t *ret_expired, struct err *err)
{
    int64_t expired = 0;
    int r = store_write(store, STORE_NORMAL, expire_fn, &expired, err);

    if (r < 0)
        return r;
    *ret_expired = expired;
    if (expired > 0)
        store_wake(store, WAKE_DONE);
    return 0;
}

/* --- when --- */

struct due {
    int64_t due_us;
    int64_t now_us;
};

static int
due_fn(struct db *db, void *arg, struct err *err)
{
    struct due *due = (struct due *)arg;
    scoped(db_rows_end) struct db_rows rows = {0};
    int r;

    r = db_ask(db, store_sql(db, STMT_QUEUE_NEXT_DUE), &rows, err);
    if (r == 0)
        r = db_next(&rows, err);
    if (r <= 0)
        return r;
    due->due_us = db_i64(&rows, 0);
    due->now_us = db_i64(&rows, 1);
    return 0;
}

int
queue_next_due(struct store *store, int64_t *ret_due_us, int64_t *ret_now_us,
               struct err *err)
{
    struct due due = {0};
    int r = store_read(store, due_fn, &due, err);

    if (r < 0)
        return r;
    *ret_due_us = due.due_us;
    *ret_now_us = due.now_us;
    return 0;
}
