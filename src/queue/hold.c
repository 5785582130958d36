/*
 * Others may cut the claim's span at the same moment (a neighbour of it is being
 * finished): then the row that we wait for goes and its remainder comes, which one
 * statement cannot see. So "no row" counts only when a fresh look finds none either.
 */
#include "queue/hold.h"

#include "base/err.h"
#include "base/plant.h"
#include "store/store.h"

#define ROUNDS 50

static int
hold(struct db *db, enum stmt stmt, int64_t request_id, const struct claim_token *token,
     struct err *err)
{
    const struct db_value params[] = {p_i64(request_id), p_i64(token->number),
                                      p_text(token->nonce)};
    int64_t value;
    int r;

    for (int i = 0; i < ROUNDS; i++) {
        r = db_query_i64(db, store_sql(db, stmt), params, 3, &value, err);
        if (r != 0)
            return r;
        r = db_query_i64(db, store_sql(db, STMT_QUEUE_HOLDS), params, 3, &value, err);
        if (r < 0)
            return r;
        if (value == 0)
            return 0;
    }
    return err_set(err, ERR_DB_CONFLICT,
                   "request %lld: its claim is being changed all the time",
                   (long long)request_id);
}

int
queue_hold_in(struct db *db, int64_t request_id, const struct claim_token *token,
              struct err *err)
{
    if (planted("no_fence"))
        return 1;
    return hold(db, STMT_QUEUE_HOLD, request_id, token, err);
}

int
queue_hold_alone_in(struct db *db, int64_t request_id, const struct claim_token *token,
                    struct err *err)
{
    return hold(db, STMT_QUEUE_HOLD_ALONE, request_id, token, err);
}

int
queue_hold_running_in(struct db *db, int64_t request_id, struct err *err)
{
    const struct db_value id = p_i64(request_id);
    int64_t value;

    return db_query_i64(db, store_sql(db, STMT_QUEUE_RUNNING_HOLD), &id, 1, &value,
                        err);
}
