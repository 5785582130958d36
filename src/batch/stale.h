/*
 * Executions that stand as alive although nobody carries them, met by somebody who
 * asks: a submit, a start, a person. The reaper and the seat's next start close the
 * same (lost.h) without being asked. Any thread.
 */
#ifndef BATCH_STALE_H
#define BATCH_STALE_H

#include "queue/lost.h"

/*
 * End the executions of the job that no claim stands behind: FAILED. In the caller's
 * write transaction; on PostgreSQL under the lock of the job. Returns how many, 0 also
 * where our role may not.
 */
int batch_clean_in(struct db *db, const char *job, struct err *err) must_check;

enum batch_recovered {
    BATCH_RECOVERED = 0,
    BATCH_STILL_CARRIED = 1, /* its worker lives: nothing was done */
    BATCH_OVER = 2,          /* it had ended already */
    BATCH_NOT_OURS = 3,      /* it is dead, but our role may not end it (an api) */
};

/*
 * End an execution by hand, its request with it, if its worker is dead: no row, or no
 * beat for dead_after_us by the store's clock. ret_lost tells what was closed (token 0:
 * no claim stood behind it); worker and silence of who carries it go to ret_holder,
 * also for BATCH_STILL_CARRIED. actor: for the audit and the message. -ERR_NOT_FOUND.
 */
struct batch_holder {
    char worker[256];
    int64_t silence_us; /* since its last beat; -1 = it has no row */
};

int batch_recover(struct store *store, int64_t execution_id, int64_t dead_after_us,
                  const char *actor, struct lost_request *ret_lost,
                  struct batch_holder *ret_holder, struct err *err) must_check;

/* Who holds the claim of a request: 1; 0: nobody does. */
int batch_holder_of_request(struct store *store, int64_t request_id,
                            struct batch_holder *ret_holder,
                            struct err *err) must_check;

/* The token of the claim behind an execution whose worker is dead: 1. 0: it has none,
 * or its worker lives, or it is over. */
int batch_holding_token(struct store *store, int64_t execution_id,
                        int64_t dead_after_us, struct claim_token *ret_token,
                        struct err *err) must_check;

#endif
