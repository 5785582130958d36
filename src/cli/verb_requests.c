/* pawl requests: the list, newest first. */
#include "cli/command.h"

#include "base/json.h"
#include "cli/backend.h"
#include "cli/print.h"

#include <inttypes.h>

static const struct table_column columns[] = {
    {"ID", true},         {"JOB", false},     {"STATUS", false},
    {"OUTCOME", false},   {"DONE", true},     {"ROWS", true},
    {"REQUESTER", false}, {"CREATED", false}, {"FINISHED", false}};

/* To the second: the milliseconds are for programs. */
static const char *
short_time(struct cli *cli, const char *time)
{
    return *time ? arena_printf(&cli->arena, "%.10s %.8s", time, time + 11) : "";
}

static void
add_row(struct cli *cli, struct table *table, const json_t *request)
{
    const json_t *progress = json_object_get(request, "progress");
    const json_t *result = json_object_get(request, "result");
    int64_t percent = json_count_of(progress, "percent");
    int64_t rows = json_count_of(result, "rows");

    if (rows < 0)
        rows = json_count_of(progress, "done");
    table_add(table, arena_printf(&cli->arena, "%" PRId64,
                                  json_count_of(request, "requestId")));
    table_add(table, json_text_of(request, "job"));
    table_add(table, json_text_of(request, "status"));
    table_add(table, json_text_of(request, "outcome"));
    table_add(table,
              percent < 0 ? "" : arena_printf(&cli->arena, "%d%%", (int)percent));
    table_add(table, rows < 0 ? "" : print_count(&cli->arena, rows));
    table_add(table, json_text_of(request, "requester"));
    table_add(table, short_time(cli, json_text_of(request, "createdAt")));
    table_add(table, short_time(cli, json_text_of(request, "finishedAt")));
}

int
verb_requests(struct cli *cli, struct err *err)
{
    const struct options *options = &cli->options;
    struct backend_filter filter = {
        .job = options->value[OPTION_JOB],
        .status = options->value[OPTION_STATUS],
        .requester = options->value[OPTION_REQUESTER],
        .limit = options->value[OPTION_LIMIT],
        .after = options->value[OPTION_AFTER],
    };
    struct table table = {
        .arena = &cli->arena, .columns = columns, .n_columns = array_len(columns)};
    scoped(json_drop) json_t *answer = NULL;
    const json_t *request;
    size_t i;
    int r = cli->backend->kind->list(cli->backend, &filter, &answer, err);

    if (r < 0)
        return r;
    if (cli->json) {
        print_json(answer);
        return 0;
    }
    json_array_foreach(json_object_get(answer, "items"), i, request)
        add_row(cli, &table, request);
    table_print(&table, stdout);
    if (json_count_of(answer, "next") > 0)
        fprintf(stderr, "older ones: --after %" PRId64 "\n",
                json_count_of(answer, "next"));
    return 0;
}
