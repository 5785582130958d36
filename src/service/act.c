/* What people do to requests: cancel, stop. */
#include "service/service.h"

#include "base/err.h"
#include "base/json.h"
#include "queue/cancel.h"

static void
put_act(struct answer *answer, int64_t request_id, int status, const char *state,
        const char *asked)
{
    struct json_out out;

    answer->status = status;
    answer->request_id = request_id;
    json_out_init(&out, &answer->body);
    json_begin_object(&out);
    json_kv_i64(&out, "requestId", request_id);
    json_kv_str(&out, "status", state);
    json_kv_bool(&out, asked, true);
    json_end_object(&out);
}

int
service_cancel(const struct service *service, const struct caller *caller,
               int64_t request_id, struct answer *ret_answer, struct err *err)
{
    int r = queue_cancel(service->store, request_id, caller->name, err);

    if (r < 0)
        return r;
    if (r == QUEUE_CANCELLED)
        put_act(ret_answer, request_id, 200, "FAILED", "cancelled");
    else
        put_act(ret_answer, request_id, 202, "RUNNING", "cancelRequested");
    return 0;
}

int
service_stop(const struct service *service, const struct caller *caller,
             int64_t request_id, struct answer *ret_answer, struct err *err)
{
    int r = queue_stop(service->store, request_id, caller->name, err);

    if (r < 0)
        return r;
    if (r == QUEUE_STOP_NOT_RUNNING)
        return err_set(err, ERR_NO_RESULT,
                       "the request is still QUEUED: there is nothing to stop; cancel "
                       "it if it should not run");
    put_act(ret_answer, request_id, 202, "RUNNING", "stopRequested");
    return 0;
}
