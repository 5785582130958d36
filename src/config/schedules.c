/*
 * schedules: read here; cron and zones are understood by the room schedule/.
 */
#include "config/reading.h"
#include "config/sections.h"

#include "base/arena.h"
#include "base/strs.h"

#define MISSED_MAX 10000

void
section_schedules(struct reading *reading, const struct setting *setting,
                  const struct ynode *node, void *base)
{
    struct config *config = base;
    const struct ynode *member;

    if (node == NULL || !reading_map(reading, node))
        return;
    config->schedules =
        arena_array(&config->arena, struct config_schedule, node->count);
    for (member = node->first; member != NULL; member = member->next) {
        struct config_schedule *schedule = &config->schedules[config->schedule_count];

        if (!reading_key(reading, member, is_plain_name, PLAIN_NAME_RULE))
            continue;
        config->schedule_count++;
        schedule->name = member->key;
        schedule->node = member;
        reading_table(reading, setting->group, member, member->key, schedule);
    }
}

void
section_missed(struct reading *reading, const struct setting *setting,
               const struct ynode *node, void *base)
{
    struct config_schedule *schedule = base;
    const struct ynode *all = ynode_get(node, "all");

    schedule->missed = CONFIG_MISSED_ONE;
    if (node == NULL || (node->kind == YNODE_SCALAR && str_eq(node->text, "one")))
        return;
    if (node->kind == YNODE_SCALAR && str_eq(node->text, "skip")) {
        schedule->missed = CONFIG_MISSED_SKIP;
    } else if (all != NULL && node->count == 1) {
        schedule->missed = CONFIG_MISSED_ALL;
        reading_i64(reading, all, 1, MISSED_MAX, &schedule->missed_max);
    } else {
        reading_problem(reading, node, "missed must be one, skip or {all: N}");
    }
}

void
section_schedule_params(struct reading *reading, const struct setting *setting,
                        const struct ynode *node, void *base)
{
    struct config_schedule *schedule = base;

    if (node != NULL && reading_map(reading, node))
        schedule->params = ynode_json(node, reading->file, reading->errors);
    else
        schedule->params = json_object();
}
