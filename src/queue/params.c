/*
 * Parameters of a request against the table of its job. docs/parameters.md is
 * the rule book; whoever changes a rule here changes it there, in pawl.submit
 * and in tests/vectors/params.json.
 */
#include "queue/params.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/strs.h"
#include "base/utf8.h"
#include "queue/job.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEXT_MAX 100 /* links of a chain */

void
params_errors_add(struct params_errors *errors, const char *pointer, const char *fmt,
                  ...)
{
    struct params_error *error;
    char detail[1024];
    va_list args;

    if (errors->count == PARAMS_ERRORS_MAX) {
        errors->left_out++;
        return;
    }
    error = &errors->list[errors->count++];
    va_start(args, fmt);
    vsnprintf(detail, sizeof(detail), fmt, args);
    va_end(args);
    str_copy(error->pointer, sizeof(error->pointer), pointer);
    str_copy(error->detail, sizeof(error->detail), detail);
}

void
params_errors_text(const struct params_errors *errors, char *buf, size_t size)
{
    scoped(buf_release) struct buf text = {0};
    size_t i;

    buf_init(&text, PARAMS_ERRORS_MAX * sizeof(struct params_error));
    for (i = 0; i < errors->count; i++)
        buf_addf(&text, "%s%s: %s", i > 0 ? "; " : "", errors->list[i].pointer,
                 errors->list[i].detail);
    if (errors->left_out > 0)
        buf_addf(&text, "; and %zu more", errors->left_out);
    str_copy(buf, size, buf_str(&text));
}

/* "/params/" + name, with ~ and / escaped as RFC 6901 says. Names a client made up
 * are cut: they only serve as a hint. */
static void
pointer_of(const char *name, char *ret, size_t size)
{
    char cut[64];
    size_t len;

    str_copy(cut, sizeof(cut), name);
    len = (size_t)snprintf(ret, size, "/params/");
    for (name = cut; *name != '\0' && len + 3 < size; name++) {
        if (*name == '~' || *name == '/')
            ret[len++] = '~';
        ret[len++] = *name == '~' ? '0' : *name == '/' ? '1' : *name;
    }
    ret[len] = '\0';
}

struct fault_target {
    const char *name;
    struct params_errors *errors;
};

static void
report_value(void *arg, const char *pointer, const char *text)
{
    struct fault_target *target = arg;
    char base[128];
    char full[192];

    pointer_of(target->name, base, sizeof(base));
    snprintf(full, sizeof(full), "%s%s", base, pointer);
    params_errors_add(target->errors, full, "%s", text);
}

static void
check_one(const struct param *param, const json_t *value, json_t *effective,
          struct params_errors *errors)
{
    struct fault_target target = {.name = param->name, .errors = errors};
    const struct rule_field *field = &param->field;

    if (value == NULL && field->required) {
        report_value(&target, "", "is required");
        return;
    }
    if (value == NULL)
        value = field->fallback;
    else if (!rule_check(&field->rule, value, report_value, &target))
        return;
    if (value != NULL)
        json_object_set_new(effective, param->name, rule_normal(&field->rule, value));
}

static int
compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void
report_unknown(const struct queue_job *job, const char *name,
               struct params_errors *errors)
{
    scoped(xfree_ptr) const char **known =
        xcalloc(job->param_count + 1, sizeof(*known));
    struct fault_target target = {.name = name, .errors = errors};
    char text[256];
    char cut[64];
    const char *near;
    size_t i;

    for (i = 0; i < job->param_count; i++)
        known[i] = job->params[i].name;
    str_copy(cut, sizeof(cut), name);
    near = str_nearest(cut, known, job->param_count);
    if (near != NULL)
        snprintf(text, sizeof(text), "unknown parameter; did you mean %s?", near);
    else if (job->param_count == 0)
        snprintf(text, sizeof(text), "unknown parameter; %s takes none", job->name);
    else
        snprintf(text, sizeof(text), "unknown parameter; see the list of %s",
                 job->name);
    report_value(&target, "", text);
}

static void
check_unknown(const struct queue_job *job, const json_t *given,
              struct params_errors *errors)
{
    scoped(xfree_ptr) const char **names =
        xcalloc(json_object_size(given) + 1, sizeof(*names));
    json_t *object = (json_t *)(uintptr_t)given; /* the iterator wants it so */
    const char *name;
    json_t *value;
    size_t count = 0;
    size_t i;

    json_object_foreach(object, name, value)
    {
        if (queue_job_param(job, name) == NULL)
            names[count++] = name;
    }
    qsort(names, count, sizeof(*names), compare_names);
    for (i = 0; i < count; i++)
        report_unknown(job, names[i], errors);
}

int
params_check(const struct queue_job *job, const json_t *given, json_t **ret_effective,
             struct params_errors *errors)
{
    json_t *effective;
    size_t i;

    memset(errors, 0, sizeof(*errors));
    if (given != NULL && !json_is_null(given) && !json_is_object(given)) {
        params_errors_add(errors, "/params", "must be an object");
        return PARAMS_INVALID;
    }
    effective = json_object();
    for (i = 0; i < job->param_count; i++)
        check_one(&job->params[i], json_object_get(given, job->params[i].name),
                  effective, errors);
    if (given != NULL)
        check_unknown(job, given, errors);
    if (errors->count > 0) {
        json_decref(effective);
        return PARAMS_INVALID;
    }
    *ret_effective = effective;
    return PARAMS_OK;
}

