/* Budgets as they stand today, and what a request is forecast to take from one. The
 * forecast tells; it limits nothing (A30). */
#include "service/budgets.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/zone.h"
#include "budget/budget.h"
#include "config/config.h"
#include "queue/job.h"
#include "queue/submit.h"
#include "service/service.h"

#include <inttypes.h>
#include <stdio.h>

static int
read_state(const struct service *service, const struct config_budget *budget,
           struct budget_state *ret_state, struct err *err)
{
    scoped(zone_free_ptr) struct zone *zone = NULL;
    struct budget_rule rule = {.name = budget->name,
                               .per_day = budget->per_day,
                               .spacing_us = budget->spacing_us};
    int r = zone_load(budget->zone, &zone, err);

    rule.zone = zone;
    if (r == 0)
        r = budget_read(service->store, &rule, ret_state, err);
    return r < 0 ? err_prefix(err, "budget %s", budget->name) : 0;
}

static int64_t
left_of(const struct config_budget *budget, const struct budget_state *state)
{
    int64_t left = budget->per_day - state->used;

    return state->closed_at_us || left < 0 ? 0 : left;
}

static void
put_budget(struct json_out *out, const struct config_budget *budget,
           const struct budget_state *state)
{
    json_begin_object(out);
    json_kv_str(out, "budget", budget->name);
    json_kv_i64(out, "perDay", budget->per_day);
    json_kv_str(out, "zone", budget->zone);
    json_kv_i64(out, "spacingMs", budget->spacing_us / US_PER_MS);
    json_kv_i64(out, "usedToday", state->used);
    json_kv_i64(out, "left", left_of(budget, state));
    json_kv_time_us(out, "until", state->day_end_us);
    json_kv_time_us(out, "closedAt", state->closed_at_us);
    json_end_object(out);
}

int
service_budgets(const struct service *service, struct answer *ret_answer,
                struct err *err)
{
    struct json_out out;

    json_out_init(&out, &ret_answer->body);
    json_begin_object(&out);
    json_key(&out, "items");
    json_begin_array(&out);
    for (size_t i = 0; i < service->config->budget_count; i++) {
        struct budget_state state = {0};
        int r = read_state(service, &service->config->budgets[i], &state, err);

        if (r < 0)
            return r;
        put_budget(&out, &service->config->budgets[i], &state);
    }
    json_end_array(&out);
    json_end_object(&out);
    ret_answer->status = 200;
    return 0;
}

int
budget_spent_until(const struct service *service, const char *name,
                   int64_t *ret_until_us, struct err *err)
{
    const struct config_budget *budget = config_budget_find(service->config, name);
    struct budget_state state = {0};
    int r = budget ? read_state(service, budget, &state, err) : 0;

    if (r == 0)
        *ret_until_us = budget && left_of(budget, &state) == 0 ? state.day_end_us : 0;
    return r;
}

int
forecast_calls(const struct service *service, const struct submit_order *order,
               struct forecast *ret_forecast, struct err *err)
{
    const struct queue_job *job = order->job;
    const struct config_budget *budget =
        job->calls_budget ? config_budget_find(service->config, job->calls_budget)
                          : NULL;
    struct forecast forecast = {.known = true};
    struct budget_state state = {0};
    int64_t left;
    int r;

    ret_forecast->known = false;
    if (!budget || !order->has_estimate)
        return 0;
    r = read_state(service, budget, &state, err);
    if (r < 0)
        return r;
    if (__builtin_mul_overflow(order->estimate, job->calls_per_item, &forecast.planned))
        forecast.planned = INT64_MAX;
    forecast.limit = budget->per_day;
    forecast.used = state.used;
    left = left_of(budget, &state);
    if (forecast.planned > left && !(order->has_max_calls && order->max_calls <= left))
        snprintf(forecast.warning, sizeof(forecast.warning),
                 "About %" PRId64 " calls are needed, budget %s has %" PRId64
                 " left today: the run will stop when they are used up. Ask again on "
                 "the next day to go on.",
                 forecast.planned, budget->name, left);
    *ret_forecast = forecast;
    return 0;
}

void
forecast_put(struct json_out *out, const struct forecast *forecast)
{
    if (!forecast->known)
        return;
    json_kv_i64(out, "plannedCalls", forecast->planned);
    json_kv_i64(out, "dailyLimitHint", forecast->limit);
    json_kv_i64(out, "usedToday", forecast->used);
    if (forecast->warning[0])
        json_kv_str(out, "warning", forecast->warning);
}
