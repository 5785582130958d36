/*
 * Inside queue/: what follows requests that become final, all of it in the transaction
 * that writes their outcomes (closing.c calls, in this order):
 *
 *   follow_look     what may follow, by one question to the store, while flags stand
 *   follow_retry    the next try of what failed, with the key that is free now
 *                   (followup.c)
 *   follow_announce what is to be told of it outside (announce.c)
 *   follow_chain    the next of a chain (chain.c)
 *   follow_backfills  the next items of backfills (backfill.c)
 *   follow_waiters  those that wait for these requests (wait.c)
 *
 * After a cancel was asked nothing follows.
 */
#ifndef QUEUE_FOLLOW_H
#define QUEUE_FOLLOW_H

#include "base/arena.h"
#include "queue/closing.h"

#include <jansson.h>

struct db_rows;
struct queue_job;

/* One request that ends, and what is known of it. */
struct follow_fact {
    int64_t id;
    const struct closing *closing;
    const char *next; /* its own; NULL = none */
    bool backfill;    /* an item of a group */
    bool cancel_asked;
    bool stop_asked;
    int64_t followup_id; /* 0 = none */
};

struct follow_job {
    const char *name;
    struct queue_job *job; /* NULL: there is none in force that can be read */
    bool webhook;          /* said by follow_look only */
};

struct follow_wait {
    int64_t request_id;
    int64_t after_id;
};

struct follow {
    struct arena arena;
    const struct closing *closings;
    size_t count;
    struct follow_fact *facts; /* by id */
    struct follow_job *jobs;
    size_t n_jobs;
    size_t room_jobs;
    struct follow_wait *waits;
    size_t n_waits;
    size_t room_waits;
    int64_t now_us;
    bool entered; /* something new is queued now */
};

void follow_release(struct follow *follow);

void follow_begin(struct follow *follow, const struct closing *closings, size_t count);
/* The different jobs of those that completed, or else of those that may be tried again;
 * ret_names has room for all. */
size_t follow_jobs(const struct follow *follow, bool done, const char **ret_names);
int follow_read(struct follow *follow, struct db_rows *rows,
                struct err *err) must_check;

int follow_look(struct db *db, struct follow *follow, struct err *err) must_check;
int follow_retry(struct db *db, struct follow *follow, struct err *err) must_check;
int follow_announce(struct db *db, struct follow *follow, struct err *err) must_check;
int follow_chain(struct db *db, struct follow *follow, struct err *err) must_check;
int follow_backfills(struct db *db, struct follow *follow, struct err *err) must_check;

/* *ret_more: waiting requests that end now because what they wait for did not complete;
 * their texts live in arena. */
int follow_waiters(struct db *db, struct follow *follow, struct arena *arena,
                   struct closing **ret_more, size_t *ret_count,
                   struct err *err) must_check;

/* The same for requests first_id…last_id that ended unclaimed, by the range. */
int follow_range(struct db *db, int64_t first_id, int64_t last_id,
                 enum request_outcome outcome, int64_t now_us, struct arena *arena,
                 struct closing **ret_more, size_t *ret_count,
                 struct err *err) must_check;

/* --- for these files --- */

void follow_add_wait(struct follow *follow, int64_t after_id, int64_t request_id);

struct follow_fact *follow_fact(const struct follow *follow, int64_t id);

/* Has its job a webhook? True as well where follow_look did not ask. */
bool follow_may_be_told(const struct follow *follow, const struct closing *closing);

/* The definition as it was found by follow_look, NULL = none. */
const struct queue_job *follow_known_job(const struct follow *follow, const char *name);

/* The same, asking the store if it was not. *ret NULL: no such job is in force. */
int follow_job(struct db *db, struct follow *follow, const char *name,
               const struct queue_job **ret_job, struct err *err) must_check;

/* The written-once rows of these ids, in order of id. */
int follow_requests(struct db *db, struct follow *follow, const int64_t *ids,
                    size_t count, struct request **ret_requests, size_t *ret_count,
                    struct err *err) must_check;

/* A line of the audit about what does not follow, and why. */
int follow_drop(struct db *db, struct follow *follow, int64_t request_id,
                const char *act, const char *why, struct err *err) must_check;

/* JSON in the arena; NULL when it is too large to be true. */
const char *follow_json(struct arena *arena, const json_t *json);

/* Effective parameters as canonical text, what the key of `reuse` is made of. */
const char *follow_canonical(struct arena *arena, const json_t *effective);

#endif
