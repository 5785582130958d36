/*
 * Parts that nobody writes any more and no checkpoint covers (run/parts.h). Who closes
 * a lost request looks at its parts right after the closing; when the closer dies
 * between the two, they stay until the next look at all: after the start and each hour.
 * And what lies here longer than `retention` says.
 */
#include "worker/worker_private.h"

#include "base/err.h"
#include "base/log.h"
#include "config/config.h"
#include "run/parts.h"
#include "run/prune.h"

#define PRUNE_EVERY_US US_PER_HOUR
/* While there is more: so much of each second, for the loop has claims to make. */
#define PRUNE_WORK_US  (50 * US_PER_MS)
#define PRUNE_PAUSE_US US_PER_S

static void
log_removed(struct worker *worker, const struct prune_report *report)
{
    if (report->results > 0 || report->keys > 0 || report->requests > 0)
        log_line(worker->options.log, LOG_INFO, "removed what was too old to keep",
                 log_i64("results", report->results), log_i64("keys", report->keys),
                 log_i64("requests", report->requests));
}

int
worker_prune(struct worker *worker, struct err *err)
{
    const struct config *config = worker->options.config;
    struct prune_order order = {.store = worker->options.store,
                                .results = worker->options.results,
                                .results_us = config->retention.results_us,
                                .keys_us = config->retention.idempotency_us,
                                .history_us = config->retention.history_us,
                                .after = worker->prune_after};
    struct prune_report report = {0};
    int64_t end_us = worker_now_us(worker) + PRUNE_WORK_US;
    int r;

    do
        r = prune_step(&order, &report, err);
    while (r == 0 && report.more && worker_now_us(worker) < end_us);
    worker->prune_after = order.after;
    log_removed(worker, &report);
    if (r < 0)
        return r;
    worker->prune_at_us =
        worker_now_us(worker) + (report.more ? PRUNE_PAUSE_US : PRUNE_EVERY_US);
    return 0;
}

int
worker_drop_leavings(struct worker *worker, struct err *err)
{
    int64_t dropped = 0;
    int r = parts_drop_uncovered(worker->options.store, worker->options.results, 0, 0,
                                 &dropped, err);

    if (dropped > 0)
        log_line(worker->options.log, LOG_INFO,
                 "removed parts that nobody writes and nobody can go on from",
                 log_i64("parts", dropped));
    return r;
}
