/*
 * What to do about the slots between the last one decided and now. A slot is
 * missed when nobody has decided it within a minute. Pure: no store, no clock.
 */
#ifndef SCHEDULE_MISSED_H
#define SCHEDULE_MISSED_H

#include "schedule/next.h"

#include <stddef.h>

struct arena;

#define MISSED_AFTER_US  INT64_C(60000000)
#define SLOTS_AT_ONCE    100 /* fired by one transaction at most */
#define MISSED_ALL_LIMIT 10000

enum missed_kind {
    MISSED_ONE, /* the newest missed one runs, unless one is on time; the rest merges */
    MISSED_SKIP, /* none runs */
    MISSED_ALL,  /* the newest max ones run, older ones do not */
};

struct missed_policy {
    enum missed_kind kind;
    int max; /* MISSED_ALL: 1 … MISSED_ALL_LIMIT */
};

enum slot_state { SLOT_FIRED, SLOT_SKIPPED, SLOT_MERGED, SLOT_REFUSED };

const char *slot_state_word(enum slot_state state);

/* Oldest first: the slots let go, then those to fire. */
struct slot_plan {
    int64_t idle_count;
    int64_t idle_first_us;
    int64_t idle_last_us;
    enum slot_state idle_state; /* SLOT_SKIPPED or SLOT_MERGED */
    int64_t *fire_us;           /* in the arena */
    size_t fire_count;
    int64_t to_us; /* the last slot of the plan; all up to it will be decided */
    bool more;     /* slots that are due remain for the next plan */
};

/* The slots in from_us < slot <= now_us. False: there are none. */
bool missed_plan(const struct schedule_rule *rule, const struct missed_policy *policy,
                 int64_t from_us, int64_t now_us, struct arena *arena,
                 struct slot_plan *ret_plan);

#endif
