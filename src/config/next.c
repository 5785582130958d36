/*
 * `next`: the jobs asked for after this one, each by its name or as {job, params}, the
 * form that a request may give too (queue/chain.h). Whether what is named exists is
 * looked at in references.c.
 */
#include "config/reading.h"
#include "config/sections.h"

#include "base/arena.h"
#include "base/strs.h"

static const char *const members[] = {"job", "params"};

static bool
read_job_name(struct reading *reading, const struct ynode *node)
{
    const char *name = reading_text(reading, node);

    if (name != NULL && !is_plain_name(name))
        reading_problem(reading, node, "\"%s\" cannot be a name here: " PLAIN_NAME_RULE,
                        name);
    return name != NULL;
}

/* A new reference; what cannot be read is left out, and told. */
static json_t *
read_entry(struct reading *reading, const struct ynode *node)
{
    const struct ynode *job = ynode_get(node, "job");
    const struct ynode *params = ynode_get(node, "params");
    const struct ynode *member;
    json_t *entry;

    if (node->kind != YNODE_MAP)
        return read_job_name(reading, node) ? json_string(node->text) : json_null();
    for (member = node->first; member != NULL; member = member->next)
        if (!str_eq(member->key, "job") && !str_eq(member->key, "params"))
            reading_key_problem(
                reading, member, "%s is not known here, where {job, params} stands%s",
                member->key,
                reading_hint(reading, member->key, members, array_len(members)));
    if (ynode_is_null(job))
        reading_problem(reading, node,
                        "an entry of next needs its job: {job: NAME, params: {…}}");
    if (ynode_is_null(job) || !read_job_name(reading, job))
        return json_null();
    entry = json_object();
    json_object_set_new(entry, "job", json_string(job->text));
    if (!ynode_is_null(params) && reading_map(reading, params))
        json_object_set_new(entry, "params",
                            ynode_json(params, reading->file, reading->errors));
    return entry;
}

static void
check_twice(struct reading *reading, const struct ynode *first,
            const struct ynode *node)
{
    for (; first != node; first = first->next)
        if (first->kind == YNODE_SCALAR && node->kind == YNODE_SCALAR &&
            str_eq(first->text, node->text))
            reading_problem(reading, node, "%s is listed twice: remove one",
                            node->text);
}

void
section_next(struct reading *reading, const struct setting *setting,
             const struct ynode *node, void *base)
{
    struct config_job *job = base;
    const struct ynode *item;

    if (node == NULL)
        return;
    job->next = json_array();
    if (node->kind != YNODE_LIST) {
        json_array_append_new(job->next, read_entry(reading, node));
        return;
    }
    for (item = node->first; item != NULL; item = item->next) {
        json_array_append_new(job->next, read_entry(reading, item));
        check_twice(reading, node->first, item);
    }
}
