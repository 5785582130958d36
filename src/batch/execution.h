/*
 * Instances, executions and step executions: the batch side of one claimed
 * request. Every write carries the token of the claim and is made in one
 * transaction with the check that the claim still stands; BATCH_LOST says that
 * it does not, nothing was written, and the run must stop. Any thread.
 */
#ifndef BATCH_EXECUTION_H
#define BATCH_EXECUTION_H

#include "queue/request.h"

struct arena;
struct batch_partition;
struct batch_share;
struct db;
struct err;
struct finish_order;
struct store;

enum execution_state {
    EXECUTION_STARTING,
    EXECUTION_STARTED,
    EXECUTION_STOPPING,
    EXECUTION_STOPPED,
    EXECUTION_COMPLETED,
    EXECUTION_FAILED,
    EXECUTION_STATE_COUNT
};

const char *execution_state_name(enum execution_state state);
bool execution_state_parse(const char *text, enum execution_state *ret_state);
bool execution_state_alive(enum execution_state state); /* STARTING STARTED STOPPING */

enum batch_result {
    BATCH_OK = 0,
    BATCH_LOST = 1,  /* the claim is gone */
    BATCH_ALIVE = 2, /* batch_start: another execution is still alive */
    BATCH_DONE = 3,  /* batch_start: what was to be gone on with is COMPLETED */
};

/* Whether a new execution goes on with an instance that is there already. */
enum batch_go_on {
    BATCH_ANEW,  /* never: restart false, or something was confirmed for this request */
    BATCH_GO_ON, /* with the job's last one, if all that is given equals its parameters
                  */
    /* With the one that a try of the same chain as `of` carried out; BATCH_DONE if that
     * is COMPLETED: whoever wants that work wants it once. */
    BATCH_GO_ON_OF
};

struct batch_start_order {
    const char *job;
    bool one_alive; /* policy refuse: only one execution of the whole job */
    int64_t request_id;
    struct claim_token token;
    const char *identity; /* canonical identifying parameters */
    const char *params;   /* effective parameters, JSON; never keys' values */
    const char *given;    /* those of params that the request gave, JSON; NULL = none */
    enum batch_go_on go_on;
    int64_t of;     /* with BATCH_GO_ON_OF: a request */
    bool confirmed; /* a new instance would never be gone on with */
    int64_t steps;  /* that the job has; 0 = not told */
};

struct batch_started {
    int64_t instance_id;
    int64_t instance_number;
    int64_t execution_id;
    int64_t alive_execution_id;    /* with BATCH_ALIVE: who is in the way */
    int64_t done_request_id;       /* with BATCH_DONE: who has done it */
    bool resumed;                  /* an instance that was there is gone on with */
    int64_t previous_execution_id; /* if resumed: the one before in it */
    const char *params; /* effective: those of the instance's first run; in the arena */
};

/*
 * An execution, STARTED: of an instance that is STOPPED or FAILED, not cancelled and
 * holds nothing confirmed, where the order says so; else of a new instance. All is
 * decided in the one transaction that makes it. Made again for the same claim (the
 * answer to the first commit was lost) it gives the execution that stands there.
 */
int batch_start(struct store *store, const struct batch_start_order *order,
                struct arena *arena, struct batch_started *ret_started,
                struct err *err) must_check;

struct step_counts {
    int64_t read;
    int64_t written;
    int64_t filtered;
    int64_t skipped;
    int64_t commits;
    int64_t rollbacks;
};

/* Where a step stands after its last committed chunk. */
struct step_point {
    struct step_counts counts;
    int64_t chunk;            /* chunks committed so far */
    const char *position;     /* the reader's; NULL = the start */
    const char *writer_state; /* the writer's, text; NULL = nothing written */
};

struct batch_step_order {
    int64_t execution_id;
    int64_t request_id;
    struct claim_token token;
    const char *name;
    int ordinal;
    const char *effect; /* promise of its writer: transactional, file, at-least-once */
    const char *kind;   /* what kind of step it is; NULL: not told */
    bool again; /* also if an earlier execution completed it: then from the start */
};

struct batch_step_started {
    int64_t step_id; /* 0 if completed */
    bool completed;  /* by an earlier execution of this instance: skip it, no new row */
    bool resumed; /* it goes on behind point; its row begins with what stands there */
    int64_t previous_token;  /* of the run that committed point */
    struct step_point point; /* texts in the arena; all zero: from the start */
};

/* Made again for the same execution it gives the row that stands there. */
int batch_step_start(struct store *store, const struct batch_step_order *order,
                     struct arena *arena, struct batch_step_started *ret_started,
                     struct err *err) must_check;

