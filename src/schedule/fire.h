/*
 * Deciding slots: the rows of the slots, the requests and how far the schedule has
 * been decided change in one transaction, so that of any number of schedulers one
 * decides each slot, and a crash leaves it decided or not. Any thread.
 */
#ifndef SCHEDULE_FIRE_H
#define SCHEDULE_FIRE_H

#include "schedule/missed.h"

struct err;
struct schedule_row;
struct store;
struct submit_order;

struct fire {
    const struct schedule_row *row; /* as it was read */
    const struct slot_plan *plan;   /* made from row->decided_to_us */
    bool paused;                    /* by the file */
    const struct submit_order
        *order;          /* the same for each slot; NULL: refused, or paused */
    const char *refusal; /* why, when order is NULL */
};

#define FIRED_DETAIL_SIZE 256

struct fired_slot {
    int64_t slot_us;
    enum slot_state state;
    int64_t request_id; /* fired: the new one; merged: the one that waits already */
    char detail[FIRED_DETAIL_SIZE];
};

struct fire_report {
    struct fired_slot slots[SLOTS_AT_ONCE]; /* those that were to be fired */
    size_t count;
    bool paused; /* nothing was fired: all slots are skipped */
};

enum fire_outcome {
    FIRE_DONE,
    FIRE_NOT_OURS, /* decided by another scheduler, changed meanwhile, or too early */
};

int schedule_fire(struct store *store, const struct fire *fire,
                  struct fire_report *ret_report, struct err *err) must_check;

#endif
