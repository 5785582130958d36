/*
 * Inside of struct run, for the files of this room only: run.c (the flow), run_step.c
 * (what a step calls upward), and their neighbours.
 */
#ifndef RUN_RUN_PRIVATE_H
#define RUN_RUN_PRIVATE_H

#include "base/arena.h"
#include "base/retry.h"
#include "batch/execution.h"
#include "io/io_ctx.h"
#include "queue/hand.h"
#include "run/run.h"
#include "steps/step.h"

#include <pthread.h>
#include <stdatomic.h>

struct batch_partition;
struct batch_share;
struct db;
struct config_job;
struct zone;
struct queue_job;
struct finish_order;

#define RUN_DATABASES_MAX 16
#define RUN_BUDGETS_MAX   16

struct run_database {
    const char *name; /* in the run's arena */
    enum io_db_use use;
    struct db *db;
};

/* The zone of a budget that the run uses. */
struct run_zone {
    const char *budget; /* of the configuration */
    struct zone *zone;  /* owned */
};

struct run {
    const struct run_env *env;
    int64_t request_id;
    char job_name[QUEUE_NAME_MAX + 1];
    struct claim_token token;
    _Atomic int wish; /* enum run_wish */
    atomic_bool cut;  /* the time for waiting is over */

    /* Connections of this run; the lock lets run_ask cut them off while open. */
    pthread_mutex_t lock;
    pthread_t teller; /* run_stopping.c */
    bool has_teller;
    struct run_database databases[RUN_DATABASES_MAX];
    size_t n_databases;
    struct db *store_db; /* the store's, while statements of the job run on it */
    int64_t deadline_us; /* monotonic, 0 = none */

    struct arena arena;
    const struct config_job *job;
    struct queue_job *rules; /* its parameter table */
    json_t *params;          /* effective */
    json_t *bound;           /* the same, and null for those declared but not given */
    char *temp_folder;
    _Atomic int64_t execution_id; /* 0 = none yet */
    int64_t instance_id;
    bool goes_on;     /* with an instance that was there */
    bool confirmed;   /* something was good for this request only */
    int64_t estimate; /* rows expected, -1 = not known */
    bool committed;   /* a chunk of any step: its part may be gone on from */
    char note[256];   /* what people should know of a step, told with its end */
    int64_t noted_step;

    int64_t max_calls;                      /* of the request, -1 = not given */
    struct run_zone zones[RUN_BUDGETS_MAX]; /* under the lock */
    size_t n_zones;
    char *files_folder; /* of `fetch`: kept as long as the instance may go on */

    bool is_hand; /* helps another run with the partitions of a step (run_parts.c) */
    struct hand parent;
    bool parent_gone; /* before it began */

    /* The step that runs. */
    const struct batch_share *share; /* of the partition under way; NULL: none is */
    const struct batch_partition *partition;
    int64_t rows_elsewhere; /* read in other partitions, for the progress */
    char why[IO_WHY_MAX];   /* it stopped by itself because of this */
    const char *step_name;
    int64_t step_id;
    int64_t chunk;
    int64_t previous_token; /* who committed the point it goes on from; 0 = nobody */
    const char *foreign; /* the database that its checkpoint is in; NULL: the store */
    char part_path[4096];
    char part_from[4096];   /* the part of that run */
    const char *stage;      /* told last */
    int64_t progress_at_us; /* of the last write, monotonic; 0 = none yet */
};

static inline enum run_wish
run_wish(const struct run *run)
{
    return (enum run_wish)atomic_load(&run->wish);
}

/* A text that names the step under way, its instance and the store; run->arena. */
const char *run_work(struct run *run);
/* Fill io and ctx with the callbacks of this run. */
void run_step_prepare(struct run *run, struct io_ctx *io, struct step_ctx *ctx);

/* 0, or < 0 with the outcome that this failure means. */
int run_prepare(struct run *run, enum request_outcome *ret_outcome,
                struct err *err) must_check;

/* The job's definition of the step of that name, or NULL. */
const json_t *run_step_named(const struct run *run, const char *name);

