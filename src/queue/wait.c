/*
 * Those that wait for others (`after`). Their rows in later are locked before anything
 * is decided: of two that finish at the same moment on two connections the second one
 * waits here, and then sees that it is the last.
 */
#include "queue/follow.h"

#include "base/err.h"
#include "queue/spans.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdlib.h>

enum fate {
    FATE_STAYS,   /* what it waits for is tried again */
    FATE_GOES,    /* one less to wait for */
    FATE_REFUSED, /* will never be complete */
};

/* A waiting request whose row in later is ours now. */
struct waiter {
    struct span span;
    enum fate fate;
    const struct follow_fact *cause; /* of REFUSED */
    bool open;                       /* still waits for others */
};

struct waiters {
    struct waiter *list; /* by id */
    size_t count;
    int64_t *ids;
    size_t n_ids;
};

static int
by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static int
by_first_id(const void *a, const void *b)
{
    int64_t x = ((const struct waiter *)a)->span.first_id;
    int64_t y = ((const struct waiter *)b)->span.first_id;

    return x < y ? -1 : x > y;
}

static struct waiter *
find(const struct waiters *waiters, int64_t id)
{
    const struct waiter key = {.span.first_id = id};

    return (struct waiter *)bsearch(&key, waiters->list, waiters->count,
                                    sizeof(*waiters->list), by_first_id);
}

static int
lock_waiters(struct db *db, struct follow *follow, struct waiters *waiters,
             struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    struct arena *arena = &follow->arena;
    int r;

    waiters->ids = arena_array(arena, int64_t, follow->n_waits);
    waiters->list = arena_array(arena, struct waiter, follow->n_waits);
    for (size_t i = 0; i < follow->n_waits; i++)
        waiters->ids[i] = follow->waits[i].request_id;
    qsort(waiters->ids, follow->n_waits, sizeof(*waiters->ids), by_number);
    for (size_t i = 0; i < follow->n_waits; i++)
        if (i == 0 || waiters->ids[i] != waiters->ids[waiters->n_ids - 1])
            waiters->ids[waiters->n_ids++] = waiters->ids[i];
    r = db_ask(db, store_sql(db, STMT_CHAIN_WAIT_LOCK), &rows, err,
               p_i64_array(waiters->ids, waiters->n_ids));
    if (r < 0)
        return r;
    while ((r = db_next(&rows, err)) > 0)
        waiters->list[waiters->count++].span = (struct span){
            .first_id = db_i64(&rows, 0),
            .last_id = db_i64(&rows, 0),
            .job = arena_strdup(arena, db_text(&rows, 1)),
            .lane = arena_strdup(arena, db_text(&rows, 2)),
            .priority = (int)db_i64(&rows, 3),
            .not_before_us = db_i64(&rows, 4),
            .expires_at_us = db_i64(&rows, 5),
        };
    return r;
}

static enum fate
fate_by(const struct follow_fact *fact)
{
    if (fact->followup_id)
        return FATE_STAYS;
    if (fact->closing->outcome == OUTCOME_COMPLETED && !fact->cancel_asked)
        return FATE_GOES;
    return FATE_REFUSED;
}

/* What each of the final ones means to those that wait; the done rows of wait go. */
static int
judge(struct db *db, struct follow *follow, struct waiters *waiters, struct err *err)
{
    int64_t *done = arena_array(&follow->arena, int64_t, follow->n_waits);
    int64_t moved = 0;
    size_t n = 0;
    int r = 0;

    for (size_t i = 0; i < follow->n_waits && r == 0; i++) {
        const struct follow_wait *wait = &follow->waits[i];
        const struct follow_fact *fact = follow_fact(follow, wait->after_id);
        struct waiter *waiter = find(waiters, wait->request_id);
        enum fate fate = fate_by(fact);

        if (fate == FATE_STAYS && fact->id != moved) {
            r = db_run(db, store_sql(db, STMT_CHAIN_WAIT_MOVE), err,
                       p_i64(fact->followup_id), p_i64(fact->id));
            moved = fact->id;
        } else if (fate == FATE_GOES) {
            done[n++] = fact->id;
        }
        if (waiter && fate > waiter->fate) {
            waiter->fate = fate;
            waiter->cause = fact;
        }
    }
    if (r < 0 || n == 0)
        return r;
    return db_run(db, store_sql(db, STMT_CHAIN_WAIT_DONE), err, p_i64_array(done, n));
}

static int
look_for_open(struct db *db, struct waiters *waiters, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int r;

    r = db_ask(db, store_sql(db, STMT_CHAIN_WAIT_OPEN), &rows, err,
               p_i64_array(waiters->ids, waiters->n_ids));
    if (r < 0)
        return r;
    while ((r = db_next(&rows, err)) > 0) {
        struct waiter *waiter = find(waiters, db_i64(&rows, 0));

        if (waiter)
            waiter->open = true;
    }
    return r;
}

