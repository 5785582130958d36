/* pawl jobs: what can be asked for, and how it stands. */
#include "cli/command.h"

#include "base/buf.h"
#include "base/json.h"
#include "cli/backend.h"
#include "cli/print.h"

#include <inttypes.h>

static const struct table_column columns[] = {
    {"JOB", false},    {"TITLE", false},  {"PARAMETERS", false}, {"QUEUED", true},
    {"RUNNING", true}, {"PAUSED", false}, {"LAST", false}};

/* "country min_population=0 format=xlsx" */
static const char *
params_text(struct cli *cli, const json_t *params)
{
    scoped(buf_release) struct buf buf = {0};
    struct json_out out;
    const char *name;
    json_t *rule;

    buf_init(&buf, 0);
    json_object_foreach((json_t *)(uintptr_t)params, name, rule)
    {
        const json_t *fallback = json_object_get(rule, "default");

        buf_addf(&buf, "%s%s", buf.len ? " " : "", name);
        if (!fallback)
            continue;
        buf_add_char(&buf, '=');
        if (json_is_string(fallback)) {
            buf_add_str(&buf, json_string_value(fallback));
            continue;
        }
        json_out_init(&out, &buf);
        json_put_value(&out, fallback);
    }
    return arena_strdup(&cli->arena, buf_str(&buf));
}

static const char *
last_text(struct cli *cli, const json_t *job)
{
    const json_t *last = json_object_get(job, "lastExecution");
    int64_t id = json_count_of(job, "lastRequestId");

    if (json_is_object(last))
        return arena_printf(&cli->arena, "%s %.19s", json_text_of(last, "state"),
                            json_text_of(last, "lastUpdated"));
    return id > 0 ? arena_printf(&cli->arena, "request %" PRId64, id) : "";
}

int
verb_jobs(struct cli *cli, struct err *err)
{
    struct table table = {
        .arena = &cli->arena, .columns = columns, .n_columns = array_len(columns)};
    scoped(json_drop) json_t *answer = NULL;
    const json_t *job;
    size_t i;
    int r = cli->backend->kind->jobs(cli->backend, &answer, err);

    if (r < 0)
        return r;
    if (cli->json) {
        print_json(answer);
        return 0;
    }
    json_array_foreach(json_object_get(answer, "items"), i, job)
    {
        table_add(&table, json_text_of(job, "job"));
        table_add(&table, json_text_of(job, "title"));
        table_add(&table, params_text(cli, json_object_get(job, "params")));
        table_add(&table, print_count(&cli->arena, json_count_of(job, "queued")));
        table_add(&table, print_count(&cli->arena, json_count_of(job, "running")));
        table_add(&table, print_paused(cli, job));
        table_add(&table, last_text(cli, job));
    }
    table_print(&table, stdout);
    return 0;
}
