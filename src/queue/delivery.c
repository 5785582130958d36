#include "queue/delivery.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/strs.h"
#include "queue/read.h"
#include "store/store.h"

#include <stdio.h>

/* --- when --- */

struct due {
    const char *const *webhooks;
    size_t count;
    int64_t *due_us;
    int64_t now_us;
};

static int
due_fn(struct db *db, void *arg, struct err *err)
{
    struct due *due = (struct due *)arg;
    scoped(db_rows_end) struct db_rows rows = {0};
    int r = db_ask(db, store_sql(db, STMT_DELIVERY_DUE), &rows, err,
                   p_text_array(due->webhooks, due->count));

    for (size_t i = 0; i < due->count; i++)
        due->due_us[i] = 0;
    if (r < 0)
        return r;
    while ((r = db_next(&rows, err)) > 0) {
        for (size_t i = 0; i < due->count; i++)
            if (str_eq(due->webhooks[i], db_text(&rows, 0)))
                due->due_us[i] = db_i64(&rows, 1);
        due->now_us = db_i64(&rows, 2);
    }
    return r;
}

int
queue_deliveries_due(struct store *store, const char *const *webhooks, size_t count,
                     int64_t *ret_due_us, int64_t *ret_now_us, struct err *err)
{
    struct due due = {.webhooks = webhooks, .count = count, .due_us = ret_due_us};
    int r = store_read(store, due_fn, &due, err);

    if (r == 0)
        *ret_now_us = due.now_us;
    return r;
}

/* --- one --- */

struct call {
    const char *webhook;
    int64_t since_us; /* 0 = any */
    int64_t us;       /* lease, or wait */
    struct delivery delivery;
    const char *why;
};

static int
take_fn(struct db *db, void *arg, struct err *err)
{
    struct call *call = (struct call *)arg;
    scoped(db_rows_end) struct db_rows rows = {0};
    int r = db_ask(db, store_sql(db, STMT_DELIVERY_TAKE), &rows, err, p_i64(call->us),
                   p_text(call->webhook),
                   p_i64(call->since_us ? call->since_us : INT64_MIN),
                   p_i64(!call->since_us));

    if (r == 0)
        r = db_next(&rows, err);
    if (r <= 0)
        return r;
    call->delivery = (struct delivery){
        .request_id = db_i64(&rows, 0),
        .webhook = call->webhook,
        .attempts = (int)db_i64(&rows, 1),
        .created_at_us = db_i64(&rows, 2) > 0 ? db_i64(&rows, 2) : 0,
        .now_us = db_i64(&rows, 3),
    };
    return DELIVERY_TAKEN;
}

int
queue_delivery_take(struct store *store, const char *webhook, int64_t since_us,
                    int64_t lease_us, struct delivery *ret, struct err *err)
{
    struct call call = {.webhook = webhook, .since_us = since_us, .us = lease_us};
    int r = store_write(store, STORE_NORMAL, take_fn, &call, err);

    if (r == DELIVERY_TAKEN)
        *ret = call.delivery;
    return r;
}

static int
done_fn(struct db *db, void *arg, struct err *err)
{
    const struct delivery *delivery = (const struct delivery *)arg;

    return db_run(db, store_sql(db, STMT_DELIVERY_DONE), err,
                  p_i64(delivery->request_id), p_text(delivery->webhook));
}

int
queue_delivery_done(struct store *store, const struct delivery *delivery,
                    struct err *err)
{
    struct delivery copy = *delivery;

    return store_write(store, STORE_NORMAL, done_fn, &copy, err);
}

static int
again_fn(struct db *db, void *arg, struct err *err)
{
    const struct call *call = (const struct call *)arg;
    char why[DELIVERY_ERROR_MAX + 1];

    str_copy(why, sizeof(why), call->why);
    return db_run(db, store_sql(db, STMT_DELIVERY_AGAIN), err, p_i64(call->us),
                  p_text(why), p_i64(call->delivery.request_id),
                  p_text(call->delivery.webhook), p_i64(call->delivery.attempts));
}

int
queue_delivery_again(struct store *store, const struct delivery *delivery,
                     int64_t wait_us, const char *why, struct err *err)
{
    struct call call = {.delivery = *delivery, .us = wait_us, .why = why};

    return store_write(store, STORE_NORMAL, again_fn, &call, err);
}

static int
give_back_fn(struct db *db, void *arg, struct err *err)
{
    const struct delivery *delivery = (const struct delivery *)arg;

    return db_run(db, store_sql(db, STMT_DELIVERY_GIVE_BACK), err,
                  p_i64(delivery->request_id), p_text(delivery->webhook),
                  p_i64(delivery->attempts));
}

int
queue_delivery_give_back(struct store *store, const struct delivery *delivery,
                         struct err *err)
{
    struct delivery copy = *delivery;

    return store_write(store, STORE_NORMAL, give_back_fn, &copy, err);
}

static int
give_up_fn(struct db *db, void *arg, struct err *err)
{
    const struct call *call = (const struct call *)arg;
    const struct delivery *delivery = &call->delivery;
    scoped(arena_release) struct arena arena = {0};
    int r =
        db_run(db, store_sql(db, STMT_DELIVERY_DROP), err, p_i64(delivery->request_id),
               p_text(delivery->webhook), p_i64(delivery->attempts));

    if (r < 0 || db_changes(db) == 0)
        return r;
    return store_audit(
        db, "pawl", "webhook-given-up",
        arena_printf(&arena, "request %lld", (long long)delivery->request_id),
        arena_printf(&arena, "webhook %s, %d tries: %s", delivery->webhook,
                     delivery->attempts, call->why),
        err);
}

int
queue_delivery_give_up(struct store *store, const struct delivery *delivery,
                       const char *why, struct err *err)
{
    struct call call = {.delivery = *delivery, .why = why};

    return store_write(store, STORE_NORMAL, give_up_fn, &call, err);
}

/* --- of one request --- */

struct look {
    int64_t request_id;
    struct arena *arena;
    struct delivery_waiting *list;
    size_t count;
};

static int
of_fn(struct db *db, void *arg, struct err *err)
{
    struct look *look = (struct look *)arg;
    scoped(db_rows_end) struct db_rows rows = {0};
    int r = db_ask(db, store_sql(db, STMT_DELIVERY_OF), &rows, err,
                   p_i64(look->request_id));

    look->count = 0;
    if (r < 0)
        return r;
    while ((r = db_next(&rows, err)) > 0) {
        struct delivery_waiting *more =
            arena_array(look->arena, struct delivery_waiting, look->count + 1);

        if (look->count > 0)
            memcpy(more, look->list, look->count * sizeof(*more));
        look->list = more;
        look->list[look->count++] = (struct delivery_waiting){
            .webhook = queue_read_text(&rows, 0, look->arena),
            .due_at_us = db_i64(&rows, 1),
            .attempts = (int)db_i64(&rows, 2),
            .last_error = queue_read_text(&rows, 3, look->arena),
        };
    }
    return r;
}

int
queue_deliveries_of(struct store *store, int64_t request_id, struct arena *arena,
                    struct delivery_waiting **ret, size_t *ret_count, struct err *err)
{
    struct look look = {.request_id = request_id, .arena = arena};
    int r = store_read(store, of_fn, &look, err);

    if (r < 0)
        return r;
    *ret = look.list;
    *ret_count = look.count;
    return 0;
}
