#include "run/prune.h"

#include "base/err.h"
#include "run/result_store.h"
#include "store/store.h"

struct page {
    const struct prune_order *order;
    int64_t ids[PRUNE_PAGE];
    size_t count;
    int64_t keys;
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

int
prune_step(const struct prune_order *order, struct prune_report *ret, struct err *err)
{
    struct page page = {.order = order};
    int r = 0;

    if (order->results_us > 0)
        r = prune_results(&page, err);
    if (r == 0 && order->keys_us > 0)
        r = store_write(order->store, STORE_NORMAL, drop_keys, &page, err);
    if (r < 0)
        return r;
    *ret = (struct prune_report){
        .results = (int64_t)page.count,
        .keys = page.keys,
        .more = page.count == PRUNE_PAGE || page.keys == PRUNE_PAGE,
    };
    return 0;
}
