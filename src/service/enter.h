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
 * are ended, where one at a time is the rule. act may be NULL.
 */
int service_enter(const struct service *service, const struct submit_order *orders,
                  size_t count, const struct enter_act *act,
                  struct submit_answer *ret_answers, size_t *ret_refused,
                  struct err *err) must_check;

/* Behind a refusal because of a request whose worker may be dead: that it is silent,
 * and when the request is closed for that. Nothing else changes. */
void service_tell_silence(const struct service *service, int64_t request_id,
                          struct err *err);

#endif
