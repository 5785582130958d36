/*
 * Inside of struct worker, for the files of this room only: worker.c (the loop),
 * lane.c (claiming), reaper.c (repairs), startup.c (seat, cleaning, announcing),
 * heartbeat.c.
 * What the loop thread owns alone and what is shared under the lock stand apart.
 */
#ifndef WORKER_WORKER_PRIVATE_H
#define WORKER_WORKER_PRIVATE_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/list.h"
#include "liveness/seat.h"
#include "queue/claim.h"
#include "queue/lost.h"
#include "run/run.h"
#include "worker/slot.h"
#include "worker/worker.h"

#include <pthread.h>

struct lane {
    const char *name;
    int slots;
    int in_use; /* read by the heartbeat: under the worker's lock */
    struct claim_cursor cursor;
    bool empty; /* the last sweep left nothing: wait for a wake-up */
    int64_t swept_at_us;
    int64_t again_at_us; /* monotonic: others were claiming; look again then; 0 = no */
    int64_t pause_us;    /* how long was waited for that the last time */
};

struct deliver;

struct worker {
    struct worker_options options;
    struct run_env env;
    struct seat seat;
    char id[WORKER_ID_MAX];
    struct arena arena; /* names, paths: for the worker's life */
    const char **jobs;
    size_t n_jobs;
    int subscription;
    pthread_t thread;
    pthread_t heart;
    bool started;
    struct deliver *deliver; /* NULL: no webhook to tell */

    /* the loop's */
    struct lane *lanes; /* those with slots; in the arena */
    size_t n_lanes;
    struct slots *slots;
    struct list held; /* struct slot.held */
    size_t n_held;
    struct spool *spool;
    int64_t due_at_us;      /* monotonic: next promotion or expiry; 0 = none waits */
    int64_t scan_at_us;     /* monotonic: next safety scan */
    int64_t reap_at_us;     /* monotonic: next repairs */
    int64_t reaped_at_us;   /* monotonic: the last ones */
    int64_t house_at_us;    /* monotonic: next ranges of ids, old parts */
    int64_t prune_at_us;    /* monotonic: next page of what is too old */
    int64_t prune_after;    /* the request that was looked at last by it */
    bool repairs_failed;    /* said in the log already */
    bool store_away;        /* said in the log already */
    int64_t pause_ms;       /* the store is away: wait so long before the next try */
    int64_t drain_until_us; /* monotonic: then cut, or given up; 0 = no drain yet */
    bool cut;

    /* shared, under the lock */
    pthread_mutex_t lock;
    pthread_cond_t wake;      /* the loop waits here */
    pthread_cond_t heartbeat; /* the heart waits here */
    unsigned woken;           /* enum store_topic bits since the last look */
    bool done_waiting;        /* a slot has come back */
    bool stopping;
    bool hurry;
    int64_t stopping_since_us; /* monotonic; does not change any more */
    bool gone;                 /* somebody declared us dead */
    bool ended;                /* the loop is over: the heart may stop */
    int64_t link_since_us; /* monotonic: our beats arrive without a gap since; 0: not */
};

int worker_startup(struct worker *worker, struct err *err) must_check;

/* Ask all runs for their end. Loop thread. */
void worker_ask_all(struct worker *worker, enum run_wish wish);

/* Once stopping: a step of the drain, and is it over? Loop thread. */
void worker_drain(struct worker *worker, bool hurry);
bool worker_drained(const struct worker *worker);
/* When what still runs is cut off; monotonic. */
int64_t worker_drain_end_us(const struct worker *worker);
/* The same question for a run that holds up the loop (run_cut_fn). Any thread. */
bool worker_is_to_be_cut(void *arg);
void worker_leave(struct worker *worker);

/* Put our row into the store: at the start, and again if it was removed. */
int worker_announce(struct worker *worker, struct err *err) must_check;

/* Record what waits in the spool. */
int worker_replay(struct worker *worker, struct err *err) must_check;

/* Remove the parts whose claims are gone. Loop thread. */
int worker_drop_leavings(struct worker *worker, struct err *err) must_check;

/* Some pages of what retention keeps only for a time; sets prune_at_us. Loop thread. */
int worker_prune(struct worker *worker, struct err *err) must_check;

/* Close what that worker holds, if gate says so: COMPLETED where all work was done,
 * else WORKER_LOST or CANCELLED. */
int worker_close_held_by(struct worker *worker, const char *id, struct queue_gate gate,
                         const char *reason, struct err *err) must_check;

/* All repairs; sets reap_at_us. What fails is tried again. */
void worker_reap(struct worker *worker);

/* Somebody waits for them: as soon as may be, though not again and again. */
void worker_reap_soon(struct worker *worker);

/* Claim for every lane that has free slots and may have work. */
int worker_claim(struct worker *worker, struct err *err) must_check;

/* When a lane wants to be looked at again unasked, monotonic; 0 = none. */
int64_t worker_claim_again_us(const struct worker *worker);

/* Every lane may have work: somebody said so, or it is time to look. */
void worker_lanes_wake(struct worker *worker);

void *worker_heart(void *arg);

/* JSON object lane → number; of slots in use, or of all slots. In the arena. */
const char *worker_lanes_json(struct worker *worker, bool in_use, struct arena *arena);

static inline int64_t
worker_now_us(const struct worker *worker)
{
    return clock_mono_us(worker->options.clock);
}

#endif
