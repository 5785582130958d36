/* Moves of spans; each leaves the rows whole: what is taken out is split off. */
#include "queue/spans.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/strs.h"
#include "queue/closing.h"
#include "store/store.h"

static int
enter_pg(struct db *db, const struct span *spans, size_t count, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    int64_t *numbers = arena_array(&arena, int64_t, 4 * count);
    const char **words = arena_array(&arena, const char *, 2 * count);

    for (size_t i = 0; i < count; i++) {
        numbers[i] = spans[i].first_id;
        numbers[count + i] = spans[i].last_id;
        numbers[2 * count + i] = spans[i].priority;
        numbers[3 * count + i] = spans[i].expires_at_us;
        words[i] = spans[i].job;
        words[count + i] = spans[i].lane;
    }
    return db_run(db, store_sql(db, STMT_QUEUE_READY_ADD_MANY), err,
                  p_i64_array(numbers, count), p_i64_array(numbers + count, count),
                  p_text_array(words, count), p_text_array(words + count, count),
                  p_i64_array(numbers + 2 * count, count),
                  p_i64_array(numbers + 3 * count, count));
}

int
queue_ready_enter(struct db *db, const struct span *spans, size_t count,
                  struct err *err)
{
    int r = 0;

    if (count == 0)
        return 0;
    if (db_kind(db) == DB_PG)
        return enter_pg(db, spans, count, err);
    for (size_t i = 0; i < count && r == 0; i++) {
        r = db_run(db, store_sql(db, STMT_QUEUE_SEQ_STEP), err);
        if (r == 0)
            r = db_run(db, store_sql(db, STMT_QUEUE_READY_ADD), err,
                       p_i64(spans[i].first_id), p_i64(spans[i].last_id),
                       p_text(spans[i].job), p_text(spans[i].lane),
                       p_i64(spans[i].priority), p_id(spans[i].expires_at_us));
    }
    return r;
}

int
queue_ready_put(struct db *db, const struct span *span, int64_t first_id,
                int64_t last_id, struct err *err)
{
    if (first_id > last_id)
        return 0;
    return db_run(db, store_sql(db, STMT_QUEUE_READY_PUT), err, p_i64(first_id),
                  p_i64(last_id), p_text(span->job), p_text(span->lane),
                  p_i64(span->priority), p_i64(span->seq), p_i64(span->ready_since_us),
                  p_id(span->expires_at_us));
}

int
queue_later_put(struct db *db, const struct span *span, int64_t first_id,
                int64_t last_id, struct err *err)
{
    if (first_id > last_id)
        return 0;
    return db_run(db, store_sql(db, STMT_QUEUE_LATER_ADD), err, p_i64(first_id),
                  p_i64(last_id), p_text(span->job), p_text(span->lane),
                  p_i64(span->priority), p_id(span->not_before_us),
                  p_id(span->expires_at_us), p_text(span->reason),
                  p_i64(span->created_at_us));
}

/* 1: taken out, its span is *ret; 0: not there. */
static int
take_later(struct db *db, int64_t request_id, struct arena *arena, struct span *ret,
           int64_t *ret_now_us, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    struct span span;
    int64_t now_us;
    int r;

    r = db_ask(db, store_sql(db, STMT_QUEUE_LATER_TAKE), &rows, err, p_i64(request_id));
    if (r == 0)
        r = db_next(&rows, err);
    if (r <= 0)
        return r;
    span = (struct span){
        .first_id = db_i64(&rows, 0),
        .last_id = db_i64(&rows, 1),
        .job = arena_strdup(arena, db_text(&rows, 2)),
        .lane = arena_strdup(arena, db_text(&rows, 3)),
        .priority = (int)db_i64(&rows, 4),
        .not_before_us = db_i64(&rows, 5),
        .expires_at_us = db_i64(&rows, 6),
        .reason = arena_strdup(arena, db_text(&rows, 7)),
        .created_at_us = db_i64(&rows, 8),
    };
    now_us = db_i64(&rows, 9);
    db_rows_end(&rows);
    r = queue_later_put(db, &span, span.first_id, request_id - 1, err);
    if (r == 0)
        r = queue_later_put(db, &span, request_id + 1, span.last_id, err);
    if (r < 0)
        return r;
    *ret = span;
    *ret_now_us = now_us;
    return 1;
}

int
queue_later_take(struct db *db, int64_t request_id, int64_t *ret_now_us,
                 struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    struct span span;

    return take_later(db, request_id, &arena, &span, ret_now_us, err);
}

int
queue_later_lift(struct db *db, int64_t request_id, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    struct span span;
    int64_t now_us;
    int r = take_later(db, request_id, &arena, &span, &now_us, err);

    if (r <= 0)
        return r;
    if (!str_eq(span.reason, "time"))
        return queue_later_put(db, &span, request_id, request_id, err);
    span.first_id = request_id;
    span.last_id = request_id;
    return queue_ready_enter(db, &span, 1, err);
}

int
queue_ready_take(struct db *db, int64_t request_id, int64_t *ret_now_us,
                 struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    scoped(db_rows_end) struct db_rows rows = {0};
    struct span span;
    int64_t now_us;
    int r;

    r = db_ask(db, store_sql(db, STMT_QUEUE_READY_TAKE), &rows, err, p_i64(request_id));
    if (r == 0)
        r = db_next(&rows, err);
    if (r <= 0)
        return r;
    span = (struct span){
        .first_id = db_i64(&rows, 0),
        .last_id = db_i64(&rows, 1),
        .job = arena_strdup(&arena, db_text(&rows, 2)),
        .lane = arena_strdup(&arena, db_text(&rows, 3)),
        .priority = (int)db_i64(&rows, 4),
        .seq = db_i64(&rows, 5),
        .ready_since_us = db_i64(&rows, 6),
        .expires_at_us = db_i64(&rows, 7),
    };
    now_us = db_i64(&rows, 8);
    db_rows_end(&rows);
    r = queue_ready_put(db, &span, span.first_id, request_id - 1, err);
    if (r == 0)
        r = queue_ready_put(db, &span, request_id + 1, span.last_id, err);
    if (r < 0)
        return r;
    *ret_now_us = now_us;
    return 1;
}
