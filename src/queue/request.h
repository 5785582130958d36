/*
 * A request as the whole house sees it: its states, the token that fences the
 * writes of its run, and the full record that pollers read. Everything here is
 * data; strings live in the arena that the filling function was given.
 */
#ifndef QUEUE_REQUEST_H
#define QUEUE_REQUEST_H

#include "base/compiler.h"
#include "base/rand.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QUEUE_NAME_MAX 128 /* bytes of a job's, lane's or outcome's name */

enum request_status {
    REQUEST_QUEUED,
    REQUEST_RUNNING,
    REQUEST_DONE,
    REQUEST_FAILED,
    REQUEST_STATUS_COUNT
};

enum request_outcome {
    OUTCOME_NONE, /* not final yet */
    OUTCOME_COMPLETED,
    OUTCOME_STOPPED,
    OUTCOME_ERROR,
    OUTCOME_CANCELLED,
    OUTCOME_TIMEOUT,
    OUTCOME_WORKER_LOST,
    OUTCOME_EXPIRED,
    OUTCOME_REFUSED,
    OUTCOME_COUNT
};

enum request_source {
    SOURCE_API,
    SOURCE_CLI,
    SOURCE_SQL,
    SOURCE_SCHEDULE,
    SOURCE_CHAIN,
    SOURCE_RETRY,
    SOURCE_BACKFILL,  /* an item of a group, or its next try */
    SOURCE_PARTITION, /* helps with the partitions of a step (queue/hand.h) */
    SOURCE_COUNT
};

/* In which table the request's row is: that is its state. */
enum request_place {
    PLACE_LATER,
    PLACE_READY,
    PLACE_CLAIM,
    PLACE_OUTCOME,
    PLACE_COUNT
};

/*
 * Issued by a claim, carried by every write of the run. A write under a token
 * whose claim row is gone changes nothing.
 */
struct claim_token {
    int64_t number;               /* grows store-wide */
    char nonce[RAND_HEX128_SIZE]; /* after a failover two claims may bear one number */
};

struct request_progress {
    bool known; /* false: no progress was written yet */
    int64_t done;
    int64_t total; /* -1: unknown */
    const char *message;
    int64_t updated_at_us;
};

struct request_result {
    bool known;       /* the run published a file */
    const char *path; /* inside the results folder */
    const char *name; /* for the one who downloads it */
    const char *type; /* content type */
    int64_t bytes;
    int64_t rows;       /* -1: not counted in rows */
    const char *sha256; /* 64 hex digits */
    int64_t gone_at_us; /* removed by retention then; 0 = still there */
};

/* Times are microseconds since 1970 UTC, 0 = not set. Ids: 0 = none. */
struct request {
    int64_t id;
    const char *job;
    const char *given; /* JSON object, as the client gave it */
    const char *requester;
    enum request_source source;
    const char *lane;
    int priority;
    int64_t estimate; /* rows expected; -1 = not estimated */
    int64_t not_before_us;
    int64_t expires_at_us;
    int64_t retry_of;
    int64_t first_try; /* 0: this one is the first */
    int attempt;       /* 1, 2, … */
    int64_t restart_of;
    int restart;       /* -1 not said, 0, 1 */
    int64_t max_calls; /* -1 = not given */
    const char *next;  /* JSON array or NULL */
    int64_t created_at_us;

    enum request_place place;
    enum request_status status;
    enum request_outcome outcome;
    const char *later_reason; /* "time", "paused", "key", "after"; else NULL */
    int64_t ready_since_us;
    const char *worker; /* NULL before the claim */
    struct claim_token token;
    int64_t claimed_at_us;
    int64_t finished_at_us;
    const char *detail; /* of a final one: what happened, for people */
    int64_t execution_id;
    bool cancel_asked;
    bool stop_asked;
    struct request_progress progress;
    struct request_result result;
};

const char *request_status_name(enum request_status status);    /* "QUEUED" … */
const char *request_outcome_name(enum request_outcome outcome); /* NULL for NONE */
const char *request_source_name(enum request_source source);    /* "api" … */
const char *request_place_name(enum request_place place);       /* "later" … */

/* False when text names none; case matters. */
bool request_status_parse(const char *text, enum request_status *ret_status);
bool request_outcome_parse(const char *text, enum request_outcome *ret_outcome);
bool request_source_parse(const char *text, enum request_source *ret_source);

/* DONE for COMPLETED and STOPPED, else FAILED. outcome must not be NONE. */
enum request_status request_status_of(enum request_outcome outcome);

/* True for DONE and FAILED: nothing ever changes any more. */
bool request_status_final(enum request_status status);

#endif
