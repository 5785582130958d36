/*
 * One claimed request, carried from claim to outcome: its steps in order, the
 * checkpoints under its token, its progress and flags, the publishing of its
 * result, the recording of how it ended.
 *
 * A struct run belongs to the thread that carries it; only run_ask may be called
 * from others, between run_new and run_free.
 */
#ifndef RUN_RUN_H
#define RUN_RUN_H

#include "queue/request.h"

struct clock;
struct config;
struct db;
struct err;
struct finish_order;
struct result_store;
struct run;
struct store;

/* Keep an outcome that the store does not take now, so that it outlives the process.
 * Called on the run's thread. */
typedef int (*run_keep_fn)(void *arg, const struct finish_order *order,
                           struct err *err);

/* Told when a run comes to the next part of its way; stage is a static word:
 * preparing, working, committing, copying (the chunk is committed in another database,
 * the store does not know yet), committed, publishing, published, recording. step is
 * the one that runs or ran last, NULL before the first. On the run's thread.
 * Two more are told on any thread of a step, each time anew: reserving (a call is being
 * taken from its budget) and calling (it is taken, and is made now). */
typedef void (*run_stage_fn)(void *arg, int64_t request_id, const char *step,
                             const char *stage);

/* Told of each connection that steps read from, just opened, before its first
 * statement. On the run's thread. */
typedef int (*run_opened_fn)(void *arg, struct db *db, struct err *err);

/* Is the time for a clean stop over? Any thread; asked where whoever would call run_cut
 * may wait for a write that the run itself holds up. */
typedef bool (*run_cut_fn)(void *arg);

/* What all runs of a process share; read-only, outlives them. */
struct run_env {
    const struct config *config;
    struct store *store;
    const struct result_store *results;
    const struct clock *clock;
    const char *worker;      /* our worker id */
    const char *temp_folder; /* private folders of runs are made in it */
    int64_t record_retry_us; /* how long the recording of an outcome is tried */
    int64_t progress_gap_us; /* at least this between two progress writes */
    run_keep_fn keep;        /* NULL: an outcome is only tried again */
    void *keep_arg;
    run_stage_fn stage; /* NULL: nobody wants to know */
    void *stage_arg;
    run_opened_fn opened; /* NULL: nothing is to be done with them */
    void *opened_arg;
    run_cut_fn cut; /* NULL: nobody cuts off but by run_cut */
    void *cut_arg;
};

/* What somebody wants of a run. Only ever rises: a cancel beats a stop. */
enum run_wish {
    RUN_GO_ON,
    RUN_STOP,    /* end at the next chunk boundary: drain or an operator's stop */
    RUN_TIMEOUT, /* its time is over */
    RUN_CANCEL,
    RUN_LOST, /* the claim is somebody else's: write nothing more */
};

struct run_report {
    enum request_outcome outcome;
    bool recorded; /* false: the claim was lost, or the store stayed away */
    bool kept;     /* was given to env->keep: not recorded at once, perhaps later */
    int64_t rows;  /* of the result, -1 none */
    int64_t took_us;
    char detail[512]; /* what was recorded, or why nothing could be */
    char note[256];   /* what people should know besides; "" = nothing */
};

struct run *run_new(const struct run_env *env, int64_t request_id, const char *job,
                    struct claim_token token);
void run_free(struct run *run);
/* Its time is over then (monotonic; 0 = never), though nobody be awake to ask. Before
 * it is carried out. */
void run_limit(struct run *run, int64_t deadline_us);

int64_t run_request_id(const struct run *run);
const char *run_job(const struct run *run);

/* Any thread. From RUN_TIMEOUT upward a statement that is under way is cut off. */
void run_ask(struct run *run, enum run_wish wish);

/* Any thread. Cut off the statement that is under way, whatever the wish, and do not
 * wait for the store: the time for a clean stop is over. */
void run_cut(struct run *run);

/* Do it all. Blocks until the end is recorded or given up. */
void run_carry_out(struct run *run, struct run_report *ret_report);

/* --- recording, also for those who find an outcome or a run that nobody carries --- */

/* Record an outcome, its execution with it: BATCH_OK, BATCH_LOST (somebody else has
 * closed the request), or < 0. */
int run_record_once(struct store *store, const struct finish_order *order,
                    struct err *err) must_check;

/* Was it only that the store did not answer, so that another try may go well? */
bool run_record_later(int r);

enum run_whole { RUN_NOT_WHOLE = 0, RUN_WHOLE = 1 };

/*
 * Did the run of this claim do all its work, and end before it could say so? If every
 * step is COMPLETED and the result published, it is recorded as COMPLETED (RUN_WHOLE).
 * Judges by the store and the results folder only; whoever judges first wins.
 */
int run_record_whole(const struct run_env *env, int64_t request_id,
                     struct claim_token token, struct err *err) must_check;

/* Remove what a run published, unless the request is COMPLETED or nobody knows. */
void run_discard_files(const struct run_env *env, int64_t request_id);

#endif
