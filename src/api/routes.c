/*
 * The index of the room. To add a route: a row here and a handler in the file of
 * its resource. 404, 405 and docs/api-routes.md follow from this table.
 */
#include "api/api_private.h"

#include "base/err.h"

#include <stdio.h>
#include <string.h>

#define BODY_ONE  API_BODY_ONE
#define BODY_MANY ((size_t)32 << 20)

/* clang-format off */
static const struct route routes[] = {
    {"GET",  "/livez",                           api_livez,          0, "the process answers"},
    {"GET",  "/readyz",                          api_readyz,         0, "the store answers too"},
    {"GET",  "/api/v1/jobs",                     api_job_list,       0, "all jobs and how they stand"},
    {"GET",  "/api/v1/jobs/{}",                  api_job_show,       0, "one job"},
    {"POST", "/api/v1/jobs/{}/requests",         api_submit,         BODY_ONE, "ask for a run of a job"},
    {"POST", "/api/v1/jobs/{}/backfills",        api_backfill,       BODY_ONE, "ask for a run for each of many values, as one group"},
    {"GET",  "/api/v1/backfills",                api_backfill_list,  0, "backfills, newest first"},
    {"GET",  "/api/v1/backfills/{}",             api_backfill_show,  0, "one backfill: counts, and the items that run or went wrong"},
    {"POST", "/api/v1/backfills/{}/cancel",      api_backfill_cancel, BODY_ONE, "cancel it and what runs of it"},
    {"POST", "/api/v1/backfills/{}/pause",       api_pause,          BODY_ONE, "let no more of its items in until resumed"},
    {"POST", "/api/v1/backfills/{}/resume",      api_resume,         BODY_ONE, "go on; an item that held it is done again"},
    {"POST", "/api/v1/requests",                 api_submit_many,    BODY_MANY, "ask for many at once, all or none"},
    {"GET",  "/api/v1/requests",                 api_request_list,   0, "requests, newest first: job, status, requester, after, limit"},
    {"GET",  "/api/v1/requests/{}",              api_request_show,   0, "one request; wait=30s holds until it is final"},
    {"GET",  "/api/v1/requests/{}/events",       api_request_events, 0, "the same as a stream of events"},
    {"GET",  "/api/v1/requests/{}/result",       api_request_result, 0, "download the result; ranges, ETag"},
    {"GET",  "/api/v1/requests/{}/why",          api_request_why,    0, "why it does not run yet, or how it ended"},
    {"POST", "/api/v1/requests/{}/cancel",       api_request_cancel, BODY_ONE, "cancel"},
    {"POST", "/api/v1/requests/{}/stop",         api_request_stop,   BODY_ONE, "stop at the next chunk boundary"},
    {"POST", "/api/v1/requests/{}/restart",      api_request_restart, BODY_ONE, "ask again for its work, from where it stopped"},
    {"GET",  "/api/v1/executions/{}",            api_execution_show, 0, "one execution with its steps"},
    {"POST", "/api/v1/executions/{}/stop",       api_execution_stop, BODY_ONE, "stop at the next chunk boundary"},
    {"POST", "/api/v1/executions/{}/recover",    api_execution_recover, BODY_ONE, "end what a dead worker held"},
    {"GET",  "/api/v1/schedules",                api_schedule_list,  0, "schedules and when they fire; next=10 shows that many times"},
    {"POST", "/api/v1/schedules/{}/pause",       api_pause,          BODY_ONE, "fire no more until resumed"},
    {"POST", "/api/v1/schedules/{}/resume",      api_resume,         BODY_ONE, "fire again"},
    {"POST", "/api/v1/jobs/{}/pause",            api_pause,          BODY_ONE, "start none of its requests until resumed; they wait"},
    {"POST", "/api/v1/jobs/{}/resume",           api_resume,         BODY_ONE, "start them again"},
    {"GET",  "/api/v1/budgets",                  api_budget_list,    0, "budgets: calls used and left today"},
    {"GET",  "/api/v1/lanes",                    api_lane_list,      0, "lanes: slots, what runs and waits, whether paused"},
    {"POST", "/api/v1/lanes/{}/pause",           api_pause,          BODY_ONE, "start nothing in this lane until resumed; requests wait"},
    {"POST", "/api/v1/lanes/{}/resume",          api_resume,         BODY_ONE, "start again"},
    {"GET",  "/api/v1/workers",                  api_worker_list,    0, "workers and what they carry"},
};
/* clang-format on */

const struct route *
api_routes(size_t *ret_count)
{
    *ret_count = array_len(routes);
    return routes;
}

/* Does the decoded path of req have the shape of this pattern? */
static bool
has_shape(const struct http_request *req, const char *pattern)
{
    size_t count = http_request_segment_count(req);
    const char *at = pattern;
    size_t i;

    for (i = 0; *at == '/'; i++) {
        size_t len = strcspn(at + 1, "/");
        const char *segment = i < count ? http_request_segment(req, i) : NULL;

        if (!segment || !segment[0])
            return false;
        if (strncmp(at + 1, "{}", len) != 0 || len != 2)
            if (strlen(segment) != len || memcmp(segment, at + 1, len) != 0)
                return false;
        at += 1 + len;
    }
    return i == count;
}

static bool
takes_method(const struct route *route, const char *method)
{
    if (strcmp(route->method, method) == 0)
        return true;
    return strcmp(method, "HEAD") == 0 && strcmp(route->method, "GET") == 0;
}

const struct route *
api_route_find(const struct http_request *req, struct err *err)
{
    const struct route *other = NULL;

    for (size_t i = 0; i < array_len(routes); i++) {
        if (!has_shape(req, routes[i].path))
            continue;
        if (takes_method(&routes[i], http_request_method(req)))
            return &routes[i];
        other = &routes[i];
    }
    if (other) {
        err_set(err, ERR_METHOD, "%s is not for this path; use %s",
                http_request_method(req), other->method);
        snprintf(err->detail, sizeof(err->detail), "%s", other->method);
    } else {
        err_set(err, ERR_NOT_FOUND,
                "there is nothing at this path; the API starts at /api/v1/jobs");
    }
    return NULL;
}
