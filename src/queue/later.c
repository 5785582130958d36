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
#include "queue/submit_rows.h"
#include "store/store.h"
#include "store/wake.h"

#include <assert.h>

#define SPANS_AT_ONCE 1000
#define KEYS_AT_ONCE  100
#define KEY_AGAIN_US  (INT64_C(1000) * 1000)
#define PATIENT_US    (INT64_C(5000) * 1000)

/* --- due --- */

struct promotion {
    int64_t moved;
    int64_t refused;
};

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
promote_times(struct db *db, int64_t *ret_moved, struct err *err)
{
    const struct db_value most = p_i64(SPANS_AT_ONCE);
    int r;

    if (db_kind(db) == DB_SQLITE)
        return promote_sqlite(db, ret_moved, err);
    r = db_query_i64(db, store_sql(db, STMT_QUEUE_PROMOTE), &most, 1, ret_moved, err);
    return r < 0 ? r : 0;
}

/* --- those that wait for the key of their job --- */

static int
keys_due(struct db *db, struct arena *arena, struct span *spans, size_t *ret_count,
         int64_t *ret_now_us, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    size_t n = 0;
    int r;

    r = db_ask(db, store_sql(db, STMT_CHAIN_KEYS_DUE), &rows, err, p_i64(KEYS_AT_ONCE));
    if (r < 0)
        return r;
    while ((r = db_next(&rows, err)) > 0) {
        spans[n++] = (struct span){
            .first_id = db_i64(&rows, 0),
            .last_id = db_i64(&rows, 0),
            .job = arena_strdup(arena, db_text(&rows, 1)),
            .lane = arena_strdup(arena, db_text(&rows, 2)),
            .priority = (int)db_i64(&rows, 3),
            .expires_at_us = db_i64(&rows, 4),
            .patient = db_i64(&rows, 6) != 0,
        };
        *ret_now_us = db_i64(&rows, 5);
    }
    *ret_count = n;
    return r;
}

/* Somebody else asked for the job meanwhile, so this one is not wanted any more. */
static int
refuse_key(struct db *db, const struct span *span, const char *key, int64_t now_us,
           struct arena *arena, struct err *err)
{
    const struct db_value text = p_text(key);
    struct closing closing = {
        .id = span->first_id,
        .from = REQUEST_QUEUED,
        .outcome = OUTCOME_REFUSED,
        .finished_at_us = now_us,
    };
    int64_t holder = 0;
    int r;

    r = db_query_i64(db, store_sql(db, STMT_CHAIN_KEY_HOLDER), &text, 1, &holder, err);
    if (r >= 0)
        r = db_run(db, store_sql(db, STMT_CHAIN_LATER_DELETE), err,
                   p_i64(span->first_id));
    closing.detail = arena_printf(arena, "job %s has request %lld, asked for meanwhile",
                                  span->job, (long long)holder);
    if (r == 0)
        r = queue_close_in(db, &closing, 1, err);
    if (r >= 0)
        r = store_audit(db, "pawl", "chain-dropped",
                        arena_printf(arena, "request %lld", (long long)span->first_id),
                        closing.detail, err);
    return r;
}

static int
promote_key(struct db *db, const struct span *span, int64_t now_us,
            struct promotion *promotion, struct arena *arena, struct err *err)
{
    const char *key = queue_refuse_key(arena, span->job);
    const struct db_value take[] = {p_text(key), p_i64(span->first_id)};
    int64_t got = 1;
    int r = 0;

    if (db_kind(db) == DB_PG)
        r = db_query_i64(db, store_sql(db, STMT_CHAIN_TRY_LOCK), take, 1, &got, err);
    if (r < 0)
        return r;
    if (!got) /* still busy */
        return db_run(db, store_sql(db, STMT_CHAIN_LATER_SET), err, p_text("key"),
                      p_i64(now_us + KEY_AGAIN_US), p_i64(span->first_id));
    r = db_query_i64(db, store_sql(db, STMT_QUEUE_ACTIVE_TAKE), take, array_len(take),
                     &got, err);
    if (r < 0)
        return r;
    if (r == 0 && span->patient)
        return db_run(db, store_sql(db, STMT_CHAIN_LATER_SET), err, p_text("key"),
                      p_i64(now_us + PATIENT_US), p_i64(span->first_id));
    if (r == 0) {
        promotion->refused++;
        return refuse_key(db, span, key, now_us, arena, err);
    }
    promotion->moved++;
    r = db_run(db, store_sql(db, STMT_CHAIN_LATER_DELETE), err, p_i64(span->first_id));
    return r < 0 ? r : queue_ready_enter(db, span, 1, err);
}

static int
promote_keys(struct db *db, struct promotion *promotion, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    struct span *spans = arena_array(&arena, struct span, KEYS_AT_ONCE);
    int64_t now_us = 0;
    size_t n = 0;
    int r = keys_due(db, &arena, spans, &n, &now_us, err);

    for (size_t i = 0; i < n && r >= 0; i++)
        r = promote_key(db, &spans[i], now_us, promotion, &arena, err);
    return r < 0 ? r : 0;
}

static int
promote_fn(struct db *db, void *arg, struct err *err)
{
    struct promotion *promotion = (struct promotion *)arg;
    int r;

    *promotion = (struct promotion){0};
    r = promote_times(db, &promotion->moved, err);
    return r < 0 ? r : promote_keys(db, promotion, err);
}

int
queue_promote(struct store *store, int64_t *ret_moved, struct err *err)
{
    struct promotion promotion = {0};
    int r = store_write(store, STORE_NORMAL, promote_fn, &promotion, err);

    if (r < 0)
        return r;
    *ret_moved = promotion.moved;
    if (promotion.moved > 0)
        store_wake(store, WAKE_READY);
    if (promotion.refused > 0)
        store_wake(store, WAKE_DONE);
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
    r = db_run(db, store_sql(db, STMT_QUEUE_ACTIVE_RELEASE_RANGE), err,
               p_i64(range->first_id), p_i64(range->last_id));
    if (r == 0)
        r = queue_closed_range_in(db, range->first_id, range->last_id, OUTCOME_EXPIRED,
                                  now_us, err);
    return r < 0 ? r : 0;
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

static int
lift_fn(struct db *db, void *arg, struct err *err)
{
    return queue_later_lift(db, *(const int64_t *)arg, err);
}

int
queue_lift(struct store *store, int64_t request_id, struct err *err)
{
    int r = store_write(store, STORE_NORMAL, lift_fn, &request_id, err);

    if (r < 0)
        return r;
    store_wake(store, WAKE_READY);
    return 0;
}
