/*
 * After reading: does everything that is named exist, and do settings fit
 * together that depend on each other?
 */
#include "config/reading.h"
#include "config/sections.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/rule.h"
#include "base/strs.h"
#include "base/zone.h"

#include <string.h>

typedef const char *(*name_at_fn)(const struct config *config, size_t i);

static const char *
job_at(const struct config *config, size_t i)
{
    return i < config->job_count ? config->jobs[i].name : NULL;
}

static const char *
lane_at(const struct config *config, size_t i)
{
    return i < config->lane_count ? config->lanes[i].name : NULL;
}

static const char *
key_at(const struct config *config, size_t i)
{
    return i < config->key_count ? config->keys[i] : NULL;
}

static const char *
budget_at(const struct config *config, size_t i)
{
    return i < config->budget_count ? config->budgets[i].name : NULL;
}

static const char *
webhook_at(const struct config *config, size_t i)
{
    return i < config->webhook_count ? config->webhooks[i].name : NULL;
}

static const char *
database_at(const struct config *config, size_t i)
{
    if (i == 0)
        return "main";
    return i <= config->database_count ? config->databases[i - 1].name : NULL;
}

/* Is name among the names that at answers? If not: "there is no WHAT name". */
/* Is it not even written as a variable's name? Then it may be what must not be told. */
static bool
names_a_secret(const char *name, const char *what)
{
    return str_eq(what, "key") &&
           name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")] != '\0';
}

static void
check_name(struct reading *reading, const struct ynode *node, const char *name,
           name_at_fn at, const char *what, const char *where)
{
    const struct config *config = reading->config;
    scoped(xfree_ptr) const char **names = NULL;
    size_t count = 0;
    size_t i;

    while (at(config, count) != NULL)
        count++;
    names = xcalloc(count + 1, sizeof(*names));
    for (i = 0; i < count; i++) {
        names[i] = at(config, i);
        if (str_eq(names[i], name))
            return;
    }
    if (names_a_secret(name, what))
        reading_problem(reading, node,
                        "this is no name of a key: write the name of an environment "
                        "variable that stands under %s, never the secret itself",
                        where);
    else if (str_nearest(name, names, count) != NULL)
        reading_problem(reading, node, "there is no %s %s%s", what, name,
                        reading_hint(reading, name, names, count));
    else
        reading_problem(reading, node, "there is no %s %s; it would stand under %s",
                        what, name, where);
}

/* Each name of a list, at its own place. */
static void
check_names(struct reading *reading, const struct ynode *node, name_at_fn at,
            const char *what, const char *where)
{
    const struct ynode *item;

    if (ynode_is_null(node))
        return;
    if (node->kind == YNODE_SCALAR)
        check_name(reading, node, node->text, at, what, where);
    for (item = node->first; node->kind == YNODE_LIST && item != NULL;
         item = item->next) {
        if (item->kind == YNODE_SCALAR)
            check_name(reading, item, item->text, at, what, where);
    }
}

void
config_check_database(struct reading *reading, const struct ynode *node)
{
    check_name(reading, node, node->text, database_at, "database", "databases");
}

void
config_check_budget(struct reading *reading, const struct ynode *node)
{
    check_name(reading, node, node->text, budget_at, "budget", "budgets");
}

void
config_check_key(struct reading *reading, const struct ynode *node)
{
    check_names(reading, node, key_at, "key", "keys");
}

static void
check_webhook(struct reading *reading, const struct config_job *job)
{
    const struct ynode *node = ynode_get(job->node, "webhook");

    if (node != NULL && node->kind == YNODE_MAP)
        node = ynode_get(node, "to");
    if (job->webhook != NULL)
        check_name(reading, node, job->webhook, webhook_at, "webhook", "webhooks");
}

static void
check_routing(struct reading *reading, const struct config_job *job)
{
    const struct ynode *lane = ynode_get(job->node, "lane");
    const struct ynode *estimate = ynode_get(job->node, "estimate");

    if (lane != NULL && lane->kind == YNODE_MAP && ynode_get(lane, "lane") != NULL)
        lane = ynode_get(lane, "lane");
    if (lane != NULL && lane->kind == YNODE_SCALAR)
        check_names(reading, lane, lane_at, "lane", "lanes");
    if (job->large_over >= 0 && job->estimate.sql == NULL)
        reading_key_problem(
            reading, ynode_get(job->node, "lane"),
            "large_over needs an estimate to compare with: add estimate: "
            "{database: NAME, sql: \"SELECT count(*) …\"}");
    if (estimate == NULL || estimate->kind != YNODE_MAP)
        return;
    check_names(reading, ynode_get(estimate, "database"), database_at, "database",
                "databases");
    check_names(reading, ynode_get(estimate, "otherwise"), lane_at, "lane", "lanes");
    config_check_sql(reading, job, ynode_get(estimate, "sql"));
}

