/*
 * Sections of the whole file that are small: store, databases, lanes, keys,
 * budgets.
 */
#include "config/reading.h"
#include "config/sections.h"

#include "base/arena.h"
#include "base/strs.h"

#define LANE_SLOTS_MAX 1000

void
section_store(struct reading *reading, const struct setting *setting,
              const struct ynode *node, void *base)
{
    struct config *config = base;
    const struct setting *url = &setting->group->rows[0];
    bool single = node != NULL && node->kind == YNODE_SCALAR;

    reading_table(reading, setting->group, single ? NULL : node, setting->name, base);
    /* PAWL_STORE is for this process, whatever its role. */
    if (reading_env(reading, url->env) != NULL)
        config->store.api = config->store.worker = config->store.url;
    else if (single)
        reading_setting(reading, url, node, base);
    if (config->store.url == NULL && config->store.api == NULL &&
        config->store.worker == NULL) {
        const struct ynode fallback = {.kind = YNODE_SCALAR, .text = setting->fallback};

        reading_setting(reading, url, &fallback, base);
    }
    if (config->store.url == NULL)
        config->store.url =
            config->store.worker != NULL ? config->store.worker : config->store.api;
    if (config->store.api == NULL)
        config->store.api = config->store.url;
    if (config->store.worker == NULL)
        config->store.worker = config->store.url;
}

void
section_databases(struct reading *reading, const struct setting *setting,
                  const struct ynode *node, void *base)
{
    const struct setting url = {.name = setting->name, .type = SETTING_URL};
    struct config *config = base;
    const struct ynode *member;

    if (node == NULL || !reading_map(reading, node))
        return;
    config->databases =
        arena_array(&config->arena, struct config_database, node->count);
    for (member = node->first; member != NULL; member = member->next) {
        struct config_database *database = &config->databases[config->database_count];

        if (str_eq(member->key, "main")) {
            reading_key_problem(
                reading, member,
                "main is always the store's own database: choose another "
                "name");
            continue;
        }
        if (!reading_key(reading, member, is_label, LABEL_RULE))
            continue;
        config->database_count++;
        database->name = member->key;
        database->url = "";
        if (ynode_is_null(member))
            reading_key_problem(reading, member, "%s needs a URL", member->key);
        else
            reading_setting(reading, &url, member, &database->url);
    }
}

static void
set_lane(struct config *config, const char *name, int64_t slots)
{
    size_t i;

    for (i = 0; i < config->lane_count; i++) {
        if (str_eq(config->lanes[i].name, name)) {
            config->lanes[i].slots = slots;
            return;
        }
    }
    config->lanes[config->lane_count++] =
        (struct config_lane){.name = name, .slots = slots};
}

void
section_lanes(struct reading *reading, const struct setting *setting,
              const struct ynode *node, void *base)
{
    struct config *config = base;
    const struct ynode *member;
    size_t given = node != NULL ? node->count : 0;

    config->lanes = arena_array(&config->arena, struct config_lane, given + 2);
    set_lane(config, "normal", 4);
    set_lane(config, "large", 2);
    if (node == NULL || !reading_map(reading, node))
        return;
    for (member = node->first; member != NULL; member = member->next) {
        int64_t slots = 0;

        if (!reading_key(reading, member, is_plain_name, PLAIN_NAME_RULE))
            continue;
        reading_i64(reading, member, 0, LANE_SLOTS_MAX, &slots);
        set_lane(config, member->key, slots);
    }
}

void
section_keys(struct reading *reading, const struct setting *setting,
             const struct ynode *node, void *base)
{
    struct config *config = base;

    if (node != NULL && node->kind == YNODE_MAP)
        reading_problem(
            reading, node,
            "keys is a list of names, such as [API_KEY]: values stay in the "
            "environment of the worker");
    else if (node != NULL)
        reading_names(reading, node, is_env_name, ENV_NAME_RULE, &config->keys,
                      &config->key_count);
}

void
section_budgets(struct reading *reading, const struct setting *setting,
                const struct ynode *node, void *base)
{
    struct config *config = base;
    const struct ynode *member;

    if (node == NULL || !reading_map(reading, node))
        return;
    config->budgets = arena_array(&config->arena, struct config_budget, node->count);
    for (member = node->first; member != NULL; member = member->next) {
        struct config_budget *budget = &config->budgets[config->budget_count];

        if (!reading_key(reading, member, is_label, LABEL_RULE))
            continue;
        config->budget_count++;
        budget->name = member->key;
        reading_table(reading, setting->group, member, member->key, budget);
    }
}
