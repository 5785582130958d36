/*
 * Budgets: how many calls an outside API takes in one calendar day of a zone, and how
 * far apart. A call is taken before it is made, in a committed transaction of its own
 * under the token of the claim, and counts as made from then on. Any thread.
 */
#ifndef BUDGET_BUDGET_H
#define BUDGET_BUDGET_H

#include "queue/request.h"

struct err;
struct store;
struct zone;

struct budget_rule {
    const char *name;
    int64_t per_day;
    int64_t spacing_us; /* at least this between two calls; 0 = none */
    const struct zone *zone;
};

enum budget_outcome {
    BUDGET_TAKEN = 0,
    BUDGET_SPENT = 1,     /* no call is left until grant.day_end_us */
    BUDGET_MAX_CALLS = 2, /* the request's own maxCalls are used up */
    BUDGET_LOST = 3,      /* the claim is gone */
};

struct budget_order {
    const struct budget_rule *rule; /* NULL: only the request's maxCalls */
    int64_t request_id;
    struct claim_token token;
    int64_t max_calls; /* of the request; -1 = not given */
};

struct budget_grant {
    int64_t wait_us; /* from now until the call may go, >= 0 */
    int64_t used;    /* today, this call included */
    int64_t day_end_us;
    bool closed; /* SPENT because the provider said so */
};

/* An enum budget_outcome, or < 0; ret_grant is written for TAKEN and SPENT. */
int budget_take(struct store *store, const struct budget_order *order,
                struct budget_grant *ret_grant, struct err *err) must_check;

/* The provider said that today's calls are used up. 1: closed; 0: not, because the day
 * has only just begun. */
int budget_close(struct store *store, const struct budget_rule *rule,
                 struct err *err) must_check;

struct budget_state {
    int64_t used; /* today */
    int64_t day_start_us;
    int64_t day_end_us;
    int64_t next_at_us;   /* 0 = no call yet */
    int64_t closed_at_us; /* 0 = open */
};

/* How it stands today, by the store's clock. */
int budget_read(struct store *store, const struct budget_rule *rule,
                struct budget_state *ret_state, struct err *err) must_check;

/* The calendar day of the zone that holds now_us, as [start, end). Days at a change of
 * clocks have 23 or 25 hours. */
void budget_day(const struct zone *zone, int64_t now_us, int64_t *ret_start_us,
                int64_t *ret_end_us);

#endif
