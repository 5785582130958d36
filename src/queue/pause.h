/*
 * Jobs and lanes held back: what waits of them stays QUEUED and is not claimed, until
 * somebody resumes them; what runs goes on. The claim itself leaves them out, so
 * whatever way a request comes by (submit, chain, next try, schedule, its time), no
 * rule of the queue need know of it. Any thread.
 */
#ifndef QUEUE_PAUSE_H
#define QUEUE_PAUSE_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct arena;
struct db;
struct err;
struct store;

enum pause_kind { PAUSE_JOB, PAUSE_LANE, PAUSE_KIND_COUNT };

enum pause_outcome {
    PAUSE_CHANGED,
    PAUSE_AS_IT_WAS, /* who paused it first stays named */
};

struct pause {
    enum pause_kind kind;
    const char *name; /* texts in the arena */
    const char *by;
    int64_t at_us;
};

const char *pause_kind_name(enum pause_kind kind); /* "job", "lane" */

/*
 * When it returns, every claim that could still take something of it has ended: what
 * is not RUNNING by then stays QUEUED. (On PostgreSQL a claim or finish whose
 * connection hangs is waited for at most 2 s; the pause is in force all the same.)
 * A PAUSE_JOB that was not published: -ERR_JOB_NOT_FOUND. Lanes are not checked.
 * actor is recorded, and stands in the audit.
 */
int queue_pause(struct store *store, enum pause_kind kind, const char *name,
                const char *actor, struct err *err) must_check;

/* Workers are woken. What is not paused is PAUSE_AS_IT_WAS, known or not. */
int queue_resume(struct store *store, enum pause_kind kind, const char *name,
                 const char *actor, struct err *err) must_check;

/* All that are paused, jobs first. */
int queue_pauses(struct store *store, struct arena *arena, struct pause **ret_pauses,
                 size_t *ret_count, struct err *err) must_check;

/* What holds back a request of this job in this lane: at most one of each kind. */
int queue_pauses_of(struct store *store, const char *job, const char *lane,
                    struct arena *arena, struct pause ret_pauses[PAUSE_KIND_COUNT],
                    size_t *ret_count, struct err *err) must_check;

/* For who claims by other means, after the row of the claim was written in the same
 * transaction: -ERR_PAUSED, with the remedy, if the job or the lane is paused. */
int queue_pause_refuse_in(struct db *db, const char *job, const char *lane,
                          struct err *err) must_check;

#endif
