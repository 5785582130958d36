/*
 * Leaving: nothing more is claimed, what runs is asked to stop at its next chunk, and
 * what has not done so in `worker.drain`, or by a second signal, is cut off.
 */
#include "worker/worker_private.h"

#include "base/log.h"
#include "config/config.h"
#include "store/store.h"
#include "worker/deliver.h"

#define CUT_GRACE_US (10 * US_PER_S)

int64_t
worker_drain_end_us(const struct worker *worker)
{
    return worker->stopping_since_us + worker->options.config->worker.drain_us;
}

void
worker_drain(struct worker *worker, bool hurry)
{
    int64_t now_us = worker_now_us(worker);

    if (!worker->drain_until_us) {
        worker->drain_until_us = worker_drain_end_us(worker);
        log_line(worker->options.log, LOG_INFO, "draining: nothing more is claimed",
                 log_i64("running", (int64_t)worker->n_held));
    }
    worker_ask_all(worker, RUN_STOP);
    if ((hurry || now_us >= worker->drain_until_us) && !worker->cut) {
        log_line(worker->options.log, LOG_WARN, "cutting off what still runs",
                 log_i64("running", (int64_t)worker->n_held));
        store_hurry(worker->options.store);
        list_each(node, &worker->held)
            run_cut(list_entry(node, struct slot, held)->run);
        worker->cut = true;
        worker->drain_until_us = now_us + CUT_GRACE_US;
    }
}

bool
worker_drained(const struct worker *worker)
{
    return worker->n_held == 0 ||
           (worker->cut && worker_now_us(worker) >= worker->drain_until_us);
}

bool
worker_is_to_be_cut(void *arg)
{
    struct worker *worker = arg;
    bool over;

    pthread_mutex_lock(&worker->lock);
    over = worker->stopping &&
           (worker->hurry || worker_now_us(worker) >= worker_drain_end_us(worker));
    pthread_mutex_unlock(&worker->lock);
    return over;
}

static void
leave(struct worker *worker, bool hurry)
{
    pthread_mutex_lock(&worker->lock);
    if (!worker->stopping)
        worker->stopping_since_us = worker_now_us(worker);
    worker->stopping = true;
    worker->hurry = worker->hurry || hurry;
    pthread_cond_signal(&worker->wake);
    pthread_mutex_unlock(&worker->lock);
}

void
worker_stop(struct worker *worker)
{
    leave(worker, false);
}

void
worker_hurry(struct worker *worker)
{
    leave(worker, true);
    deliver_hurry(worker->deliver);
}
