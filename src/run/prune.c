#include "run/prune.h"

#include "base/err.h"
#include "run/result_store.h"
#include "store/store.h"

struct page {
    const struct prune_order *order;
    int64_t ids[PRUNE_PAGE];
    size_t count;
    int64_t keys;
    int64_t after; /* the last request that was looked at */
    bool end;      /* none behind it is old */
    int64_t records;
    int64_t requests;
};

static int
find_results(struct db *db, void *arg, struct err *err)
{
    struct page *page = (struct page *)arg;
    scoped(db_rows_end) struct db_rows rows = {0};
    int r = db_ask(db, store_sql(db, STMT_PRUNE_RESULTS), &rows, err,
                   p_i64(page->order->results_us), p_i64(PRUNE_PAGE));

    page->count = 0;
    if (r < 0)
        return r;
    while (page->count < PRUNE_PAGE && (r = db_next(&rows, err)) > 0)
        page->ids[page->count++] = db_i64(&rows, 0);
    return r < 0 ? r : 0;
}

static int
mark_gone(struct db *db, void *arg, struct err *err)
{
    const struct page *page = (const struct page *)arg;

    return db_run(db, store_sql(db, STMT_PRUNE_RESULTS_GONE), err,
                  p_i64_array(page->ids, page->count));
}

static int
drop_keys(struct db *db, void *arg, struct err *err)
{
    struct page *page = (struct page *)arg;
    scoped(db_rows_end) struct db_rows rows = {0};
    int r = db_ask(db, store_sql(db, STMT_PRUNE_KEYS), &rows, err,
                   p_i64(page->order->keys_us), p_i64(PRUNE_PAGE));

    page->keys = 0;
    if (r < 0)
        return r;
    while ((r = db_next(&rows, err)) > 0)
        page->keys += db_i64(&rows, 0);
    return r;
}

static int
prune_results(struct page *page, struct err *err)
{
    const struct prune_order *order = page->order;
    int r = store_read(order->store, find_results, page, err);

    if (r < 0 || page->count == 0)
        return r;
    for (size_t i = 0; i < page->count; i++)
        result_store_drop_files(order->results, page->ids[i]);
    return store_write(order->store, STORE_NORMAL, mark_gone, page, err);
}

/* --- history --- */

/* What hangs on requests, in this order; on PostgreSQL a function of the owner does it.
 */
static const enum stmt sqlite_drops[] = {
    STMT_PRUNE_DELIVERIES_NOTE, STMT_PRUNE_DELIVERIES, STMT_PRUNE_SKIPS,
    STMT_PRUNE_CALLS,           STMT_PRUNE_HANDS,      STMT_PRUNE_STEPS,
    STMT_PRUNE_PARTITIONS,      STMT_PRUNE_EXECUTIONS, STMT_PRUNE_OUTCOMES,
    STMT_PRUNE_ASKED,
};

static int
find_requests(struct db *db, struct page *page, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int seen = 0;
    int r = db_ask(db, store_sql(db, STMT_PRUNE_REQUESTS), &rows, err,
                   p_i64(page->order->history_us), p_i64(page->order->after),
                   p_i64(PRUNE_REQUESTS));

    page->count = 0;
    page->after = page->order->after;
    page->end = false;
    if (r < 0)
        return r;
    while (!page->end && (r = db_next(&rows, err)) > 0) {
        seen++;
        page->end = db_i64(&rows, 1) != 0;
        page->after = db_i64(&rows, 0);
        if (db_i64(&rows, 2) && page->count < PRUNE_PAGE)
            page->ids[page->count++] = db_i64(&rows, 0);
    }
    page->end |= seen < PRUNE_REQUESTS;
    return r < 0 ? r : 0;
}

