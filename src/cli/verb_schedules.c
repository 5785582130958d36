/* pawl schedules: when jobs are asked for by the clock. */
#include "cli/command.h"

#include "base/err.h"
#include "base/json.h"
#include "base/strs.h"
#include "cli/backend.h"
#include "cli/print.h"

#include <inttypes.h>

#define NEXT_MAX 100

static const struct table_column columns[] = {{"SCHEDULE", false}, {"JOB", false},
                                              {"CRON", false},     {"ZONE", false},
                                              {"NEXT", false},     {"LAST", false}};
static const struct table_column slot_columns[] = {{"SCHEDULE", false},
                                                   {"LOCAL TIME", false},
                                                   {"UTC", false},
                                                   {"CLOCKS CHANGE", false}};

/* What the change of clocks does to a time. */
static const char *
change_text(struct cli *cli, const json_t *slot)
{
    const char *dst = json_text_of(slot, "dst");

    if (str_eq(dst, "gap"))
        return arena_printf(&cli->arena, "%s does not exist: at the first moment after",
                            json_text_of(slot, "meant"));
    if (str_eq(dst, "first"))
        return "comes twice: this is the first";
    if (str_eq(dst, "second"))
        return "comes twice: this is the second";
    return "";
}

static const char *
next_text(struct cli *cli, const json_t *item)
{
    const json_t *slot = json_array_get(json_object_get(item, "next"), 0);

    if (!str_empty(json_text_of(item, "problem")))
        return json_text_of(item, "problem");
    if (json_is_true(json_object_get(item, "paused")))
        return arena_printf(&cli->arena, "paused by %s",
                            json_text_of(item, "pausedBy"));
    return slot ? json_text_of(slot, "local") : "never";
}

static const char *
last_text(struct cli *cli, const json_t *item)
{
    const json_t *slot = json_object_get(item, "lastSlot");
    int64_t request_id = json_count_of(slot, "requestId");
    int64_t slots = json_count_of(slot, "slots");

    if (!json_is_object(slot))
        return "";
    if (request_id > 0)
        return arena_printf(&cli->arena, "%s %.19s, request %" PRId64,
                            json_text_of(slot, "state"), json_text_of(slot, "at"),
                            request_id);
    if (slots > 1)
        return arena_printf(&cli->arena, "%s %s until %.19s",
                            print_count(&cli->arena, slots),
                            json_text_of(slot, "state"), json_text_of(slot, "until"));
    return arena_printf(&cli->arena, "%s %.19s", json_text_of(slot, "state"),
                        json_text_of(slot, "at"));
}

static void
print_schedules(struct cli *cli, const json_t *items)
{
    struct table table = {
        .arena = &cli->arena, .columns = columns, .n_columns = array_len(columns)};
    const json_t *item;
    size_t i;

    json_array_foreach(items, i, item)
    {
        table_add(&table, json_text_of(item, "schedule"));
        table_add(&table, json_text_of(item, "job"));
        table_add(&table, json_text_of(item, "cron"));
        table_add(&table, json_text_of(item, "zone"));
        table_add(&table, next_text(cli, item));
        table_add(&table, last_text(cli, item));
    }
    table_print(&table, stdout);
}

static void
print_slots(struct cli *cli, const json_t *items)
{
    struct table table = {.arena = &cli->arena,
                          .columns = slot_columns,
                          .n_columns = array_len(slot_columns)};
    const json_t *item;
    const json_t *slot;
    size_t i;
    size_t n;

    json_array_foreach(items, i, item)
    {
        json_array_foreach(json_object_get(item, "next"), n, slot)
        {
            table_add(&table, json_text_of(item, "schedule"));
            table_add(&table, json_text_of(slot, "local"));
            table_add(&table,
                      arena_printf(&cli->arena, "%.19sZ", json_text_of(slot, "at")));
            table_add(&table, change_text(cli, slot));
        }
    }
    table_print(&table, stdout);
}

int
verb_schedules(struct cli *cli, struct err *err)
{
    const char *next = cli->options.value[OPTION_NEXT];
    scoped(json_drop) json_t *answer = NULL;
    int64_t count = 1;
    int r = next ? parse_i64("next", next, 1, NEXT_MAX, &count, err) : 0;

    if (r == 0)
        r = cli->backend->kind->schedules(cli->backend, (int)count, &answer, err);
    if (r < 0)
        return r;
    if (cli->json)
        print_json(answer);
    else if (next)
        print_slots(cli, json_object_get(answer, "items"));
    else
        print_schedules(cli, json_object_get(answer, "items"));
    return 0;
}
