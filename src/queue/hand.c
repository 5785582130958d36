#include "queue/hand.h"

#include "base/err.h"
#include "base/strs.h"
#include "queue/closing.h"
#include "queue/hold.h"
#include "queue/job.h"
#include "queue/read.h"
#include "queue/spans.h"
#include "queue/submit_rows.h"
#include "store/store.h"
#include "store/wake.h"

#include <inttypes.h>

static void
submission_release(struct submission *sub)
{
    arena_release(&sub->arena);
}

/* 1: this claim has let them in before. */
static int
are_there(struct db *db, const struct hand_order *order, struct err *err)
{
    const struct db_value params[] = {p_i64(order->parent->id),
                                      p_i64(order->parent_token), p_text(order->step)};
    int64_t count = 0;
    int r = db_query_i64(db, store_sql(db, STMT_HANDS_THERE), params, 3, &count, err);

    return r < 0 ? r : count > 0;
}

int
queue_hands_enter(struct db *db, const struct hand_order *order, struct err *err)
{
    scoped(submission_release) struct submission sub = {.db = db};
    const struct request *parent = order->parent;
    struct submit_order one = {
        .job = order->job, .source = SOURCE_PARTITION, .restart = -1};
    int r = order->count > 0 ? are_there(db, order, err) : 1;

    if (r != 0)
        return r < 0 ? r : 0;
    one.given = parent->given;
    one.priority = parent->priority;
    one.lane = parent->lane;
    one.requester = arena_printf(&sub.arena, "partition:#%" PRId64, parent->id);
    sub.orders = &one;
    sub.count = order->count;
    sub.drafts = arena_array(&sub.arena, struct draft, sub.count);
    r = submit_draw_ids(&sub, err);
    for (size_t i = 0; i < sub.count && r == 0; i++) {
        sub.drafts[i].order = &one;
        sub.drafts[i].at = i;
        sub.drafts[i].is_new = true;
    }
    if (r == 0)
        r = submit_write_rows(&sub, NULL, err);
    for (size_t i = 0; i < sub.count && r == 0; i++)
        r = db_run(db, store_sql(db, STMT_HAND_ADD), err, p_i64(sub.drafts[i].id),
                   p_i64(parent->id), p_i64(order->parent_token),
                   p_i64(order->execution_id), p_text(order->step));
    return r;
}

struct get {
    int64_t request_id;
    struct arena *arena;
    struct hand hand;
};

static int
get_fn(struct db *db, void *arg, struct err *err)
{
    struct get *get = arg;
    scoped(db_rows_end) struct db_rows rows = {0};
    int r =
        db_ask(db, store_sql(db, STMT_HAND_GET), &rows, err, p_i64(get->request_id));

    if (r == 0)
        r = db_next(&rows, err);
    if (r <= 0 || db_is_null(&rows, 2))
        return r < 0 ? r : 0;
    get->hand = (struct hand){
        .parent_id = db_i64(&rows, 0),
        .parent_token.number = db_i64(&rows, 1),
        .execution_id = db_i64(&rows, 3),
        .step = queue_read_text(&rows, 4, get->arena),
    };
    str_copy(get->hand.parent_token.nonce, sizeof(get->hand.parent_token.nonce),
             db_text(&rows, 2));
    return 1;
}

int
queue_hand_get(struct store *store, int64_t request_id, struct arena *arena,
               struct hand *ret_hand, struct err *err)
{
    struct get get = {.request_id = request_id, .arena = arena};
    int r = store_read(store, get_fn, &get, err);

    if (r == 1)
        *ret_hand = get.hand;
    return r;
}

/* --- asking them to end --- */

static int
open_hands(struct db *db, int64_t parent_id, int64_t ids[QUEUE_HANDS_MAX],
           size_t *ret_count, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    size_t n = 0;
    int r = db_ask(db, store_sql(db, STMT_HANDS_OPEN), &rows, err, p_i64(parent_id));

    while (r >= 0 && n < QUEUE_HANDS_MAX && (r = db_next(&rows, err)) > 0)
        ids[n++] = db_i64(&rows, 0);
    *ret_count = n;
    return r < 0 ? r : 0;
}

/* 1 asked, 0 it does not run now. */
static int
ask_one(struct db *db, int64_t id, bool cancel, const char *actor, struct err *err)
{
    int r = queue_hold_running_in(db, id, err);

    if (r <= 0)
        return r;
    r = db_run(db, store_sql(db, STMT_QUEUE_FLAG), err, p_i64(id), p_i64(!cancel),
               p_i64(cancel), p_text(actor));
    return r < 0 ? r : 1;
}

int
queue_hands_ask_in(struct db *db, int64_t parent_id, bool cancel, const char *actor,
                   struct err *err)
{
    int64_t ids[QUEUE_HANDS_MAX];
    size_t count = 0;
    int r = open_hands(db, parent_id, ids, &count, err);

    for (size_t i = 0; i < count && r >= 0; i++)
        r = ask_one(db, ids[i], cancel, actor, err);
    return r < 0 ? r : 0;
}

/* 1: it was not claimed, and ends here. */
static int
take_back(struct db *db, int64_t id, struct err *err)
{
    struct closing closing = {
        .id = id,
        .from = REQUEST_QUEUED,
        .outcome = OUTCOME_CANCELLED,
        .detail = "not needed: the step it was to help with has ended",
    };
    int r = queue_later_take(db, id, &closing.finished_at_us, err);

    if (r == 0)
        r = queue_ready_take(db, id, &closing.finished_at_us, err);
    if (r <= 0)
        return r;
    r = queue_close_in(db, &closing, 1, err);
    return r < 0 ? r : 1;
}

int
queue_hands_end_in(struct db *db, int64_t parent_id, struct err *err)
{
    int64_t ids[QUEUE_HANDS_MAX];
    size_t count = 0;
    int r = open_hands(db, parent_id, ids, &count, err);

    for (size_t i = 0; i < count && r >= 0; i++) {
        r = take_back(db, ids[i], err);
        if (r == 0)
            r = ask_one(db, ids[i], false, "pawl", err);
    }
    return r < 0 ? r : 0;
}

static int
end_fn(struct db *db, void *arg, struct err *err)
{
    return queue_hands_end_in(db, *(const int64_t *)arg, err);
}

int
queue_hands_end(struct store *store, int64_t parent_id, struct err *err)
{
    int r = store_write(store, STORE_NORMAL, end_fn, &parent_id, err);

    if (r >= 0)
        store_wake(store, WAKE_FLAG | WAKE_DONE);
    return r;
}
