/*
 * Inside service/: giving orders to the queue in one transaction with what must happen
 * before and beside it.
 */
#ifndef SERVICE_ENTER_H
#define SERVICE_ENTER_H

#include "queue/submit.h"

struct caller;
struct service;

/* A person's act on a request, for the audit. */
struct enter_act {
    const char *actor;
    const char *act;
    int64_t request_id;
};

/*
 * As queue_submit_many. First the executions of each job that nobody carries any more
 * are ended, where one at a time is the rule; who is refused because of a request that
 * a dead worker holds has it closed, and asks again (bury.h). act may be NULL.
 */
int service_enter(const struct service *service, const struct submit_order *orders,
                  size_t count, const struct enter_act *act,
                  struct submit_answer *ret_answers, size_t *ret_refused,
                  struct err *err) must_check;

#endif
