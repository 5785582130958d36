/*
 * What a client may ask of pawl, JSON in and JSON out, whatever carries it: the
 * api brings it over HTTP, the command line calls it directly when no server
 * owns the store. The shapes are the public contract (docs/api.md).
 *
 * A call returns 0 with an answer, or a failure; service_problem turns a failure
 * into the problem document of RFC 9457. Any thread; struct service is read-only.
 */
#ifndef SERVICE_SERVICE_H
#define SERVICE_SERVICE_H

#include "base/buf.h"
#include "queue/params.h"
#include "queue/request.h"

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>

struct arena;
struct catalog;
struct clock;
struct config;
struct err;
struct estimates;
struct list_filter;
struct queue_job;
struct result_store;
struct store;
struct submit_order;

struct service {
    const struct config *config;
    struct store *store;
    struct catalog *catalog;
    struct estimates *estimates;
    const struct result_store *results; /* NULL: results are not served here */
    const struct clock *clock;
    /* The store is an SQLite file that this process owns, and it is no server: no
     * worker that stands in it can be alive. */
    bool sole_owner;
    /* A server has few threads: only one of its callers at a time waits for a worker to
     * look at a dead one (bury.h). NULL: each may. */
    atomic_flag *one_waits;
};

/* Who asks. */
struct caller {
    const char *name; /* token's name, "cli", or the peer's address */
    enum request_source source;
};

/* Release body by buf_release. */
struct answer {
    int status; /* of HTTP: 200, 202 */
    struct buf body;
    int64_t request_id; /* 0 = about no single request */
};

/* What a failure adds for the problem document: fields that are wrong, and which of
 * many orders was refused. All-zero is ready. */
struct complaint {
    struct params_errors errors;
    bool has_index;
    size_t index;
};

#define SERVICE_BODY_MAX ((size_t)64 << 20) /* ceiling of an answer */

/* POST /jobs/{job}/requests; body may be NULL for {}. digest: SHA-256 hex of the
 * body as it came, with an idempotency key only. */
int service_submit(const struct service *service, const struct caller *caller,
                   const char *job, const json_t *body, const char *idempotency_key,
                   const char *digest, struct answer *ret_answer,
                   struct complaint *complaint, struct err *err) must_check;

/* POST /requests: {"requests": [{job, params, …, idempotencyKey?}, …]}, all or none. */
int service_submit_many(const struct service *service, const struct caller *caller,
                        const json_t *body, struct answer *ret_answer,
                        struct complaint *complaint, struct err *err) must_check;

/* GET /requests/{id}. ret_final (may be NULL): nothing will change any more. */
int service_show(const struct service *service, int64_t request_id,
                 struct answer *ret_answer, bool *ret_final,
                 struct err *err) must_check;

/* GET /requests/{id}/why: {requestId, status, reasons: [{code, text, …}]} */
int service_why(const struct service *service, int64_t request_id,
                struct answer *ret_answer, struct err *err) must_check;

/* GET /requests */
int service_list(const struct service *service, const struct list_filter *filter,
                 struct answer *ret_answer, struct err *err) must_check;

/* POST /requests/{id}/cancel and /stop */
int service_cancel(const struct service *service, const struct caller *caller,
                   int64_t request_id, struct answer *ret_answer,
                   struct err *err) must_check;
int service_stop(const struct service *service, const struct caller *caller,
                 int64_t request_id, struct answer *ret_answer,
                 struct err *err) must_check;

/*
 * POST /requests/{id}/restart: ask again for the work of a request that ended without
 * COMPLETED, with the parameters it gave (no confirmed ones), to go on where it
 * stopped. A next try that waits already is told to wait no longer (200).
 * -ERR_ALREADY_FINAL when its work is COMPLETED, -ERR_JOB_ALREADY_RUNNING while
 * somebody works on it.
 */
int service_restart(const struct service *service, const struct caller *caller,
                    int64_t request_id, struct answer *ret_answer,
                    struct err *err) must_check;

/* GET /jobs, GET /jobs/{job} */
int service_jobs(const struct service *service, struct answer *ret_answer,
                 struct err *err) must_check;
