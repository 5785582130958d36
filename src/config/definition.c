/*
 * The canonical definition of a job (docs/definition.md): every policy written
 * out, so that whoever reads it from the store needs no defaults.
 */
#include "config/reading.h"
#include "config/sections.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/sha256.h"

#include <string.h>

#define DEFINITION_MAX ((size_t)4 << 20)

static const char *const duplicates_words[] = {
    [CONFIG_DUPLICATES_DEFAULT] = "refuse",
    [CONFIG_DUPLICATES_REFUSE] = "refuse",
    [CONFIG_DUPLICATES_REUSE] = "reuse",
    [CONFIG_DUPLICATES_ALLOW] = "allow",
};

static void
set(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value);
}

static json_t *
texts(const char *const *list, size_t count)
{
    json_t *array = json_array();
    size_t i;

    for (i = 0; i < count; i++)
        json_array_append_new(array, json_string(list[i]));
    return array;
}

static json_t *
retry_json(const struct config_retry *retry)
{
    json_t *object = json_object();
    json_t *on = json_array();

    if (retry->on & CONFIG_RETRY_ERROR)
        json_array_append_new(on, json_string("ERROR"));
    if (retry->on & CONFIG_RETRY_TIMEOUT)
        json_array_append_new(on, json_string("TIMEOUT"));
    if (retry->on & CONFIG_RETRY_WORKER_LOST)
        json_array_append_new(on, json_string("WORKER_LOST"));
    set(object, "attempts", json_integer(retry->attempts));
    set(object, "backoff_us", json_integer(retry->backoff_us));
    set(object, "max_backoff_us", json_integer(retry->max_backoff_us));
    set(object, "on", on);
    set(object, "drained", json_boolean(retry->drained));
    return object;
}

static json_t *
estimate_json(const struct config_estimate *estimate)
{
    json_t *object = json_object();

    set(object, "database", json_string(estimate->database));
    set(object, "sql", json_string(estimate->sql));
    set(object, "timeout_us", json_integer(estimate->timeout_us));
    set(object, "otherwise", json_string(estimate->otherwise));
    return object;
}

static json_t *
param_order(const struct config_job *job)
{
    json_t *array = json_array();
    const char *name;
    json_t *value;

    json_object_foreach(job->params, name, value)
        json_array_append_new(array, json_string(name));
    return array;
}

static json_t *
definition_json(const struct config_job *job)
{
    json_t *object = json_object();

    set(object, "name", json_string(job->name));
    set(object, "title", json_string(job->title));
    set(object, "description", json_string(job->description));
    set(object, "kind", json_string(job->kind == CONFIG_TASK ? "task" : "batch"));
    set(object, "duplicates", json_string(duplicates_words[job->duplicates]));
    set(object, "reuse_window_us", json_integer(job->reuse_window_us));
    set(object, "lane", json_string(job->lane));
    if (job->large_over >= 0)
        set(object, "large_over", json_integer(job->large_over));
    if (job->estimate.sql != NULL)
        set(object, "estimate", estimate_json(&job->estimate));
    if (job->calls.budget != NULL)
        set(object, "calls",
            json_pack("{s:s, s:I}", "budget", job->calls.budget, "per_item",
                      (json_int_t)job->calls.per_item));
    set(object, "timeout_us", json_integer(job->timeout_us));
    set(object, "expire_after_us", json_integer(job->expire_after_us));
    set(object, "priority", json_integer(job->priority));
    set(object, "retry", retry_json(&job->retry));
    set(object, "needs_keys", texts(job->needs_keys, job->needs_key_count));
    set(object, "next", job->next != NULL ? json_incref(job->next) : json_array());
    if (job->webhook != NULL)
        set(object, "webhook", config_webhook_json(job));
    set(object, "makes_result", json_boolean(job->makes_result));
    set(object, "params", json_incref(job->params));
    set(object, "param_order", param_order(job));
    if (job->steps != NULL)
        set(object, "steps", json_incref(job->steps));
    if (job->task != NULL)
        set(object, "task", json_incref(job->task));
    return object;
}

void
config_make_definition(struct reading *reading, struct config_job *job)
{
    scoped(buf_release) struct buf text = {0};
    scoped(json_drop) json_t *json = definition_json(job);
    struct err err = {0};

    buf_init(&text, DEFINITION_MAX);
    if (json_canonical(json, &text, &err) < 0) {
        reading_key_problem(reading, job->node, "job %s: %s", job->name, err.text);
        return;
    }
    job->definition = arena_strndup(&reading->config->arena, text.data, text.len);
    sha256_hex(text.data, text.len, job->hash);
}
