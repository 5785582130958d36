#include "steps/once.h"

#include "base/err.h"
#include "base/strs.h"
#include "io/http_talk.h"
#include "io/io_ctx.h"

#include <string.h>

int
step_keys_check(const json_t *def, const char *const *keys, size_t count,
                struct err *err)
{
    const char *key;
    json_t *value;

    if (str_empty(json_string_value(json_object_get(def, "name"))))
        return err_set(err, ERR_CONFIG, "name: a step needs a name");
    json_object_foreach((json_t *)(uintptr_t)def, key, value)
    {
        const char *near;
        bool known = false;

        for (size_t i = 0; i < count; i++)
            known = known || str_eq(key, keys[i]);
        if (known)
            continue;
        near = str_nearest(key, keys, count);
        return err_set(err, ERR_CONFIG, "step %s: unknown key \"%s\"%s%s%s",
                       json_string_value(json_object_get(def, "name")), key,
                       near ? "; did you mean \"" : "", near ? near : "",
                       near ? "\"?" : "");
    }
    return 0;
}

int
step_done(struct step_ctx *ctx, const struct step_counters *counters,
          step_apply_fn apply, void *apply_arg, struct err *err)
{
    struct step_checkpoint cp = {
        .counters = *counters,
        .reader_position = "{}",
        .writer_state = "{}",
        .last = true,
        .apply = apply,
        .apply_arg = apply_arg,
    };

    cp.counters.commits = 1;
    return ctx->checkpoint(ctx->checkpoint_arg, &cp, err);
}

int
step_of_call(struct step_ctx *ctx, const struct http_said *said, struct err *err)
{
    switch (said->end) {
    case HTTP_END_OK:
    case HTTP_END_NO_DATA:
        return 0;
    case HTTP_END_UPSTREAM:
    case HTTP_END_REJECTED:
        return -(int)err->code;
    case HTTP_END_STOP:
    case HTTP_END_LIMIT:
        (void)str_copy(ctx->io->why, IO_WHY_MAX, said->why);
        return STEP_STOPPED;
    case HTTP_END_CUT:
        break;
    }
    return err_set(err, ERR_TIMEOUT, "the call under way was cut off");
}
