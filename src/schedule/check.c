#include "schedule/check.h"

#include "base/err.h"
#include "config/config.h"
#include "config/errors.h"
#include "config/yaml_node.h"
#include "schedule/cron.h"
#include "base/zone.h"

/* offset: bytes into the text of the node; a rule is plain ASCII. */
static void
add(const struct config *config, const struct config_schedule *schedule,
    const char *key, size_t offset, const struct err *note,
    struct config_errors *errors)
{
    const struct ynode *node = ynode_get(schedule->node, key);
    unsigned line = node ? node->line : schedule->node->key_line;
    unsigned column = node ? node->column + node->quoted + (unsigned)offset
                           : schedule->node->key_column;

    config_errors_add(errors, config->file, line, column, "schedules.%s.%s: %s",
                      schedule->name, key, note->text);
}

static void
check_zone(const struct config *config, const struct config_schedule *schedule,
           struct config_errors *errors)
{
    scoped(zone_free_ptr) struct zone *zone = NULL;
    struct err note = {0};

    if (zone_load(schedule->zone, &zone, &note) < 0)
        add(config, schedule, "zone", 0, &note, errors);
}

void
schedule_check(const struct config *config, struct config_errors *errors)
{
    for (size_t i = 0; i < config->schedule_count; i++) {
        const struct config_schedule *schedule = &config->schedules[i];
        struct cron cron;
        struct err note = {0};
        size_t at = 0;

        /* What is missing altogether has been told by config_load. */
        if (schedule->cron && cron_parse(schedule->cron, &cron, &at, &note) < 0)
            add(config, schedule, "cron", at, &note, errors);
        if (schedule->zone)
            check_zone(config, schedule, errors);
    }
}
