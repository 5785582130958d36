/*
 * The group's row is locked before anything of it is changed, and says how many of its
 * items are open; so two that end at the same moment let in one after the other.
 *
 * An item of a job that refuses duplicates enters with the job's key, as the next of a
 * chain does. Where somebody else has the key the item waits for it in later, as long
 * as it takes (later.c).
 */
#include "queue/backfill_private.h"

#include "base/err.h"
#include "base/json.h"
#include "base/strs.h"
#include "queue/closing.h"
#include "queue/follow.h"
#include "queue/job.h"
#include "queue/params.h"
#include "queue/read.h"
#include "queue/submit_rows.h"
#include "store/store.h"
#include "store/wake.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

void
backfill_release(struct backfill_group *group)
{
    queue_job_free(group->job);
    arena_release(&group->sub.arena);
}

static int
read_job(struct backfill_group *group, struct err *err)
{
    struct db *db = group->sub.db;
    scoped(db_rows_end) struct db_rows rows = {0};
    struct err unread = {0};
    int r = db_ask(db, store_sql(db, STMT_CHAIN_DEFINITION), &rows, err,
                   p_text(group->job_name));

    if (r == 0)
        r = db_next(&rows, err);
    if (r > 0 && queue_job_parse(db_text(&rows, 0), &group->job, &unread) < 0)
        group->job = NULL;
    return r < 0 ? r : 0;
}

/* 1, or 0: there is none. */
int
backfill_lock(struct db *db, int64_t id, struct backfill_group *group, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    struct arena *arena = &group->sub.arena;
    int r = db_ask(db, store_sql(db, STMT_BACKFILL_LOCK), &rows, err, p_i64(id));

    group->sub.db = db;
    if (r == 0)
        r = db_next(&rows, err);
    if (r <= 0)
        return r;
    group->id = id;
    group->job_name = queue_read_text(&rows, 0, arena);
    group->requester = queue_read_text(&rows, 1, arena);
    group->priority = (int)db_i64(&rows, 2);
    group->parallel = db_i64(&rows, 3);
    group->hold_on_failure = db_i64(&rows, 4) != 0;
    group->next_n = db_i64(&rows, 5);
    group->open = db_i64(&rows, 6);
    group->state = queue_read_text(&rows, 7, arena);
    return 1;
}

int
backfill_save(struct backfill_group *group, struct err *err)
{
    struct db *db = group->sub.db;
    bool ended = str_eq(group->state, "DONE") ||
                 (str_eq(group->state, "CANCELLED") && group->open == 0);

    return db_run(db, store_sql(db, STMT_BACKFILL_SET), err, p_i64(group->next_n),
                  p_i64(group->open), p_text(group->state), p_opt_text(group->why),
                  p_i64(ended), p_i64(group->id));
}

/* --- letting in --- */

struct waiting {
    int64_t n;
    const char *given;
};

static int
next_items(struct backfill_group *group, struct waiting *items, size_t room,
           size_t *ret_count, struct err *err)
{
    struct db *db = group->sub.db;
    scoped(db_rows_end) struct db_rows rows = {0};
    size_t n = 0;
    int r = db_ask(db, store_sql(db, STMT_BACKFILL_WAITING), &rows, err,
                   p_i64(group->id), p_i64(group->next_n), p_i64((int64_t)room));

    if (r < 0)
        return r;
    while (n < room && (r = db_next(&rows, err)) > 0)
        items[n++] = (struct waiting){
            .n = db_i64(&rows, 0),
            .given = queue_read_text(&rows, 1, &group->sub.arena),
        };
    *ret_count = n;
    return r < 0 ? r : 0;
}

/* False when the parameters do not fit the job any more: why. */
static bool
make_order(struct backfill_group *group, const char *given, struct submit_order *order,
           char *why, size_t why_size)
{
    const struct queue_job *job = group->job;
    scoped(json_drop) json_t *parsed = NULL;
    scoped(json_drop) json_t *effective = NULL;
    struct params_errors errors = {0};
    struct err unread = {0};

    snprintf(why, why_size, "its parameters cannot be read");
    if (json_parse(given, strlen(given), JSON_DEPTH_MAX, &parsed, &unread) < 0)
        return false;
    if (params_check(job, parsed, &effective, &errors) != PARAMS_OK) {
        params_errors_text(&errors, why, why_size);
        return false;
    }
    *order = (struct submit_order){
        .job = job,
        .given = given,
        .canonical = follow_canonical(&group->sub.arena, effective),
        .requester = group->requester,
        .source = SOURCE_BACKFILL,
        .priority = group->priority,
        .restart = -1,
        /* No estimate inside this transaction: as if it had not answered in time. */
        .lane = job->estimate_sql ? job->estimate_otherwise : job->lane,
    };
    return true;
}

