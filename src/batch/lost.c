/* An execution is closed together with its request, in the one transaction of
 * queue_close_lost. */
#include "batch/lost.h"

#include "base/err.h"
#include "batch/execution.h"
#include "batch/move.h"
#include "store/store.h"

static int
close_execution(struct db *db, struct lost_request *lost, const char *reason, void *arg,
                struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    enum execution_state state;
    int64_t id;
    int r;

    r = db_ask(db, store_sql(db, STMT_BATCH_EXECUTION_OF_REQUEST), &rows, err,
               p_i64(lost->request_id));
    if (r == 0)
        r = db_next(&rows, err);
    if (r <= 0)
        return r; /* it had not begun, or is a task */
    id = db_i64(&rows, 0);
    if (!execution_state_parse(db_text(&rows, 1), &state))
        return err_set(err, ERR_SCHEMA, "the store says state %.40s, unknown here",
                       db_text(&rows, 1));
    db_rows_end(&rows);
    lost->execution_id = id;
    if (!execution_state_alive(state))
        return 0;
    r = batch_move_steps(db, id, EXECUTION_FAILED, reason, err);
    return r < 0 ? r : batch_move_execution(db, id, EXECUTION_FAILED, reason, err);
}

int
batch_close_lost(struct store *store, const char *worker, const char *reason,
                 struct arena *arena, struct lost_request **ret_lost, size_t *ret_count,
                 struct err *err)
{
    return queue_close_lost(store, worker, reason, close_execution, NULL, arena,
                            ret_lost, ret_count, err);
}
