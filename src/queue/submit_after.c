/*
 * `after`: a request that runs when others have COMPLETED. Each of those is held where
 * it stands until we commit, so that its end sees our row in `wait`; what is COMPLETED
 * already is not waited for. An id may be that of an earlier try: what counts is the
 * last one.
 */
#include "queue/submit_rows.h"

#include "base/err.h"
#include "queue/hold.h"
#include "queue/tries.h"
#include "store/store.h"

#include <inttypes.h>

#define ROUNDS 20

/* 1 held: not final before we commit; 0 not found there. */
static int
hold_open(struct db *db, int64_t id, struct err *err)
{
    const struct db_value param = p_i64(id);
    int64_t value;
    int r;

    r = db_query_i64(db, store_sql(db, STMT_CHAIN_LATER_HOLD), &param, 1, &value, err);
    if (r == 0)
        r = db_query_i64(db, store_sql(db, STMT_CHAIN_READY_HOLD), &param, 1, &value,
                         err);
    return r != 0 ? r : queue_hold_running_in(db, id, err);
}

/* NONE: not final. */
static int
outcome_of(struct db *db, int64_t id, enum request_outcome *ret, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int r;

    *ret = OUTCOME_NONE;
    r = db_ask(db, store_sql(db, STMT_QUEUE_OUTCOME_GET), &rows, err, p_i64(id));
    if (r == 0)
        r = db_next(&rows, err);
    if (r > 0 && !request_outcome_parse(db_text(&rows, 0), ret))
        r = err_set(err, ERR_SCHEMA, "the store says outcome %.40s, unknown here",
                    db_text(&rows, 0));
    return r < 0 ? r : 0;
}

/* 1: settled, *ret_id is the try to wait for, 0 = it is COMPLETED already. 0: it has
 * moved on meanwhile. The outcome is read before the last try is asked for, since a
 * next try comes with it. */
static int
settle_once(struct db *db, int64_t id, size_t at, int64_t *ret_id, struct err *err)
{
    enum request_outcome outcome;
    int64_t live = 0;
    int64_t again = 0;
    int r = queue_live_try_in(db, id, &live, err);

    if (r == 0)
        return err_set(err, ERR_INVALID, "/after/%zu: there is no request %" PRId64, at,
                       id);
    if (r > 0)
        r = hold_open(db, live, err);
    if (r != 0) {
        *ret_id = live;
        return r;
    }
    r = outcome_of(db, live, &outcome, err);
    if (r == 0)
        r = queue_live_try_in(db, id, &again, err);
    if (r < 0 || again != live || outcome == OUTCOME_NONE)
        return r < 0 ? r : 0;
    if (outcome != OUTCOME_COMPLETED)
        return err_set(err, ERR_INVALID,
                       "/after/%zu: request %" PRId64
                       " ended %s, so what waits for it would never run",
                       at, live, request_outcome_name(outcome));
    *ret_id = 0;
    return 1;
}

static int
settle_one(struct db *db, int64_t id, size_t at, int64_t *ret_id, struct err *err)
{
    for (int i = 0; i < ROUNDS; i++) {
        int r = settle_once(db, id, at, ret_id, err);

        if (r != 0)
            return r < 0 ? r : 0;
    }
    return err_set(err, ERR_DB_CONFLICT,
                   "request %" PRId64 " is being moved all the time", id);
}

int
submit_settle_after(struct submission *sub, struct err *err)
{
    for (size_t i = 0; i < sub->count; i++) {
        struct draft *draft = &sub->drafts[i];
        const struct submit_order *order = draft->order;

        if (draft->settled || order->n_after == 0)
            continue;
        sub->refused = i;
        draft->waits = arena_array(&sub->arena, int64_t, order->n_after);
        for (size_t k = 0; k < order->n_after; k++) {
            int64_t id = 0;
            int r = settle_one(sub->db, order->after[k], k, &id, err);

            if (r < 0)
                return r;
            if (id)
                draft->waits[draft->n_waits++] = id;
        }
        if (draft->n_waits > 0)
            draft->reason = "after";
    }
    sub->refused = sub->count;
    return 0;
}

int
submit_write_waits(struct submission *sub, struct err *err)
{
    int r = 0;

    for (size_t i = 0; i < sub->count && r == 0; i++) {
        const struct draft *draft = &sub->drafts[i];

        for (size_t k = 0; draft->is_new && k < draft->n_waits && r == 0; k++)
            r = db_run(sub->db, store_sql(sub->db, STMT_CHAIN_WAIT_ADD), err,
                       p_i64(draft->id), p_i64(draft->waits[k]));
    }
    return r;
}
