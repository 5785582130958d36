/*
 * What the job reads and writes is told by its steps: each database named in `write` or
 * in a step `sql` is written to, each other one only read.
 */
#include "torture/private.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/strs.h"
#include "queue/params.h"

#include <string.h>

#define CANONICAL_MAX (1 << 20)

const json_t *
plan_step(const struct plan *plan, size_t i)
{
    return json_array_get(plan->job->steps, i);
}

const char *
plan_step_name(const struct plan *plan, size_t i)
{
    return json_string_value(json_object_get(plan_step(plan, i), "name"));
}

void
plan_release(struct plan *plan)
{
    queue_job_free(plan->rules);
    json_decref(plan->effective);
    plan->rules = NULL;
    plan->effective = NULL;
}

/* --- is there an order? --- */

/* Behind a quoted text, a quoted name or a comment; NULL: none begins here. */
static const char *
skip_quoted(const char *at)
{
    const char *end;

    if (*at == '\'' || *at == '"') {
        end = strchr(at + 1, *at);
    } else if (at[0] == '-' && at[1] == '-') {
        end = strchr(at, '\n');
    } else if (at[0] == '/' && at[1] == '*') {
        end = strstr(at + 2, "*/");
        end = end ? end + 1 : NULL;
    } else {
        return NULL;
    }
    return end ? end + 1 : at + strlen(at);
}

static bool
is_word_char(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z');
}

static bool
is_order_by(const char *at)
{
    size_t blanks;

    if (strncasecmp(at, "order", 5) != 0)
        return false;
    blanks = strspn(at + 5, " \t\r\n");
    return blanks > 0 && strncasecmp(at + 5 + blanks, "by", 2) == 0 &&
           !is_word_char(at[5 + blanks + 2]);
}

bool
plan_has_order(const char *sql)
{
    int depth = 0;
    bool in_word = false;

    for (const char *at = sql; *at;) {
        const char *behind = skip_quoted(at);

        if (behind) {
            at = behind;
            in_word = false;
            continue;
        }
        if (*at == '(')
            depth++;
        else if (*at == ')')
            depth--;
        else if (depth == 0 && !in_word && is_order_by(at))
            return true;
        in_word = is_word_char(*at);
        at++;
    }
    return false;
}

/* --- databases --- */

static int
add_database(const struct torture_order *order, struct plan *plan, const char *name,
             unsigned use, struct err *err)
{
    const char *url = config_database_url(order->config, name);

    if (str_eq(name, "main")) {
        plan->uses_main = true;
        return 0;
    }
    for (size_t i = 0; i < plan->n_databases; i++)
        if (str_eq(plan->databases[i].name, name)) {
            plan->databases[i].use |= use;
            return 0;
        }
    if (!url)
        return err_set(err, ERR_CONFIG, "there is no database %.60s", name);
    if (plan->n_databases == TORTURE_DATABASES_MAX)
        return err_set(err, ERR_CONFIG, "a job can use at most %d databases",
                       TORTURE_DATABASES_MAX);
    plan->databases[plan->n_databases++] =
        (struct plan_database){.name = name, .url = url, .use = use};
    return 0;
}

/* All that is named `database` anywhere in a step's `read` or `write`. */
static int
find_databases(const struct torture_order *order, struct plan *plan, const json_t *node,
               unsigned use, struct err *err)
{
    const char *key;
    json_t *value;
    size_t i;
    int r = 0;

    json_array_foreach(node, i, value)
    {
        if (r == 0)
            r = find_databases(order, plan, value, use, err);
    }
    if (!json_is_object(node))
        return r;
    if (use == PLAN_READ && json_object_get(node, "sql") &&
        !json_object_get(node, "database"))
        plan->uses_main = true;
    json_object_foreach((json_t *)(uintptr_t)node, key, value)
    {
        if (r == 0 && str_eq(key, "database") && json_is_string(value))
            r = add_database(order, plan, json_string_value(value), use, err);
        else if (r == 0)
            r = find_databases(order, plan, value, use, err);
    }
    return r;
}

static int
find_of_step(const struct torture_order *order, struct plan *plan, const json_t *step,
             struct err *err)
{
    const char *database = json_string_value(json_object_get(step, "database"));
    int r;

    if (json_object_get(step, "sql"))
        return add_database(order, plan, database ? database : "main", PLAN_WRITE, err);
    r = find_databases(order, plan, json_object_get(step, "read"), PLAN_READ, err);
    return r < 0 ? r
                 : find_databases(order, plan, json_object_get(step, "write"),
                                  PLAN_WRITE, err);
}

/* --- may it be done? --- */

static bool
calls_outside(const json_t *node)
{
    const char *key;
    json_t *value;
    size_t i;

    json_array_foreach(node, i, value)
    {
        if (calls_outside(value))
            return true;
    }
    if (!json_is_object(node))
        return false;
    json_object_foreach((json_t *)(uintptr_t)node, key, value)
    {
        if (str_eq(key, "http") || str_eq(key, "fetch"))
            return true;
        if ((str_eq(key, "process") || str_eq(key, "write")) && calls_outside(value))
            return true;
    }
    return false;
}

