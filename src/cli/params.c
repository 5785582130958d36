#include "cli/params.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fsio.h"
#include "base/json.h"
#include "base/strs.h"
#include "cli/backend.h"
#include "cli/command.h"
#include "queue/job.h"
#include "queue/params.h"
#include "queue/submit.h"

#include <stdio.h>
#include <string.h>

#define PARAMS_BYTES_MAX ((size_t)1 << 20)

static int
read_params_option(struct cli *cli, json_t **ret_params, struct err *err)
{
    const char *text = cli->options.value[OPTION_PARAMS];
    scoped(buf_release) struct buf file = {0};
    json_t *params = NULL;
    int r = 0;

    if (!text) {
        *ret_params = json_object();
        return 0;
    }
    buf_init(&file, PARAMS_BYTES_MAX);
    if (text[0] == '@')
        r = fs_read_file(text + 1, PARAMS_BYTES_MAX, &file, err);
    else
        buf_add_str(&file, text);
    if (r == 0)
        r = buf_check(&file, "--params", err);
    if (r == 0)
        r = json_parse(buf_str(&file), file.len, JSON_DEPTH_MAX, &params, err);
    if (r < 0)
        return err_prefix(err, "--params");
    if (!json_is_object(params)) {
        json_decref(params);
        return err_set(err, ERR_USAGE, "--params must be a JSON object: {\"name\": …}");
    }
    *ret_params = params;
    return 0;
}

static void
bad_rule(void *arg, const char *pointer, const char *text)
{
    err_set(arg, ERR_SCHEMA,
            "a parameter's rule%s %s; this pawl and the server are of "
            "different versions",
            pointer, text);
}

/* Just enough of a job for params_from_strings. */
static int
job_of(const char *name, const json_t *declared, struct arena *arena,
       struct queue_job *ret_job, struct err *err)
{
    const char *param;
    json_t *rule;

    *ret_job = (struct queue_job){.name = name};
    ret_job->params = arena_array(arena, struct param, json_object_size(declared) + 1);
    json_object_foreach((json_t *)(uintptr_t)declared, param, rule)
    {
        struct param *slot = &ret_job->params[ret_job->param_count++];

        slot->name = param;
        if (!rule_field_init(&slot->field, rule, bad_rule, err))
            return -(int)err->code;
    }
    return 0;
}

static int
read_pairs(struct cli *cli, struct queue_job *job, json_t *params, struct err *err)
{
    scoped(json_drop) json_t *pairs = NULL;
    struct params_errors errors = {0};
    char text[400];

    for (size_t i = 0; i < cli->options.param_count; i++)
        if (!strchr(cli->options.params[i], '=') || cli->options.params[i][0] == '=')
            return err_set(err, ERR_USAGE, "-p %s: write -p NAME=VALUE",
                           cli->options.params[i]);
    if (params_from_strings(job, cli->options.params, cli->options.param_count, &pairs,
                            &errors) != PARAMS_OK) {
        params_errors_text(&errors, text, sizeof(text));
        return err_set(err, ERR_INVALID, "%s", text);
    }
    json_object_update(params, pairs);
    return 0;
}

int
params_given(struct cli *cli, const char *job, const json_t *declared,
             json_t **ret_params, struct err *err)
{
    scoped(json_drop) json_t *params = NULL;
    struct queue_job shape = {0};
    int r = read_params_option(cli, &params, err);

    if (r == 0 && cli->options.param_count > 0) {
        r = job_of(job, declared, &cli->arena, &shape, err);
        if (r == 0)
            r = read_pairs(cli, &shape, params, err);
        for (size_t i = 0; i < shape.param_count; i++)
            rule_field_release(&shape.params[i].field);
    }
    if (r < 0)
        return r;
    *ret_params = json_incref(params);
    return 0;
}

static void
set_text(json_t *body, const char *key, const char *value)
{
    if (value)
        json_object_set_new(body, key, json_string(value));
}

static int
add_number(json_t *body, const char *key, const char *option, const char *text,
           int64_t min, int64_t max, struct err *err)
{
    int64_t number;
    int r = text ? parse_i64(option, text, min, max, &number, err) : 0;

    if (text && r == 0)
        json_object_set_new(body, key, json_integer(number));
    return r;
}

/* "17,18" */
static int
add_after(json_t *body, const char *text, struct err *err)
{
    json_t *ids = json_array();

    json_object_set_new(body, "after", ids);
    for (;;) {
        size_t len = strcspn(text, ",");
        char id[24];
        struct err note = {0};
        int64_t number = 0;

        snprintf(id, sizeof(id), "%.*s", (int)(len < sizeof(id) ? len : sizeof(id)),
                 text);
        if (parse_i64("--after", id, 1, INT64_MAX, &number, &note) < 0)
            return err_set(err, ERR_USAGE,
                           "--after %s: write numbers of requests, such as 17,18",
                           text);
        json_array_append_new(ids, json_integer(number));
        if (!text[len])
            return 0;
        text += len + 1;
    }
}

int
params_body(struct cli *cli, const char *job, json_t **ret_body, struct err *err)
{
    const struct options *options = &cli->options;
    scoped(json_drop) json_t *answer = NULL;
    scoped(json_drop) json_t *body = json_object();
    json_t *params = NULL;
    int r = 0;

    /* Only texts need the job's types: one round trip less where there are none. */
    if (options->param_count > 0)
        r = cli->backend->kind->job(cli->backend, job, &answer, err);
    if (r == 0)
        r = params_given(cli, job, json_object_get(answer, "params"), &params, err);
    if (r == 0)
        json_object_set_new(body, "params", params);
    if (r == 0)
        r = add_number(body, "priority", "--priority", options->value[OPTION_PRIORITY],
                       QUEUE_PRIORITY_MIN, QUEUE_PRIORITY_MAX, err);
    if (r == 0)
        r = add_number(body, "maxCalls", "--max-calls",
                       options->value[OPTION_MAX_CALLS], 0, INT64_MAX, err);
    if (r == 0 && options->value[OPTION_AFTER])
        r = add_after(body, options->value[OPTION_AFTER], err);
    if (r < 0)
        return r;
    if (option_given(options, OPTION_ANEW))
        json_object_set_new(body, "restart", json_false());
    set_text(body, "requester", options->value[OPTION_REQUESTER]);
    set_text(body, "notBefore", options->value[OPTION_NOT_BEFORE]);
    set_text(body, "expiresAt", options->value[OPTION_EXPIRES_AT]);
    *ret_body = json_incref(body);
    return 0;
}
