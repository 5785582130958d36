/*
 * The claim. On PostgreSQL one statement does it all (src/sql/queue.pg.sql says how it
 * keeps to the number asked for); on SQLite there is one writer, so the same is done
 * step by step. The cursor is only for PostgreSQL, where rows taken before stay in the
 * index until vacuum; it stands one seq before the last row taken, since the rest of a
 * split span keeps that seq.
 */
#include "queue/claim.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/rand.h"
#include "base/strs.h"
#include "queue/closing.h"
#include "queue/read.h"
#include "queue/spans.h"
#include "queue/submit.h"
#include "store/store.h"
#include "store/wake.h"

#include <assert.h>

struct call {
    const struct claim_want *want;
    struct arena *arena;
    struct claim *claims;
    size_t count;
    struct claim_cursor cursor;
    char nonce[RAND_HEX128_SIZE];
};

/* Room for another claim, filled with what all have in common. */
static struct claim *
claim_add(struct call *call, const char *job)
{
    struct claim *claim;

    assert(call->count < (size_t)call->want->max);
    claim = &call->claims[call->count++];
    *claim = (struct claim){
        .job = arena_strdup(call->arena, job),
        .lane = arena_strdup(call->arena, call->want->lane),
    };
    str_copy(claim->token.nonce, sizeof(claim->token.nonce), call->nonce);
    return claim;
}

static int
claim_pg(struct db *db, struct call *call, struct err *err)
{
    const struct claim_want *want = call->want;
    const struct claim_cursor *cursor = want->cursor;
    scoped(db_rows_end) struct db_rows rows = {0};
    bool goes_on = cursor && cursor->set;
    int r;

    r = db_ask(db, store_sql(db, STMT_QUEUE_CLAIM), &rows, err, p_text(want->lane),
               p_i64(goes_on ? cursor->priority : QUEUE_PRIORITY_MAX + 1),
               p_i64(goes_on ? cursor->seq : 0), p_text_array(want->jobs, want->n_jobs),
               p_i64(want->max), p_text(want->worker), p_text(call->nonce));
    if (r < 0)
        return r;
    while ((r = db_next(&rows, err)) > 0) {
        struct claim *claim = claim_add(call, db_text(&rows, 2));

        claim->first_id = db_i64(&rows, 0);
        claim->last_id = db_i64(&rows, 1);
        claim->priority = (int)db_i64(&rows, 3);
        claim->token.number = db_i64(&rows, 5);
        claim->claimed_at_us = db_i64(&rows, 6);
        call->cursor =
            (struct claim_cursor){true, claim->priority, db_i64(&rows, 4) - 1};
    }
    return r;
}

static int
pick_sqlite(struct db *db, struct call *call, struct span *spans, size_t *ret_count,
            struct err *err)
{
    const struct claim_want *want = call->want;
    scoped(db_rows_end) struct db_rows rows = {0};
    size_t n = 0;
    int r;

    r = db_ask(db, store_sql(db, STMT_QUEUE_CLAIM_PICK), &rows, err, p_text(want->lane),
               p_text_array(want->jobs, want->n_jobs), p_i64(want->max));
    if (r < 0)
        return r;
    while ((r = db_next(&rows, err)) > 0)
        spans[n++] = (struct span){
            .first_id = db_i64(&rows, 0),
            .last_id = db_i64(&rows, 1),
            .job = arena_strdup(call->arena, db_text(&rows, 2)),
            .lane = call->want->lane,
            .priority = (int)db_i64(&rows, 4),
            .seq = db_i64(&rows, 5),
            .ready_since_us = db_i64(&rows, 6),
            .expires_at_us = db_i64(&rows, 7),
        };
    *ret_count = n;
    return r;
}

/* Numbers *ret_first and on, for count claims. */
static int
draw_tokens(struct db *db, size_t count, int64_t *ret_first, int64_t *ret_now_us,
            struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int r;

    r = db_ask(db, store_sql(db, STMT_QUEUE_TOKENS_DRAW), &rows, err,
               p_i64((int64_t)count));
    if (r == 0)
        r = db_next(&rows, err);
    if (r < 0)
        return r;
    *ret_first = db_i64(&rows, 0) - (int64_t)count + 1;
    *ret_now_us = db_i64(&rows, 1);
    return 0;
}

/* The first of the span's requests, at most left of them. */
static int
take_sqlite(struct db *db, struct call *call, const struct span *span, int64_t left,
            int64_t token, int64_t now_us, struct err *err)
{
    struct claim *claim = claim_add(call, span->job);
    struct claim_row row = {
        .job = span->job, .lane = span->lane, .worker = call->want->worker};
    int r;

    claim->first_id = span->first_id;
    claim->last_id = span->last_id;
    if (claim->last_id - claim->first_id + 1 > left)
        claim->last_id = claim->first_id + left - 1;
    claim->priority = span->priority;
    claim->token.number = token;
    claim->claimed_at_us = now_us;
    r = db_run(db, store_sql(db, STMT_QUEUE_READY_DELETE), err, p_i64(span->first_id));
    if (r == 0)
        r = queue_ready_put(db, span, claim->last_id + 1, span->last_id, err);
    if (r < 0)
        return r;
    row.token = claim->token;
    row.claimed_at_us = claim->claimed_at_us;
    call->cursor = (struct claim_cursor){true, span->priority, span->seq - 1};
    return queue_claim_put(db, &row, claim->first_id, claim->last_id, err);
}