/* --database NAME=URL: copy that one instead. */
static int
take_replacements(const struct torture_order *order, struct plan *plan, struct err *err)
{
    for (size_t i = 0; i < order->n_databases; i++) {
        const char *given = order->databases[i];
        const char *sign = strchr(given, '=');
        struct plan_database *found = NULL;
        enum db_kind kind;

        if (!sign)
            return err_set(err, ERR_USAGE, "--database must be NAME=URL, not %.100s",
                           given);
        for (size_t k = 0; k < plan->n_databases; k++)
            if (strncmp(plan->databases[k].name, given, (size_t)(sign - given)) == 0 &&
                plan->databases[k].name[sign - given] == '\0')
                found = &plan->databases[k];
        if (!found)
            return err_set(err, ERR_USAGE,
                           "--database %.60s: the job uses no database of that name",
                           given);
        if (db_url_kind(sign + 1, &kind, err) < 0)
            return -(int)err->code;
        if (kind == DB_PG && str_eq(sign + 1, found->url))
            return err_set(err, ERR_USAGE,
                           "--database %s: that is the database of the configuration; "
                           "name a scratch one",
                           found->name);
        found->url = sign + 1;
    }
    return 0;
}

static bool
is_replaced(const struct torture_order *order, const struct plan_database *database)
{
    const char *configured = config_database_url(order->config, database->name);

    return !str_eq(configured, database->url);
}

static int
check_targets(const struct torture_order *order, const struct plan *plan,
              struct err *err)
{
    for (size_t i = 0; i < plan->n_databases; i++) {
        const struct plan_database *database = &plan->databases[i];
        enum db_kind kind;

        if (db_url_kind(database->url, &kind, err) < 0)
            return -(int)err->code;
        if (kind == DB_PG && (database->use & PLAN_WRITE) &&
            !is_replaced(order, database))
            return err_set(
                err, ERR_USAGE,
                "the job writes to database %s, which is on PostgreSQL: name "
                "a scratch database with the same tables, of which copies "
                "are made: --database %s=postgresql://user@host/scratch (the "
                "user needs CREATEDB)",
                database->name, database->name);
    }
    return 0;
}

static int
check_job(const struct torture_order *order, const struct config_job *job,
          struct err *err)
{
    const json_t *step;
    size_t i;

    if (!job)
        return err_set(err, ERR_JOB_NOT_FOUND, "there is no job %.100s in %s",
                       order->job, order->config->path);
    if (!job->steps)
        return err_set(err, ERR_USAGE,
                       "job %s is a task: it has no steps to go on with, a retry calls "
                       "the program again",
                       job->name);
    if (json_array_size(job->steps) > TORTURE_STEPS_MAX)
        return err_set(err, ERR_USAGE, "at most %d steps can be tortured",
                       TORTURE_STEPS_MAX);
    json_array_foreach(job->steps, i, step)
    {
        if (calls_outside(step) && !order->allow_calls)
            return err_set(err, ERR_USAGE,
                           "step %.60s calls outside, and would do so for real, again "
                           "and again: point it at a stand-in and give --allow-calls",
                           json_string_value(json_object_get(step, "name")));
    }
    return 0;
}

static int
fill_params(const struct torture_order *order, struct arena *arena, struct plan *plan,
            struct err *err)
{
    scoped(buf_release) struct buf given = {0};
    scoped(buf_release) struct buf canonical = {0};
    struct params_errors errors = {0};
    char text[400];
    int r = queue_job_parse(plan->job->definition, &plan->rules, err);

    if (r < 0)
        return r;
    if (params_check(plan->rules, order->params, &plan->effective, &errors) !=
        PARAMS_OK) {
        params_errors_text(&errors, text, sizeof(text));
        return err_set(err, ERR_INVALID, "%s", text);
    }
    if (params_has_confirm(plan->rules, order->params))
        return err_set(err, ERR_USAGE,
                       "a run with a parameter marked `confirm` is never gone on with, "
                       "so there is nothing to torture; leave it out");
    buf_init(&given, CANONICAL_MAX);
    buf_init(&canonical, CANONICAL_MAX);
    r = json_canonical(order->params, &given, err);
    if (r == 0)
        r = json_canonical(plan->effective, &canonical, err);
    if (r < 0)
        return r;
    plan->given = arena_strdup(arena, buf_str(&given));
    plan->canonical = arena_strdup(arena, buf_str(&canonical));
    return 0;
}

int
plan_make(const struct torture_order *order, struct arena *arena, struct plan *ret_plan,
          struct err *err)
{
    struct plan plan = {.job = config_job_find(order->config, order->job)};
    int r = check_job(order, plan.job, err);

    for (size_t i = 0; r == 0 && i < json_array_size(plan.job->steps); i++)
        r = find_of_step(order, &plan, plan_step(&plan, i), err);
    if (r == 0)
        r = take_replacements(order, &plan, err);
    if (r == 0)
        r = check_targets(order, &plan, err);
    if (r == 0)
        r = fill_params(order, arena, &plan, err);
    if (r < 0) {
        plan_release(&plan);
        return r;
    }
    *ret_plan = plan;
    return 0;
}
