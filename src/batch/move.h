/* Inside batch/: changing a state by the table. In a write transaction that holds the
 * claim, or that has just removed it. */
#ifndef BATCH_MOVE_H
#define BATCH_MOVE_H

#include "batch/execution.h"

struct db;
struct err;

/*
 * Execution or step to that state; STARTED → STOPPED goes by STOPPING. Being there
 * already is fine. -ERR_INTERNAL for a move that the table does not have. message
 * NULL leaves what stands there.
 */
int batch_move_execution(struct db *db, int64_t execution_id, enum execution_state to,
                         const char *message, struct err *err) must_check;
int batch_move_step(struct db *db, int64_t step_id, enum execution_state to,
                    const char *message, struct err *err) must_check;

/* Every step of the execution that is still alive. */
int batch_move_steps(struct db *db, int64_t execution_id, enum execution_state to,
                     const char *message, struct err *err) must_check;

/* One at a time for a job: numbers of instances, and who is alive. */
int batch_lock_job(struct db *db, const char *job, struct err *err) must_check;

#endif
