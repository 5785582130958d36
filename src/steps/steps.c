/*
 * The table of step types. To add one: a file NAME.c with a validate and a run
 * function, its header, and a row here. The key decides which type a step is.
 */
#include "steps/step.h"

#include "base/err.h"
#include "io/formats.h"
#include "steps/chunk.h"

static const struct step_type types[] = {
    {"chunk", "read", "reads rows, writes them, commits chunk by chunk",
     chunk_step_validate, chunk_step_run},
};

const struct step_type *
step_types(size_t *ret_count)
{
    *ret_count = array_len(types);
    return types;
}

static const struct step_type *
type_of(const json_t *def)
{
    for (size_t i = 0; i < array_len(types); i++) {
        if (json_object_get(def, types[i].key))
            return &types[i];
    }
    return NULL;
}

int
step_validate(const json_t *def, struct err *err)
{
    const struct step_type *type = type_of(def);

    if (!json_is_object(def))
        return err_set(err, ERR_CONFIG, "a step must be a map of keys and values");
    if (!type)
        return err_set(err, ERR_CONFIG,
                       "a step must say what it does: \"read\" is missing");
    return type->validate(def, err);
}

int
step_run(struct step_ctx *ctx, struct step_result *ret_result, struct err *err)
{
    const struct step_type *type = type_of(ctx->def);
    int r = step_validate(ctx->def, err);

    return r < 0 ? r : type->run(ctx, ret_result, err);
}

const char *
step_effect(const json_t *def)
{
    return format_effect_name(format_effect(json_object_get(def, "write")));
}
