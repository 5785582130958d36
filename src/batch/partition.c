#include "batch/partition.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/strs.h"
#include "batch/move.h"
#include "queue/hand.h"
#include "queue/hold.h"
#include "store/store.h"
#include "store/wake.h"

/* The parent's first: who closes several claims does so in order of id. 1, or 0. */
static int
hold_share(struct db *db, const struct batch_share *share, struct err *err)
{
    int r = 1;

    if (share->parent_id != share->request_id)
        r = queue_hold_in(db, share->parent_id, &share->parent_token, err);
    return r <= 0 ? r : queue_hold_in(db, share->request_id, &share->token, err);
}

/* --- cutting --- */

size_t
batch_cut_range(int64_t least, int64_t greatest, size_t wanted,
                struct batch_cut *ret_cuts)
{
    /* The number of keys is one more, and may not fit. */
    uint64_t width = (uint64_t)greatest - (uint64_t)least;
    size_t count = width < wanted - 1 ? (size_t)width + 1 : wanted;

    for (size_t i = 0; i < count; i++) {
        /* The first so many parts have one key more than the others. */
        uint64_t longer = width % count + 1;
        uint64_t from = width / count * i + (i < longer ? i : longer);

        ret_cuts[i] = (struct batch_cut){.has_lower = i > 0,
                                         .lower = (int64_t)((uint64_t)least + from)};
        if (i > 0) {
            ret_cuts[i - 1].has_upper = true;
            ret_cuts[i - 1].upper = ret_cuts[i].lower;
        }
    }
    return count;
}

struct opening {
    const struct batch_share *share;
    const char *cut_by;
    const struct batch_cut *cuts;
    size_t count;
    const struct hand_order *hands;
};

static int
count_in(struct db *db, int64_t instance_id, const char *step, int64_t *ret_count,
         struct err *err)
{
    const struct db_value params[] = {p_i64(instance_id), p_text(step)};

    return db_query_i64(db, store_sql(db, STMT_PARTITION_COUNT), params, 2, ret_count,
                        err);
}

static int
check_key(struct db *db, const struct opening *opening, struct err *err)
{
    const struct batch_share *share = opening->share;
    scoped(db_rows_end) struct db_rows rows = {0};
    int r = db_ask(db, store_sql(db, STMT_PARTITION_CUT_BY), &rows, err,
                   p_i64(share->instance_id), p_text(share->step));

    if (r == 0)
        r = db_next(&rows, err);
    if (r <= 0 || str_eq(db_text(&rows, 0), opening->cut_by))
        return r < 0 ? r : 0;
    return err_set(err, ERR_INVALID,
                   "the run that stopped was cut by \"%.80s\", the job says \"%.80s\" "
                   "now; ask for a new run (restart: false)",
                   db_text(&rows, 0), opening->cut_by);
}

static int
open_fn(struct db *db, void *arg, struct err *err)
{
    const struct opening *opening = arg;
    const struct batch_share *share = opening->share;
    int64_t there = 0;
    int r = hold_share(db, share, err);

    if (r <= 0)
        return r < 0 ? r : BATCH_LOST;
    r = count_in(db, share->instance_id, share->step, &there, err);
    for (size_t i = 0; i < opening->count && there == 0 && r >= 0; i++) {
        const struct batch_cut *cut = &opening->cuts[i];

        r = db_run(db, store_sql(db, STMT_PARTITION_ADD), err,
                   p_i64(share->instance_id), p_text(share->step),
                   p_i64((int64_t)i + 1), cut->has_lower ? p_i64(cut->lower) : p_null(),
                   cut->has_upper ? p_i64(cut->upper) : p_null(),
                   p_text(opening->cut_by));
    }
    if (r >= 0 && there > 0)
        r = check_key(db, opening, err);
    if (r >= 0)
        r = db_run(db, store_sql(db, STMT_PARTITION_AGAIN), err,
                   p_i64(share->instance_id), p_text(share->step));
    if (r >= 0)
        r = queue_hands_enter(db, opening->hands, err);
    return r < 0 ? r : BATCH_OK;
}

int
batch_partitions_open(struct store *store, const struct batch_share *share,
                      const char *cut_by, const struct batch_cut *cuts, size_t count,
                      const struct hand_order *hands, struct err *err)
{
    struct opening opening = {
        .share = share, .cut_by = cut_by, .cuts = cuts, .count = count, .hands = hands};
    int r = store_write(store, STORE_NORMAL, open_fn, &opening, err);

    if (r == BATCH_OK)
        store_wake(store, WAKE_READY);
    return r;
}

struct where {
    int64_t instance_id;
    const char *step;
    struct batch_partitions stand;
};

static int
there_fn(struct db *db, void *arg, struct err *err)
{
    const struct where *where = arg;
    int64_t count = 0;
    int r = count_in(db, where->instance_id, where->step, &count, err);

    return r < 0 ? r : count > 0;
}

int
batch_partitions_there(struct store *store, int64_t instance_id, const char *step,
                       struct err *err)
{
    struct where where = {.instance_id = instance_id, .step = step};

