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

#endif
