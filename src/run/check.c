#include "run/check.h"

#include "base/err.h"
#include "base/strs.h"
#include "config/config.h"
#include "io/call_text.h"
#include "steps/step.h"

#include <stdio.h>

struct key_check {
    const struct config *config;
    const struct config_job *job;
    struct config_errors *errors;
    const char *pointer;
};

static bool
is_among(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(names[i], name))
            return true;
    return false;
}

/* A key that a call wants must be named: else it would be found missing only when the
 * call is made. Not all are in needs_keys: which of two sources is called may hang on a
 * parameter. */
static void
check_key(void *arg, const char *name)
{
    const struct key_check *check = arg;

    if (!is_among(name, check->config->keys, check->config->key_count))
        config_job_problem(check->config, check->job, check->errors, check->pointer,
                           "there is no key %s; name it under `keys:`", name);
}

static void
check_keys(struct key_check *check, const json_t *value)
{
    const char *key;
    json_t *member;
    size_t i;

    if (json_is_string(value))
        call_text_keys(json_string_value(value), check_key, check);
    json_object_foreach((json_t *)(uintptr_t)value, key, member)
        check_keys(check, member);
    json_array_foreach(value, i, member) check_keys(check, member);
}

static void
check_job(const struct config *config, const struct config_job *job,
          struct config_errors *errors)
{
    const json_t *step;
    int files = 0;
    size_t i;

    if (!job->steps) {
        config_job_problem(config, job, errors, "/task",
                           "job %s: this version runs jobs with `steps` only; a task "
                           "waits for programs as steps",
                           job->name);
        return;
    }
    json_array_foreach(job->steps, i, step)
    {
        struct key_check keys = {config, job, errors, NULL};
        struct err err = {0};
        char pointer[32];

        snprintf(pointer, sizeof(pointer), "/steps/%zu", i);
        if (step_validate(step, &err) < 0)
            config_job_problem(config, job, errors, pointer, "%s", err.text);
        keys.pointer = pointer;
        check_keys(&keys, json_object_get(step, "process"));
        check_keys(&keys, json_object_get(step, "http"));
        check_keys(&keys, json_object_get(json_object_get(step, "write"), "http"));
        check_keys(&keys, json_object_get(step, "fetch"));
        if (json_object_get(json_object_get(step, "write"), "file") && ++files > 1)
            config_job_problem(config, job, errors, pointer,
                               "a job makes one result file, this is a second one; "
                               "move the step into a job of its own");
    }
}

void
run_check(const struct config *config, struct config_errors *errors)
{
    for (size_t i = 0; i < config->job_count; i++)
        check_job(config, &config->jobs[i], errors);
}
