/*
 * Reading requests: one with everything a poller needs, pages of them, counts.
 * Reads only; any thread.
 */
#ifndef QUEUE_LIST_H
#define QUEUE_LIST_H

#include "queue/request.h"

struct arena;
struct err;
struct store;

#define QUEUE_LIST_MAX     200
#define QUEUE_LIST_DEFAULT 50

/* -ERR_NOT_FOUND when there is no such request. */
int queue_get(struct store *store, int64_t request_id, struct arena *arena,
              struct request *ret_request, struct err *err) must_check;

struct list_filter {
    const char *job;       /* NULL = any */
    const char *requester; /* NULL = any */
    bool has_status;
    enum request_status status;
    int64_t after; /* the last id of the page before; 0 = from the newest */
    int limit;     /* clamped to 1…QUEUE_LIST_MAX; 0 = QUEUE_LIST_DEFAULT */
};

struct request_page {
    struct request *requests; /* newest first */
    size_t count;
    int64_t next_after; /* give it as after for the next page; 0 = this is the last */
};

int queue_list(struct store *store, const struct list_filter *filter,
               struct arena *arena, struct request_page *ret_page,
               struct err *err) must_check;

struct lane_count {
    const char *lane;
    int64_t later;
    int64_t ready;
    int64_t running;
    int64_t oldest_ready_us; /* ready_since of the oldest; 0 = none */
    const char *paused_by;   /* NULL = not paused */
    int64_t paused_at_us;
};

int queue_count_lanes(struct store *store, struct arena *arena,
                      struct lane_count **ret_counts, size_t *ret_count,
                      struct err *err) must_check;

#endif
