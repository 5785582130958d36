/*
 * A chunk's record. It counts only directly behind the chunk before it, so a chunk
 * can be recorded neither twice nor with one left out.
 */
#include "base/err.h"
#include "base/plant.h"
#include "batch/execution.h"
#include "batch/move.h"
#include "batch/partition.h"
#include "queue/hold.h"
#include "store/store.h"
#include "store/wake.h"

static int
out_of_order(struct db *db, const struct checkpoint *checkpoint, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int r;

    r = db_ask(db, store_sql(db, STMT_BATCH_STEP_STATE_LOCK), &rows, err,
               p_i64(checkpoint->step_id));
    if (r == 0)
        r = db_next(&rows, err);
    if (r < 0)
        return r;
    if (r == 0)
        return err_set(err, ERR_INTERNAL, "there is no step execution %lld",
                       (long long)checkpoint->step_id);
    return err_set(err, ERR_INTERNAL,
                   "step execution %lld is %s at chunk %lld: chunk %lld cannot follow",
                   (long long)checkpoint->step_id, db_text(&rows, 0),
                   (long long)db_i64(&rows, 1), (long long)checkpoint->point.chunk);
}

/* The two statements that set a step's point take the same parameters. */
static int
set_point(struct db *db, enum stmt stmt, const struct checkpoint *checkpoint,
          struct err *err)
{
    const struct step_point *point = &checkpoint->point;
    const struct step_counts *counts = &point->counts;

    return db_run(
        db, store_sql(db, stmt), err, p_i64(counts->read), p_i64(counts->written),
        p_i64(counts->filtered), p_i64(counts->skipped), p_i64(counts->commits),
        p_i64(counts->rollbacks), p_i64(point->chunk), p_opt_text(point->position),
        p_opt_text(point->writer_state), p_i64(checkpoint->step_id));
}

int
batch_checkpoint_in(struct db *db, const struct checkpoint *checkpoint, struct err *err)
{
    int r;

    if (checkpoint->partition)
        return batch_partition_checkpoint_in(db, checkpoint, false, err);
    r = queue_hold_in(db, checkpoint->request_id, &checkpoint->token, err);
    if (r <= 0)
        return r < 0 ? r : BATCH_LOST;
    r = set_point(db, STMT_BATCH_STEP_CHECKPOINT, checkpoint, err);
    if (r < 0)
        return r;
    if (db_changes(db) == 0 && !planted("no_fence"))
        return out_of_order(db, checkpoint, err);
    if (checkpoint->last)
        r = batch_move_step(db, checkpoint->step_id, EXECUTION_COMPLETED, NULL, err);
    return r < 0 ? r : BATCH_OK;
}

static int
checkpoint_fn(struct db *db, void *arg, struct err *err)
{
    return batch_checkpoint_in(db, (const struct checkpoint *)arg, err);
}

int
batch_checkpoint(struct store *store, const struct checkpoint *checkpoint,
                 struct err *err)
{
    struct checkpoint copy = *checkpoint;

    return store_write(store, STORE_NORMAL, checkpoint_fn, &copy, err);
}

static int
place_fn(struct db *db, void *arg, struct err *err)
{
    const struct checkpoint *checkpoint = (const struct checkpoint *)arg;
    int r;

    if (checkpoint->partition)
        return batch_partition_checkpoint_in(db, checkpoint, true, err);
    r = queue_hold_in(db, checkpoint->request_id, &checkpoint->token, err);
    if (r <= 0)
        return r < 0 ? r : BATCH_LOST;
    r = set_point(db, STMT_BATCH_STEP_PLACE, checkpoint, err);
    return r < 0 ? r : BATCH_OK;
}

int
batch_checkpoint_place(struct store *store, const struct checkpoint *checkpoint,
                       struct err *err)
{
    struct checkpoint copy = *checkpoint;

    return store_write(store, STORE_NORMAL, place_fn, &copy, err);
}

static int
there_fn(struct db *db, void *arg, struct err *err)
{
    const struct checkpoint *checkpoint = (const struct checkpoint *)arg;
    const struct db_value id = p_i64(checkpoint->step_id);
    int64_t chunk = 0;
    int r;

    if (checkpoint->partition)
        return batch_partition_there_in(db, checkpoint, err);
    r = db_query_i64(db, store_sql(db, STMT_BATCH_STEP_CHUNK), &id, 1, &chunk, err);

    return r < 0 ? r : r == 1 && chunk == checkpoint->point.chunk;
}

int
batch_checkpoint_there(struct store *store, const struct checkpoint *checkpoint,
                       struct err *err)
{
    struct checkpoint copy = *checkpoint;

    return store_read(store, there_fn, &copy, err);
}