/* The key of the job, or a place among those that wait for it. */
static int
take_key(struct backfill_group *group, struct draft *draft, struct err *err)
{
    struct db *db = group->sub.db;
    const struct db_value take[] = {p_opt_text(draft->key), p_i64(draft->id)};
    int64_t got = 1;
    int r = 0;

    if (db_kind(db) == DB_PG)
        r = db_query_i64(db, store_sql(db, STMT_CHAIN_TRY_LOCK), take, 1, &got, err);
    if (r >= 0 && got)
        r = db_query_i64(db, store_sql(db, STMT_QUEUE_ACTIVE_TAKE), take,
                         array_len(take), &got, err);
    else if (r >= 0)
        r = 0;
    if (r < 0)
        return r;
    if (r == 0) {
        draft->reason = "key";
        draft->not_before_us = group->sub.now_us;
    }
    return 0;
}

static int
enter(struct backfill_group *group, const struct submit_order *orders,
      const int64_t *numbers, size_t count, struct err *err)
{
    struct submission *sub = &group->sub;
    struct db *db = sub->db;
    int r;

    sub->orders = orders;
    sub->count = count;
    sub->drafts = arena_array(&sub->arena, struct draft, count);
    r = submit_draw_ids(sub, err);
    for (size_t i = 0; i < count && r == 0; i++) {
        struct draft *draft = &sub->drafts[i];

        draft->order = &orders[i];
        draft->at = i;
        draft->is_new = true;
        if (orders[i].job->duplicates == QUEUE_DUPLICATES_REFUSE) {
            draft->key = submit_key_of(&sub->arena, draft->order);
            r = take_key(group, draft, err);
        }
    }
    if (r == 0)
        r = submit_write_rows(sub, NULL, err);
    for (size_t i = 0; i < count && r == 0; i++)
        r = db_run(db, store_sql(db, STMT_BACKFILL_ITEM_OPEN), err,
                   p_i64(sub->drafts[i].id), p_i64(group->id), p_i64(numbers[i]));
    group->open += (int64_t)count;
    group->entered = true;
    return r;
}

void
backfill_hold_for(struct backfill_group *group, const char *why)
{
    group->state = "HELD";
    group->why = why;
}

/* An item that cannot be asked for has FAILED. */
static int
refuse(struct backfill_group *group, int64_t n, const char *why, struct err *err)
{
    struct db *db = group->sub.db;

    if (group->hold_on_failure)
        backfill_hold_for(
            group, arena_printf(&group->sub.arena, "item %" PRId64 ": %s", n, why));
    return db_run(db, store_sql(db, STMT_BACKFILL_ITEM_REFUSE), err, p_text(why),
                  p_i64(group->id), p_i64(n));
}

/* One round; *ret_left: something may be waiting still. */
static int
let_in_some(struct backfill_group *group, bool *ret_left, struct err *err)
{
    struct arena *arena = &group->sub.arena;
    size_t room = (size_t)(group->parallel - group->open);
    struct waiting *items = arena_array(arena, struct waiting, room);
    struct submit_order *orders = arena_array(arena, struct submit_order, room);
    int64_t *numbers = arena_array(arena, int64_t, room);
    size_t count = 0;
    size_t n = 0;
    char why[400];
    int r = next_items(group, items, room, &count, err);

    for (size_t i = 0; i < count && r == 0 && backfill_is_running(group); i++) {
        group->next_n = items[i].n + 1;
        if (make_order(group, items[i].given, &orders[n], why, sizeof(why)))
            numbers[n++] = items[i].n;
        else
            r = refuse(group, items[i].n, why, err);
    }
    *ret_left = count == room;
    return r < 0 || n == 0 ? r : enter(group, orders, numbers, n, err);
}

/* As many as may be open; DONE when there is nothing left. */
int
backfill_let_in(struct backfill_group *group, struct err *err)
{
    bool left = true;
    int r = 0;

    if (backfill_is_running(group) && !group->job)
        r = read_job(group, err);
    if (r == 0 && backfill_is_running(group) && !group->job)
        backfill_hold_for(group,
                          arena_printf(&group->sub.arena, "there is no job %s any more",
                                       group->job_name));
    while (r == 0 && backfill_is_running(group) && left &&
           group->open < group->parallel)
        r = let_in_some(group, &left, err);
    if (r == 0 && backfill_is_running(group) && group->open == 0)
        group->state = "DONE";
    return r < 0 ? r : backfill_save(group, err);
}

/* --- what ends --- */

static const char *
item_state(enum request_outcome outcome)
{
    switch (outcome) {
    case OUTCOME_COMPLETED:
        return "COMPLETED";
    case OUTCOME_STOPPED:
        return "STOPPED";
    case OUTCOME_CANCELLED:
        return "CANCELLED";
    case OUTCOME_NONE:
    case OUTCOME_ERROR:
    case OUTCOME_TIMEOUT:
    case OUTCOME_WORKER_LOST:
    case OUTCOME_EXPIRED:
    case OUTCOME_REFUSED:
    case OUTCOME_COUNT:
        break;
    }
    return "FAILED";
}