/* [a-z0-9][a-z0-9-]{0,62}, as config/ has it. */
static bool
is_job_name(const char *name)
{
    size_t len = name != NULL ? strlen(name) : 0;

    return len >= 1 && len <= 63 && name[0] != '-' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

/* The name of a job, or {"job": name, "params": {...}}. */
static bool
is_next_entry(const json_t *entry)
{
    const json_t *params = json_object_get(entry, "params");

    if (!json_is_object(entry))
        return is_job_name(json_string_value(entry));
    return is_job_name(json_string_value(json_object_get(entry, "job"))) &&
           (params == NULL || json_is_object(params)) &&
           json_object_size(entry) == (params != NULL ? 2 : 1);
}

static int
check_next(const json_t *next, struct params_errors *errors)
{
    size_t i;

    if (!json_is_array(next) || json_array_size(next) > NEXT_MAX) {
        params_errors_add(errors, "/params/_next",
                          "must be a job name or a list of at most %d job names",
                          NEXT_MAX);
        return PARAMS_INVALID;
    }
    for (i = 0; i < json_array_size(next); i++) {
        char pointer[64];

        if (is_next_entry(json_array_get(next, i)))
            continue;
        snprintf(pointer, sizeof(pointer), "/params/_next/%zu", i);
        params_errors_add(errors, pointer,
                          "must be the name of a job, or {job, params}");
    }
    return errors->count > 0 ? PARAMS_INVALID : PARAMS_OK;
}

int
params_take_next(const json_t *given, json_t **ret_given, json_t **ret_next,
                 struct params_errors *errors)
{
    json_t *rest = json_is_object(given) ? json_copy((json_t *)(uintptr_t)given) : NULL;
    json_t *next = json_incref(json_object_get(rest, "_next"));

    memset(errors, 0, sizeof(*errors));
    if (json_is_null(next))
        next = NULL;
    if (json_is_string(next) || json_is_object(next))
        next = json_pack("[o]", next);
    if (next != NULL && check_next(next, errors) != PARAMS_OK) {
        json_decref(next);
        json_decref(rest);
        return PARAMS_INVALID;
    }
    if (rest == NULL)
        rest = given != NULL ? json_deep_copy(given) : json_object();
    else
        json_object_del(rest, "_next");
    *ret_given = rest;
    *ret_next = next;
    return PARAMS_OK;
}

/* Put value under name; a list named again grows, anything else is given twice. */
static void
put_pair(const struct param *param, const char *name, json_t *value, json_t *given,
         struct params_errors *errors)
{
    struct fault_target target = {.name = name, .errors = errors};
    json_t *before = json_object_get(given, name);

    if (before != NULL && param != NULL && param->field.rule.type == RULE_LIST) {
        json_array_extend(before, value);
        json_decref(value);
    } else if (before != NULL) {
        report_value(&target, "", "is given twice");
        json_decref(value);
    } else {
        json_object_set_new(given, name, value);
    }
}

static void
read_pair(const struct queue_job *job, const char *pair, json_t *given,
          struct params_errors *errors)
{
    const char *equals = strchr(pair, '=');
    scoped(xfree_ptr) char *name = NULL;
    const struct param *param;
    json_t *value;

    if (equals == NULL || equals == pair) {
        params_errors_add(errors, "/params", "\"%s\" is not name=value", pair);
        return;
    }
    name = xstrdup(pair);
    name[equals - pair] = '\0';
    param = queue_job_param(job, name);
    if (!utf8_valid(pair, strlen(pair))) {
        params_errors_add(errors, "/params", "a value is not valid UTF-8");
        return;
    }
    value = param != NULL ? rule_from_text(&param->field.rule, equals + 1)
                          : json_string(equals + 1);
    /* What cannot be read stays text: the check then says what would be right. */
    if (value == NULL)
        value = json_string(equals + 1);
    put_pair(param, name, value, given, errors);
}

int
params_from_strings(const struct queue_job *job, const char *const *pairs, size_t count,
                    json_t **ret_given, struct params_errors *errors)
{
    json_t *given = json_object();
    size_t i;

    memset(errors, 0, sizeof(*errors));
    for (i = 0; i < count; i++)
        read_pair(job, pairs[i], given, errors);
    if (errors->count > 0) {
        json_decref(given);
        return PARAMS_INVALID;
    }
    *ret_given = given;
    return PARAMS_OK;
}

json_t *
params_without_confirm(const struct queue_job *job, const json_t *given)
{
    json_t *rest =
        json_is_object(given) ? json_copy((json_t *)(uintptr_t)given) : json_object();
    size_t i;

    for (i = 0; i < job->param_count; i++) {
        if (job->params[i].field.confirm)
            json_object_del(rest, job->params[i].name);
    }
    return rest;
}

bool
params_has_confirm(const struct queue_job *job, const json_t *given)
{
    size_t i;

    for (i = 0; i < job->param_count; i++) {
        if (job->params[i].field.confirm &&
            json_object_get(given, job->params[i].name) != NULL)
            return true;
    }
    return false;
}
