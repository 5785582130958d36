/* What a request is forecast to take from the budget that its job names. */
#ifndef SERVICE_BUDGETS_H
#define SERVICE_BUDGETS_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

struct err;
struct json_out;
struct service;
struct submit_order;

struct forecast {
    bool known; /* the job has `calls`, and there is an estimate */
    int64_t planned;
    int64_t limit; /* calls of the budget's day */
    int64_t used;  /* today, by now */
    char warning[256];
};

int forecast_calls(const struct service *service, const struct submit_order *order,
                   struct forecast *ret_forecast, struct err *err) must_check;

/* When the calls of a budget that is used up today begin anew; 0: some are left, or the
 * configuration has no budget of that name. */
int budget_spent_until(const struct service *service, const char *name,
                       int64_t *ret_until_us, struct err *err) must_check;

/* Members of an object: plannedCalls, dailyLimitHint, usedToday, warning. */
void forecast_put(struct json_out *out, const struct forecast *forecast);

#endif
