/*
 * A job that was changed between a stop and going on. The instance knows its steps by
 * name. One that was begun under a name which the job has no more would be forgotten,
 * and its rows with it: renamed it would begin at its first row again. One that is
 * another kind of step under the old name cannot know where that one stood. So both are
 * refused, and nothing is written.
 */
#include "run/run_private.h"

#include "base/err.h"
#include "config/config.h"

#include <string.h>

const json_t *
run_step_named(const struct run *run, const char *name)
{
    const json_t *def;
    size_t i;

    json_array_foreach(run->job->steps, i, def)
    {
        const char *own = json_string_value(json_object_get(def, "name"));

        if (own && strcmp(own, name) == 0)
            return def;
    }
    return NULL;
}

static int
check_step(const struct run *run, const struct batch_step_begun *step, struct err *err)
{
    const json_t *def = run_step_named(run, step->name);
    char kind[STEP_KIND_MAX];

    if (!def)
        return err_set(
            err, ERR_GONE,
            "the run to be gone on with has %s step \"%.60s\", which the job "
            "has no more: bring it back under that name, or begin anew "
            "(restart: false)",
            step->completed ? "done" : "begun", step->name);
    step_kind(def, kind);
    if (step->completed || !step->kind || strcmp(step->kind, kind) == 0)
        return 0;
    return err_set(
        err, ERR_GONE,
        "the run to be gone on with has begun step \"%.60s\" as \"%.60s\", "
        "which is \"%.60s\" now: make it that again, or begin anew (restart: "
        "false)",
        step->name, step->kind, kind);
}

int
run_check_steps(struct run *run, struct err *err)
{
    struct run_patience patience = run_patience(run);
    struct batch_step_begun *steps = NULL;
    size_t count = 0;
    int r;

    do
        r = batch_steps_begun(run->env->store, run->execution_id, &run->arena, &steps,
                              &count, err);
    while (run_wait_after(run, &patience, r, err));
    for (size_t i = 0; i < count && r == 0; i++)
        r = check_step(run, &steps[i], err);
    return r;
}
