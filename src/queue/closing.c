/*
 * The last write of a request's life. Few go by single inserts, many by copy: one
 * transaction may close a span of thousands.
 */
#include "queue/closing.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/plant.h"
#include "queue/follow.h"
#include "queue/lifecycle.h"
#include "store/store.h"

#define FEW 4

static const char *const columns[] = {
    "id",          "outcome",      "worker",       "token",         "claimed_at",
    "finished_at", "detail",       "execution_id", "result_path",   "result_name",
    "result_type", "result_bytes", "result_rows",  "result_sha256",
};

static void
values_of(const struct closing *closing, struct db_value ret[array_len(columns)])
{
    const struct request_result none = {.rows = -1};
    const struct request_result *result = &none;
    bool known = closing->result && closing->result->known;

    if (known)
        result = closing->result;
    ret[0] = p_i64(closing->id);
    ret[1] = p_text(request_outcome_name(closing->outcome));
    ret[2] = p_opt_text(closing->worker);
    ret[3] = p_id(closing->token);
    ret[4] = p_id(closing->claimed_at_us);
    ret[5] = p_i64(closing->finished_at_us);
    ret[6] = p_opt_text(closing->detail);
    ret[7] = p_id(closing->execution_id);
    ret[8] = p_opt_text(result->path);
    ret[9] = p_opt_text(result->name);
    ret[10] = p_opt_text(result->type);
    ret[11] = known ? p_i64(result->bytes) : p_null();
    ret[12] = result->rows >= 0 ? p_i64(result->rows) : p_null();
    ret[13] = p_opt_text(result->sha256);
}

static int
add_few(struct db *db, const struct closing *closings, size_t count, struct err *err)
{
    struct db_value values[array_len(columns)];
    int r = 0;

    for (size_t i = 0; i < count && r == 0; i++) {
        values_of(&closings[i], values);
        r = db_exec(db, store_sql(db, STMT_QUEUE_OUTCOME_ADD), values,
                    array_len(columns), err);
    }
    return r;
}

static int
add_many(struct db *db, const struct closing *closings, size_t count, struct err *err)
{
    scoped(db_copy_abort) struct db_copy copy = {0};
    struct db_value values[array_len(columns)];
    int64_t rows;
    int r;

    r = db_copy_begin(db, "pawl.outcome", columns, array_len(columns), &copy, err);
    for (size_t i = 0; i < count && r == 0; i++) {
        values_of(&closings[i], values);
        r = db_copy_row(&copy, values, err);
    }
    return r < 0 ? r : db_copy_end(&copy, &rows, err);
}

/* A final request leaves nothing behind in the hot tables. */
static int
release(struct db *db, const struct closing *closings, size_t count, struct err *err)
{
    static const enum stmt lite[] = {STMT_QUEUE_RELEASE_FLAGS,
                                     STMT_QUEUE_RELEASE_PROGRESS,
                                     STMT_QUEUE_RELEASE_ACTIVE, STMT_CHAIN_WAIT_DROP};
    scoped(xfree_ptr) int64_t *ids = xcalloc(count, sizeof(*ids));
    struct db_value list;
    int r = 0;

    for (size_t i = 0; i < count; i++)
        ids[i] = closings[i].id;
    list = p_i64_array(ids, count);
    if (db_kind(db) == DB_PG)
        return db_exec(db, store_sql(db, STMT_QUEUE_RELEASE), &list, 1, err);
    for (size_t i = 0; i < array_len(lite) && r == 0; i++)
        r = db_exec(db, store_sql(db, lite[i]), &list, 1, err);
    return r;
}

static int
check_moves(const struct closing *closings, size_t count, struct err *err)
{
    for (size_t i = 0; i < count; i++)
        if (!request_may_end(closings[i].from, closings[i].outcome))
            return err_set(
                err, ERR_INTERNAL, "request %lld: no way from %s to outcome %s",
                (long long)closings[i].id, request_status_name(closings[i].from),
                closings[i].outcome ? request_outcome_name(closings[i].outcome)
                                    : "NONE");
    return 0;
}

