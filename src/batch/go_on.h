/* Inside batch/: which instance a new execution belongs to. In the transaction that
 * makes the execution, under the lock of the job. */
#ifndef BATCH_GO_ON_H
#define BATCH_GO_ON_H

#include "batch/execution.h"

struct db;

/*
 * Fills instance, resumed, previous_execution_id and params of started when an
 * instance is to be gone on with. instance_id without resumed: that instance is still
 * alive. done_request_id: who has completed it. None of them: a new one. 0 or < 0.
 */
int batch_go_on(struct db *db, const struct batch_start_order *order,
                struct arena *arena, struct batch_started *started,
                struct err *err) must_check;

#endif
