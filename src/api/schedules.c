/* Schedules: list with preview. Pause and resume, of all that can be paused. */
#include "api/api_private.h"

#include "base/err.h"
#include "base/json.h"
#include "base/strs.h"

#define SEGMENT_KIND 2 /* schedules, jobs, lanes, backfills */
#define SEGMENT_NAME 3

int
api_schedule_list(struct api *api, struct http_request *req, struct reply *reply,
                  struct err *err)
{
    static const char *const known[] = {"next"};
    const char *next = http_request_query(req, "next");
    int64_t count = 1;
    int r = api_ask_query(req, known, array_len(known), err);

    if (r == 0 && next)
        r = parse_i64("next", next, 0, SERVICE_NEXT_MAX, &count, err);
    if (r < 0)
        return r;
    return service_schedules(api->options.service, (int)count, &reply->answer, err);
}

static int
hold(struct api *api, struct http_request *req, bool pause, struct reply *reply,
     struct err *err)
{
    struct caller caller = api_ask_caller(req);
    scoped(json_drop) json_t *body = NULL;
    char kind[16];
    int r = api_ask_body(req, &body, err);

    if (r == 0 && json_object_size(body) > 0)
        r = err_set(err, ERR_INVALID, "this call takes no members; send {} or nothing");
    if (r < 0)
        return r;
    str_copy(kind, sizeof(kind), http_request_segment(req, SEGMENT_KIND));
    kind[strlen(kind) - 1] = '\0'; /* the last letter of the plural */
    return service_hold(api->options.service, &caller, kind,
                        http_request_segment(req, SEGMENT_NAME), pause, &reply->answer,
                        err);
}

int
api_pause(struct api *api, struct http_request *req, struct reply *reply,
          struct err *err)
{
    return hold(api, req, true, reply, err);
}

int
api_resume(struct api *api, struct http_request *req, struct reply *reply,
           struct err *err)
{
    return hold(api, req, false, reply, err);
}
