/* Removing the claim rows decides here too: a finish that came first keeps its word. */
#include "queue/lost.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/strs.h"
#include "queue/closing.h"
#include "store/store.h"
#include "store/wake.h"

#define GROW 64

struct call {
    const char *worker;
    struct queue_gate gate;
    const char *reason;
    queue_lost_fn fn;
    void *fn_arg;
    struct arena *arena;
    struct lost_request *list;
    struct claim_row *rows;
    size_t n_rows;
    size_t count;
    int64_t now_us;
    bool entered; /* something follows */
};

/* The worker's claim rows: looked at, or taken. */
static int
read_rows(struct db *db, enum stmt stmt, struct call *call, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int r;

    call->n_rows = 0;
    r = db_ask(db, store_sql(db, stmt), &rows, err, p_text(call->worker));
    if (r < 0)
        return r;
    while ((r = db_next(&rows, err)) > 0) {
        struct claim_row *row;

        if (call->n_rows % GROW == 0) {
            struct claim_row *more =
                arena_array(call->arena, struct claim_row, call->n_rows + GROW);

            if (call->n_rows)
                memcpy(more, call->rows, call->n_rows * sizeof(*more));
            call->rows = more;
        }
        row = &call->rows[call->n_rows++];
        row->first_id = db_i64(&rows, 0);
        row->last_id = db_i64(&rows, 1);
        row->job = arena_strdup(call->arena, db_text(&rows, 2));
        row->worker = call->worker;
        row->token.number = db_i64(&rows, 4);
        str_copy(row->token.nonce, sizeof(row->token.nonce), db_text(&rows, 5));
        row->claimed_at_us = db_i64(&rows, 6);
        call->now_us = db_i64(&rows, 7);
    }
    return r;
}

static void
make_list(struct call *call)
{
    size_t total = 0;

    call->count = 0;
    for (size_t i = 0; i < call->n_rows; i++)
        total += (size_t)(call->rows[i].last_id - call->rows[i].first_id + 1);
    call->list = arena_array(call->arena, struct lost_request, total + 1);
}

/* One entry per request of the row. */
static void
list_row(struct call *call, const struct claim_row *row, enum request_outcome outcome)
{
    for (int64_t id = row->first_id; id <= row->last_id; id++)
        call->list[call->count++] = (struct lost_request){
            .request_id = id,
            .token = row->token,
            .outcome = outcome,
            .job = row->job,
        };
}

/* WORKER_LOST unless a cancel had been asked. */
static int
list_lost(struct db *db, struct call *call, const struct claim_row *row,
          struct err *err)
{
    struct lost_request *list = &call->list[call->count];
    scoped(db_rows_end) struct db_rows rows = {0};
    int r;

    list_row(call, row, OUTCOME_WORKER_LOST);
    r = db_ask(db, store_sql(db, STMT_QUEUE_CANCELS_BETWEEN), &rows, err,
               p_i64(row->first_id), p_i64(row->last_id));
    if (r < 0)
        return r;
    while ((r = db_next(&rows, err)) > 0)
        list[db_i64(&rows, 0) - row->first_id].outcome = OUTCOME_CANCELLED;
    return r;
}

static int
close_row(struct db *db, struct call *call, const struct claim_row *row,
          struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    size_t n = (size_t)(row->last_id - row->first_id + 1);
    struct closing *closings = arena_array(&arena, struct closing, n);
    struct lost_request *lost = &call->list[call->count];
    int r = list_lost(db, call, row, err);

    for (size_t i = 0; i < n && r == 0; i++) {
        if (call->fn)
            r = call->fn(db, &lost[i], call->reason, call->fn_arg, err);
        closings[i] = (struct closing){
            .id = lost[i].request_id,
            .job = row->job,
            .from = REQUEST_RUNNING,
            .outcome = lost[i].outcome,
            .worker = row->worker,
            .token = row->token.number,
            .claimed_at_us = row->claimed_at_us,
            .finished_at_us = call->now_us,
            .detail = call->reason,
            .execution_id = lost[i].execution_id,
        };
    }
    if (r == 0)
        r = queue_close_in(db, closings, n, err);
    if (r < 0)
        return r;
    call->entered |= r == QUEUE_CLOSED_ENTERED;
    return 0;
}

static int
lost_fn(struct db *db, void *arg, struct err *err)
{
    struct call *call = (struct call *)arg;
    int r;

    call->count = 0;
    call->entered = false;
    if (call->gate.fn) {
        r = call->gate.fn(db, call->worker, call->gate.arg, err);
        if (r <= 0)
            return r;
    }
    r = read_rows(db, call->gate.fn ? STMT_QUEUE_ORPHANS_TAKE : STMT_QUEUE_LOST_TAKE,
                  call, err);
    make_list(call);
    for (size_t i = 0; i < call->n_rows && r == 0; i++)
        r = close_row(db, call, &call->rows[i], err);
    return r;
}

static int
held_fn(struct db *db, void *arg, struct err *err)
{
    struct call *call = (struct call *)arg;
    int r = read_rows(db, STMT_QUEUE_HELD_BY, call, err);

    make_list(call);
    for (size_t i = 0; i < call->n_rows && r == 0; i++)
        list_row(call, &call->rows[i], OUTCOME_NONE);
    return r;
}

int
queue_held_by(struct store *store, const char *worker, struct arena *arena,
              struct lost_request **ret_held, size_t *ret_count, struct err *err)
{
    struct call call = {.worker = worker, .arena = arena};
    int r = store_read(store, held_fn, &call, err);

    if (r < 0)
        return r;
    *ret_held = call.list;
    *ret_count = call.count;
    return 0;
}

int
queue_close_lost_if(struct store *store, const char *worker, struct queue_gate gate,
                    const char *reason, queue_lost_fn fn, void *arg,
                    struct arena *arena, struct lost_request **ret_lost,
                    size_t *ret_count, struct err *err)
{
    struct call call = {.worker = worker,
                        .gate = gate,
                        .reason = reason,
                        .fn = fn,
                        .fn_arg = arg,
                        .arena = arena};
    int r = store_write(store, STORE_NORMAL, lost_fn, &call, err);

    if (r < 0)
        return r;
    *ret_lost = call.list;
    *ret_count = call.count;
    if (call.count > 0)
        store_wake(store, WAKE_DONE | (call.entered ? WAKE_READY : 0u));
    return 0;
}

int
queue_close_lost(struct store *store, const char *worker, const char *reason,
                 queue_lost_fn fn, void *arg, struct arena *arena,
                 struct lost_request **ret_lost, size_t *ret_count, struct err *err)
{
    return queue_close_lost_if(store, worker, (struct queue_gate){0}, reason, fn, arg,
                               arena, ret_lost, ret_count, err);
}
