/*
 * The worker's row in the store: it says who is there, and its beat says that it
 * lives. Times are the store's. Any thread.
 */
#ifndef LIVENESS_WORKER_ROW_H
#define LIVENESS_WORKER_ROW_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct err;
struct store;

struct worker_row {
    const char *id;
    const char *seat;
    const char *host;
    int64_t pid;
    const char *boot_id; /* of the machine */
    int64_t started_at_us;
    int64_t beat_at_us;
    const char *lanes;  /* JSON object: lane → slots */
    const char *in_use; /* JSON object: lane → slots in use */
    const char *keys;   /* JSON array of names; never values */
    const char *jobs;   /* JSON array of the jobs it can run */
    const char *version;
};

/* started_at and beat_at are set by the store. */
int worker_register(struct store *store, const struct worker_row *row,
                    struct err *err) must_check;

enum worker_beat_result {
    WORKER_BEAT_OK = 0,
    WORKER_BEAT_GONE = 1, /* the row was removed: we were declared dead */
};

/* Goes before other writes. in_use as above. */
int worker_beat(struct store *store, const char *id, const char *in_use,
                struct err *err) must_check;

/* The same; ret_gap_us, written with WORKER_BEAT_OK: how long ago the beat before this
 * one was by the store's clock. Negative when that clock was set back. */
int worker_beat_gap(struct store *store, const char *id, const char *in_use,
                    int64_t *ret_gap_us, struct err *err) must_check;

/* A clean stop, or after what it held was closed. No row is fine. */
int worker_remove(struct store *store, const char *id, struct err *err) must_check;

/* All rows, ordered by id; now by store time (may be NULL). */
int worker_list(struct store *store, struct arena *arena, struct worker_row **ret_rows,
                size_t *ret_count, int64_t *ret_now_us, struct err *err) must_check;

/* Ids of the other boots of this seat: dead if we hold the seat's lock. */
int worker_earlier_boots(struct store *store, const char *seat, const char *own_id,
                         struct arena *arena, const char ***ret_ids, size_t *ret_count,
                         struct err *err) must_check;

struct db;

/*
 * Inside the transaction that closes what it held: take away the row of a worker that
 * is dead still. 1: it was dead, or has no row; 0: it lives.
 */
int worker_bury_in(struct db *db, const char *id, int64_t dead_after_us,
                   struct err *err) must_check;

/* Ids of workers without a beat for dead_after_us by store time, and ids that
 * stand in claims but have no row at all. */
int worker_dead(struct store *store, int64_t dead_after_us, struct arena *arena,
                const char ***ret_ids, size_t *ret_count, struct err *err) must_check;

#endif
