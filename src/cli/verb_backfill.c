/* pawl backfill JOB, pawl backfills [ID]: groups of requests. */
#include "cli/command.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/strs.h"
#include "cli/backend.h"
#include "cli/params.h"
#include "cli/print.h"

#include <inttypes.h>
#include <string.h>

#define BAR_WIDTH 30

/* --- asking --- */

/* What -p says, as text: the service spreads it out. A name given again is a list. */
static int
add_pairs(struct cli *cli, json_t *params, struct err *err)
{
    for (size_t i = 0; i < cli->options.param_count; i++) {
        const char *pair = cli->options.params[i];
        const char *equals = strchr(pair, '=');
        const char *name;
        json_t *before;

        if (!equals || equals == pair)
            return err_set(err, ERR_USAGE,
                           "-p %s: write -p NAME=VALUE, -p NAME=FROM..TO "
                           "or -p NAME=A,B",
                           pair);
        name = arena_strndup(&cli->arena, pair, (size_t)(equals - pair));
        before = json_object_get(params, name);
        if (before)
            return err_set(err, ERR_USAGE,
                           "-p %s is given twice; write its values as -p %s=A,B", name,
                           name);
        before = json_string(equals + 1);
        if (!before)
            return err_set(err, ERR_USAGE, "-p %s: its value is not valid UTF-8", name);
        json_object_set_new(params, name, before);
    }
    return 0;
}

static int
read_body(struct cli *cli, json_t *body, struct err *err)
{
    const struct options *options = &cli->options;
    struct options texts = cli->options;
    json_t *params = NULL;
    int64_t number = 0;
    int r;

    cli->options.param_count = 0; /* only --params here */
    r = params_given(cli, cli_word(cli, 1), NULL, &params, err);
    cli->options = texts;
    if (r < 0)
        return r;
    json_object_set_new(body, "params", params);
    r = add_pairs(cli, params, err);
    if (r == 0 && options->value[OPTION_PARALLEL]) {
        r = parse_i64("--parallel", options->value[OPTION_PARALLEL], 1, 1000, &number,
                      err);
        json_object_set_new(body, "parallel", json_integer(number));
    }
    if (r == 0 && options->value[OPTION_PRIORITY]) {
        r = parse_i64("--priority", options->value[OPTION_PRIORITY], -100, 100, &number,
                      err);
        json_object_set_new(body, "priority", json_integer(number));
    }
    if (options->value[OPTION_ON_FAILURE])
        json_object_set_new(body, "onFailure",
                            json_string(options->value[OPTION_ON_FAILURE]));
    if (options->value[OPTION_REQUESTER])
        json_object_set_new(body, "requester",
                            json_string(options->value[OPTION_REQUESTER]));
    if (option_given(options, OPTION_AGAIN))
        json_object_set_new(body, "again", json_true());
    return r;
}

int
verb_backfill(struct cli *cli, struct err *err)
{
    scoped(json_drop) json_t *body = json_object();
    scoped(json_drop) json_t *answer = NULL;
    int64_t id;
    int r = read_body(cli, body, err);

    if (r == 0)
        r = cli->backend->kind->backfill(cli->backend, cli_word(cli, 1), body, &answer,
                                         err);
    if (r < 0)
        return r;
    if (cli->json) {
        print_json(answer);
        return 0;
    }
    id = json_count_of(answer, "backfillId");
    printf("backfill %" PRId64 ": %s items", id,
           print_count(&cli->arena, json_count_of(answer, "total")));
    if (json_count_of(answer, "passedOver") > 0)
        printf(", %s passed over because they are COMPLETED",
               print_count(&cli->arena, json_count_of(answer, "passedOver")));
    printf("; `pawl show b%" PRId64 "` shows how it goes\n", id);
    if (!backend_has_workers(cli->backend))
        fputs("pawl: no server runs on this store; `pawl serve` will carry it out\n",
              stderr);
    return 0;
}

/* --- looking --- */

static const struct table_column list_columns[] = {
    {"ID", true},   {"JOB", false},        {"STATE", false},
    {"DONE", true}, {"OF", true},          {"FAILED", true},
    {"OPEN", true}, {"PASSED OVER", true}, {"CREATED", false}};

static const struct table_column item_columns[] = {{"ITEM", true},
                                                   {"STATE", false},
                                                   {"REQUEST", true},
                                                   {"PARAMS", false},
                                                   {"DETAIL", false}};

static const char *
count_text(struct cli *cli, const json_t *object, const char *key)
{
    return print_count(&cli->arena, json_count_of(object, key));
}