static int
let_go(struct db *db, struct follow *follow, const struct waiter *waiter,
       struct err *err)
{
    const struct span *span = &waiter->span;
    int r;

    follow->entered = true;
    if (span->not_before_us > follow->now_us)
        return db_run(db, store_sql(db, STMT_CHAIN_LATER_SET), err, p_text("time"),
                      p_i64(span->not_before_us), p_i64(span->first_id));
    r = db_run(db, store_sql(db, STMT_CHAIN_LATER_DELETE), err, p_i64(span->first_id));
    return r < 0 ? r : queue_ready_enter(db, span, 1, err);
}

static int
refuse(struct db *db, const struct follow *follow, const struct waiter *waiter,
       struct arena *arena, struct closing *ret, struct err *err)
{
    const struct closing *cause = waiter->cause->closing;

    *ret = (struct closing){
        .id = waiter->span.first_id,
        .from = REQUEST_QUEUED,
        .outcome = OUTCOME_REFUSED,
        .finished_at_us = follow->now_us,
        .detail = arena_printf(
            arena, "request %" PRId64 ", which it waited for, ended %s%s", cause->id,
            request_outcome_name(cause->outcome),
            cause->outcome == OUTCOME_COMPLETED ? " after its cancel was asked" : ""),
    };
    return db_run(db, store_sql(db, STMT_CHAIN_LATER_DELETE), err,
                  p_i64(waiter->span.first_id));
}

int
follow_waiters(struct db *db, struct follow *follow, struct arena *arena,
               struct closing **ret_more, size_t *ret_count, struct err *err)
{
    struct waiters waiters = {0};
    struct closing *more;
    size_t n = 0;
    int r;

    *ret_count = 0;
    if (follow->n_waits == 0)
        return 0;
    r = lock_waiters(db, follow, &waiters, err);
    if (r == 0)
        r = judge(db, follow, &waiters, err);
    if (r == 0)
        r = look_for_open(db, &waiters, err);
    more = arena_array(arena, struct closing, waiters.count + 1);
    for (size_t i = 0; i < waiters.count && r == 0; i++) {
        const struct waiter *waiter = &waiters.list[i];

        if (waiter->fate == FATE_REFUSED)
            r = refuse(db, follow, waiter, arena, &more[n++], err);
        else if (waiter->fate == FATE_GOES && !waiter->open)
            r = let_go(db, follow, waiter, err);
    }
    if (r < 0)
        return r;
    *ret_more = more;
    *ret_count = n;
    return 0;
}

/* --- a range that ended unclaimed --- */

/* Only those that somebody waits for become facts. */
static int
read_range(struct db *db, int64_t first_id, int64_t last_id,
           enum request_outcome outcome, struct follow *follow, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    struct closing *closings;
    int r;

    r = db_ask(db, store_sql(db, STMT_CHAIN_WAITERS_BETWEEN), &rows, err,
               p_i64(first_id), p_i64(last_id));
    if (r < 0)
        return r;
    while ((r = db_next(&rows, err)) > 0)
        follow_add_wait(follow, db_i64(&rows, 1), db_i64(&rows, 0));
    if (r < 0)
        return r;
    closings = arena_array(&follow->arena, struct closing, follow->n_waits);
    follow->facts = arena_array(&follow->arena, struct follow_fact, follow->n_waits);
    for (size_t i = 0; i < follow->n_waits; i++) {
        int64_t id = follow->waits[i].after_id;

        if (follow->count > 0 && closings[follow->count - 1].id == id)
            continue;
        closings[follow->count] = (struct closing){.id = id, .outcome = outcome};
        follow->facts[follow->count] =
            (struct follow_fact){.id = id, .closing = &closings[follow->count]};
        follow->count++;
    }
    follow->closings = closings;
    return 0;
}

int
follow_range(struct db *db, int64_t first_id, int64_t last_id,
             enum request_outcome outcome, int64_t now_us, struct arena *arena,
             struct closing **ret_more, size_t *ret_count, struct err *err)
{
    scoped(follow_release) struct follow follow = {.now_us = now_us};
    int r;

    *ret_count = 0;
    r = db_run(db, store_sql(db, STMT_CHAIN_WAIT_DROP_BETWEEN), err, p_i64(first_id),
               p_i64(last_id));
    if (r == 0)
        r = read_range(db, first_id, last_id, outcome, &follow, err);
    return r < 0 ? r : follow_waiters(db, &follow, arena, ret_more, ret_count, err);
}
