/*
 * Parts that nobody writes any more and no checkpoint covers (run/parts.h). Who closes
 * a lost request looks at its parts right after the closing; when the closer dies
 * between the two, they stay until the next look at all: at start and each hour.
 */
#include "worker/worker_private.h"

#include "base/err.h"
#include "base/log.h"
#include "run/parts.h"

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
