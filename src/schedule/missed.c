/*
 * All slots that are due are gone through in order. Of the missed ones only the
 * newest that the policy may want are kept (a ring), the rest is counted; those on
 * time are kept as they are.
 */
#include "schedule/missed.h"

#include "base/arena.h"

#include <string.h>

/* A rule with seconds has so many slots within the time in which none is missed. */
#define ON_TIME_MAX 61

static const char *const state_words[] = {
    [SLOT_FIRED] = "fired",
    [SLOT_SKIPPED] = "skipped",
    [SLOT_MERGED] = "merged",
    [SLOT_REFUSED] = "refused",
};

const char *
slot_state_word(enum slot_state state)
{
    return state_words[state];
}

struct gathering {
    int64_t first_us;
    int64_t idle_last_us; /* the newest that fell out of the ring */
    int64_t missed_count;
    int64_t *ring;
    size_t ring_size;
    int64_t on_time[ON_TIME_MAX];
    size_t on_time_count;
};

static size_t
wanted_of_missed(const struct missed_policy *policy)
{
    switch (policy->kind) {
    case MISSED_ONE:
        return 1;
    case MISSED_SKIP:
        return 0;
    case MISSED_ALL:
        return (size_t)policy->max;
    }
    return 0;
}

static void
put_missed(struct gathering *all, int64_t at_us)
{
    size_t at = all->ring_size > 0 ? (size_t)all->missed_count % all->ring_size : 0;

    if (all->ring_size == 0) {
        all->idle_last_us = at_us;
    } else {
        if (all->missed_count >= (int64_t)all->ring_size)
            all->idle_last_us = all->ring[at];
        all->ring[at] = at_us;
    }
    all->missed_count++;
}

static void
gather(const struct schedule_rule *rule, int64_t from_us, int64_t now_us,
       struct gathering *all)
{
    struct slot_time slot = {.at_us = from_us};

    while (all->on_time_count < ON_TIME_MAX && schedule_next(rule, slot.at_us, &slot) &&
           slot.at_us <= now_us) {
        if (all->missed_count + (int64_t)all->on_time_count == 0)
            all->first_us = slot.at_us;
        if (now_us - slot.at_us > MISSED_AFTER_US)
            put_missed(all, slot.at_us);
        else
            all->on_time[all->on_time_count++] = slot.at_us;
    }
}

/* The missed ones still in the ring that are to be fired, oldest first. */
static size_t
take_from_ring(const struct gathering *all, int64_t *fire)
{
    int64_t kept = all->missed_count < (int64_t)all->ring_size
                       ? all->missed_count
                       : (int64_t)all->ring_size;

    for (int64_t i = 0; i < kept; i++)
        fire[i] = all->ring[(size_t)(all->missed_count - kept + i) % all->ring_size];
    return (size_t)kept;
}

bool
missed_plan(const struct schedule_rule *rule, const struct missed_policy *policy,
            int64_t from_us, int64_t now_us, struct arena *arena,
            struct slot_plan *ret_plan)
{
    struct gathering all = {.ring_size = wanted_of_missed(policy)};
    struct slot_plan plan = {.idle_state = policy->kind == MISSED_ONE ? SLOT_MERGED
                                                                      : SLOT_SKIPPED};
    size_t kept = 0;

    all.ring = arena_array(arena, int64_t, all.ring_size + 1);
    gather(rule, from_us, now_us, &all);
    if (all.missed_count + (int64_t)all.on_time_count == 0)
        return false;
    plan.fire_us = arena_array(arena, int64_t, all.ring_size + ON_TIME_MAX);
    /* What is missed goes up in one that is on time. */
    if (policy->kind == MISSED_ONE && all.on_time_count > 0 && all.missed_count > 0)
        all.idle_last_us = all.ring[0];
    else if (all.ring_size > 0)
        kept = take_from_ring(&all, plan.fire_us);
    memcpy(plan.fire_us + kept, all.on_time, all.on_time_count * sizeof(int64_t));
    plan.fire_count = kept + all.on_time_count;
    plan.idle_count = all.missed_count - (int64_t)kept;
    plan.idle_first_us = all.first_us;
    plan.idle_last_us = all.idle_last_us;
    plan.more = plan.fire_count > SLOTS_AT_ONCE;
    if (plan.more)
        plan.fire_count = SLOTS_AT_ONCE;
    plan.to_us =
        plan.fire_count > 0 ? plan.fire_us[plan.fire_count - 1] : plan.idle_last_us;
    *ret_plan = plan;
    return true;
}
