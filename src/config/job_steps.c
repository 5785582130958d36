/*
 * What can be said of steps without knowing their types: the databases and
 * budgets they name exist, `:name` in a reader's SQL and `{name}` in a file
 * name are parameters. In process and write.item the names may also be columns
 * of the row, so these are left to the room steps/.
 */
#include "config/reading.h"
#include "config/sections.h"
#include "config/sql_names.h"

#include "base/arena.h"
#include "base/strs.h"

#include <string.h>

static void
check_param(struct reading *reading, const struct config_job *job,
            const struct ynode *node, const char *written, const char *name)
{
    scoped(xfree_ptr) const char **known = NULL;
    const char *key;
    json_t *value;
    size_t count = 0;

    if (json_object_get(job->params, name) != NULL)
        return;
    known = xcalloc(json_object_size(job->params) + 1, sizeof(*known));
    json_object_foreach(job->params, key, value) known[count++] = key;
    reading_problem(reading, node, "%s is no parameter of %s%s", written, job->name,
                    count > 0 ? reading_hint(reading, name, known, count)
                              : "; declare it under params");
}

void
config_check_sql(struct reading *reading, const struct config_job *job,
                 const struct ynode *node)
{
    const char *at;
    char name[SQL_NAME_MAX + 1];
    char written[SQL_NAME_MAX + 2];

    if (node == NULL || node->kind != YNODE_SCALAR)
        return;
    for (at = node->text; sql_names_next(&at, name);) {
        written[0] = ':';
        memcpy(written + 1, name, sizeof(name));
        check_param(reading, job, node, written, name);
    }
}

/* Braces in pairs are the writer's matter; here only the names in them. */
static void
check_template(struct reading *reading, const struct config_job *job,
               const struct ynode *node)
{
    const char *at;

    if (node == NULL || node->kind != YNODE_SCALAR)
        return;
    for (at = strchr(node->text, '{'); at != NULL; at = strchr(at + 1, '{')) {
        size_t len =
            strspn(at + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                           "0123456789_");
        char name[SQL_NAME_MAX + 1];
        char written[SQL_NAME_MAX + 3];

        if (len == 0 || len >= sizeof(name) || at[len + 1] != '}')
            continue;
        memcpy(name, at + 1, len);
        name[len] = '\0';
        memcpy(written, at, len + 2);
        written[len + 2] = '\0';
        check_param(reading, job, node, written, name);
    }
}

/* Each name's values: texts, and the SQL that gives them. */
static void
check_items(struct reading *reading, const struct config_job *job,
            const struct ynode *items)
{
    const struct ynode *axis, *value;

    for (axis = items != NULL ? items->first : NULL; axis != NULL; axis = axis->next) {
        config_check_sql(reading, job, ynode_get(axis, "sql"));
        for (value = axis->first; value != NULL; value = value->next) {
            if (!str_eq(value->key, "sql"))
                check_template(reading, job, value);
        }
    }
}

/* The file that is read: its key is that of its format. */
static void
check_file_names(struct reading *reading, const struct config_job *job,
                 const struct ynode *read)
{
    static const char *const keys[] = {"csv", "jsonl", "xlsx", "xml", "member"};

    for (size_t i = 0; i < array_len(keys); i++)
        check_template(reading, job, ynode_get(read, keys[i]));
}

static void
check_names_below(struct reading *reading, const struct ynode *node)
{
    const struct ynode *inner;

    for (inner = node->first; inner != NULL; inner = inner->next) {
        if (inner->kind != YNODE_SCALAR)
            check_names_below(reading, inner);
        else if (str_eq(inner->key, "database"))
            config_check_database(reading, inner);
        else if (str_eq(inner->key, "budget"))
            config_check_budget(reading, inner);
    }
}

void
config_check_steps(struct reading *reading, const struct config_job *job)
{
    const struct ynode *steps = ynode_get(job->node, "steps");
    const struct ynode *task = ynode_get(job->node, "task");
    const struct ynode *step;

    if (task != NULL)
        check_names_below(reading, task);
    for (step = steps != NULL ? steps->first : NULL; step != NULL; step = step->next) {
        const struct ynode *read = ynode_get(step, "read");
        const struct ynode *write = ynode_get(step, "write");

        check_names_below(reading, step);
        config_check_sql(reading, job, ynode_get(step, "sql"));
        config_check_sql(reading, job, ynode_get(read, "sql"));
        check_items(reading, job, ynode_get(read, "items"));
        check_file_names(reading, job, read);
        check_template(reading, job, ynode_get(write, "file"));
        check_template(reading, job, ynode_get(write, "format"));
    }
}
