/*
 * Partitions: a step cut into parts of its key range, each with a checkpoint of its own
 * under the instance, taken one by one by the run of the step and by its hands
 * (queue/hand.h). Who takes one draws a number, `hold`, that every write to it bears.
 *
 * A share of the step counts only while two claims stand: that of who works, and that
 * of the run that the step is of. So what was held under a claim that is gone is free,
 * and when the run has been closed nothing more of it is written, wherever its hands
 * are. Any thread.
 */
#ifndef BATCH_PARTITION_H
#define BATCH_PARTITION_H

#include "batch/execution.h"

struct hand_order;

#define BATCH_PARTITIONS_MAX 64

/* Who works on which step. */
struct batch_share {
    int64_t instance_id;
    const char *step;
    int64_t request_id; /* ours */
    struct claim_token token;
    int64_t parent_id; /* of the run; the same for that one itself */
    struct claim_token parent_token;
};

struct batch_cut {
    bool has_lower;
    bool has_upper;
    int64_t lower; /* the first key of it */
    int64_t upper; /* the first key behind it */
};

/*
 * Cut the keys least…greatest into at most `wanted` parts (1 to BATCH_PARTITIONS_MAX)
 * of the same width, or one key less; the first is open below, the last above. Returns
 * how many: no part is without a key.
 */
size_t batch_cut_range(int64_t least, int64_t greatest, size_t wanted,
                       struct batch_cut *ret_cuts);

struct batch_partition {
    int64_t n; /* from 1 */
    struct batch_cut cut;
    int64_t hold;
    struct step_point point;
};

/* 1 if the step has been cut in this instance, 0 if not. */
int batch_partitions_there(struct store *store, int64_t instance_id, const char *step,
                           struct err *err) must_check;

/*
 * Cut the step, unless it is; what failed in an earlier try is free again; let the
 * hands in, once for a claim. One transaction. cut_by: the key, "" = numbers of rows.
 * BATCH_OK, BATCH_LOST; -ERR_INVALID when it was cut by another key.
 */
int batch_partitions_open(struct store *store, const struct batch_share *share,
                          const char *cut_by, const struct batch_cut *cuts,
                          size_t count, const struct hand_order *hands,
                          struct err *err) must_check;

enum { BATCH_NONE_FREE = 3 };

/*
 * BATCH_OK, BATCH_LOST, BATCH_NONE_FREE; texts in the arena. A claim holds one at a
 * time: asked again before that one is done or let go, it gives the same (the answer to
 * the first commit was lost). NONE_FREE also when the run, or who asks, is to end.
 */
int batch_partition_take(struct store *store, const struct batch_share *share,
                         struct arena *arena, struct batch_partition *ret_partition,
                         struct err *err) must_check;

/* Let it go: free for others, or with a message FAILED, which fails the step. */
int batch_partition_let_go(struct store *store, const struct batch_share *share,
                           const struct batch_partition *partition, const char *message,
                           struct err *err) must_check;

struct batch_partitions {
    int64_t count;
    int64_t completed;
    int64_t failed;
    int64_t held; /* by claims that stand */
    int64_t failed_n;
    char message[400]; /* of the first that failed */
    struct step_counts counts;
    int64_t chunks;
};

int batch_partitions_stand(struct store *store, int64_t instance_id, const char *step,
                           struct batch_partitions *ret_stand,
                           struct err *err) must_check;

/*
 * The sums of the partitions into the step's row; if all are COMPLETED the step is,
 * in the same transaction. The run's own call. BATCH_OK, BATCH_LOST.
 */
int batch_partitions_join(struct store *store, const struct batch_share *share,
                          int64_t step_id, struct err *err) must_check;

/* For checkpoint.c: a chunk of a partition; place: whichever chunk stands there. */
int batch_partition_checkpoint_in(struct db *db, const struct checkpoint *checkpoint,
                                  bool place, struct err *err) must_check;
int batch_partition_there_in(struct db *db, const struct checkpoint *checkpoint,
                             struct err *err) must_check;

#endif
