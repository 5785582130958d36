/*
 * A schedule: which job, when, and what about times that were missed. Read from
 * the JSON of a row of the table schedule, which is written from the
 * configuration of whoever publishes. Read-only after parsing: any thread.
 */
#ifndef SCHEDULE_SCHEDULE_H
#define SCHEDULE_SCHEDULE_H

#include "schedule/missed.h"
#include "schedule/next.h"

#include <jansson.h>

struct arena;
struct config;
struct config_schedule;
struct err;
struct publish_counts;
struct store;

struct schedule {
    const char *job;
    const char *cron;
    const char *zone_name;
    struct schedule_rule rule;
    struct missed_policy missed;
    bool paused; /* by the file */
    json_t *params;
    struct zone *zone;  /* of the rule; ours */
    json_t *definition; /* owns the texts above */
};

/*
 * *ret_schedule by schedule_free. -ERR_SCHEMA: not a definition; -ERR_INVALID: a
 * rule or zone that cannot be understood here (another version, other zones).
 */
int schedule_parse(const char *definition, struct schedule **ret_schedule,
                   struct err *err) must_check;
void schedule_free(struct schedule *schedule);
void schedule_free_ptr(struct schedule **schedule); /* for scoped() */

const char *schedule_gap_word(enum schedule_gap gap);
const char *schedule_overlap_word(enum schedule_overlap overlap);
const char *slot_mark_word(enum slot_mark mark); /* NULL for SLOT_PLAIN */

/* --- in the store --- */

/*
 * Publish what the file defines, and withdraw what it no longer does, by the rules
 * of queue_publish: an older config_version never wins. A schedule that is new, or
 * whose times changed, counts from now on.
 */
int schedule_publish(struct store *store, const struct config *config,
                     struct publish_counts *ret_counts, struct err *err) must_check;

struct schedule_row {
    const char *name;
    const char *hash;
    const char *definition;
    int64_t decided_to_us; /* all slots at or before are decided */
    int64_t paused_at_us;  /* by a person; 0 = not */
    const char *paused_by; /* NULL = not */
    /* The newest slot (schedule_states only); slot_time_us 0 = none yet. */
    int64_t slot_time_us;
    int64_t slot_last_us;
    int64_t slot_count; /* slots that share its fate, from slot_time to slot_last */
    const char *slot_state;
    int64_t request_id; /* 0 = none */
    const char *slot_detail;
};

/* Those in force, by name; *ret_now_us is the store's time of asking. */
int schedule_rows(struct store *store, struct arena *arena,
                  struct schedule_row **ret_rows, size_t *ret_count,
                  int64_t *ret_now_us, struct err *err) must_check;
/* The same with the newest slot of each. */
int schedule_states(struct store *store, struct arena *arena,
                    struct schedule_row **ret_rows, size_t *ret_count,
                    int64_t *ret_now_us, struct err *err) must_check;

enum schedule_pause_outcome {
    SCHEDULE_PAUSED,
    SCHEDULE_RESUMED,
    SCHEDULE_AS_IT_WAS, /* it was paused, or it was not, already */
};

/*
 * Fire no slot from now on (they are recorded as skipped), or again. With a row in
 * audit. -ERR_NOT_FOUND; -ERR_INVALID: the file pauses it, so only the file can
 * resume it.
 */
int schedule_pause(struct store *store, const char *name, const char *actor,
                   struct err *err) must_check;
int schedule_resume(struct store *store, const char *name, const char *actor,
                    struct err *err) must_check;

#endif
