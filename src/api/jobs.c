/* Jobs, executions, workers, and whether we are well. */
#include "api/api_private.h"

#include "base/err.h"
#include "store/store.h"

#define SEGMENT_NAME 3

int
api_job_list(struct api *api, struct http_request *req, struct reply *reply,
             struct err *err)
{
    return service_jobs(api->options.service, &reply->answer, err);
}

int
api_job_show(struct api *api, struct http_request *req, struct reply *reply,
             struct err *err)
{
    return service_job(api->options.service, http_request_segment(req, SEGMENT_NAME),
                       &reply->answer, err);
}

int
api_execution_show(struct api *api, struct http_request *req, struct reply *reply,
                   struct err *err)
{
    int64_t id = 0;
    int r = api_ask_id(req, SEGMENT_NAME, &id, err);

    return r < 0 ? r : service_execution(api->options.service, id, &reply->answer, err);
}

int
api_lane_list(struct api *api, struct http_request *req, struct reply *reply,
              struct err *err)
{
    return service_lanes(api->options.service, &reply->answer, err);
}

int
api_budget_list(struct api *api, struct http_request *req, struct reply *reply,
                struct err *err)
{
    return service_budgets(api->options.service, &reply->answer, err);
}

int
api_worker_list(struct api *api, struct http_request *req, struct reply *reply,
                struct err *err)
{
    return service_workers(api->options.service, &reply->answer, err);
}

int
api_livez(struct api *api, struct http_request *req, struct reply *reply,
          struct err *err)
{
    reply->answer.status = 200;
    buf_add_str(&reply->answer.body, "{\"status\":\"ok\"}");
    return 0;
}

static int
ping(struct db *db, void *arg, struct err *err)
{
    return db_ping(db, err);
}

int
api_readyz(struct api *api, struct http_request *req, struct reply *reply,
           struct err *err)
{
    if (!api->ready)
        return err_set(err, ERR_STORE, "the server is stopping");
    reply->answer.status = 200;
    buf_add_str(&reply->answer.body, "{\"status\":\"ok\"}");
    return store_read(api->options.service->store, ping, NULL, err);
}
