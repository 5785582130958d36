/*
 * Cancel and stop look for the request along its way, later → ready → claim → outcome.
 * Each step is a statement of its own with a fresh view, so a request that moves on
 * meanwhile is met further along; only a span that is just being cut can hide, and is
 * found in the next round.
 */
#include "queue/cancel.h"

#include "base/arena.h"
#include "base/err.h"
#include "queue/closing.h"
#include "queue/hand.h"
#include "queue/hold.h"
#include "queue/spans.h"
#include "queue/tries.h"
#include "store/store.h"
#include "store/wake.h"

#include <stdio.h>

#define ROUNDS 20

struct call {
    int64_t request_id;
    const char *actor;
};

static int
audit(struct db *db, const struct call *call, const char *act, const char *detail,
      struct err *err)
{
    char subject[40];

    snprintf(subject, sizeof(subject), "request %lld", (long long)call->request_id);
    return store_audit(db, call->actor, act, subject, detail, err);
}

/* 1 closed, 0 not queued now. */
static int
cancel_queued(struct db *db, const struct call *call, struct err *err)
{
    struct closing closing = {
        .id = call->request_id,
        .from = REQUEST_QUEUED,
        .outcome = OUTCOME_CANCELLED,
        .detail = "cancelled before it was started",
    };
    int r;

    r = queue_later_take(db, call->request_id, &closing.finished_at_us, err);
    if (r == 0)
        r = queue_ready_take(db, call->request_id, &closing.finished_at_us, err);
    if (r <= 0)
        return r;
    r = queue_close_in(db, &closing, 1, err);
    if (r >= 0)
        r = audit(db, call, "cancel", "was QUEUED", err);
    return r < 0 ? r : 1;
}

/* 1 flagged, 0 not running now. */
static int
flag_running(struct db *db, const struct call *call, bool stop, struct err *err)
{
    int r = queue_hold_running_in(db, call->request_id, err);

    if (r <= 0)
        return r;
    r = db_run(db, store_sql(db, STMT_QUEUE_FLAG), err, p_i64(call->request_id),
               p_i64(stop), p_i64(!stop), p_text(call->actor));
    if (r == 0)
        r = queue_hands_ask_in(db, call->request_id, !stop, call->actor, err);
    if (r == 0)
        r = audit(db, call, stop ? "stop" : "cancel", "was RUNNING", err);
    return r < 0 ? r : 1;
}

/* A failure when it is final or unknown; 0 when it may be just moving, or when it was
 * tried again: then the call is for the last try. The outcome is read first, since the
 * next try comes with it. */
static int
final_or_unknown(struct db *db, struct call *call, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    scoped(db_rows_end) struct db_rows rows = {0};
    const char *outcome = NULL;
    int64_t live = 0;
    int r;

    r = db_ask(db, store_sql(db, STMT_QUEUE_OUTCOME_GET), &rows, err,
               p_i64(call->request_id));
    if (r == 0)
        r = db_next(&rows, err);
    if (r > 0)
        outcome = arena_strdup(&arena, db_text(&rows, 0));
    db_rows_end(&rows);
    if (r >= 0)
        r = queue_live_try_in(db, call->request_id, &live, err);
    if (r < 0)
        return r;
    if (r == 0)
        return err_set(err, ERR_NOT_FOUND, "there is no request %lld",
                       (long long)call->request_id);
    if (live != call->request_id)
        call->request_id = live;
    else if (outcome)
        return err_set(err, ERR_ALREADY_FINAL,
                       "request %lld is final (%s) and stays as it is",
                       (long long)call->request_id, outcome);
    return 0;
}

static int
moving(const struct call *call, struct err *err)
{
    return err_set(err, ERR_DB_CONFLICT, "request %lld is being moved all the time",
                   (long long)call->request_id);
}

static int
cancel_fn(struct db *db, void *arg, struct err *err)
{
    struct call call_of_try = *(const struct call *)arg;
    struct call *call = &call_of_try; /* anew each time this runs */

    for (int i = 0; i < ROUNDS; i++) {
        int r = cancel_queued(db, call, err);

        if (r != 0)
            return r < 0 ? r : QUEUE_CANCELLED;
        r = flag_running(db, call, false, err);
        if (r != 0)
            return r < 0 ? r : QUEUE_CANCEL_REQUESTED;
        r = final_or_unknown(db, call, err);
        if (r < 0)
            return r;
    }
    return moving(call, err);
}

static int
is_queued(struct db *db, const struct call *call, struct err *err)
{
    const struct db_value id = p_i64(call->request_id);
    int64_t queued = 0;
    int r = db_query_i64(db, store_sql(db, STMT_QUEUE_IS_QUEUED), &id, 1, &queued, err);

    return r < 0 ? r : queued != 0;
}

static int
stop_fn(struct db *db, void *arg, struct err *err)
{
    struct call call_of_try = *(const struct call *)arg;
    struct call *call = &call_of_try; /* anew each time this runs */

    for (int i = 0; i < ROUNDS; i++) {
        int r = is_queued(db, call, err);

        if (r != 0)
            return r < 0 ? r : QUEUE_STOP_NOT_RUNNING;
        r = flag_running(db, call, true, err);
        if (r != 0)
            return r < 0 ? r : QUEUE_STOP_REQUESTED;
        r = final_or_unknown(db, call, err);
        if (r < 0)
            return r;
    }
    return moving(call, err);
}

static int
live_fn(struct db *db, void *arg, struct err *err)
{
    int64_t *id = arg;

    return queue_live_try_in(db, *id, id, err);
}

int
queue_cancel(struct store *store, int64_t request_id, const char *actor,
             struct err *err)
{
    struct call call = {.request_id = request_id, .actor = actor};
    int64_t live = request_id;
    struct err ignored = {0}; /* then the write itself fails */
    int r;

    /* Where the statement that is to be cut off holds up the write as well. */
    if (store_kind(store) == DB_SQLITE)
        (void)!store_read(store, live_fn, &live, &ignored);
    r = store_write_wish(store, live, cancel_fn, &call, err);
    if (r >= 0)
        store_wake(store, r == QUEUE_CANCELLED ? WAKE_DONE : WAKE_FLAG);
    return r;
}

int
queue_stop(struct store *store, int64_t request_id, const char *actor, struct err *err)
{
    struct call call = {.request_id = request_id, .actor = actor};
    int r = store_write(store, STORE_NORMAL, stop_fn, &call, err);

    if (r == QUEUE_STOP_REQUESTED)
        store_wake(store, WAKE_FLAG);
    return r;
}
