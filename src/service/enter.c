#include "service/enter.h"

#include "base/err.h"
#include "batch/stale.h"
#include "queue/job.h"
#include "service/bury.h"
#include "service/service.h"
#include "store/store.h"
#include "store/wake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct enter {
    const struct submit_order *orders;
    size_t count;
    const struct enter_act *act;
    struct submit_answer *answers;
    size_t refused;
};

/* Orders of one job stand together mostly; looking twice does no harm. */
static int
clean(struct db *db, const struct enter *enter, struct err *err)
{
    const struct queue_job *before = NULL;
    int r = 0;

    for (size_t i = 0; i < enter->count && r >= 0; i++) {
        const struct queue_job *job = enter->orders[i].job;

        if (job != before && job->duplicates == QUEUE_DUPLICATES_REFUSE)
            r = batch_clean_in(db, job->name, err);
        before = job;
    }
    return r < 0 ? r : 0;
}

static int
audit(struct db *db, const struct enter *enter, struct err *err)
{
    const struct enter_act *act = enter->act;
    char subject[40];
    char detail[60];

    snprintf(subject, sizeof(subject), "request %lld", (long long)act->request_id);
    snprintf(detail, sizeof(detail), "as request %lld",
             (long long)enter->answers[0].request_id);
    return store_audit(db, act->actor, act->act, subject, detail, err);
}

static int
enter_fn(struct db *db, void *arg, struct err *err)
{
    struct enter *enter = arg;
    int r;

    enter->refused = enter->count;
    r = clean(db, enter, err);
    if (r == 0)
        r = queue_submit_in(db, enter->orders, enter->count, enter->answers,
                            &enter->refused, err);
    if (r == 0 && enter->act)
        r = audit(db, enter, err);
    return r;
}

int
service_enter(const struct service *service, const struct submit_order *orders,
              size_t count, const struct enter_act *act,
              struct submit_answer *ret_answers, size_t *ret_refused, struct err *err)
{
    struct enter enter = {
        .orders = orders, .count = count, .act = act, .answers = ret_answers};
    struct err first = *err;
    int64_t holder = 0;
    int r = store_write(service->store, STORE_NORMAL, enter_fn, &enter, err);

    if (r == -ERR_JOB_ALREADY_RUNNING)
        holder = strtoll(err->detail, NULL, 10);
    if (holder && service_bury(service, holder) == 1) {
        *err = first;
        r = store_write(service->store, STORE_NORMAL, enter_fn, &enter, err);
    }
    if (r < 0 && ret_refused)
        *ret_refused = enter.refused;
    if (r == -ERR_JOB_ALREADY_RUNNING && holder)
        service_tell_silence(service, strtoll(err->detail, NULL, 10), err);
    if (r == 0)
        store_wake(service->store, WAKE_READY);
    return r;
}
