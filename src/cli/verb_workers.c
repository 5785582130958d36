/* pawl workers: who is there, what it serves, and whether it lives. */
#include "cli/command.h"

#include "base/buf.h"
#include "base/json.h"
#include "cli/backend.h"
#include "cli/print.h"

#include <inttypes.h>

static const struct table_column columns[] = {{"WORKER", false}, {"STATE", false},
                                              {"SLOTS", false},  {"KEYS", false},
                                              {"BEAT", false},   {"VERSION", false}};

/* "normal 3/4, large 0/2": in use of all, lane by lane. */
static const char *
slots_text(struct cli *cli, const json_t *worker)
{
    scoped(buf_release) struct buf buf = {0};
    json_t *lanes = json_object_get(worker, "lanes");
    const json_t *in_use = json_object_get(worker, "inUse");
    const char *lane;
    json_t *slots;

    buf_init(&buf, 0);
    json_object_foreach(lanes, lane, slots)
        buf_addf(&buf, "%s%s %" PRId64 "/%" PRId64, buf.len ? ", " : "", lane,
                 (int64_t)json_integer_value(json_object_get(in_use, lane)),
                 (int64_t)json_integer_value(slots));
    return arena_strdup(&cli->arena, buf_str(&buf));
}

static const char *
keys_text(struct cli *cli, const json_t *worker)
{
    scoped(buf_release) struct buf buf = {0};
    const json_t *key;
    size_t i;

    buf_init(&buf, 0);
    json_array_foreach(json_object_get(worker, "keys"), i, key)
        buf_addf(&buf, "%s%s", i ? " " : "", json_string_value(key));
    return arena_strdup(&cli->arena, buf_str(&buf));
}

int
verb_workers(struct cli *cli, struct err *err)
{
    struct table table = {
        .arena = &cli->arena, .columns = columns, .n_columns = array_len(columns)};
    scoped(json_drop) json_t *answer = NULL;
    const json_t *worker;
    size_t i;
    int r = cli->backend->kind->workers(cli->backend, &answer, err);

    if (r < 0)
        return r;
    if (cli->json) {
        print_json(answer);
        return 0;
    }
    json_array_foreach(json_object_get(answer, "items"), i, worker)
    {
        bool live = json_is_true(json_object_get(worker, "live"));

        table_add(&table, json_text_of(worker, "worker"));
        table_add(&table, live ? "live" : "dead");
        table_add(&table, slots_text(cli, worker));
        table_add(&table, keys_text(cli, worker));
        table_add(&table,
                  arena_printf(&cli->arena, "%.19s", json_text_of(worker, "beatAt")));
        table_add(&table, json_text_of(worker, "version"));
    }
    table_print(&table, stdout);
    return 0;
}
