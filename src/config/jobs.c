/*
 * jobs: each one read by job_settings, then completed with what depends on
 * several of its settings. What names other things (jobs, lanes, databases) is
 * looked at later, in references.c, when all are known.
 */
#include "config/reading.h"
#include "config/sections.h"

#include "base/arena.h"
#include "base/rule.h"
#include "base/strs.h"

#include <string.h>

static void
check_shape(struct reading *reading, const struct config_job *job)
{
    if (job->steps != NULL && job->task != NULL)
        reading_key_problem(reading, ynode_get(job->node, "task"),
                            "a job has either steps or a task: make two jobs of it");
    else if (ynode_is_null(ynode_get(job->node, "steps")) &&
             ynode_is_null(ynode_get(job->node, "task")))
        reading_key_problem(reading, job->node,
                            "%s has nothing to do: it needs steps, or a task",
                            job->name);
    if (job->retry.max_backoff_us < job->retry.backoff_us)
        reading_key_problem(reading, ynode_get(job->node, "retry"),
                            "max_backoff is shorter than backoff");
}

static bool
writes_a_file(const struct config_job *job)
{
    size_t i;

    for (i = 0; i < json_array_size(job->steps); i++) {
        const json_t *step = json_array_get(job->steps, i);

        if (json_object_get(json_object_get(step, "write"), "file") != NULL)
            return true;
    }
    return false;
}

static bool
is_given(const struct ynode *node, const char *key)
{
    return !ynode_is_null(ynode_get(node, key));
}

/* Defaults that follow from other settings. */
static void
complete(struct config *config, struct config_job *job)
{
    job->kind = job->task != NULL ? CONFIG_TASK : CONFIG_BATCH;
    if (job->title == NULL)
        job->title = job->name;
    if (job->duplicates == CONFIG_DUPLICATES_DEFAULT)
        job->duplicates = job->kind == CONFIG_TASK ? CONFIG_DUPLICATES_ALLOW
                                                   : CONFIG_DUPLICATES_REFUSE;
    if (!is_given(job->node, "reuse_window"))
        job->reuse_window_us = config->reuse_window_us;
    if (!is_given(job->node, "result"))
        job->makes_result = writes_a_file(job);
    if (!is_given(ynode_get(job->node, "retry"), "drained"))
        job->retry.drained = job->kind == CONFIG_TASK;
}

void
section_jobs(struct reading *reading, const struct setting *setting,
             const struct ynode *node, void *base)
{
    struct config *config = base;
    const struct ynode *member;

    if (node == NULL || !reading_map(reading, node))
        return;
    config->jobs = arena_array(&config->arena, struct config_job, node->count);
    for (member = node->first; member != NULL; member = member->next) {
        struct config_job *job = &config->jobs[config->job_count];

        if (!reading_key(reading, member, is_plain_name, PLAIN_NAME_RULE))
            continue;
        config->job_count++;
        job->name = member->key;
        job->node = member;
        job->large_over = -1;
        reading_table(reading, setting->group, member, member->key, job);
        check_shape(reading, job);
        complete(config, job);
    }
}

struct param_report {
    struct reading *reading;
    const struct ynode *node;
};

/* A fault of a rule, found by its pointer below the parameter. */
static void
report_param(void *arg, const char *pointer, const char *text)
{
    struct param_report *report = arg;
    const struct ynode *place = ynode_find(report->node, pointer);

    if (str_starts_with(text, "unknown key") || str_ends_with(pointer, "/items"))
        reading_key_problem(report->reading, place, "parameter %s: %s",
                            report->node->key, text);
    else
        reading_problem(report->reading, place, "parameter %s: %s", report->node->key,
                        text);
}

void
section_params(struct reading *reading, const struct setting *setting,
               const struct ynode *node, void *base)
{
    struct config_job *job = base;
    const struct ynode *member;

    job->params = json_object();
    if (node == NULL || !reading_map(reading, node))
        return;
    for (member = node->first; member != NULL; member = member->next) {
        struct param_report report = {.reading = reading, .node = member};
        scoped(rule_field_release) struct rule_field field = {0};
        json_t *json;

        if (!reading_key(reading, member, is_param_name, PARAM_NAME_RULE))
            continue;
        json = ynode_json(member, reading->file, reading->errors);
        json_object_set_new(job->params, member->key, json);
        if (!rule_field_init(&field, json, report_param, &report))
            continue; /* told already */
    }
}