static int
claim_sqlite(struct db *db, struct call *call, struct err *err)
{
    struct span *spans = arena_array(call->arena, struct span, (size_t)call->want->max);
    int64_t left = call->want->max;
    int64_t token, now_us;
    size_t count;
    int r;

    r = pick_sqlite(db, call, spans, &count, err);
    if (r < 0 || count == 0)
        return r;
    r = draw_tokens(db, count, &token, &now_us, err);
    for (size_t i = 0; i < count && left > 0 && r == 0; i++) {
        r = take_sqlite(db, call, &spans[i], left, token + (int64_t)i, now_us, err);
        left -= spans[i].last_id - spans[i].first_id + 1;
    }
    if (r < 0)
        return r;
    return db_run(db, store_sql(db, STMT_QUEUE_REUSE_RELEASE), err,
                  p_text(call->want->worker), p_text(call->nonce));
}

static int
claim_fn(struct db *db, void *arg, struct err *err)
{
    struct call *call = (struct call *)arg;

    call->count = 0;
    call->cursor = (struct claim_cursor){0};
    return db_kind(db) == DB_PG ? claim_pg(db, call, err) : claim_sqlite(db, call, err);
}

/* The commit's answer was lost: the nonce shows whether we got something. */
static int
look_fn(struct db *db, void *arg, struct err *err)
{
    struct call *call = (struct call *)arg;
    scoped(db_rows_end) struct db_rows rows = {0};
    int r;

    call->count = 0;
    call->cursor = (struct claim_cursor){0};
    r = db_ask(db, store_sql(db, STMT_QUEUE_CLAIMS_OF), &rows, err,
               p_text(call->want->worker), p_text(call->nonce));
    if (r < 0)
        return r;
    while ((r = db_next(&rows, err)) > 0) {
        struct claim *claim = claim_add(call, db_text(&rows, 2));

        claim->first_id = db_i64(&rows, 0);
        claim->last_id = db_i64(&rows, 1);
        claim->token.number = db_i64(&rows, 4);
        claim->claimed_at_us = db_i64(&rows, 5);
    }
    return r;
}

int
queue_claim(struct store *store, const struct claim_want *want, struct arena *arena,
            struct claim *ret_claims, size_t *ret_count, struct err *err)
{
    struct call call = {.want = want, .arena = arena, .claims = ret_claims};
    int64_t taken = 0;
    int r;

    assert(want->max > 0);
    *ret_count = 0;
    if (want->n_jobs == 0)
        return 0;
    rand_hex128(call.nonce);
    r = store_write(store, STORE_NORMAL, claim_fn, &call, err);
    if (r == -ERR_COMMIT_UNKNOWN) {
        err_clear(err);
        r = store_read(store, look_fn, &call, err);
    }
    if (r < 0)
        return r;
    for (size_t i = 0; i < call.count; i++)
        taken += ret_claims[i].last_id - ret_claims[i].first_id + 1;
    assert(taken <= want->max);
    *ret_count = call.count;
    if (want->cursor)
        *want->cursor = call.cursor;
    if (call.count > 0)
        store_wake(store, WAKE_DONE); /* whoever watches sees RUNNING at once */
    return 0;
}

static int
left_fn(struct db *db, void *arg, struct err *err)
{
    const struct claim_want *want = (const struct claim_want *)arg;
    const struct db_value params[] = {p_text(want->lane),
                                      p_text_array(want->jobs, want->n_jobs)};
    int64_t there = 0;
    int r;

    r = db_query_i64(db, store_sql(db, STMT_QUEUE_READY_LEFT), params,
                     array_len(params), &there, err);
    return r < 0 ? r : there != 0;
}

int
queue_claim_left(struct store *store, const struct claim_want *want, struct err *err)
{
    struct claim_want copy = *want;

    if (store_kind(store) == DB_SQLITE || want->n_jobs == 0)
        return 0;
    return store_read(store, left_fn, &copy, err);
}

/* --- what a claimed request is --- */

struct load {
    int64_t first_id;
    int64_t last_id;
    struct arena *arena;
    struct request *requests;
    size_t count;
};

static int
load_fn(struct db *db, void *arg, struct err *err)
{
    struct load *load = (struct load *)arg;
    scoped(db_rows_end) struct db_rows rows = {0};
    int r;

    load->count = 0;
    r = db_ask(db, store_sql(db, STMT_QUEUE_LOAD), &rows, err, p_i64(load->first_id),
               p_i64(load->last_id));
    if (r < 0)
        return r;
    while ((r = db_next(&rows, err)) > 0) {
        assert((int64_t)load->count <= load->last_id - load->first_id);
        queue_read_request(&rows, load->arena, &load->requests[load->count++]);
    }
    return r;
}

int
queue_load(struct store *store, int64_t first_id, int64_t last_id, struct arena *arena,
           struct request *ret_requests, size_t *ret_count, struct err *err)
{
    struct load load = {.first_id = first_id,
                        .last_id = last_id,
                        .arena = arena,
                        .requests = ret_requests};
    int r = store_read(store, load_fn, &load, err);

    if (r == 0)
        *ret_count = load.count;
    return r;
}

struct holds {
    int64_t request_id;
    struct claim_token token;
    int64_t there;
};

static int
holds_fn(struct db *db, void *arg, struct err *err)
{
    struct holds *holds = (struct holds *)arg;
    const struct db_value params[] = {p_i64(holds->request_id),
                                      p_i64(holds->token.number),
                                      p_text(holds->token.nonce)};

    return db_query_i64(db, store_sql(db, STMT_QUEUE_HOLDS), params, array_len(params),
                        &holds->there, err);
}

int
queue_claim_holds(struct store *store, int64_t request_id, struct claim_token token,
                  struct err *err)
{
    struct holds holds = {.request_id = request_id, .token = token};
    int r = store_read(store, holds_fn, &holds, err);

    return r < 0 ? r : holds.there != 0;
}
