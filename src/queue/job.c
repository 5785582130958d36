/*
 * Reading definitions. The texts of a queue_job point into the parsed JSON that
 * it keeps, so nothing is copied. Everything in a definition was written out by
 * config/, hence a missing key is an error here, not a default: it means that
 * another version of pawl wrote the row.
 */
#include "queue/job.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/strs.h"

#include <stdlib.h>
#include <string.h>

#define DEFINITION_DEPTH 48

static const char *const kind_words[] = {
    [QUEUE_KIND_BATCH] = "batch",
    [QUEUE_KIND_TASK] = "task",
};

static const char *const duplicates_words[] = {
    [QUEUE_DUPLICATES_REFUSE] = "refuse",
    [QUEUE_DUPLICATES_REUSE] = "reuse",
    [QUEUE_DUPLICATES_ALLOW] = "allow",
};

static const struct {
    const char *word;
    unsigned bit;
} retry_words[] = {
    {"ERROR", QUEUE_RETRY_ERROR},
    {"TIMEOUT", QUEUE_RETRY_TIMEOUT},
    {"WORKER_LOST", QUEUE_RETRY_WORKER_LOST},
};

const char *
queue_duplicates_word(enum queue_duplicates duplicates)
{
    return duplicates_words[duplicates];
}

/* json_get_* leave what is absent to their caller; here nothing may be. */
static int
needed(int r, const char *key, struct err *err)
{
    if (r == JSON_ABSENT)
        return err_set(err, ERR_SCHEMA, "%s is missing", key);
    return r;
}

static int
get_str(const json_t *json, const char *key, const char **ret, struct err *err)
{
    return needed(json_get_str(json, key, ret, err), key, err);
}

static int
get_i64(const json_t *json, const char *key, int64_t *ret, struct err *err)
{
    return needed(json_get_i64(json, key, ret, err), key, err);
}

static int
get_word(const json_t *json, const char *key, const char *const *words, size_t count,
         int *ret, struct err *err)
{
    const char *word;
    size_t i;
    int r;

    r = get_str(json, key, &word, err);
    if (r < 0)
        return r;
    for (i = 0; i < count; i++) {
        if (str_eq(words[i], word)) {
            *ret = (int)i;
            return 0;
        }
    }
    return err_set(err, ERR_SCHEMA, "%s \"%s\" is not known to this version", key,
                   word);
}

static int
get_texts(const json_t *json, const char *key, const char ***ret, size_t *ret_count,
          struct err *err)
{
    json_t *array;
    size_t i;
    int r;

    r = needed(json_get_array(json, key, &array, err), key, err);
    if (r < 0)
        return r;
    *ret = xcalloc(json_array_size(array) + 1, sizeof(**ret));
    *ret_count = json_array_size(array);
    for (i = 0; i < *ret_count; i++) {
        (*ret)[i] = json_string_value(json_array_get(array, i));
        if ((*ret)[i] == NULL)
            return err_set(err, ERR_SCHEMA, "%s holds something else than texts", key);
    }
    return 0;
}

static int
read_retry(struct queue_job *job, const json_t *json, struct err *err)
{
    struct queue_retry *retry = &job->retry;
    json_t *object;
    json_t *on;
    int64_t attempts;
    size_t i;
    size_t j;
    int r;

    r = needed(json_get_object(json, "retry", &object, err), "retry", err);
    if (r == 0)
        r = get_i64(object, "attempts", &attempts, err);
    if (r == 0)
        r = get_i64(object, "backoff_us", &retry->backoff_us, err);
    if (r == 0)
        r = get_i64(object, "max_backoff_us", &retry->max_backoff_us, err);
    if (r == 0)
        r = needed(json_get_bool(object, "drained", &retry->drained, err),
                   "retry.drained", err);
    if (r == 0)
        r = needed(json_get_array(object, "on", &on, err), "retry.on", err);
    if (r < 0)
        return r;
    retry->attempts = (int)attempts;
    for (i = 0; i < json_array_size(on); i++) {
        for (j = 0; j < array_len(retry_words); j++) {
            if (str_eq(retry_words[j].word, json_string_value(json_array_get(on, i))))
                retry->on |= retry_words[j].bit;
        }
    }
    return 0;
}

static int
read_routing(struct queue_job *job, const json_t *json, struct err *err)
{
    json_t *estimate;
    int r;

    job->large_over = -1;
    r = get_str(json, "lane", &job->lane, err);
    if (r == 0)
        r = json_get_i64(json, "large_over", &job->large_over, err);
    if (r >= 0)
        r = json_get_object(json, "estimate", &estimate, err);
    if (r != JSON_FOUND)
        return r < 0 ? r : 0;
    r = get_str(estimate, "database", &job->estimate_database, err);
    if (r == 0)
        r = get_str(estimate, "sql", &job->estimate_sql, err);
    if (r == 0)
        r = get_i64(estimate, "timeout_us", &job->estimate_timeout_us, err);
    if (r == 0)
        r = get_str(estimate, "otherwise", &job->estimate_otherwise, err);
    return r;
}

static int
read_calls(struct queue_job *job, const json_t *json, struct err *err)
{
    json_t *calls;
    int r = json_get_object(json, "calls", &calls, err);

    if (r != JSON_FOUND)
        return r < 0 ? r : 0;
    r = get_str(calls, "budget", &job->calls_budget, err);
    return r == 0 ? get_i64(calls, "per_item", &job->calls_per_item, err) : r;
}