void
section_lane(struct reading *reading, const struct setting *setting,
             const struct ynode *node, void *base)
{
    static const char *const words[] = {"large_over", "lane"};
    struct config_job *job = base;
    const struct ynode *member;

    job->lane = setting->fallback;
    if (node == NULL)
        return;
    if (node->kind == YNODE_SCALAR) {
        job->lane = node->text;
        return;
    }
    if (!reading_map(reading, node))
        return;
    for (member = node->first; member != NULL; member = member->next) {
        if (str_eq(member->key, "large_over"))
            reading_i64(reading, member, 0, INT64_MAX, &job->large_over);
        else if (str_eq(member->key, "lane"))
            job->lane = reading_text(reading, member) ?: setting->fallback;
        else
            reading_key_problem(reading, member, "unknown setting %s in lane%s",
                                member->key,
                                reading_hint(reading, member->key, words, 2));
    }
}

void
section_estimate(struct reading *reading, const struct setting *setting,
                 const struct ynode *node, void *base)
{
    if (node != NULL)
        reading_table(reading, setting->group, node, setting->name, base);
}

void
section_calls(struct reading *reading, const struct setting *setting,
              const struct ynode *node, void *base)
{
    if (node != NULL)
        reading_table(reading, setting->group, node, setting->name, base);
}

void
section_retry(struct reading *reading, const struct setting *setting,
              const struct ynode *node, void *base)
{
    struct config_job *job = base;
    bool none =
        node != NULL && node->kind == YNODE_SCALAR && str_eq(node->text, "none");

    if (node != NULL && !none && node->kind != YNODE_MAP) {
        reading_problem(reading, node,
                        "retry must be none, or a map such as "
                        "{attempts: 3, on: [WORKER_LOST]}");
        return;
    }
    reading_table(reading, setting->group, none ? NULL : node, setting->name, base);
    if (none)
        job->retry.attempts = 1;
}

void
section_retry_on(struct reading *reading, const struct setting *setting,
                 const struct ynode *node, void *base)
{
    static const char *const words[] = {"ERROR", "TIMEOUT", "WORKER_LOST"};
    struct config_job *job = base;
    const char **names;
    size_t count;
    size_t i;
    size_t j;

    job->retry.on = CONFIG_RETRY_WORKER_LOST;
    if (node == NULL)
        return;
    job->retry.on = 0;
    reading_names(reading, node, is_env_name, ENV_NAME_RULE, &names, &count);
    for (i = 0; i < count; i++) {
        for (j = 0; j < array_len(words) && !str_eq(words[j], names[i]); j++)
            ;
        if (j == array_len(words))
            reading_problem(reading, node,
                            "%s cannot be retried: on is a list of ERROR, TIMEOUT, "
                            "WORKER_LOST",
                            names[i]);
        else
            job->retry.on |= 1u << j;
    }
}

void
section_needs_keys(struct reading *reading, const struct setting *setting,
                   const struct ynode *node, void *base)
{
    struct config_job *job = base;

    if (node != NULL)
        reading_names(reading, node, is_env_name, ENV_NAME_RULE, &job->needs_keys,
                      &job->needs_key_count);
}

static void
check_step_name(struct reading *reading, const struct ynode *steps,
                const struct ynode *step)
{
    const struct ynode *name = ynode_get(step, "name");
    const struct ynode *other;

    if (step->kind != YNODE_MAP) {
        reading_problem(reading, step, "a step is a map, not %s",
                        ynode_kind_word(step));
        return;
    }
    if (ynode_is_null(name) || name->kind != YNODE_SCALAR || !is_label(name->text)) {
        reading_problem(reading, ynode_is_null(name) ? step : name,
                        "a step needs a name: " LABEL_RULE);
        return;
    }
    for (other = steps->first; other != step; other = other->next) {
        const struct ynode *before = ynode_get(other, "name");

        if (before != NULL && str_eq(before->text, name->text))
            reading_problem(
                reading, name,
                "a step %s stands in line %u already: each needs its own name",
                name->text, before->line);
    }
}

void
section_steps(struct reading *reading, const struct setting *setting,
              const struct ynode *node, void *base)
{
    struct config_job *job = base;
    const struct ynode *step;

    if (node == NULL)
        return;
    if (node->kind != YNODE_LIST || node->count == 0) {
        reading_problem(reading, node, "steps must be a list of at least one step");
        return;
    }
    for (step = node->first; step != NULL; step = step->next)
        check_step_name(reading, node, step);
    job->steps = ynode_json(node, reading->file, reading->errors);
}

void
section_task(struct reading *reading, const struct setting *setting,
             const struct ynode *node, void *base)
{
    struct config_job *job = base;

    if (node != NULL && reading_map(reading, node))
        job->task = ynode_json(node, reading->file, reading->errors);
}