struct value_report {
    struct reading *reading;
    const struct ynode *node;
};

static void
report_value(void *arg, const char *pointer, const char *text)
{
    struct value_report *report = arg;

    reading_problem(report->reading, ynode_find(report->node, pointer), "%s %s",
                    report->node->key, text);
}

static void
ignore_fault(void *arg, const char *pointer, const char *text)
{
    /* A rule that is wrong itself was told where it stands. */
}

/* "{name}" is a parameter of the job before: its name, in the arena. */
static const char *
param_before(struct reading *reading, const struct ynode *value)
{
    size_t len = value->kind == YNODE_SCALAR ? strlen(value->text) : 0;

    if (len < 3 || value->text[0] != '{' || strcspn(value->text + 1, "{}") != len - 2 ||
        value->text[len - 1] != '}')
        return NULL;
    return arena_strndup(&reading->config->arena, value->text + 1, len - 2);
}

/* Must be such as the rule allows. "{{x}}" is the text {x}. */
static void
check_constant(struct reading *reading, const struct ynode *node, const json_t *value,
               const json_t *rule)
{
    struct value_report report = {.reading = reading, .node = node};
    scoped(rule_field_release) struct rule_field field = {0};
    scoped(json_drop) json_t *plain = NULL;
    const char *text = json_string_value(value);
    size_t len = json_string_length(value);

    if (len >= 4 && strncmp(text, "{{", 2) == 0 && str_eq(text + len - 2, "}}"))
        plain = json_stringn(text + 1, len - 2);
    if (value != NULL && rule_field_init(&field, rule, ignore_fault, NULL) &&
        !rule_check(&field.rule, plain != NULL ? plain : value, report_value, &report))
        return; /* told already */
}

static void
check_mapping(struct reading *reading, const struct ynode *params, const json_t *values,
              const struct config_job *job, const struct config_job *before)
{
    const struct ynode *member =
        params != NULL && params->kind == YNODE_MAP ? params->first : NULL;

    for (; member != NULL; member = member->next) {
        const json_t *rule = json_object_get(job->params, member->key);
        const char *source = param_before(reading, member);

        if (rule == NULL)
            reading_key_problem(reading, member, "%s is no parameter of %s",
                                member->key, job->name);
        else if (member->kind == YNODE_MAP && member->count == 1 &&
                 ynode_is_null(member->first)) /* what {country} is without quotes */
            reading_problem(reading, member,
                            "a value cannot be a map; for the parameter %s of the job "
                            "before write \"{%s}\" in quotes",
                            member->first->key, member->first->key);
        else if (source == NULL)
            check_constant(reading, member, json_object_get(values, member->key), rule);
        else if (before != NULL && json_object_get(before->params, source) == NULL)
            reading_problem(reading, member,
                            "job %s, which comes before, has no parameter %s",
                            before->name, source);
    }
}

static void
check_next(struct reading *reading, const struct config_job *job)
{
    const struct ynode *node = ynode_get(job->node, "next");
    const struct ynode *item = node;
    const struct config_job *before = job;
    size_t i;

    if (ynode_is_null(node))
        return;
    if (node->kind == YNODE_LIST)
        item = node->first;
    for (i = 0; item != NULL; i++) {
        const struct ynode *name =
            item->kind == YNODE_MAP ? ynode_get(item, "job") : item;
        const json_t *values = json_object_get(json_array_get(job->next, i), "params");
        const struct config_job *next = NULL;

        if (!ynode_is_null(name) && name->kind == YNODE_SCALAR) {
            check_name(reading, name, name->text, job_at, "job", "jobs");
            next = config_job_find(reading->config, name->text);
        }
        if (next != NULL && item->kind == YNODE_MAP)
            check_mapping(reading, ynode_get(item, "params"), values, next, before);
        before = next;
        item = node->kind == YNODE_LIST ? item->next : NULL;
    }
}

