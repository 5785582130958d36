/*
 * A stop is seen at once, whatever the step is doing: STOPPING stands in the store
 * from when it was asked until the work has really ended. Who asks must not wait for
 * the store, and who works is in the midst of a chunk, so a thread of its own writes
 * it.
 */
#include "run/run_private.h"

#include "base/err.h"

void
run_stopping_record(struct run *run)
{
    int64_t execution_id = atomic_load(&run->execution_id);
    struct err ignored = {0}; /* for people; the end says STOPPED all the same */

    if (!execution_id) /* then start_execution sees the wish */
        return;
    /* A claim that is lost is met by the next write that matters. */
    if (batch_stopping(run->env->store, run->request_id, run->token, execution_id,
                       &ignored) != BATCH_OK)
        return;
}

static void *
tell(void *arg)
{
    run_stopping_record(arg);
    return NULL;
}

void
run_stopping_tell(struct run *run)
{
    pthread_mutex_lock(&run->lock);
    run->has_teller =
        !run->has_teller && pthread_create(&run->teller, NULL, tell, run) == 0;
    pthread_mutex_unlock(&run->lock);
}

void
run_stopping_end(struct run *run)
{
    bool had;

    pthread_mutex_lock(&run->lock);
    had = run->has_teller;
    run->has_teller = false;
    pthread_mutex_unlock(&run->lock);
    if (had)
        pthread_join(run->teller, NULL);
}
