/*
 * Parts that nobody writes any more. Who closes a lost request removes its part right
 * after the closing; when the closer dies between the two, the part stays. A part
 * bears the token of its claim and is made after the claim, so one without a claim is
 * nobody's: it has been published, or its writer will be refused.
 */
#include "worker/worker_private.h"

#include "base/err.h"
#include "base/log.h"
#include "db/db.h"
#include "run/result_store.h"
#include "store/store.h"

struct leavings {
    struct worker *worker;
    struct db *db;
    int64_t dropped;
};

static int
look_at_part(void *arg, const struct result_entry *entry, struct err *err)
{
    struct leavings *leavings = arg;
    const struct result_store *results = leavings->worker->options.results;
    const struct db_value params[] = {p_i64(entry->request), p_i64(entry->token)};
    int64_t known = 0;
    int r = db_query_i64(leavings->db, store_sql(leavings->db, STMT_FSCK_PART_KNOWN),
                         params, array_len(params), &known, err);

    if (r < 0 || known > 0 || !result_store_there(results, entry->path))
        return r < 0 ? r : 0;
    result_store_drop_parts(results, entry->request, entry->token);
    leavings->dropped++;
    return 0;
}

/* The folder is read before the claim of each part is: never the other way round. */
static int
look_at_parts(struct db *db, void *arg, struct err *err)
{
    struct leavings *leavings = arg;

    leavings->db = db;
    return result_store_list_parts(leavings->worker->options.results, look_at_part,
                                   leavings, err);
}

int
worker_drop_leavings(struct worker *worker, struct err *err)
{
    struct leavings leavings = {.worker = worker};
    int r = store_read(worker->options.store, look_at_parts, &leavings, err);

    if (leavings.dropped > 0)
        log_line(worker->options.log, LOG_INFO, "removed parts that nobody writes",
                 log_i64("parts", leavings.dropped));
    return r;
}
