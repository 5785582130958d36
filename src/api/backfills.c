/* Backfills: begin, list, show, cancel. Pause and resume: schedules.c. */
#include "api/api_private.h"

#include "base/err.h"
#include "base/json.h"

#define SEGMENT_NAME 3

int
api_backfill(struct api *api, struct http_request *req, struct reply *reply,
             struct err *err)
{
    struct caller caller = api_ask_caller(req);
    scoped(json_drop) json_t *body = NULL;
    int r = api_ask_body(req, &body, err);

    if (r < 0)
        return r;
    return service_backfill(api->options.service, &caller,
                            http_request_segment(req, SEGMENT_NAME), body,
                            &reply->answer, &reply->complaint, err);
}

int
api_backfill_list(struct api *api, struct http_request *req, struct reply *reply,
                  struct err *err)
{
    int r = api_ask_query(req, NULL, 0, err);

    return r < 0 ? r : service_backfill_list(api->options.service, &reply->answer, err);
}

int
api_backfill_show(struct api *api, struct http_request *req, struct reply *reply,
                  struct err *err)
{
    int64_t id = 0;
    int r = api_ask_query(req, NULL, 0, err);

    if (r == 0)
        r = api_ask_id(req, SEGMENT_NAME, &id, err);
    return r < 0 ? r
                 : service_backfill_show(api->options.service, id, &reply->answer, err);
}

int
api_backfill_cancel(struct api *api, struct http_request *req, struct reply *reply,
                    struct err *err)
{
    struct caller caller = api_ask_caller(req);
    scoped(json_drop) json_t *body = NULL;
    int64_t id = 0;
    int r = api_ask_body(req, &body, err);

    if (r == 0 && json_object_size(body) > 0)
        r = err_set(err, ERR_INVALID, "this call takes no members; send {} or nothing");
    if (r == 0)
        r = api_ask_id(req, SEGMENT_NAME, &id, err);
    return r < 0 ? r
                 : service_backfill_cancel(api->options.service, &caller, id,
                                           &reply->answer, err);
}
