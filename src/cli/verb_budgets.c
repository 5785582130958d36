/* pawl budgets: calls to outside APIs, used and left today. */
#include "cli/command.h"

#include "base/err.h"
#include "base/json.h"
#include "cli/backend.h"
#include "cli/print.h"

static const struct table_column columns[] = {{"BUDGET", false}, {"PER DAY", true},
                                              {"USED", true},    {"LEFT", true},
                                              {"UNTIL", false},  {"ZONE", false}};

int
verb_budgets(struct cli *cli, struct err *err)
{
    static const char *const counts[] = {"perDay", "usedToday", "left"};
    struct table table = {
        .arena = &cli->arena, .columns = columns, .n_columns = array_len(columns)};
    scoped(json_drop) json_t *answer = NULL;
    const json_t *budget;
    size_t i;
    int r = cli->backend->kind->budgets(cli->backend, &answer, err);

    if (r < 0)
        return r;
    if (cli->json) {
        print_json(answer);
        return 0;
    }
    json_array_foreach(json_object_get(answer, "items"), i, budget)
    {
        table_add(&table, json_text_of(budget, "budget"));
        for (size_t k = 0; k < array_len(counts); k++)
            table_add(&table,
                      print_count(&cli->arena, json_count_of(budget, counts[k])));
        table_add(&table,
                  arena_printf(&cli->arena, "%.19sZ", json_text_of(budget, "until")));
        table_add(&table, json_text_of(budget, "zone"));
    }
    table_print(&table, stdout);
    return 0;
}
