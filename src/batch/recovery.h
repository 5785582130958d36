/*
 * Asking for a recovery by hand where our role may not end executions (an api on
 * PostgreSQL): the ask lies in the store until a worker carries it out and takes it
 * away, or who asked gives up and does so itself. Any thread.
 */
#ifndef BATCH_RECOVERY_H
#define BATCH_RECOVERY_H

#include "batch/execution.h"

struct recovery {
    int64_t execution_id;
    const char *actor;
};

/* The newest who asks is the one to be named. */
int batch_recovery_ask(struct store *store, int64_t execution_id, const char *actor,
                       struct err *err) must_check;

/* Take an ask away: it is carried out, or given up. None there is fine. */
int batch_recovery_drop(struct store *store, int64_t execution_id,
                        struct err *err) must_check;

/* Those that wait, oldest first, a hundred at most; in the arena. */
int batch_recoveries(struct store *store, struct arena *arena,
                     struct recovery **ret_list, size_t *ret_count,
                     struct err *err) must_check;

/* Does the ask for this execution wait still? 1 yes, 0 no. */
int batch_recovery_waits(struct store *store, int64_t execution_id,
                         struct err *err) must_check;

#endif
