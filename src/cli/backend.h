/*
 * Where the answers come from, behind one face:
 *
 *      HTTP     --server, PAWL_SERVER, or the socket of the process that owns
 *               the SQLite store (backend_http.c)
 *      direct   our own store, opened by this process (backend_direct.c): for
 *               SQLite we own it meanwhile
 *
 * The JSON is the same either way, for both end in service/. One thread.
 */
#ifndef CLI_BACKEND_H
#define CLI_BACKEND_H

#include "base/compiler.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct backend;
struct config;
struct err;
struct interrupt;
struct service;

struct backend_filter {
    const char *job; /* NULL = any; likewise below */
    const char *status;
    const char *requester;
    const char *limit; /* as typed; checked where it is used */
    const char *after;
};

/* A piece of a result; < 0 ends the download with that value. */
typedef int (*backend_piece_fn)(void *arg, const char *data, size_t len,
                                struct err *err);

struct backend_download {
    backend_piece_fn piece;
    void *arg;
    struct interrupt *interrupt; /* looked at now and then; NULL = not */
};

/* What is done to a request, or by the last two to an execution, a backfill. */
enum backend_act {
    BACKEND_CANCEL,
    BACKEND_STOP,
    BACKEND_RESTART,
    BACKEND_RECOVER,
    BACKEND_CANCEL_BACKFILL,
    BACKEND_ACT_COUNT
};

/* Every ret_json is a new reference. */
struct backend_kind {
    int (*submit)(struct backend *backend, const char *job, const json_t *body,
                  const char *idempotency_key, json_t **ret_json, struct err *err);
    /* Answers within wait_ms, at once when the request is final. */
    int (*show)(struct backend *backend, int64_t request_id, int wait_ms,
                json_t **ret_json, struct err *err);
    int (*list)(struct backend *backend, const struct backend_filter *filter,
                json_t **ret_json, struct err *err);
    int (*act)(struct backend *backend, enum backend_act act, int64_t id,
               json_t **ret_json, struct err *err);
    int (*jobs)(struct backend *backend, json_t **ret_json, struct err *err);
    int (*schedules)(struct backend *backend, int next, json_t **ret_json,
                     struct err *err);
    int (*budgets)(struct backend *backend, json_t **ret_json, struct err *err);
    int (*lanes)(struct backend *backend, json_t **ret_json, struct err *err);
    /* Pause or resume; what: "job", "lane", "schedule" or "backfill". */
    int (*hold)(struct backend *backend, const char *what, const char *name, bool pause,
                json_t **ret_json, struct err *err);
    int (*backfill)(struct backend *backend, const char *job, const json_t *body,
                    json_t **ret_json, struct err *err);
    /* 0: the list of them. */
    int (*backfills)(struct backend *backend, int64_t backfill_id, json_t **ret_json,
                     struct err *err);
    int (*workers)(struct backend *backend, json_t **ret_json, struct err *err);
    int (*job)(struct backend *backend, const char *job, json_t **ret_json,
               struct err *err);
    int (*execution)(struct backend *backend, int64_t execution_id, json_t **ret_json,
                     struct err *err);
    int (*why)(struct backend *backend, int64_t request_id, json_t **ret_json,
               struct err *err);
    int (*result)(struct backend *backend, int64_t request_id,
                  const struct backend_download *download, struct err *err);
    void (*free)(struct backend *backend);
};

struct backend {
    const struct backend_kind *kind; /* the struct of the implementation follows */
};

/* server: http://host:port, https://…, unix:PATH. Nothing is sent yet. */
int backend_http_new(const char *server, struct backend **ret_backend,
                     struct err *err) must_check;
/* Does a pawl answer there? Quick; a failure to reach it is false. */
bool backend_http_alive(struct backend *backend);

struct backend_local {
    const struct config *config;
    const char *role;  /* for the lock of the store: "submit", "run" … */
    const char *store; /* URL of the store */
    bool publish;      /* put the definitions of the file into the store */
};

/* Open the store ourselves. -ERR_STORE_HELD when another process owns it. */
int backend_direct_new(const struct backend_local *local, struct backend **ret_backend,
                       struct err *err) must_check;
/* The service behind a direct one; NULL when answers come over HTTP. */
const struct service *backend_service(struct backend *backend);

/* The owner of the SQLite store if one runs, else the store itself. */
int backend_local_new(const struct backend_local *local, struct backend **ret_backend,
                      struct err *err) must_check;

void backend_free(struct backend *backend); /* accepts NULL */

/* Will anybody carry out what is submitted here, while we look on? False for an
 * SQLite store that we own ourselves. */
bool backend_has_workers(struct backend *backend);

#endif
