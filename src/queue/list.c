/*
 * Reading. The details of a request come by one statement, so they show one moment: it
 * is in exactly one of the four places. A page finds its ids first, by the table that
 * knows them best (the small hot ones for QUEUED and RUNNING), within one view.
 */
#include "queue/list.h"

#include "base/arena.h"
#include "base/err.h"
#include "queue/read.h"
#include "store/store.h"

#include <assert.h>

/* --- details --- */

enum {
    COL_OUTCOME = QUEUE_READ_COLUMNS,
    COL_CLAIM_FIRST,
    COL_READY_SINCE,
    COL_LATER_REASON,
    COL_WORKER,
    COL_TOKEN,
    COL_CLAIMED_AT,
    COL_FINISHED_AT,
    COL_DETAIL,
    COL_EXECUTION,
    COL_CANCEL,
    COL_STOP,
    COL_PROGRESS_AT,
    COL_DONE,
    COL_TOTAL,
    COL_MESSAGE,
    COL_RESULT_PATH,
    COL_RESULT_NAME,
    COL_RESULT_TYPE,
    COL_RESULT_BYTES,
    COL_RESULT_ROWS,
    COL_RESULT_SHA256,
    COL_RESULT_GONE_AT,
};

static void
read_place(const struct db_rows *rows, struct request *request)
{
    if (!db_is_null(rows, COL_OUTCOME)) {
        request->place = PLACE_OUTCOME;
        /* The table's CHECK allows only words that are in ours. */
        if (request_outcome_parse(db_text(rows, COL_OUTCOME), &request->outcome))
            request->status = request_status_of(request->outcome);
    } else if (!db_is_null(rows, COL_CLAIM_FIRST)) {
        request->place = PLACE_CLAIM;
        request->status = REQUEST_RUNNING;
    } else {
        request->place = db_is_null(rows, COL_READY_SINCE) ? PLACE_LATER : PLACE_READY;
        request->status = REQUEST_QUEUED;
    }
}

static void
read_result(const struct db_rows *rows, struct arena *arena,
            struct request_result *result)
{
    result->known = !db_is_null(rows, COL_RESULT_NAME);
    if (!result->known)
        return;
    result->path = queue_read_text(rows, COL_RESULT_PATH, arena);
    result->name = queue_read_text(rows, COL_RESULT_NAME, arena);
    result->type = queue_read_text(rows, COL_RESULT_TYPE, arena);
    result->bytes = db_i64(rows, COL_RESULT_BYTES);
    if (!db_is_null(rows, COL_RESULT_ROWS))
        result->rows = db_i64(rows, COL_RESULT_ROWS);
    result->sha256 = queue_read_text(rows, COL_RESULT_SHA256, arena);
    result->gone_at_us = db_i64(rows, COL_RESULT_GONE_AT);
}

static void
read_progress(const struct db_rows *rows, struct arena *arena,
              struct request_progress *progress)
{
    progress->known = !db_is_null(rows, COL_PROGRESS_AT);
    if (!progress->known)
        return;
    progress->done = db_i64(rows, COL_DONE);
    if (!db_is_null(rows, COL_TOTAL))
        progress->total = db_i64(rows, COL_TOTAL);
    progress->message = queue_read_text(rows, COL_MESSAGE, arena);
    progress->updated_at_us = db_i64(rows, COL_PROGRESS_AT);
}

static void
read_details(const struct db_rows *rows, struct arena *arena, struct request *request)
{
    queue_read_request(rows, arena, request);
    read_place(rows, request);
    request->later_reason = queue_read_text(rows, COL_LATER_REASON, arena);
    request->ready_since_us = db_i64(rows, COL_READY_SINCE);
    request->worker = queue_read_text(rows, COL_WORKER, arena);
    request->token.number = db_i64(rows, COL_TOKEN);
    request->claimed_at_us = db_i64(rows, COL_CLAIMED_AT);
    request->finished_at_us = db_i64(rows, COL_FINISHED_AT);
    request->detail = queue_read_text(rows, COL_DETAIL, arena);
    request->execution_id = db_i64(rows, COL_EXECUTION);
    request->cancel_asked = db_i64(rows, COL_CANCEL) != 0;
    request->stop_asked = db_i64(rows, COL_STOP) != 0;
    read_progress(rows, arena, &request->progress);
    read_result(rows, arena, &request->result);
}

static int
read_all(struct db *db, const int64_t *ids, size_t count, struct arena *arena,
         struct request *ret_requests, size_t *ret_count, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    size_t n = 0;
    int r;

    r = db_ask(db, store_sql(db, STMT_QUEUE_DETAILS), &rows, err,
               p_i64_array(ids, count));
    if (r < 0)
        return r;
    while ((r = db_next(&rows, err)) > 0) {
        assert(n < count);
        read_details(&rows, arena, &ret_requests[n++]);
    }
    *ret_count = n;
    return r;
}

struct get {
    int64_t request_id;
    struct arena *arena;
    struct request request;
};

static int
get_fn(struct db *db, void *arg, struct err *err)
{
    struct get *get = (struct get *)arg;
    size_t count = 0;
    int r = read_all(db, &get->request_id, 1, get->arena, &get->request, &count, err);

    if (r == 0 && count == 0)
        return err_set(err, ERR_NOT_FOUND, "there is no request %lld",
                       (long long)get->request_id);
    return r;
}

