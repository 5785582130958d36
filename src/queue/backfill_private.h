/*
 * The row of a backfill while it is locked: for the files of backfills alone.
 */
#ifndef QUEUE_BACKFILL_PRIVATE_H
#define QUEUE_BACKFILL_PRIVATE_H

#include "base/strs.h"
#include "queue/backfill.h"
#include "queue/submit_rows.h"

struct queue_job;

/* The locked row, and what is to become of it. */
struct backfill_group {
    int64_t id;
    const char *job_name;
    const char *requester;
    int priority;
    int64_t parallel;
    bool hold_on_failure;
    int64_t next_n;
    int64_t open;
    const char *state;
    const char *why;
    struct queue_job *job; /* in force now; NULL = none */
    struct submission sub;
    bool entered;
};

static inline bool
backfill_is_running(const struct backfill_group *group)
{
    return str_eq(group->state, "RUNNING");
}

void backfill_release(struct backfill_group *group);

/* 1, or 0: there is none. */
int backfill_lock(struct db *db, int64_t id, struct backfill_group *group,
                  struct err *err);
int backfill_save(struct backfill_group *group, struct err *err);

/* Let no more in. why lives as long as the group. */
void backfill_hold_for(struct backfill_group *group, const char *why);

/* Let in as many as may be open, and save. */
int backfill_let_in(struct backfill_group *group, struct err *err);

#endif
