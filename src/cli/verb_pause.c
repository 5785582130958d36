/* pawl pause, pawl resume: jobs, lanes and schedules held back. pawl lanes. */
#include "cli/command.h"

#include "base/err.h"
#include "base/json.h"
#include "base/strs.h"
#include "cli/backend.h"
#include "cli/print.h"

static const struct table_column columns[] = {{"LANE", false},   {"SLOTS", true},
                                              {"RUNNING", true}, {"READY", true},
                                              {"LATER", true},   {"PAUSED", false}};

const char *
print_paused(struct cli *cli, const json_t *item)
{
    if (!json_is_true(json_object_get(item, "paused")))
        return "";
    return arena_printf(&cli->arena, "by %s since %.19s",
                        json_text_of(item, "pausedBy"), json_text_of(item, "pausedAt"));
}

int
verb_lanes(struct cli *cli, struct err *err)
{
    static const char *const counts[] = {"slots", "running", "ready", "later"};
    struct table table = {
        .arena = &cli->arena, .columns = columns, .n_columns = array_len(columns)};
    scoped(json_drop) json_t *answer = NULL;
    const json_t *lane;
    size_t i;
    int r = cli->backend->kind->lanes(cli->backend, &answer, err);

    if (r < 0)
        return r;
    if (cli->json) {
        print_json(answer);
        return 0;
    }
    json_array_foreach(json_object_get(answer, "items"), i, lane)
    {
        table_add(&table, json_text_of(lane, "lane"));
        for (size_t k = 0; k < array_len(counts); k++)
            table_add(&table, print_count(&cli->arena, json_count_of(lane, counts[k])));
        table_add(&table, print_paused(cli, lane));
    }
    table_print(&table, stdout);
    return 0;
}

static int
hold(struct cli *cli, bool pause, struct err *err)
{
    const char *kind = cli_word(cli, 1);
    const char *name = cli_word(cli, 2);
    scoped(json_drop) json_t *answer = NULL;
    int r;

    if (!str_eq(kind, "job") && !str_eq(kind, "lane") && !str_eq(kind, "schedule") &&
        !str_eq(kind, "backfill"))
        return err_set(err, ERR_USAGE,
                       "`pawl %s` takes job NAME, lane NAME, schedule NAME or backfill "
                       "ID, not %.60s",
                       cli->verb->name, kind);
    r = cli->backend->kind->hold(cli->backend, kind, name, pause, &answer, err);
    if (r < 0)
        return r;
    if (cli->json)
        print_json(answer);
    else
        printf("%s %s %s%s\n", kind, name,
               json_is_true(json_object_get(answer, "changed")) ? "" : "was already ",
               pause ? "paused" : "resumed");
    return 0;
}

int
verb_pause(struct cli *cli, struct err *err)
{
    return hold(cli, true, err);
}

int
verb_resume(struct cli *cli, struct err *err)
{
    return hold(cli, false, err);
}
