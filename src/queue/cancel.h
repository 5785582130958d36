/*
 * What people ask of a request: cancel it, or stop it at its next chunk
 * boundary. The audit row is written in the same transaction. Any thread.
 */
#ifndef QUEUE_CANCEL_H
#define QUEUE_CANCEL_H

#include "queue/request.h"

struct err;
struct store;

enum queue_cancel_result {
    QUEUE_CANCELLED = 0,        /* it was QUEUED and is FAILED/CANCELLED now */
    QUEUE_CANCEL_REQUESTED = 1, /* it is RUNNING; the run sees the flag */
};

/* Any try stands for the last one: that is what is cancelled or stopped, and after the
 * answer no new try starts. Errors: ERR_NOT_FOUND, ERR_ALREADY_FINAL. actor: who asks,
 * for the audit. */
int queue_cancel(struct store *store, int64_t request_id, const char *actor,
                 struct err *err) must_check;

enum queue_stop_result {
    QUEUE_STOP_REQUESTED = 0,
    QUEUE_STOP_NOT_RUNNING = 1, /* still QUEUED: there is nothing to stop */
};

int queue_stop(struct store *store, int64_t request_id, const char *actor,
               struct err *err) must_check;

#endif
