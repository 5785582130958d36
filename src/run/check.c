#include "run/check.h"

#include "base/err.h"
#include "config/config.h"
#include "steps/step.h"

#include <stdio.h>

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
        struct err err = {0};
        char pointer[32];

        snprintf(pointer, sizeof(pointer), "/steps/%zu", i);
        if (step_validate(step, &err) < 0)
            config_job_problem(config, job, errors, pointer, "%s", err.text);
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