static int
settle(struct db *db, struct follow *follow, int64_t id, int64_t n,
       const struct closing *closing, struct err *err)
{
    scoped(backfill_release) struct backfill_group group = {0};
    const char *state = item_state(closing->outcome);
    int r = backfill_lock(db, id, &group, err);

    if (r <= 0)
        return r;
    group.open--;
    if (backfill_is_running(&group) &&
        (str_eq(state, "STOPPED") ||
         (group.hold_on_failure && str_eq(state, "FAILED"))))
        backfill_hold_for(
            &group, arena_printf(&group.sub.arena,
                                 "item %" PRId64 " (request %" PRId64 ") is %s: %.200s",
                                 n, closing->id, state,
                                 closing->detail ? closing->detail : "no detail"));
    r = backfill_let_in(&group, err);
    follow->entered |= group.entered;
    return r;
}

static int
end_item(struct db *db, struct follow *follow, const struct follow_fact *fact,
         struct err *err)
{
    const struct closing *closing = fact->closing;
    scoped(db_rows_end) struct db_rows rows = {0};
    int64_t id;
    int64_t n;
    int r = db_ask(db, store_sql(db, STMT_BACKFILL_ITEM_END), &rows, err,
                   p_text(item_state(closing->outcome)), p_opt_text(closing->detail),
                   p_i64(fact->id));

    if (r == 0)
        r = db_next(&rows, err);
    if (r <= 0)
        return r;
    id = db_i64(&rows, 0);
    n = db_i64(&rows, 1);
    db_rows_end(&rows);
    r = settle(db, follow, id, n, closing, err);
    return r < 0 ? r : 0;
}

int
follow_backfills(struct db *db, struct follow *follow, struct err *err)
{
    int r = 0;

    for (size_t i = 0; i < follow->count && r == 0; i++) {
        const struct follow_fact *fact = &follow->facts[i];

        if (!fact->backfill)
            continue;
        if (fact->followup_id)
            r = db_run(db, store_sql(db, STMT_BACKFILL_ITEM_RETRY), err,
                       p_i64(fact->followup_id), p_i64(fact->id));
        else
            r = end_item(db, follow, fact, err);
    }
    return r;
}

/* --- making one --- */

struct making {
    const struct backfill_order *order;
    int64_t id;
};

static int
add_items(struct db *db, const struct making *making, struct err *err)
{
    static const char *const columns[] = {"backfill_id", "n", "given", "state"};
    scoped(db_copy_abort) struct db_copy copy = {0};
    int64_t rows;
    int r = db_copy_begin(db, "pawl.backfill_item", columns, array_len(columns), &copy,
                          err);

    for (size_t i = 0; i < making->order->count && r == 0; i++) {
        const struct db_value values[] = {p_i64(making->id), p_i64((int64_t)i + 1),
                                          p_text(making->order->items[i]),
                                          p_text("WAITING")};

        r = db_copy_row(&copy, values, err);
    }
    return r < 0 ? r : db_copy_end(&copy, &rows, err);
}

static int
make_fn(struct db *db, void *arg, struct err *err)
{
    struct making *making = arg;
    const struct backfill_order *order = making->order;
    scoped(backfill_release) struct backfill_group group = {0};
    const struct db_value add[] = {
        p_text(order->job->name),     p_text(order->requester),
        p_text(order->given),         p_i64(order->priority),
        p_i64(order->parallel),       p_i64(order->hold_on_failure),
        p_i64((int64_t)order->count), p_i64(order->passed_over),
    };
    char subject[40];
    int r = db_query_i64(db, store_sql(db, STMT_BACKFILL_ADD), add, array_len(add),
                         &making->id, err);

    if (r >= 0)
        r = add_items(db, making, err);
    if (r >= 0)
        r = backfill_lock(db, making->id, &group, err);
    if (r >= 0)
        r = backfill_let_in(&group, err);
    snprintf(subject, sizeof(subject), "backfill %" PRId64, making->id);
    if (r >= 0)
        r = store_audit(db, order->requester, "backfill", subject, order->job->name,
                        err);
    return r < 0 ? r : 0;
}

int
queue_backfill(struct store *store, const struct backfill_order *order, int64_t *ret_id,
               struct err *err)
{
    struct making making = {.order = order};
    int r;

    if (order->count > BACKFILL_ITEMS_MAX)
        return err_set(err, ERR_TOO_LARGE, "a backfill has at most %d items, not %zu",
                       BACKFILL_ITEMS_MAX, order->count);
    if (order->parallel < 1 || order->parallel > BACKFILL_PARALLEL_MAX)
        return err_set(err, ERR_INVALID, "parallel: must be 1 to %d",
                       BACKFILL_PARALLEL_MAX);
    if (order->parallel > 1 && order->job->duplicates == QUEUE_DUPLICATES_REFUSE)
        return err_set(err, ERR_INVALID,
                       "parallel: job %s allows one request at a time (duplicates: "
                       "refuse): leave it out, so that its items run one after the "
                       "other, or set `duplicates` of the job",
                       order->job->name);
    r = store_write(store, STORE_NORMAL, make_fn, &making, err);
    if (r < 0)
        return r;
    *ret_id = making.id;
    store_wake(store, WAKE_READY);
    return 0;
}
