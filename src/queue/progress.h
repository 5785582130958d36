/*
 * What a run says while it runs, and what it learns by saying it.
 */
#ifndef QUEUE_PROGRESS_H
#define QUEUE_PROGRESS_H

#include "queue/request.h"

struct err;
struct store;

enum queue_progress_result {
    QUEUE_PROGRESS_OK = 0,
    QUEUE_PROGRESS_LOST = 1, /* the claim is gone: stop at once, write nothing */
};

struct queue_flags {
    bool cancel;
    bool stop;
};

/* total -1 = unknown; message may be NULL. The flags come with the same call. */
int queue_progress(struct store *store, int64_t request_id, struct claim_token token,
                   int64_t done, int64_t total, const char *message,
                   struct queue_flags *ret_flags, struct err *err) must_check;

/* Only look: the flags, or LOST. */
int queue_look_flags(struct store *store, int64_t request_id, struct claim_token token,
                     struct queue_flags *ret_flags, struct err *err) must_check;

/* A RUNNING request of this worker at which a flag stands. */
struct queue_flagged {
    int64_t request_id;
    struct queue_flags flags;
};

/* All flags of one worker's requests by one statement: for the worker's answer to
 * a WAKE_FLAG. ret_flagged has room for max; *ret_count of them are filled. */
int queue_flags_of_worker(struct store *store, const char *worker, size_t max,
                          struct queue_flagged *ret_flagged, size_t *ret_count,
                          struct err *err) must_check;

#endif