/* A step that executions of the instance before this one have begun. */
struct batch_step_begun {
    const char *name;
    const char *kind; /* when it was begun last; NULL: not told */
    bool completed;
};

/* In order of their ordinals; all in the arena. */
int batch_steps_begun(struct store *store, int64_t execution_id, struct arena *arena,
                      struct batch_step_begun **ret_steps, size_t *ret_count,
                      struct err *err) must_check;

struct checkpoint {
    int64_t request_id;
    struct claim_token token;
    int64_t execution_id;
    int64_t step_id;
    struct step_point point; /* totals after this chunk; chunk = n + 1 */
    bool last; /* nothing is left: the step becomes COMPLETED with this chunk */
    /* Of a partition (batch/partition.h), which becomes COMPLETED instead; else NULL.
     */
    const struct batch_share *share;
    const struct batch_partition *partition;
};

/*
 * Record a chunk. _in joins the transaction that writes the chunk's rows (store's
 * own database): when it says BATCH_LOST or fails, roll that transaction back.
 */
int batch_checkpoint(struct store *store, const struct checkpoint *checkpoint,
                     struct err *err) must_check;
int batch_checkpoint_in(struct db *db, const struct checkpoint *checkpoint,
                        struct err *err) must_check;

/* Make the store's copy say what another database says (batch/foreign.h), whichever
 * chunk it stands at. `last` is not looked at. */
int batch_checkpoint_place(struct store *store, const struct checkpoint *checkpoint,
                           struct err *err) must_check;

/* Does this chunk stand there already (a commit whose answer was lost)? 1 yes, 0 no. */
int batch_checkpoint_there(struct store *store, const struct checkpoint *checkpoint,
                           struct err *err) must_check;

/* End a step that is not COMPLETED yet: STOPPED, FAILED or COMPLETED. */
int batch_step_end(struct store *store, int64_t request_id, struct claim_token token,
                   int64_t step_id, enum execution_state state, const char *message,
                   struct err *err) must_check;

/* A stop was seen: STARTED → STOPPING, execution and running step; no end time. */
int batch_stopping(struct store *store, int64_t request_id, struct claim_token token,
                   int64_t execution_id, struct err *err) must_check;

/*
 * Close execution (with any step still running) and request together. finish as
 * for queue_finish; its execution_id must be this execution. execution_id 0: none that
 * the caller knows of; one whose beginning was answered COMMIT_UNKNOWN is closed too.
 */
int batch_finish(struct store *store, int64_t execution_id, enum execution_state state,
                 const char *message, const struct finish_order *finish,
                 struct err *err) must_check;

struct step_execution {
    int64_t id;
    const char *name;
    int ordinal;
    enum execution_state state;
    const char *effect;
    struct step_point point;
    int64_t started_at_us;
    int64_t ended_at_us; /* 0 = not ended */
    int64_t last_updated_us;
    const char *message;
    int64_t of_execution; /* who carried it out: this execution, or one before it */
    int64_t of_token;     /* that one's */
};

struct execution {
    int64_t id;
    int64_t instance_id;
    int64_t instance_number;
    const char *job;
    int64_t request_id;
    int64_t token;
    enum execution_state state;
    const char *params;
    int64_t started_at_us;
    int64_t ended_at_us;
    int64_t last_updated_us;
    const char *message;
    int64_t planned;              /* steps of the job when it began; 0 = not known */
    int64_t resumed_from;         /* the execution before it, if it went on; else 0 */
    struct step_execution *steps; /* begun here or completed before, by ordinal */
    size_t n_steps;
};

/* How the instance stands that the tries of this request's chain carried out last. */
struct batch_stand {
    int64_t instance_id;  /* 0: none of them came to begin one */
    int64_t execution_id; /* the last one of the instance */
    int64_t request_id;   /* that one's */
    enum execution_state state;
    bool can_go_on; /* it stopped or failed, was not cancelled, holds nothing confirmed
                     */
};

int batch_stand_of_request(struct store *store, int64_t request_id,
                           struct batch_stand *ret_stand, struct err *err) must_check;

/* -ERR_NOT_FOUND. of_request: the newest one of that request. */
int batch_execution_of_request(struct store *store, int64_t request_id,
                               struct arena *arena, struct execution *ret_execution,
                               struct err *err) must_check;
int batch_execution_get(struct store *store, int64_t execution_id, struct arena *arena,
                        struct execution *ret_execution, struct err *err) must_check;

#endif
