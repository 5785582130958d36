/*
 * Time is walked stretch by stretch: within one, wall clock and UTC differ by a
 * constant, so the next wall clock time meant is the next moment too. What is
 * special happens at the borders only. Where the clock was put forward, the wall
 * clock times left out lie between the border by the old and by the new offset;
 * where it was put back, that same interval is gone through twice, at the end of
 * one stretch and at the beginning of the next.
 */
#include "schedule/next.h"

#include "base/clock.h"
#include "base/zone.h"

#define HORIZON_S (INT64_C(146097) * 86400)

struct stretch {
    struct zone_span span;
    int before_s; /* offset of the one before; the same at the beginning of time */
    int behind_s;
};

static struct stretch
stretch_at(const struct zone *zone, int64_t time_s)
{
    struct stretch stretch = {.span = zone_span_at(zone, time_s)};

    stretch.before_s = stretch.behind_s = stretch.span.offset_s;
    if (stretch.span.start_s != INT64_MIN)
        stretch.before_s = zone_span_at(zone, stretch.span.start_s - 1).offset_s;
    if (stretch.span.end_s != INT64_MAX)
        stretch.behind_s = zone_span_at(zone, stretch.span.end_s).offset_s;
    return stretch;
}

static enum slot_mark
mark_of(const struct stretch *stretch, int64_t local_s)
{
    if (stretch->before_s > stretch->span.offset_s &&
        local_s < stretch->span.start_s + stretch->before_s)
        return SLOT_SECOND;
    if (stretch->behind_s < stretch->span.offset_s &&
        local_s >= stretch->span.end_s + stretch->behind_s)
        return SLOT_FIRST;
    return SLOT_PLAIN;
}

static bool
is_wanted(const struct schedule_rule *rule, enum slot_mark mark)
{
    if (rule->cron.interval)
        return true;
    if (mark == SLOT_FIRST)
        return rule->overlap != SCHEDULE_OVERLAP_SECOND;
    if (mark == SLOT_SECOND)
        return rule->overlap != SCHEDULE_OVERLAP_FIRST;
    return true;
}

static void
fill(const struct stretch *stretch, int64_t at_s, int64_t local_s, enum slot_mark mark,
     struct slot_time *ret)
{
    *ret = (struct slot_time){.at_us = at_s * US_PER_S,
                              .local_s = local_s,
                              .offset_s = stretch->span.offset_s,
                              .mark = mark};
}

/* Is a time meant that the clock jumps over where this stretch begins? */
static bool
is_left_out(const struct schedule_rule *rule, const struct stretch *stretch,
            int64_t *ret_local_s)
{
    int64_t start_s = stretch->span.start_s;

    return !rule->cron.interval && rule->gap == SCHEDULE_GAP_RUN_AFTER &&
           stretch->before_s < stretch->span.offset_s &&
           cron_next(&rule->cron, start_s + stretch->before_s,
                     start_s + stretch->span.offset_s, ret_local_s);
}

/* From from_s on, within the stretch. */
static bool
next_within(const struct schedule_rule *rule, const struct stretch *stretch,
            int64_t from_s, int64_t end_s, struct slot_time *ret)
{
    int offset_s = stretch->span.offset_s;
    int64_t local_s;

    if (from_s == stretch->span.start_s && is_left_out(rule, stretch, &local_s)) {
        fill(stretch, from_s, local_s, SLOT_GAP, ret);
        return true;
    }
    while (cron_next(&rule->cron, from_s + offset_s, end_s + offset_s, &local_s)) {
        enum slot_mark mark = mark_of(stretch, local_s);

        if (is_wanted(rule, mark)) {
            fill(stretch, local_s - offset_s, local_s, mark, ret);
            return true;
        }
        from_s = local_s - offset_s + 1;
    }
    return false;
}

bool
schedule_next(const struct schedule_rule *rule, int64_t after_us,
              struct slot_time *ret_slot)
{
    /* Slots are whole seconds: the first one behind after_us. */
    int64_t from_s = after_us / US_PER_S + 1 - (after_us % US_PER_S < 0);
    int64_t horizon_s = from_s + HORIZON_S;

    while (from_s < horizon_s) {
        struct stretch stretch = stretch_at(rule->zone, from_s);
        int64_t end_s = stretch.span.end_s < horizon_s ? stretch.span.end_s : horizon_s;

        if (next_within(rule, &stretch, from_s, end_s, ret_slot))
            return true;
        from_s = end_s;
    }
    return false;
}
