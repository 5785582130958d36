/*
 * Finishing in three steps: remove the claim rows that hold the given ids under the
 * given tokens (that decides who has won), put back what is left of their spans, write
 * the outcomes. What was not removed is lost, or was finished by ourselves before, in a
 * commit whose answer never came: the outcome row tells.
 */
#include "queue/finish.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/strs.h"
#include "queue/closing.h"
#include "store/store.h"
#include "store/wake.h"

#include <assert.h>
#include <stdlib.h>

#define ROUNDS 50

enum fate { PENDING, TAKEN, LOST, DONE_BEFORE };

struct item {
    const struct finish_order *order;
    size_t at; /* in the caller's list */
    enum fate fate;
};

struct work {
    struct db *db;
    struct arena arena;
    struct item *items; /* by request id */
    size_t count;
    struct claim_row *rows; /* removed in this round */
    size_t n_rows;
    int64_t now_us;
    struct closing *closings;
    size_t n_closings;
};

static void
work_release(struct work *work)
{
    arena_release(&work->arena);
}

static int
by_id(const void *a, const void *b)
{
    int64_t x = ((const struct item *)a)->order->request_id;
    int64_t y = ((const struct item *)b)->order->request_id;

    return x < y ? -1 : x > y;
}

static void
work_fill(struct work *work, const struct finish_order *orders, size_t count)
{
    work->count = count;
    work->items = arena_array(&work->arena, struct item, count);
    work->rows = arena_array(&work->arena, struct claim_row, count);
    work->closings = arena_array(&work->arena, struct closing, count);
    for (size_t i = 0; i < count; i++)
        work->items[i] = (struct item){.order = &orders[i], .at = i};
    qsort(work->items, count, sizeof(*work->items), by_id);
}

static int
read_rows(struct work *work, struct db_rows *rows, struct err *err)
{
    int r;

    while ((r = db_next(rows, err)) > 0) {
        struct claim_row *row = &work->rows[work->n_rows++];

        assert(work->n_rows <= work->count);
        row->first_id = db_i64(rows, 0);
        row->last_id = db_i64(rows, 1);
        row->job = arena_strdup(&work->arena, db_text(rows, 2));
        row->lane = arena_strdup(&work->arena, db_text(rows, 3));
        row->worker = arena_strdup(&work->arena, db_text(rows, 4));
        row->token.number = db_i64(rows, 5);
        str_copy(row->token.nonce, sizeof(row->token.nonce), db_text(rows, 6));
        row->claimed_at_us = db_i64(rows, 7);
        work->now_us = db_i64(rows, 8);
    }
    return r;
}

static int
take_pg(struct work *work, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int64_t *ids = arena_array(&work->arena, int64_t, work->count);
    int64_t *tokens = arena_array(&work->arena, int64_t, work->count);
    const char **nonces = arena_array(&work->arena, const char *, work->count);
    size_t n = 0;
    int r;

    for (size_t i = 0; i < work->count; i++) {
        if (work->items[i].fate != PENDING)
            continue;
        ids[n] = work->items[i].order->request_id;
        tokens[n] = work->items[i].order->token.number;
        nonces[n++] = work->items[i].order->token.nonce;
    }
    r = db_ask(work->db, store_sql(work->db, STMT_QUEUE_FINISH_TAKE), &rows, err,
               p_i64_array(ids, n), p_i64_array(tokens, n), p_text_array(nonces, n));
    return r < 0 ? r : read_rows(work, &rows, err);
}

static bool
same_token(const struct claim_token *a, const struct claim_token *b)
{
    return a->number == b->number && strcmp(a->nonce, b->nonce) == 0;
}

static bool
row_holds(const struct claim_row *row, const struct finish_order *order)
{
    return order->request_id >= row->first_id && order->request_id <= row->last_id &&
           same_token(&row->token, &order->token);
}