    return store_read(store, there_fn, &where, err);
}

/* --- taking, letting go --- */

struct taking {
    const struct batch_share *share;
    struct arena *arena;
    struct batch_partition partition;
};

static const char *
text_of(const struct db_rows *rows, int column, struct arena *arena)
{
    if (db_is_null(rows, column))
        return NULL;
    return arena_strndup(arena, db_text(rows, column), db_text_len(rows, column));
}

/* The next row of partition_free or partition_mine: 1, or 0: there is none. */
static int
read_partition(struct db_rows *rows, struct taking *taking, struct err *err)
{
    int r = db_next(rows, err);

    if (r <= 0)
        return r;
    taking->partition = (struct batch_partition){
        .n = db_i64(rows, 0),
        .cut = {.has_lower = !db_is_null(rows, 1),
                .has_upper = !db_is_null(rows, 2),
                .lower = db_i64(rows, 1),
                .upper = db_i64(rows, 2)},
        .hold = db_i64(rows, 12),
        .point = {.counts = {.read = db_i64(rows, 3),
                             .written = db_i64(rows, 4),
                             .filtered = db_i64(rows, 5),
                             .skipped = db_i64(rows, 6),
                             .commits = db_i64(rows, 7),
                             .rollbacks = db_i64(rows, 8)},
                  .chunk = db_i64(rows, 9),
                  .position = text_of(rows, 10, taking->arena),
                  .writer_state = text_of(rows, 11, taking->arena)},
    };
    return 1;
}

static int
find_mine(struct db *db, struct taking *taking, struct err *err)
{
    const struct batch_share *share = taking->share;
    scoped(db_rows_end) struct db_rows rows = {0};
    int r = db_ask(db, store_sql(db, STMT_PARTITION_MINE), &rows, err,
                   p_i64(share->instance_id), p_text(share->step),
                   p_i64(share->request_id), p_i64(share->token.number));

    return r < 0 ? r : read_partition(&rows, taking, err);
}

static int
find_free(struct db *db, struct taking *taking, struct err *err)
{
    const struct batch_share *share = taking->share;
    scoped(db_rows_end) struct db_rows rows = {0};
    int r = db_ask(db, store_sql(db, STMT_PARTITION_FREE), &rows, err,
                   p_i64(share->instance_id), p_text(share->step),
                   p_i64(share->request_id));

    return r < 0 ? r : read_partition(&rows, taking, err);
}

static int
take_fn(struct db *db, void *arg, struct err *err)
{
    struct taking *taking = arg;
    const struct batch_share *share = taking->share;
    int r = hold_share(db, share, err);

    if (r <= 0)
        return r < 0 ? r : BATCH_LOST;
    r = find_mine(db, taking, err);
    if (r != 0)
        return r < 0 ? r : BATCH_OK;
    r = find_free(db, taking, err);
    if (r <= 0)
        return r < 0 ? r : BATCH_NONE_FREE;
    if (db_kind(db) == DB_SQLITE)
        r = db_query_i64(db, store_sql(db, STMT_PARTITION_DRAW), NULL, 0,
                         &taking->partition.hold, err);
    if (r >= 0)
        r = db_run(db, store_sql(db, STMT_PARTITION_HOLD), err,
                   p_i64(taking->partition.hold), p_i64(share->request_id),
                   p_i64(share->token.number), p_i64(share->parent_id),
                   p_i64(share->parent_token.number), p_i64(share->instance_id),
                   p_text(share->step), p_i64(taking->partition.n));
    return r < 0 ? r : BATCH_OK;
}

int
batch_partition_take(struct store *store, const struct batch_share *share,
                     struct arena *arena, struct batch_partition *ret_partition,
                     struct err *err)
{
    struct taking taking = {.share = share, .arena = arena};
    int r = store_write(store, STORE_NORMAL, take_fn, &taking, err);

    if (r == BATCH_OK)
        *ret_partition = taking.partition;
    return r;
}

struct letting_go {
    const struct batch_share *share;
    const struct batch_partition *partition;
    const char *message;
};

static int
let_go_fn(struct db *db, void *arg, struct err *err)
{
    const struct letting_go *go = arg;
    int r = hold_share(db, go->share, err);

    if (r <= 0)
        return r < 0 ? r : BATCH_LOST;
    r = db_run(db, store_sql(db, STMT_PARTITION_LET_GO), err,
               p_text(go->message ? "FAILED" : "FREE"), p_opt_text(go->message),
               p_i64(go->share->instance_id), p_text(go->share->step),
               p_i64(go->partition->n), p_i64(go->partition->hold));
    return r < 0 ? r : BATCH_OK;
}

int
batch_partition_let_go(struct store *store, const struct batch_share *share,
                       const struct batch_partition *partition, const char *message,
                       struct err *err)
{
    struct letting_go go = {.share = share, .partition = partition, .message = message};
    int r = store_write(store, STORE_NORMAL, let_go_fn, &go, err);

