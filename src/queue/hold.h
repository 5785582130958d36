/*
 * The fence: does this token still hold the request, and may nobody close it
 * until this transaction ends? First statement of every write of a run.
 */
#ifndef QUEUE_HOLD_H
#define QUEUE_HOLD_H

#include "queue/request.h"

struct db;
struct err;

/* Inside a write transaction. 1: held, 0: lost. */
int queue_hold_in(struct db *db, int64_t request_id, const struct claim_token *token,
                  struct err *err) must_check;

/* The same, and nobody else holds it meanwhile: what others were just writing under it
 * (a flag, a beginning) is there. For closing what nobody carries. */
int queue_hold_alone_in(struct db *db, int64_t request_id,
                        const struct claim_token *token, struct err *err) must_check;

/* The same of whoever runs it (cancel, stop): 1 running, 0 not found running now. */
int queue_hold_running_in(struct db *db, int64_t request_id,
                          struct err *err) must_check;

#endif