/* A request has at most one execution. */
static int
drop_hanging(struct db *db, const struct page *page, struct err *err)
{
    const struct db_value ids = p_i64_array(page->ids, page->count);
    scoped(db_rows_end) struct db_rows rows = {0};
    int64_t instances[PRUNE_PAGE];
    size_t count = 0;
    int r = db_ask(db, store_sql(db, STMT_PRUNE_CARRIED), &rows, err, ids);

    if (r < 0)
        return r;
    while (count < PRUNE_PAGE && (r = db_next(&rows, err)) > 0)
        instances[count++] = db_i64(&rows, 0);
    db_rows_end(&rows);
    for (size_t i = 0; i < array_len(sqlite_drops) && r >= 0; i++)
        r = db_run(db, store_sql(db, sqlite_drops[i]), err, ids);
    return r < 0 ? r
                 : db_run(db, store_sql(db, STMT_PRUNE_INSTANCES), err,
                          p_i64_array(instances, count));
}

static int
drop_requests(struct db *db, void *arg, struct err *err)
{
    struct page *page = (struct page *)arg;
    int r = find_requests(db, page, err);

    page->requests = r < 0 ? 0 : (int64_t)page->count;
    if (r < 0 || page->count == 0)
        return r;
    if (db_kind(db) == DB_PG) {
        const struct db_value params[] = {p_i64_array(page->ids, page->count),
                                          p_i64(page->order->history_us)};

        r = db_query_i64(db, store_sql(db, STMT_PRUNE_REQUESTS_GONE), params,
                         array_len(params), &page->requests, err);
        return r < 0 ? r : 0;
    }
    return drop_hanging(db, page, err);
}

static int
drop_records(struct db *db, void *arg, struct err *err)
{
    static const enum stmt pages[] = {STMT_PRUNE_SLOTS, STMT_PRUNE_ACTS,
                                      STMT_PRUNE_ITEMS};
    struct page *page = (struct page *)arg;
    const struct db_value params[] = {p_i64(page->order->history_us),
                                      p_i64(PRUNE_PAGE)};
    int r = 0;

    page->records = 0;
    if (db_kind(db) == DB_PG) {
        r = db_query_i64(db, store_sql(db, STMT_PRUNE_RECORDS), params,
                         array_len(params), &page->records, err);
        return r < 0 ? r : 0;
    }
    for (size_t i = 0; i < array_len(pages) && r == 0; i++) {
        r = db_exec(db, store_sql(db, pages[i]), params, array_len(params), err);
        if (r == 0 && db_changes(db) > page->records)
            page->records = db_changes(db);
    }
    return r < 0 ? r : db_run(db, store_sql(db, STMT_PRUNE_BACKFILLS), err, params[0]);
}

/* Records first: what a schedule or a backfill names is kept. */
static int
prune_history(struct page *page, struct prune_order *order, struct err *err)
{
    int r = store_write(order->store, STORE_NORMAL, drop_records, page, err);

    if (r == 0)
        r = store_write(order->store, STORE_NORMAL, drop_requests, page, err);
    if (r == 0)
        order->after = page->end ? 0 : page->after;
    return r;
}

int
prune_step(struct prune_order *order, struct prune_report *ret, struct err *err)
{
    struct page page = {.order = order};
    struct prune_report report = {0};
    int r = 0;

    /* The answer to a key is its request. */
    if (order->history_us > 0 && order->history_us < order->keys_us)
        order->history_us = order->keys_us;
    if (order->results_us > 0)
        r = prune_results(&page, err);
    report.results = (int64_t)page.count;
    if (r == 0 && order->keys_us > 0)
        r = store_write(order->store, STORE_NORMAL, drop_keys, &page, err);
    if (r < 0)
        return r;
    report.keys = page.keys;
    report.more = page.count == PRUNE_PAGE || page.keys == PRUNE_PAGE;
    /* Their results and keys go before them. */
    if (!report.more && order->history_us > 0) {
        r = prune_history(&page, order, err);
        if (r < 0)
            return r;
        report.requests = page.requests;
        report.more = !page.end || page.records == PRUNE_PAGE;
    }
    ret->results += report.results;
    ret->keys += report.keys;
    ret->requests += report.requests;
    ret->more = report.more;
    return 0;
}