static int
read_policies(struct queue_job *job, const json_t *json, struct err *err)
{
    int64_t priority;
    int kind = 0;
    int duplicates = 0;
    int r;

    r = get_str(json, "name", &job->name, err);
    if (r == 0)
        r = get_str(json, "title", &job->title, err);
    if (r == 0)
        r = get_str(json, "description", &job->description, err);
    if (r == 0)
        r = get_word(json, "kind", kind_words, array_len(kind_words), &kind, err);
    if (r == 0)
        r = get_word(json, "duplicates", duplicates_words, array_len(duplicates_words),
                     &duplicates, err);
    if (r == 0)
        r = get_i64(json, "reuse_window_us", &job->reuse_window_us, err);
    if (r == 0)
        r = get_i64(json, "timeout_us", &job->timeout_us, err);
    if (r == 0)
        r = get_i64(json, "expire_after_us", &job->expire_after_us, err);
    if (r == 0)
        r = get_i64(json, "priority", &priority, err);
    if (r == 0)
        r = needed(json_get_bool(json, "makes_result", &job->makes_result, err),
                   "makes_result", err);
    if (r < 0)
        return r;
    job->kind = (enum queue_kind)kind;
    job->duplicates = (enum queue_duplicates)duplicates;
    job->priority = (int)priority;
    return 0;
}

struct param_fault {
    const char *name;
    struct err *err;
};

static void
report_param(void *arg, const char *pointer, const char *text)
{
    struct param_fault *fault = arg;

    err_set(fault->err, ERR_SCHEMA, "/params/%s%s: %s", fault->name, pointer, text);
}

static int
read_params(struct queue_job *job, const json_t *json, struct err *err)
{
    scoped(xfree_ptr) const char **order = NULL;
    json_t *params;
    size_t count;
    size_t i;
    int r;

    r = needed(json_get_object(json, "params", &params, err), "params", err);
    if (r == 0)
        r = get_texts(json, "param_order", &order, &count, err);
    if (r < 0)
        return r;
    if (count != json_object_size(params))
        return err_set(err, ERR_SCHEMA, "param_order does not name all params");
    job->params = xcalloc(count + 1, sizeof(*job->params));
    for (i = 0; i < count; i++) {
        struct param *param = &job->params[job->param_count++];
        struct param_fault fault = {.name = order[i], .err = err};

        param->name = order[i];
        if (!rule_field_init(&param->field, json_object_get(params, param->name),
                             report_param, &fault))
            return -(int)err->code;
    }
    return 0;
}

/* Each a name, or an object with a job. */
static int
read_next(struct queue_job *job, const json_t *json, struct err *err)
{
    json_t *list;
    const json_t *entry;
    size_t i;
    int r = needed(json_get_array(json, "next", &list, err), "next", err);

    if (r < 0)
        return r;
    job->next = xcalloc(json_array_size(list) + 1, sizeof(*job->next));
    json_array_foreach(list, i, entry)
    {
        const char *name = json_string_value(
            json_is_object(entry) ? json_object_get(entry, "job") : entry);

        if (!name)
            return err_set(err, ERR_SCHEMA, "/next/%zu names no job", i);
        job->next[job->next_count++] = name;
    }
    return 0;
}

static int
job_read(struct queue_job *job, const char *definition, struct err *err)
{
    int r;

    r = json_parse(definition, strlen(definition), DEFINITION_DEPTH, &job->definition,
                   err);
    if (r == 0 && !json_is_object(job->definition))
        r = err_set(err, ERR_SCHEMA, "not an object");
    if (r == 0)
        r = read_policies(job, job->definition, err);
    if (r == 0)
        r = read_routing(job, job->definition, err);
    if (r == 0)
        r = read_calls(job, job->definition, err);
    if (r == 0)
        r = read_retry(job, job->definition, err);
    if (r == 0)
        r = read_next(job, job->definition, err);
    if (r == 0)
        r = get_texts(job->definition, "needs_keys", &job->needs_keys,
                      &job->needs_key_count, err);
    if (r == 0)
        r = read_params(job, job->definition, err);
    return r;
}

int
queue_job_parse(const char *definition, struct queue_job **ret_job, struct err *err)
{
    scoped(queue_job_free_ptr) struct queue_job *job = xcalloc(1, sizeof(*job));
    struct err cause = {0};

    if (job_read(job, definition, &cause) < 0)
        return err_set(err, ERR_SCHEMA,
                       "definition of job %s: %s; publish the configuration again with "
                       "this version of pawl",
                       job->name != NULL ? job->name : "(no name)", cause.text);
    *ret_job = job;
    job = NULL;
    return 0;
}

void
queue_job_free(struct queue_job *job)
{
    size_t i;

    if (job == NULL)
        return;
    for (i = 0; i < job->param_count; i++)
        rule_field_release(&job->params[i].field);
    free(job->params);
    free(job->next);
    free(job->needs_keys);
    json_decref(job->definition);
    free(job);
}

void
queue_job_free_ptr(struct queue_job **job)
{
    queue_job_free(*job);
}

const struct param *
queue_job_param(const struct queue_job *job, const char *name)
{
    size_t i;

    for (i = 0; i < job->param_count; i++) {
        if (str_eq(job->params[i].name, name))
            return &job->params[i];
    }
    return NULL;
}