static int
print_list(struct cli *cli, struct err *err)
{
    static const char *const counts[] = {"completed", "total", "failed", "open",
                                         "passedOver"};
    struct table table = {.arena = &cli->arena,
                          .columns = list_columns,
                          .n_columns = array_len(list_columns)};
    scoped(json_drop) json_t *answer = NULL;
    const json_t *one;
    size_t i;
    int r = cli->backend->kind->backfills(cli->backend, 0, &answer, err);

    if (r < 0)
        return r;
    if (cli->json) {
        print_json(answer);
        return 0;
    }
    json_array_foreach(json_object_get(answer, "items"), i, one)
    {
        table_add(&table, arena_printf(&cli->arena, "%" PRId64,
                                       json_count_of(one, "backfillId")));
        table_add(&table, json_text_of(one, "job"));
        table_add(&table, json_text_of(one, "state"));
        for (size_t k = 0; k < array_len(counts); k++)
            table_add(&table, count_text(cli, one, counts[k]));
        table_add(&table, json_text_of(one, "createdAt"));
    }
    table_print(&table, stdout);
    return 0;
}

static void
print_line(const char *name, const char *text)
{
    scoped(buf_release) struct buf buf = {0};

    if (str_empty(text))
        return;
    buf_init(&buf, 0);
    print_escape(&buf, text);
    printf("%-12s  %s\n", name, buf_str(&buf));
}

static void
print_head(struct cli *cli, const json_t *answer)
{
    int64_t percent = json_count_of(answer, "percent");
    int full = (int)(percent * BAR_WIDTH / 100);
    char bar[BAR_WIDTH + 1];

    memset(bar, '.', BAR_WIDTH);
    memset(bar, '#', (size_t)full);
    bar[BAR_WIDTH] = '\0';
    print_line("backfill", arena_printf(&cli->arena, "%" PRId64,
                                        json_count_of(answer, "backfillId")));
    print_line("job", json_text_of(answer, "job"));
    print_line("state", json_text_of(answer, "state"));
    print_line("why", json_text_of(answer, "why"));
    if (!str_eq(json_text_of(answer, "state"), "CANCELLED")) /* over, but not done */
        print_line("progress",
                   arena_printf(&cli->arena, "[%s] %" PRId64 " %%", bar, percent));
    print_line(
        "items",
        arena_printf(
            &cli->arena,
            "%s: %s completed, %s failed, %s stopped, %s cancelled, "
            "%s open, %s waiting",
            count_text(cli, answer, "total"), count_text(cli, answer, "completed"),
            count_text(cli, answer, "failed"), count_text(cli, answer, "stopped"),
            count_text(cli, answer, "cancelled"), count_text(cli, answer, "open"),
            count_text(cli, answer, "waiting")));
    print_line("passed over", count_text(cli, answer, "passedOver"));
    print_line("params", print_compact(&cli->arena, json_object_get(answer, "params")));
    print_line("requester", json_text_of(answer, "requester"));
    print_line("created", json_text_of(answer, "createdAt"));
    print_line("ended", json_text_of(answer, "endedAt"));
}

int
backfill_print(struct cli *cli, int64_t backfill_id, struct err *err)
{
    struct table table = {.arena = &cli->arena,
                          .columns = item_columns,
                          .n_columns = array_len(item_columns)};
    scoped(json_drop) json_t *answer = NULL;
    const json_t *item;
    size_t i;
    int r = cli->backend->kind->backfills(cli->backend, backfill_id, &answer, err);

    if (r < 0)
        return r;
    if (cli->json) {
        print_json(answer);
        return 0;
    }
    print_head(cli, answer);
    json_array_foreach(json_object_get(answer, "items"), i, item)
    {
        int64_t request_id = json_count_of(item, "requestId");

        table_add(&table,
                  arena_printf(&cli->arena, "%" PRId64, json_count_of(item, "n")));
        table_add(&table, json_text_of(item, "state"));
        table_add(&table, request_id > 0
                              ? arena_printf(&cli->arena, "%" PRId64, request_id)
                              : "");
        table_add(&table, print_compact(&cli->arena, json_object_get(item, "params")));
        table_add(&table, json_text_of(item, "detail"));
    }
    if (i > 0)
        table_print(&table, stdout);
    return 0;
}

int
verb_backfills(struct cli *cli, struct err *err)
{
    const char *word = cli_word(cli, 1);
    int64_t id = 0;
    struct err note = {0};

    if (!word)
        return print_list(cli, err);
    if (!cli_backfill_id(cli, &id) &&
        parse_i64("ID", word, 1, INT64_MAX, &id, &note) < 0)
        return err_set(err, ERR_USAGE,
                       "%.60s is not the number of a backfill; `pawl backfills` lists "
                       "them",
                       word);
    return backfill_print(cli, id, err);
}