/* The look comes before the flags are gone. */
static int
close_some(struct db *db, const struct closing *closings, size_t count,
           struct follow *follow, struct err *err)
{
    int r;

    follow_begin(follow, closings, count);
    r = follow_look(db, follow, err);
    if (r == 0)
        r = count <= FEW ? add_few(db, closings, count, err)
                         : add_many(db, closings, count, err);
    return r < 0 ? r : release(db, closings, count, err);
}

static int
close_one_pg(struct db *db, const struct closing *closing, struct follow *follow,
             struct err *err)
{
    struct db_value values[array_len(columns) + 2];
    scoped(db_rows_end) struct db_rows rows = {0};
    const char *done = NULL;
    const char *failed = NULL;
    int r;

    follow_begin(follow, closing, 1);
    follow_jobs(follow, true, &done);
    follow_jobs(follow, false, &failed);
    values_of(closing, values);
    values[array_len(columns)] = p_opt_text(done);
    values[array_len(columns) + 1] = p_opt_text(failed);
    r = db_query(db, store_sql(db, STMT_QUEUE_CLOSE_ONE), values, array_len(values),
                 &rows, err);
    return r < 0 ? r : follow_read(follow, &rows, err);
}

/* One round; *ret_more are those that end because of it. */
static int
close_round(struct db *db, const struct closing *closings, size_t count,
            struct arena *arena, struct closing **ret_more, size_t *ret_count,
            struct err *err)
{
    scoped(follow_release) struct follow follow = {0};
    int r = check_moves(closings, count, err);

    if (r == 0)
        r = count == 1 && db_kind(db) == DB_PG
                ? close_one_pg(db, closings, &follow, err)
                : close_some(db, closings, count, &follow, err);
    if (planted("finish_alone"))
        return r < 0 ? r : QUEUE_CLOSED;
    if (r == 0)
        r = follow_retry(db, &follow, err);
    if (r == 0)
        r = follow_announce(db, &follow, err);
    if (r == 0)
        r = follow_chain(db, &follow, err);
    if (r == 0)
        r = follow_backfills(db, &follow, err);
    if (r == 0)
        r = follow_waiters(db, &follow, arena, ret_more, ret_count, err);
    return r < 0 ? r : follow.entered ? QUEUE_CLOSED_ENTERED : QUEUE_CLOSED;
}

int
queue_close_in(struct db *db, const struct closing *closings, size_t count,
               struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    int entered = QUEUE_CLOSED;

    while (count > 0) {
        struct closing *more = NULL;
        size_t n_more = 0;
        int r = close_round(db, closings, count, &arena, &more, &n_more, err);

        if (r < 0)
            return r;
        entered |= r;
        closings = more;
        count = n_more;
    }
    return entered;
}

int
queue_closed_range_in(struct db *db, int64_t first_id, int64_t last_id,
                      enum request_outcome outcome, int64_t now_us, struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    struct closing *more = NULL;
    size_t n_more = 0;
    int r;

    r = db_run(db, store_sql(db, STMT_DELIVERY_ADD_BETWEEN), err, p_i64(first_id),
               p_i64(last_id));
    if (r < 0)
        return r;
    r = follow_range(db, first_id, last_id, outcome, now_us, &arena, &more, &n_more,
                     err);
    return r < 0 ? r : queue_close_in(db, more, n_more, err);
}

int
queue_claim_put(struct db *db, const struct claim_row *row, int64_t first_id,
                int64_t last_id, struct err *err)
{
    if (first_id > last_id)
        return 0;
    return db_run(db, store_sql(db, STMT_QUEUE_CLAIM_PUT), err, p_i64(first_id),
                  p_i64(last_id), p_text(row->job), p_text(row->lane),
                  p_text(row->worker), p_i64(row->token.number),
                  p_text(row->token.nonce), p_i64(row->claimed_at_us));
}
