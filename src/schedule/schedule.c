#include "schedule/schedule.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/strs.h"
#include "base/zone.h"

#include <stdlib.h>
#include <string.h>

static const char *const gap_words[] = {
    [SCHEDULE_GAP_RUN_AFTER] = "run_after",
    [SCHEDULE_GAP_SKIP] = "skip",
};

static const char *const overlap_words[] = {
    [SCHEDULE_OVERLAP_FIRST] = "first",
    [SCHEDULE_OVERLAP_SECOND] = "second",
    [SCHEDULE_OVERLAP_BOTH] = "both",
};

static const char *const mark_words[] = {
    [SLOT_PLAIN] = NULL,
    [SLOT_GAP] = "gap",
    [SLOT_FIRST] = "first",
    [SLOT_SECOND] = "second",
};

const char *
schedule_gap_word(enum schedule_gap gap)
{
    return gap_words[gap];
}

const char *
schedule_overlap_word(enum schedule_overlap overlap)
{
    return overlap_words[overlap];
}

const char *
slot_mark_word(enum slot_mark mark)
{
    return mark_words[mark];
}

void
schedule_free(struct schedule *schedule)
{
    if (!schedule)
        return;
    zone_free(schedule->zone);
    json_decref(schedule->definition);
    free(schedule);
}

void
schedule_free_ptr(struct schedule **schedule)
{
    schedule_free(*schedule);
}

/* --- reading a definition --- */

static int
read_word(const json_t *definition, const char *key, const char *const *words,
          size_t count, size_t *ret, struct err *err)
{
    const char *word = NULL;
    int r = json_get_str(definition, key, &word, err);

    if (r < 0)
        return r;
    for (size_t i = 0; r == JSON_FOUND && i < count; i++)
        if (str_eq(words[i], word)) {
            *ret = i;
            return 0;
        }
    return err_set(err, ERR_SCHEMA, "%s is none of the words known here", key);
}

static int
read_missed(const json_t *definition, struct missed_policy *ret, struct err *err)
{
    const json_t *missed = json_object_get(definition, "missed");
    int64_t all = 0;
    int r;

    if (json_is_string(missed)) {
        ret->kind =
            str_eq(json_string_value(missed), "skip") ? MISSED_SKIP : MISSED_ONE;
        return 0;
    }
    r = json_is_object(missed) ? json_get_i64(missed, "all", &all, err) : JSON_ABSENT;
    if (r < 0)
        return r;
    if (r == JSON_ABSENT || all < 1 || all > MISSED_ALL_LIMIT)
        return err_set(err, ERR_SCHEMA, "missed is none of one, skip, {all: N}");
    ret->kind = MISSED_ALL;
    ret->max = (int)all;
    return 0;
}

static int
read_texts(struct schedule *schedule, struct err *err)
{
    const json_t *definition = schedule->definition;
    size_t gap = 0;
    size_t overlap = 0;
    int r = json_get_str(definition, "job", &schedule->job, err);

    if (r >= 0)
        r = json_get_str(definition, "cron", &schedule->cron, err);
    if (r >= 0)
        r = json_get_str(definition, "zone", &schedule->zone_name, err);
    if (r >= 0)
        r = json_get_object(definition, "params", &schedule->params, err);
    if (r >= 0)
        r = json_get_bool(definition, "paused", &schedule->paused, err);
    if (r < 0)
        return r;
    if (!schedule->job || !schedule->cron || !schedule->zone_name || !schedule->params)
        return err_set(err, ERR_SCHEMA, "job, cron, zone or params is missing");
    r = read_word(definition, "gap", gap_words, array_len(gap_words), &gap, err);
    if (r == 0)
        r = read_word(definition, "overlap", overlap_words, array_len(overlap_words),
                      &overlap, err);
    schedule->rule.gap = (enum schedule_gap)gap;
    schedule->rule.overlap = (enum schedule_overlap)overlap;
    return r == 0 ? read_missed(definition, &schedule->missed, err) : r;
}

int
schedule_parse(const char *definition, struct schedule **ret_schedule, struct err *err)
{
    scoped(schedule_free_ptr) struct schedule *schedule = xcalloc(1, sizeof(*schedule));
    int r = json_parse(definition, strlen(definition), JSON_DEPTH_MAX,
                       &schedule->definition, err);

    if (r == 0)
        r = read_texts(schedule, err);
    if (r < 0) {
        err->code = ERR_SCHEMA;
        return err_prefix(err, "the definition of the schedule cannot be read");
    }
    r = cron_parse(schedule->cron, &schedule->rule.cron, NULL, err);
    if (r == 0)
        r = zone_load(schedule->zone_name, &schedule->zone, err);
    if (r < 0)
        return r;
    schedule->rule.zone = schedule->zone;
    *ret_schedule = schedule;
    schedule = NULL;
    return 0;
}
