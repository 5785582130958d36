/*
 * The tries of one piece of work: a request and those that were made after its failure.
 * To the reader they are one thing, so any of their ids stands for all of them. Any
 * thread.
 */
#ifndef QUEUE_TRIES_H
#define QUEUE_TRIES_H

#include "queue/request.h"

struct arena;
struct db;
struct err;
struct store;

/* The last try, the only one that may not be final. 1 found, 0 no such request. */
int queue_live_try_in(struct db *db, int64_t request_id, int64_t *ret_id,
                      struct err *err) must_check;

struct request_try {
    int64_t id;
    int attempt; /* a drained try keeps the number of the one before */
    enum request_source source;
    enum request_status status;
    enum request_outcome outcome;
    int64_t created_at_us;
    int64_t started_at_us;
    int64_t finished_at_us;
    const char *detail;
};

/* All tries, the first one first; also of a request that was the only one. */
int queue_tries(struct store *store, int64_t request_id, struct arena *arena,
                struct request_try **ret_tries, size_t *ret_count,
                struct err *err) must_check;

#endif
