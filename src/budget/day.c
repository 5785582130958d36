/* A calendar day is all the time whose wall clock shows its date. */
#include "base/clock.h"
#include "base/zone.h"
#include "budget/budget.h"

#define DAY_S INT64_C(86400)

static int64_t
floor_day(int64_t local_s)
{
    return local_s / DAY_S - (local_s % DAY_S < 0);
}

static int64_t
date_at(const struct zone *zone, int64_t time_s)
{
    return floor_day(time_s + zone_span_at(zone, time_s).offset_s);
}

static int64_t
day_start_s(const struct zone *zone, int64_t time_s, int64_t date)
{
    for (;;) {
        struct zone_span span = zone_span_at(zone, time_s);
        int64_t midnight_s = date * DAY_S - span.offset_s;

        if (midnight_s >= span.start_s)
            return midnight_s;
        /* Clocks were changed on this day, or over its midnight. */
        if (date_at(zone, span.start_s - 1) != date)
            return span.start_s;
        time_s = span.start_s - 1;
    }
}

static int64_t
day_end_s(const struct zone *zone, int64_t time_s, int64_t date)
{
    for (;;) {
        struct zone_span span = zone_span_at(zone, time_s);
        int64_t midnight_s = (date + 1) * DAY_S - span.offset_s;

        if (midnight_s <= span.end_s)
            return midnight_s;
        if (date_at(zone, span.end_s) != date)
            return span.end_s;
        time_s = span.end_s;
    }
}

void
budget_day(const struct zone *zone, int64_t now_us, int64_t *ret_start_us,
           int64_t *ret_end_us)
{
    int64_t now_s = now_us / US_PER_S - (now_us % US_PER_S < 0);
    int64_t date = date_at(zone, now_s);

    *ret_start_us = day_start_s(zone, now_s, date) * US_PER_S;
    *ret_end_us = day_end_s(zone, now_s, date) * US_PER_S;
}
