/*
 * The whole decision is one statement (budget_take), so that any number of workers
 * and threads may ask at once. What the day is, the caller must say, because zones
 * are no matter of SQL: the statement refuses a day that is not the store's own, and
 * is then asked again with the right one.
 */
#include "budget/budget.h"

#include "base/clock.h"
#include "base/err.h"
#include "queue/hold.h"
#include "store/store.h"

#define ROUNDS 5

/* A day so young is not closed: what the provider says may be about the day before, by
 * a call that began in it or by a clock that is behind ours. */
#define YOUNG_US (5 * US_PER_MINUTE)

struct taking {
    const struct budget_order *order;
    struct budget_grant grant;
    enum budget_outcome outcome; /* when the transaction is rolled back for it */
};

/* Now, and when a call could go at the earliest. */
static int
moment_of(struct db *db, const char *name, int64_t *ret_now_us, int64_t *ret_go_us,
          struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int r = db_ask(db, store_sql(db, STMT_BUDGET_MOMENT), &rows, err, p_text(name));

    if (r == 0)
        r = db_next(&rows, err);
    if (r <= 0)
        return r < 0 ? r : err_set(err, ERR_INTERNAL, "the store tells no time");
    *ret_now_us = db_i64(&rows, 0);
    *ret_go_us = db_i64(&rows, 1);
    return 0;
}

/* 1 with the row of today, 0: no call has been taken today. */
static int
read_today(struct db *db, const char *name, int64_t day_start_us,
           struct budget_state *state, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int r = db_ask(db, store_sql(db, STMT_BUDGET_READ), &rows, err, p_text(name));

    if (r == 0)
        r = db_next(&rows, err);
    if (r <= 0)
        return r;
    state->next_at_us = db_i64(&rows, 3);
    if (db_i64(&rows, 1) <= day_start_us)
        return 0;
    state->used = db_i64(&rows, 2);
    state->closed_at_us = db_is_null(&rows, 4) ? 0 : db_i64(&rows, 4);
    return 1;
}

/* 1: taken, 0: not (spent, or the day has just changed). */
static int
take_once(struct db *db, const struct budget_rule *rule, int64_t start_us,
          struct budget_grant *grant, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int r = db_ask(db, store_sql(db, STMT_BUDGET_TAKE), &rows, err, p_text(rule->name),
                   p_i64(start_us), p_i64(grant->day_end_us), p_i64(rule->spacing_us),
                   p_i64(rule->per_day));

    if (r == 0)
        r = db_next(&rows, err);
    if (r <= 0)
        return r;
    grant->used = db_i64(&rows, 0);
    grant->wait_us = db_i64(&rows, 1) - db_i64(&rows, 2);
    if (grant->wait_us < 0)
        grant->wait_us = 0;
    return 1;
}

/* An enum budget_outcome or < 0. */
static int
take_of_day(struct db *db, const struct budget_rule *rule, struct budget_grant *grant,
            struct err *err)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct budget_state state = {0};
        int64_t now_us = 0;
        int64_t go_us = 0;
        int64_t start_us;
        int r = moment_of(db, rule->name, &now_us, &go_us, err);

        if (r < 0)
            return r;
        /* A call that waits beyond midnight is one of the next day. */
        budget_day(rule->zone, go_us, &start_us, &grant->day_end_us);
        r = take_once(db, rule, start_us, grant, err);
        if (r != 0)
            return r < 0 ? r : BUDGET_TAKEN;
        r = read_today(db, rule->name, start_us, &state, err);
        if (r < 0)
            return r;
        grant->used = state.used;
        grant->closed = state.closed_at_us != 0;
        if (grant->closed || state.used >= rule->per_day)
            return BUDGET_SPENT;
    }
    return err_set(err, ERR_DB_CONFLICT, "budget %s is being changed all the time",
                   rule->name);
}

static int
take_of_request(struct db *db, const struct budget_order *order, struct err *err)
{
    const struct db_value params[] = {p_i64(order->request_id),
                                      p_i64(order->max_calls)};
    int64_t used;
    int r = db_query_i64(db, store_sql(db, STMT_BUDGET_REQUEST_TAKE), params, 2, &used,
                         err);

    return r < 0 ? r : r == 0 ? BUDGET_MAX_CALLS : BUDGET_TAKEN;
}

/* Any outcome but TAKEN is a failure here: what was taken must go back with it. */
static int
take_fn(struct db *db, void *arg, struct err *err)
{
    struct taking *taking = arg;
    const struct budget_order *order = taking->order;
    int r = queue_hold_in(db, order->request_id, &order->token, err);

    taking->grant = (struct budget_grant){0};
    taking->outcome = BUDGET_TAKEN;
    if (r < 0)
        return r;
    if (r == 0) {
        taking->outcome = BUDGET_LOST;
        return -ERR_STOPPED;
    }
    r = BUDGET_TAKEN;
    if (order->max_calls >= 0)
        r = take_of_request(db, order, err);
    if (r == BUDGET_TAKEN && order->rule)
        r = take_of_day(db, order->rule, &taking->grant, err);
    if (r <= 0)
        return r;
    taking->outcome = (enum budget_outcome)r;
    return err_set(err, ERR_STOPPED, "no call is left");
}

int
budget_take(struct store *store, const struct budget_order *order,
            struct budget_grant *ret_grant, struct err *err)
{
    struct taking taking = {.order = order};
    int r;

    if (!order->rule && order->max_calls < 0)
        return BUDGET_TAKEN;
    r = store_write(store, STORE_NORMAL, take_fn, &taking, err);
    if (r == -ERR_STOPPED && taking.outcome != BUDGET_TAKEN) {
        err_clear(err);
        r = (int)taking.outcome;
    }
    if (r >= 0)
        *ret_grant = taking.grant;
    return r;
}

static int
close_fn(struct db *db, void *arg, struct err *err)
{
    const struct budget_rule *rule = arg;
    int64_t now_us = 0;
    int64_t go_us;
    int64_t start_us;
    int64_t end_us;
    int r = moment_of(db, rule->name, &now_us, &go_us, err);

    if (r < 0)
        return r;
    budget_day(rule->zone, now_us, &start_us, &end_us);
    if (now_us - start_us < YOUNG_US)
        return 0;
    r = db_run(db, store_sql(db, STMT_BUDGET_CLOSE), err, p_text(rule->name));
    return r < 0 ? r : 1;
}

int
budget_close(struct store *store, const struct budget_rule *rule, struct err *err)
{
    struct budget_rule copy = *rule;

    return store_write(store, STORE_NORMAL, close_fn, &copy, err);
}

struct reading {
    const struct budget_rule *rule;
    struct budget_state state;
};

static int
read_fn(struct db *db, void *arg, struct err *err)
{
    struct reading *reading = arg;
    int64_t now_us = 0;
    int64_t go_us;
    int r = moment_of(db, reading->rule->name, &now_us, &go_us, err);

    reading->state = (struct budget_state){0};
    if (r < 0)
        return r;
    budget_day(reading->rule->zone, now_us, &reading->state.day_start_us,
               &reading->state.day_end_us);
    r = read_today(db, reading->rule->name, reading->state.day_start_us,
                   &reading->state, err);
    return r < 0 ? r : 0;
}

int
budget_read(struct store *store, const struct budget_rule *rule,
            struct budget_state *ret_state, struct err *err)
{
    struct reading reading = {.rule = rule};
    int r = store_read(store, read_fn, &reading, err);

    if (r < 0)
        return r;
    *ret_state = reading.state;
    return 0;
}