int
queue_get(struct store *store, int64_t request_id, struct arena *arena,
          struct request *ret_request, struct err *err)
{
    struct get get = {.request_id = request_id, .arena = arena};
    int r = store_read(store, get_fn, &get, err);

    if (r == 0)
        *ret_request = get.request;
    return r;
}

/* --- pages --- */

struct page {
    const struct list_filter *filter;
    int limit;
    struct arena *arena;
    int64_t ids[QUEUE_LIST_MAX + 1];
    size_t n_ids;
    struct request *requests;
    size_t count;
};

static int
ask_ids(struct db *db, const struct page *page, struct db_rows *ret_rows,
        struct err *err)
{
    const struct list_filter *filter = page->filter;
    struct db_value before = p_i64(filter->after > 0 ? filter->after : INT64_MAX);
    struct db_value most = p_i64(page->limit + 1);
    struct db_value job = p_opt_text(filter->job);
    struct db_value requester = p_opt_text(filter->requester);
    int64_t final = 0;

    if (filter->has_status && filter->status == REQUEST_QUEUED)
        return db_ask(db, store_sql(db, STMT_QUEUE_PAGE_QUEUED), ret_rows, err, before,
                      job, requester, most);
    if (filter->has_status && filter->status == REQUEST_RUNNING)
        return db_ask(db, store_sql(db, STMT_QUEUE_PAGE_RUNNING), ret_rows, err, before,
                      job, requester, most);
    if (filter->has_status)
        final = filter->status == REQUEST_DONE ? 1 : 2;
    if (filter->job)
        return db_ask(db, store_sql(db, STMT_QUEUE_PAGE_JOB), ret_rows, err, job,
                      before, requester, p_i64(final), most);
    if (filter->requester)
        return db_ask(db, store_sql(db, STMT_QUEUE_PAGE_REQUESTER), ret_rows, err,
                      requester, before, p_i64(final), most);
    return db_ask(db, store_sql(db, STMT_QUEUE_PAGE_ALL), ret_rows, err, before,
                  p_i64(final), most);
}

static int
page_fn(struct db *db, void *arg, struct err *err)
{
    struct page *page = (struct page *)arg;
    scoped(db_tx_end) struct db_tx tx = {0};
    scoped(db_rows_end) struct db_rows rows = {0};
    size_t count;
    int r;

    page->n_ids = 0;
    r = db_begin(db, DB_READ, &tx, err);
    if (r == 0)
        r = ask_ids(db, page, &rows, err);
    if (r < 0)
        return r;
    while ((r = db_next(&rows, err)) > 0) {
        assert(page->n_ids < array_len(page->ids));
        page->ids[page->n_ids++] = db_i64(&rows, 0);
    }
    if (r < 0)
        return r;
    db_rows_end(&rows);
    count = page->n_ids;
    if (count > (size_t)page->limit)
        count = (size_t)page->limit;
    page->requests = arena_array(page->arena, struct request, count + 1);
    page->count = 0;
    if (count == 0)
        return 0;
    return read_all(db, page->ids, count, page->arena, page->requests, &page->count,
                    err);
}

int
queue_list(struct store *store, const struct list_filter *filter, struct arena *arena,
           struct request_page *ret_page, struct err *err)
{
    struct page page = {.filter = filter, .arena = arena, .limit = filter->limit};
    int r;

    if (page.limit == 0)
        page.limit = QUEUE_LIST_DEFAULT;
    if (page.limit < 1)
        page.limit = 1;
    if (page.limit > QUEUE_LIST_MAX)
        page.limit = QUEUE_LIST_MAX;
    r = store_read(store, page_fn, &page, err);
    if (r < 0)
        return r;
    *ret_page = (struct request_page){.requests = page.requests, .count = page.count};
    if (page.n_ids > (size_t)page.limit)
        ret_page->next_after = page.ids[page.limit - 1];
    return 0;
}

/* --- counts --- */

#define LANES_MAX 1000

struct counts {
    struct arena *arena;
    struct lane_count *list;
    size_t count;
};

static int
counts_fn(struct db *db, void *arg, struct err *err)
{
    struct counts *counts = (struct counts *)arg;
    scoped(db_rows_end) struct db_rows rows = {0};
    int r;

    counts->count = 0;
    r = db_ask(db, store_sql(db, STMT_QUEUE_COUNT_LANES), &rows, err);
    if (r < 0)
        return r;
    while ((r = db_next(&rows, err)) > 0 && counts->count < LANES_MAX)
        counts->list[counts->count++] = (struct lane_count){
            .lane = queue_read_text(&rows, 0, counts->arena),
            .later = db_i64(&rows, 1),
            .ready = db_i64(&rows, 2),
            .running = db_i64(&rows, 3),
            .oldest_ready_us = db_i64(&rows, 4),
            .paused_by = queue_read_text(&rows, 5, counts->arena),
            .paused_at_us = db_i64(&rows, 6),
        };
    return r < 0 ? r : 0;
}

int
queue_count_lanes(struct store *store, struct arena *arena,
                  struct lane_count **ret_counts, size_t *ret_count, struct err *err)
{
    struct counts counts = {.arena = arena};
    int r;

    counts.list = arena_array(arena, struct lane_count, LANES_MAX);
    r = store_read(store, counts_fn, &counts, err);
    if (r < 0)
        return r;
    *ret_counts = counts.list;
    *ret_count = counts.count;
    return 0;
}