    if (r == BATCH_OK)
        store_wake(store, WAKE_DONE);
    return r;
}

/* --- how it stands, and the end --- */

static int
stand_in(struct db *db, int64_t instance_id, const char *step,
         struct batch_partitions *stand, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int r = db_ask(db, store_sql(db, STMT_PARTITION_STAND), &rows, err,
                   p_i64(instance_id), p_text(step));

    *stand = (struct batch_partitions){0};
    while (r >= 0 && (r = db_next(&rows, err)) > 0) {
        stand->count++;
        stand->completed += str_eq(db_text(&rows, 1), "COMPLETED");
        stand->held += db_i64(&rows, 2);
        if (str_eq(db_text(&rows, 1), "FAILED") && stand->failed++ == 0) {
            stand->failed_n = db_i64(&rows, 0);
            str_copy(stand->message, sizeof(stand->message), db_text(&rows, 3));
        }
        stand->counts.read += db_i64(&rows, 4);
        stand->counts.written += db_i64(&rows, 5);
        stand->counts.filtered += db_i64(&rows, 6);
        stand->counts.skipped += db_i64(&rows, 7);
        stand->counts.commits += db_i64(&rows, 8);
        stand->counts.rollbacks += db_i64(&rows, 9);
        stand->chunks += db_i64(&rows, 10);
    }
    return r < 0 ? r : 0;
}

static int
stand_fn(struct db *db, void *arg, struct err *err)
{
    struct where *where = arg;

    return stand_in(db, where->instance_id, where->step, &where->stand, err);
}

int
batch_partitions_stand(struct store *store, int64_t instance_id, const char *step,
                       struct batch_partitions *ret_stand, struct err *err)
{
    struct where where = {.instance_id = instance_id, .step = step};
    int r = store_read(store, stand_fn, &where, err);

    if (r == 0)
        *ret_stand = where.stand;
    return r;
}

struct joining {
    const struct batch_share *share;
    int64_t step_id;
};

static int
join_fn(struct db *db, void *arg, struct err *err)
{
    const struct joining *joining = arg;
    const struct batch_share *share = joining->share;
    struct batch_partitions stand;
    const struct step_counts *counts = &stand.counts;
    int r = hold_share(db, share, err);

    if (r <= 0)
        return r < 0 ? r : BATCH_LOST;
    r = stand_in(db, share->instance_id, share->step, &stand, err);
    if (r == 0)
        r = db_run(db, store_sql(db, STMT_BATCH_STEP_PLACE), err, p_i64(counts->read),
                   p_i64(counts->written), p_i64(counts->filtered),
                   p_i64(counts->skipped), p_i64(counts->commits),
                   p_i64(counts->rollbacks), p_i64(stand.chunks), p_null(), p_null(),
                   p_i64(joining->step_id));
    if (r == 0 && stand.completed == stand.count)
        r = batch_move_step(db, joining->step_id, EXECUTION_COMPLETED, NULL, err);
    return r < 0 ? r : BATCH_OK;
}

int
batch_partitions_join(struct store *store, const struct batch_share *share,
                      int64_t step_id, struct err *err)
{
    struct joining joining = {.share = share, .step_id = step_id};

    return store_write(store, STORE_NORMAL, join_fn, &joining, err);
}

/* --- chunks --- */

int
batch_partition_checkpoint_in(struct db *db, const struct checkpoint *checkpoint,
                              bool place, struct err *err)
{
    const struct batch_share *share = checkpoint->share;
    const struct step_point *point = &checkpoint->point;
    const struct step_counts *counts = &point->counts;
    int r = hold_share(db, share, err);

    if (r <= 0)
        return r < 0 ? r : BATCH_LOST;
    r = db_run(db,
               store_sql(db, place ? STMT_PARTITION_PLACE : STMT_PARTITION_CHECKPOINT),
               err, p_i64(counts->read), p_i64(counts->written),
               p_i64(counts->filtered), p_i64(counts->skipped), p_i64(counts->commits),
               p_i64(counts->rollbacks), p_i64(point->chunk),
               p_opt_text(point->position), p_opt_text(point->writer_state),
               p_text(checkpoint->last ? "COMPLETED" : "HELD"),
               p_i64(share->instance_id), p_text(share->step),
               p_i64(checkpoint->partition->n), p_i64(checkpoint->partition->hold));
    if (r < 0)
        return r;
    return db_changes(db) == 0 ? BATCH_LOST : BATCH_OK;
}

int
batch_partition_there_in(struct db *db, const struct checkpoint *checkpoint,
                         struct err *err)
{
    const struct db_value params[] = {
        p_i64(checkpoint->share->instance_id), p_text(checkpoint->share->step),
        p_i64(checkpoint->partition->n), p_i64(checkpoint->partition->hold)};
    int64_t chunk = 0;
    int r =
        db_query_i64(db, store_sql(db, STMT_PARTITION_CHUNK), params, 4, &chunk, err);

    return r < 0 ? r : r == 1 && chunk == checkpoint->point.chunk;
}