static void
check_job(struct reading *reading, const struct config_job *job)
{
    check_routing(reading, job);
    check_next(reading, job);
    check_webhook(reading, job);
    check_names(reading, ynode_get(job->node, "needs_keys"), key_at, "key", "keys");
    config_check_steps(reading, job);
    if (ynode_get(ynode_get(job->node, "calls"), "budget") != NULL)
        config_check_budget(reading,
                            ynode_get(ynode_get(job->node, "calls"), "budget"));
}

/* The parameters of a schedule must be such as its job takes. */
static void
check_schedule_params(struct reading *reading, const struct config_schedule *schedule,
                      const struct config_job *job)
{
    const struct ynode *params = ynode_get(schedule->node, "params");
    const struct ynode *member;
    const char *name;
    json_t *rule;

    json_object_foreach(job->params, name, rule)
    {
        struct value_report report = {.reading = reading,
                                      .node = ynode_get(params, name)};
        scoped(rule_field_release) struct rule_field field = {0};
        const json_t *value = json_object_get(schedule->params, name);

        if (!rule_field_init(&field, rule, ignore_fault, NULL))
            continue;
        if (value == NULL && field.required)
            reading_key_problem(reading, params != NULL ? params : schedule->node,
                                "job %s requires the parameter %s", job->name, name);
        if (value != NULL && report.node != NULL &&
            !rule_check(&field.rule, value, report_value, &report))
            continue; /* told already */
    }
    for (member = params != NULL ? params->first : NULL; member != NULL;
         member = member->next) {
        if (json_object_get(job->params, member->key) == NULL)
            reading_key_problem(reading, member, "%s is no parameter of %s",
                                member->key, job->name);
    }
}

static void
check_schedule(struct reading *reading, const struct config_schedule *schedule)
{
    const struct config_job *job;

    check_names(reading, ynode_get(schedule->node, "job"), job_at, "job", "jobs");
    if (schedule->job == NULL)
        return;
    job = config_job_find(reading->config, schedule->job);
    if (job != NULL)
        check_schedule_params(reading, schedule, job);
}

/* host:port, the port from 1 to 65535 (0: any free one, for tests). */
static void
check_listen(struct reading *reading)
{
    const char *listen = reading->config->api.listen;
    const struct ynode *node = ynode_get(ynode_get(reading->root, "api"), "listen");
    const struct ynode env = {.kind = YNODE_SCALAR, .key = "PAWL_LISTEN"};
    const char *colon = listen != NULL ? strrchr(listen, ':') : NULL;
    int64_t port;

    if (listen == NULL)
        return;
    if (colon == NULL || colon == listen || !str_to_i64(colon + 1, &port) || port < 0 ||
        port > 65535)
        reading_problem(
            reading,
            reading_env(reading, "PAWL_LISTEN") != NULL || node == NULL ? &env : node,
            "listen must be an address and a port, such as 127.0.0.1:8410, "
            "not %s",
            listen);
}

static void
check_budget_zone(struct reading *reading, const struct config_budget *budget)
{
    const struct ynode *budgets = ynode_get(reading->root, "budgets");
    const struct ynode *node = ynode_get(ynode_get(budgets, budget->name), "zone");
    scoped(zone_free_ptr) struct zone *zone = NULL;
    struct err note = {0};

    if (node != NULL && budget->zone != NULL &&
        zone_load(budget->zone, &zone, &note) < 0)
        reading_problem(reading, node, "%s", note.text);
}

void
config_check_references(struct reading *reading)
{
    const struct config *config = reading->config;
    const struct ynode *worker = ynode_get(reading->root, "worker");
    size_t i;

    check_listen(reading);
    if (config->worker.dead_after_us < 3 * config->worker.heartbeat_us)
        reading_problem(
            reading, ynode_get(worker, "dead_after") ?: ynode_get(worker, "heartbeat"),
            "dead_after must be at least 3 heartbeats, or a late one counts as "
            "a death");
    if (str_eq(config->results, config->state))
        reading_problem(reading, ynode_get(reading->root, "state") ?: reading->root,
                        "results and state must be two folders");
    for (i = 0; i < config->budget_count; i++)
        check_budget_zone(reading, &config->budgets[i]);
    config_check_webhooks(reading);
    for (i = 0; i < config->job_count; i++)
        check_job(reading, &config->jobs[i]);
    for (i = 0; i < config->schedule_count; i++)
        check_schedule(reading, &config->schedules[i]);
}
