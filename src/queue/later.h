/*
 * Requests that wait: promoted when their time has come, closed when it is over.
 * Chores of the worker's loop; any thread, any number of workers at once.
 */
#ifndef QUEUE_LATER_H
#define QUEUE_LATER_H

#include "queue/request.h"

struct err;
struct store;

/* Move what is due from later to ready. *ret_moved = requests moved. */
int queue_promote(struct store *store, int64_t *ret_moved, struct err *err) must_check;

/* A next try that waits for its time waits no longer: somebody asks for it now. Any
 * other request stays where it is. */
int queue_lift(struct store *store, int64_t request_id, struct err *err) must_check;

/* Close QUEUED requests whose expiry has passed: FAILED/EXPIRED. */
int queue_expire(struct store *store, int64_t *ret_expired, struct err *err) must_check;

/* Store time of the next promotion or expiry, 0 = none is waiting; and now. */
int queue_next_due(struct store *store, int64_t *ret_due_us, int64_t *ret_now_us,
                   struct err *err) must_check;

#endif
