/*
 * The table of step types. To add one: a file NAME.c with a validate and a run
 * function, its header, and a row here. The key decides which type a step is.
 */
#include "steps/step.h"

#include "base/err.h"
#include "base/strs.h"
#include "io/formats.h"
#include "steps/chunk.h"
#include "steps/once.h"

#include <stdio.h>

static const char *
effect_of_writer(const json_t *def)
{
    return format_effect_name(format_effect(json_object_get(def, "write")));
}

static const char *
effect_at_least_once(const json_t *def)
{
    return format_effect_name(IO_EFFECT_AT_LEAST_ONCE);
}

static const char *
effect_of_statements(const json_t *def)
{
    const char *database = json_string_value(json_object_get(def, "database"));

    return format_effect_name(!database || str_eq(database, "main")
                                  ? IO_EFFECT_TRANSACTIONAL
                                  : IO_EFFECT_AT_LEAST_ONCE);
}

static const struct step_type types[] = {
    {"chunk", "read", "reads rows, writes them, commits chunk by chunk",
     chunk_step_validate, chunk_step_run, effect_of_writer, false},
    {"sql", "sql", "statements in one transaction", sql_step_validate, sql_step_run,
     effect_of_statements, false},
    {"http", "http", "one HTTP call", http_step_validate, http_step_run,
     effect_at_least_once, false},
    {"fetch", "fetch", "a file for the steps after it", fetch_step_validate,
     fetch_step_run, effect_at_least_once, true},
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
                       "a step must say what it does: there is no \"read\", \"sql\", "
                       "\"http\" or \"fetch\"");
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
    const struct step_type *type = type_of(def);

    return type ? type->effect(def) : effect_of_writer(def);
}

bool
step_again(const json_t *def)
{
    const struct step_type *type = type_of(def);

    return type && type->again;
}

static const char *
target_of(const json_t *write)
{
    const char *database = json_string_value(json_object_get(write, "database"));

    if (json_object_get(write, "file"))
        return "a file";
    if (json_object_get(write, "http"))
        return "calls";
    return str_eq(database, "main") ? "main" : "another database";
}

/* Neither the format of a file, which is started over, nor the database's name, which
 * may be changed: the checkpoint in it tells. */
void
step_kind(const json_t *def, char ret_kind[STEP_KIND_MAX])
{
    const struct step_type *type = type_of(def);
    const struct reader_kind *reader = NULL;
    struct err ignored = {0}; /* it was checked */

    snprintf(ret_kind, STEP_KIND_MAX, "%s", type ? type->name : "none");
    if (!json_object_get(def, "read") ||
        format_choose_reader(json_object_get(def, "read"), &reader, &ignored) < 0)
        return;
    snprintf(ret_kind, STEP_KIND_MAX, "%s from %s into %s%s", type->name, reader->name,
             target_of(json_object_get(def, "write")),
             json_object_get(def, "partitions") ? ", in partitions" : "");
}