int service_job(const struct service *service, const char *job,
                struct answer *ret_answer, struct err *err) must_check;

/* GET /executions/{id} */
int service_execution(const struct service *service, int64_t execution_id,
                      struct answer *ret_answer, struct err *err) must_check;

/* POST /executions/{id}/stop, as of its request */
int service_execution_stop(const struct service *service, const struct caller *caller,
                           int64_t execution_id, struct answer *ret_answer,
                           struct err *err) must_check;

/* POST /executions/{id}/recover: end by hand what a dead worker held. Its worker lives:
 * -ERR_JOB_ALREADY_RUNNING; it has ended: -ERR_INVALID. */
int service_execution_recover(const struct service *service,
                              const struct caller *caller, int64_t execution_id,
                              struct answer *ret_answer, struct err *err) must_check;

/* GET /workers */
int service_workers(const struct service *service, struct answer *ret_answer,
                    struct err *err) must_check;

/* GET /schedules: each with its next so many times, and what became of the last. */
#define SERVICE_NEXT_MAX 100
int service_schedules(const struct service *service, int next,
                      struct answer *ret_answer, struct err *err) must_check;

/* POST /schedules/{name}/pause and /resume */
int service_schedule_pause(const struct service *service, const struct caller *caller,
                           const char *name, bool pause, struct answer *ret_answer,
                           struct err *err) must_check;

/* GET /budgets: calls used and left today. */
int service_budgets(const struct service *service, struct answer *ret_answer,
                    struct err *err) must_check;

/* GET /lanes: those of the file, of workers, and where something waits or runs. */
int service_lanes(const struct service *service, struct answer *ret_answer,
                  struct err *err) must_check;

/* POST /jobs|lanes|schedules|backfills/{name}/pause and /resume; kind: "job", "lane",
 * "schedule" or "backfill". */
int service_hold(const struct service *service, const struct caller *caller,
                 const char *kind, const char *name, bool pause,
                 struct answer *ret_answer, struct err *err) must_check;

/* POST /jobs/{job}/backfills: {"params": {…}, parallel?, onFailure?, priority?,
 * requester?, again?}; what the values may be: service/spread.h. */
int service_backfill(const struct service *service, const struct caller *caller,
                     const char *job, const json_t *body, struct answer *ret_answer,
                     struct complaint *complaint, struct err *err) must_check;

/* GET /backfills/{id}, GET /backfills, POST /backfills/{id}/cancel */
int service_backfill_show(const struct service *service, int64_t backfill_id,
                          struct answer *ret_answer, struct err *err) must_check;
int service_backfill_list(const struct service *service, struct answer *ret_answer,
                          struct err *err) must_check;
int service_backfill_cancel(const struct service *service, const struct caller *caller,
                            int64_t backfill_id, struct answer *ret_answer,
                            struct err *err) must_check;

/* POST /backfills/{id}/pause and /resume; name: its number as text. */
int service_backfill_hold(const struct service *service, const struct caller *caller,
                          const char *name, bool pause, struct answer *ret_answer,
                          struct err *err) must_check;

/* A schedule_order_fn: what the scheduler asks for passes the same checks as what a
 * client asks for. arg: the struct service. */
int service_schedule_order(void *arg, const struct queue_job *job, const json_t *params,
                           struct arena *arena, struct submit_order *ret_order,
                           struct err *err) must_check;

/* What is to be downloaded; strings in the arena, the descriptor the caller's. */
struct service_result {
    int fd;
    int64_t bytes;
    const char *name;
    const char *type;
    const char *sha256;
};

/* GET /requests/{id}/result: -ERR_NO_RESULT before DONE and where none is made by this
 * request, -ERR_NOT_FOUND where the job makes none, -ERR_GONE after its retention. */
int service_result(const struct service *service, int64_t request_id,
                   struct arena *arena, struct service_result *ret_result,
                   struct err *err) must_check;

/*
 * The problem document of a failure, and its HTTP status. Texts of unexpected
 * failures (5xx but those that tell what to do) stay inside: trace names the
 * request in the log. complaint may be NULL.
 */
int service_problem(const struct err *err, const struct complaint *complaint,
                    const char *instance, const char *trace, struct buf *body);

#endif