/* Going on: are the steps that were begun still steps of the job, and those that are
 * not done what they were? -ERR_GONE, saying which is not. */
int run_check_steps(struct run *run, struct err *err) must_check;

/*
 * What a step that an earlier execution completed has made: its finished part waits to
 * be published. RUN_MADE: ret_made says it, empty if it makes no file. RUN_MADE_GONE:
 * the part is not there any more, or not whole.
 */
enum run_made { RUN_MADE = 0, RUN_MADE_GONE = 1 };

int run_made_before(struct run *run, const json_t *def,
                    const struct batch_step_started *before,
                    struct step_result *ret_made, struct err *err) must_check;

/* What a finished writer's state says of its file: 1, or 0 if it says nothing. */
int run_read_finished(const char *writer_state, int64_t *ret_rows, int64_t *ret_bytes,
                      struct err *err) must_check;

/* A step in partitions: an enum step_outcome, or < 0. */
int run_parts(struct run *run, struct step_ctx *ctx, struct err *err) must_check;
/* A hand: 1, or 0: the run that it was to help is over. Then its work: an enum
 * step_outcome, or < 0. */
int run_hand_prepare(struct run *run, struct err *err) must_check;
int run_hand(struct run *run, struct err *err) must_check;

/*
 * A step whose rows go into another database (run_foreign.c). begin: take the step
 * there and replace point by what stands there; run->chunk and the store's copy follow.
 * BATCH_OK, BATCH_LOST or < 0. commit: the chunk's rows and point in one transaction
 * there; point counts the times that it was rolled back and made again.
 */
int run_foreign_begin(struct run *run, struct step_point *point, const char *database,
                      struct err *err) must_check;
int run_foreign_commit(struct run *run, const struct step_checkpoint *cp,
                       struct step_point *point, struct err *err) must_check;

int run_database(struct run *run, const char *name, enum io_db_use use,
                 struct db **ret_db, struct err *err) must_check;
/* Close that connection and open it anew; pointers to the old one are dead. */
int run_database_again(struct run *run, const char *name, enum io_db_use use,
                       struct db **ret_db, struct err *err) must_check;
/* Around statements of the job on the store's own connection. begin: -ERR_TIMEOUT, and
 * no end, if the run is to end already. */
int run_store_db_begin(struct run *run, struct db *db, struct err *err) must_check;
void run_store_db_end(struct run *run);
void run_databases_cut(struct run *run); /* any thread */
void run_databases_close(struct run *run);

/* Calls to the outside: callbacks for io, and the end of what they needed. */
void run_calls_prepare(struct run *run, struct io_ctx *io);
void run_calls_release(struct run *run);

/*
 * A call to the store that may be made again: how long we have patience with it. It
 * must find out by itself what an earlier try of it has done, whose answer was lost.
 *
 *     struct run_patience patience = run_patience(run);
 *
 *     do
 *         r = batch_…(…, err);
 *     while (run_wait_after(run, &patience, r, err));
 */
struct run_patience {
    int64_t until_us; /* monotonic */
    struct backoff backoff;
};

struct run_patience run_patience(const struct run *run);
/* True after a pause, with err cleared: again. False: the patience has an end. */
bool run_wait(struct run *run, struct run_patience *patience, struct err *err);
/* The same if r says that the store did not answer; else false. */
bool run_wait_after(struct run *run, struct run_patience *patience, int r,
                    struct err *err);

/* Tell where we are, unless we were there already. */
void run_stage(struct run *run, const char *stage);

/* A stop was asked: let the execution show it, although the chunk under way goes on.
 * The first begins a thread for it, any thread may; the second waits for that one. */
void run_stopping_tell(struct run *run);
void run_stopping_end(struct run *run);
/* The same here and now, on the run's own thread. */
void run_stopping_record(struct run *run);

/* Record the end. While the store is away: keep it (*ret_kept), and try again for
 * env->record_retry_us. BATCH_LOST: somebody else has closed the request. */
int run_record(struct run *run, const struct finish_order *order, bool *ret_kept,
               struct err *err) must_check;

#endif
