/*
 * Closing what a dead worker held, executions and requests together: what the
 * start-up cleaning of a seat and the reaper both call, per dead worker id.
 */
#ifndef BATCH_LOST_H
#define BATCH_LOST_H

#include "queue/lost.h"

/* As queue_close_lost, with executions and steps FAILED in the same transaction.
 * The list tells the caller whose part files may go. */
int batch_close_lost(struct store *store, const char *worker, const char *reason,
                     struct arena *arena, struct lost_request **ret_lost,
                     size_t *ret_count, struct err *err) must_check;

/* The same behind a gate. */
int batch_close_lost_if(struct store *store, const char *worker, struct queue_gate gate,
                        const char *reason, struct arena *arena,
                        struct lost_request **ret_lost, size_t *ret_count,
                        struct err *err) must_check;

/*
 * Close one request of a claim that nobody carries, execution and all, as above: only
 * while it is RUNNING under this token. Fills outcome and execution_id of lost.
 * BATCH_LOST: somebody else has closed it.
 */
int batch_close_one(struct store *store, struct lost_request *lost, const char *reason,
                    struct err *err) must_check;
int batch_close_one_in(struct db *db, struct lost_request *lost, const char *reason,
                       struct err *err) must_check;

#endif
