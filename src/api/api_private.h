/*
 * Inside of the room api: what a handler gets, and what it gives back. Handlers
 * run on the server's threads; struct api is read-only for them but for `ready`.
 */
#ifndef API_API_PRIVATE_H
#define API_API_PRIVATE_H

#include "api/api.h"
#include "net/http_server.h"
#include "service/service.h"

#include <stdatomic.h>
#include <stdbool.h>

struct route;
struct watch;

#define API_TRACE_SIZE 27 /* 26 characters and NUL */
#define API_FIELDS_MAX 8

struct api {
    struct api_options options;
    struct http_server *server;
    struct watch *watch;
    int port;
    _Atomic bool ready;
};

/* What a handler gives back: an answer, or a file, or "it is kept". */
struct reply {
    struct answer answer;
    struct complaint complaint;
    const struct http_file *file; /* in the request's arena */
    const char *content_type;     /* of the file */
    struct http_field fields[API_FIELDS_MAX];
    size_t n_fields;
    bool kept; /* the request is answered later, by somebody else */
};

/* 0, or < 0: a problem document is made of err and reply->complaint. */
typedef int (*api_handler_fn)(struct api *api, struct http_request *req,
                              struct reply *reply, struct err *err);

/* --- routes.c --- */

#define API_BODY_ONE ((size_t)1)

struct route {
    const char *method;
    const char *path; /* {} stands for one segment */
    api_handler_fn handle;
    size_t body_max; /* 0: no body is taken; API_BODY_ONE: what api.max_body says */
    const char *help;
};

const struct route *api_routes(size_t *ret_count);

/* The route of a request; NULL and err (404, 405) when there is none. */
const struct route *api_route_find(const struct http_request *req, struct err *err);

/* --- respond.c --- */

void api_reply_field(struct reply *reply, const char *name, const char *value);
void api_respond(struct api *api, struct http_request *req, struct reply *reply);
void api_respond_problem(struct api *api, struct http_request *req,
                         const struct complaint *complaint, const struct err *err);

/* --- ask.c: reading requests --- */

int api_ask_id(struct http_request *req, size_t segment, int64_t *ret_id,
               struct err *err) must_check;
/* The JSON body; {} when there is none. */
int api_ask_body(struct http_request *req, json_t **ret_body,
                 struct err *err) must_check;
/* Only these names may stand in the query. */
int api_ask_query(struct http_request *req, const char *const *known, size_t count,
                  struct err *err) must_check;
struct caller api_ask_caller(struct http_request *req);
/* ?wait=30s or Prefer: wait=30; 0 when none; cut to max_us. */
int api_ask_wait(struct http_request *req, int64_t max_us, int64_t *ret_us,
                 struct err *err) must_check;
/* Host and Origin are ours: no page of another site may speak through a browser. */
int api_ask_origin(struct http_request *req, struct err *err) must_check;

/* --- handlers --- */

int api_submit(struct api *, struct http_request *, struct reply *, struct err *);
int api_submit_many(struct api *, struct http_request *, struct reply *, struct err *);
int api_request_list(struct api *, struct http_request *, struct reply *, struct err *);
int api_request_show(struct api *, struct http_request *, struct reply *, struct err *);
int api_request_events(struct api *, struct http_request *, struct reply *,
                       struct err *);
int api_request_result(struct api *, struct http_request *, struct reply *,
                       struct err *);
int api_request_why(struct api *, struct http_request *, struct reply *, struct err *);
int api_request_cancel(struct api *, struct http_request *, struct reply *,
                       struct err *);
int api_request_stop(struct api *, struct http_request *, struct reply *, struct err *);
int api_request_restart(struct api *, struct http_request *, struct reply *,
                        struct err *);
int api_job_list(struct api *, struct http_request *, struct reply *, struct err *);
int api_job_show(struct api *, struct http_request *, struct reply *, struct err *);
int api_execution_show(struct api *, struct http_request *, struct reply *,
                       struct err *);
int api_execution_stop(struct api *, struct http_request *, struct reply *,
                       struct err *);
int api_execution_recover(struct api *, struct http_request *, struct reply *,
                          struct err *);
int api_schedule_list(struct api *, struct http_request *, struct reply *,
                      struct err *);
int api_backfill(struct api *, struct http_request *, struct reply *, struct err *);
int api_backfill_list(struct api *, struct http_request *, struct reply *,
                      struct err *);
int api_backfill_show(struct api *, struct http_request *, struct reply *,
                      struct err *);
int api_backfill_cancel(struct api *, struct http_request *, struct reply *,
                        struct err *);
int api_pause(struct api *, struct http_request *, struct reply *, struct err *);
int api_resume(struct api *, struct http_request *, struct reply *, struct err *);
int api_budget_list(struct api *, struct http_request *, struct reply *, struct err *);
int api_lane_list(struct api *, struct http_request *, struct reply *, struct err *);
int api_worker_list(struct api *, struct http_request *, struct reply *, struct err *);
int api_livez(struct api *, struct http_request *, struct reply *, struct err *);
int api_readyz(struct api *, struct http_request *, struct reply *, struct err *);

#endif
