/*
 * When a schedule fires: a cron rule in a zone, with the rule for the days on
 * which the clocks are changed (docs/schedules.md has a table of cases).
 *
 *      interval-like   (a star or a step in second, minute or hour) every real
 *                      moment whose wall clock time is meant
 *      fixed           a time that a change leaves out: at the first moment
 *                      behind it, or not at all; a time that comes twice: the
 *                      first, the second, or both
 *
 * Read-only once filled: any thread.
 */
#ifndef SCHEDULE_NEXT_H
#define SCHEDULE_NEXT_H

#include "schedule/cron.h"

struct zone;

enum schedule_gap { SCHEDULE_GAP_RUN_AFTER, SCHEDULE_GAP_SKIP };
enum schedule_overlap {
    SCHEDULE_OVERLAP_FIRST,
    SCHEDULE_OVERLAP_SECOND,
    SCHEDULE_OVERLAP_BOTH,
};

struct schedule_rule {
    struct cron cron;
    const struct zone *zone;
    enum schedule_gap gap;
    enum schedule_overlap overlap;
};

enum slot_mark {
    SLOT_PLAIN,
    SLOT_GAP,    /* the time meant does not exist on that day */
    SLOT_FIRST,  /* it comes twice: this is the first */
    SLOT_SECOND, /* and this the second */
};

struct slot_time {
    int64_t at_us;   /* UTC */
    int64_t local_s; /* the wall clock time meant; with SLOT_GAP one that is left out */
    int offset_s;    /* of the zone at that moment */
    enum slot_mark mark;
};

/* The next one strictly later than after_us; false: none in the next 400 years. */
bool schedule_next(const struct schedule_rule *rule, int64_t after_us,
                   struct slot_time *ret_slot);

#endif