static int
take_sqlite(struct work *work, struct err *err)
{
    for (size_t i = 0; i < work->count; i++) {
        const struct finish_order *order = work->items[i].order;
        scoped(db_rows_end) struct db_rows rows = {0};
        int r;

        if (work->items[i].fate != PENDING)
            continue;
        if (work->n_rows && row_holds(&work->rows[work->n_rows - 1], order))
            continue; /* its neighbour's row was its own */
        r = db_ask(work->db, store_sql(work->db, STMT_QUEUE_FINISH_TAKE_ONE), &rows,
                   err, p_i64(order->request_id), p_i64(order->token.number),
                   p_text(order->token.nonce));
        if (r == 0)
            r = read_rows(work, &rows, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static void
closing_add(struct work *work, const struct claim_row *row,
            const struct finish_order *order)
{
    work->closings[work->n_closings++] = (struct closing){
        .id = order->request_id,
        .job = row->job,
        .from = REQUEST_RUNNING,
        .outcome = order->outcome,
        .worker = row->worker,
        .token = row->token.number,
        .claimed_at_us = row->claimed_at_us,
        .finished_at_us = work->now_us,
        .detail = order->detail,
        .execution_id = order->execution_id,
        .result = order->result,
        .spent = order->spent,
    };
}

/* The first item at or above this request id. */
static size_t
first_item(const struct work *work, int64_t id)
{
    size_t low = 0;
    size_t high = work->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (work->items[middle].order->request_id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Put back the parts of a removed row that lie between the ids being finished. */
static int
shrink_row(struct work *work, const struct claim_row *row, struct err *err)
{
    int64_t next = row->first_id;
    int r;

    for (size_t i = first_item(work, row->first_id); i < work->count; i++) {
        struct item *item = &work->items[i];

        if (item->order->request_id > row->last_id)
            break;
        if (item->fate != PENDING || !row_holds(row, item->order) ||
            item->order->request_id < next)
            continue; /* under another token, or given twice */
        r = queue_claim_put(work->db, row, next, item->order->request_id - 1, err);
        if (r < 0)
            return r;
        next = item->order->request_id + 1;
        item->fate = TAKEN;
        closing_add(work, row, item->order);
    }
    return queue_claim_put(work->db, row, next, row->last_id, err);
}

/* What no row was found for: still ours (its span was cut meanwhile: look again), done
 * by us before, or lost. */
static int
judge(struct work *work, struct item *item, struct err *err)
{
    const struct finish_order *order = item->order;
    scoped(db_rows_end) struct db_rows rows = {0};
    int64_t held;
    int r;

    r = db_query_i64(work->db, store_sql(work->db, STMT_QUEUE_HOLDS),
                     (const struct db_value[]){p_i64(order->request_id),
                                               p_i64(order->token.number),
                                               p_text(order->token.nonce)},
                     3, &held, err);
    if (r < 0 || held)
        return r < 0 ? r : 0;
    r = db_ask(work->db, store_sql(work->db, STMT_QUEUE_OUTCOME_GET), &rows, err,
               p_i64(order->request_id));
    if (r == 0)
        r = db_next(&rows, err);
    if (r < 0)
        return r;
    /* A request that ended unclaimed has no token. */
    item->fate = LOST;
    if (r > 0 && !db_is_null(&rows, 1) && db_i64(&rows, 1) == order->token.number &&
        str_eq(db_text(&rows, 0), request_outcome_name(order->outcome)))
        item->fate = DONE_BEFORE;
    return 0;
}

static int
round_of(struct work *work, bool *ret_again, struct err *err)
{
    bool again = false;
    int r;

    work->n_rows = 0;
    r = db_kind(work->db) == DB_PG ? take_pg(work, err) : take_sqlite(work, err);
    for (size_t i = 0; i < work->n_rows && r == 0; i++)
        r = shrink_row(work, &work->rows[i], err);
    for (size_t i = 0; i < work->count && r == 0; i++) {
        if (work->items[i].fate != PENDING)
            continue;
        r = judge(work, &work->items[i], err);
        again |= work->items[i].fate == PENDING;
    }
    *ret_again = again;
    return r;
}

int
queue_finish_in(struct db *db, const struct finish_order *orders, size_t count,
                bool *ret_lost, struct err *err)
{
    scoped(work_release) struct work work = {.db = db};
    bool again = true;
    int r = 0;

    if (count == 0)
        return 0;
    work_fill(&work, orders, count);
    for (int i = 0; again && r == 0; i++) {
        if (i == ROUNDS)
            return err_set(err, ERR_DB_CONFLICT,
                           "finishing: the claims are being changed all the time");
        r = round_of(&work, &again, err);
    }
    if (r == 0)
        r = queue_close_in(db, work.closings, work.n_closings, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < count && ret_lost; i++)
        ret_lost[work.items[i].at] = work.items[i].fate == LOST;
    return r;
}

struct many {
    const struct finish_order *orders;
    size_t count;
    bool *lost;
};

static int
finish_fn(struct db *db, void *arg, struct err *err)
{
    struct many *many = (struct many *)arg;

    return queue_finish_in(db, many->orders, many->count, many->lost, err);
}

int
queue_finish_many(struct store *store, const struct finish_order *orders, size_t count,
                  bool *ret_lost, struct err *err)
{
    struct many many = {.orders = orders, .count = count, .lost = ret_lost};
    int r = store_write(store, STORE_NORMAL, finish_fn, &many, err);
    bool entered = r > 0;

    if (r == -ERR_COMMIT_UNKNOWN) {
        /* Finishing again tells: what stands already as ordered is not lost. */
        err_clear(err);
        r = store_write(store, STORE_NORMAL, finish_fn, &many, err);
        entered = true; /* perhaps, the first time */
    }
    if (r < 0)
        return r;
    store_wake(store, WAKE_DONE | (entered ? WAKE_READY : 0u));
    return 0;
}

int
queue_finish(struct store *store, const struct finish_order *order, struct err *err)
{
    bool lost = false;
    int r = queue_finish_many(store, order, 1, &lost, err);

    if (r < 0)
        return r;
    return lost ? QUEUE_CLAIM_LOST : QUEUE_FINISHED;
}
