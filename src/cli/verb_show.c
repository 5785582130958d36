/* pawl show ID: all that is known of one request. */
#include "cli/command.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/strs.h"
#include "cli/backend.h"
#include "cli/bar.h"
#include "cli/follow.h"
#include "cli/print.h"

#include <inttypes.h>

#define NAME_WIDTH  12
#define SKIPS_SHOWN 5

static void
line(const char *name, const char *text)
{
    scoped(buf_release) struct buf buf = {0};

    if (str_empty(text))
        return;
    buf_init(&buf, 0);
    print_escape(&buf, text);
    printf("%-*s  %s\n", NAME_WIDTH, name, buf_str(&buf));
}

static void
number(struct cli *cli, const char *name, int64_t value)
{
    if (value >= 0)
        line(name, print_count(&cli->arena, value));
}

static void
print_state(struct cli *cli, const json_t *request)
{
    const char *outcome = json_text_of(request, "outcome");
    struct bar_view view = bar_view_of(request, 0);

    line("status", *outcome ? arena_printf(&cli->arena, "%s %s",
                                           json_text_of(request, "status"), outcome)
                            : json_text_of(request, "status"));
    line("detail", json_text_of(request, "detail"));
    line("waits for", json_text_of(request, "waitsFor"));
    if (view.done >= 0)
        line("progress", view.total >= 0
                             ? arena_printf(&cli->arena, "%s of %s rows%s",
                                            print_count(&cli->arena, view.done),
                                            print_count(&cli->arena, view.total),
                                            view.ending ? ", ending" : "")
                             : arena_printf(&cli->arena, "%s rows",
                                            print_count(&cli->arena, view.done)));
    if (view.eta_s >= 0)
        line("ETA", print_span(&cli->arena, view.eta_s));
}

static void
print_result(struct cli *cli, const json_t *request)
{
    const json_t *result = json_object_get(request, "result");

    if (!json_is_object(result))
        return;
    line("result", json_text_of(result, "name"));
    number(cli, "  rows", json_count_of(result, "rows"));
    line("  size", print_bytes(&cli->arena, json_count_of(result, "bytes")));
    line("  SHA-256", json_text_of(result, "sha256"));
    line("  removed", json_text_of(result, "goneAt"));
}

/* The other tries of the same work. */
static void
print_tries(struct cli *cli, const json_t *request)
{
    const json_t *tries = json_object_get(request, "attempts");
    const json_t *one;
    size_t i;

    if (json_array_size(tries) < 2)
        return;
    json_array_foreach(tries, i, one)
    {
        const char *outcome = json_text_of(one, "outcome");

        line(arena_printf(&cli->arena, "  try %" PRId64, json_count_of(one, "attempt")),
             arena_printf(&cli->arena, "request %" PRId64 " %s%s%s",
                          json_count_of(one, "requestId"), json_text_of(one, "status"),
                          *outcome ? " " : "", outcome));
    }
}

/* Who is still to be told of its end. */
static void
print_webhooks(struct cli *cli, const json_t *request)
{
    const json_t *list = json_object_get(request, "webhooks");
    const json_t *one;
    size_t i;

    json_array_foreach(list, i, one)
    {
        const char *error = json_text_of(one, "lastError");

        line("webhook",
             arena_printf(&cli->arena, "%s waits; %" PRId64 " tries, next at %s%s%s",
                          json_text_of(one, "name"), json_count_of(one, "attempts"),
                          json_text_of(one, "nextTry"), *error ? ": " : "", error));
    }
}

/* What was left out: a few of it. */
static void
print_skips(struct cli *cli, const json_t *execution)
{
    const json_t *skips = json_object_get(execution, "skips");
    const json_t *one;
    size_t i;

    json_array_foreach(skips, i, one)
    {
        if (i == SKIPS_SHOWN) {
            line("    more", "GET /api/v1/executions/ID tells them");
            return;
        }
        line("  left out",
             arena_printf(&cli->arena, "%s: %s", json_text_of(one, "class"),
                          json_text_of(one, "message")));
    }
}

static void
print_execution(struct cli *cli, const json_t *execution)
{
    int64_t id = json_count_of(execution, "executionId");
    int64_t before = json_count_of(execution, "resumedFrom");
    const json_t *steps = json_object_get(execution, "steps");
    const json_t *step;
    size_t i;

    line("execution",
         before > 0 ? arena_printf(&cli->arena, "%" PRId64 ", goes on with %" PRId64,
                                   id, before)
                    : arena_printf(&cli->arena, "%" PRId64, id));
    json_array_foreach(steps, i, step)
    {
        int64_t skipped = json_count_of(step, "skipped");
        const char *text =
            arena_printf(&cli->arena, "%s %s, %s read, %s written",
                         json_text_of(step, "name"), json_text_of(step, "state"),
                         print_count(&cli->arena, json_count_of(step, "read")),
                         print_count(&cli->arena, json_count_of(step, "written")));

        if (skipped > 0)
            text = arena_printf(&cli->arena, "%s, %s left out", text,
                                print_count(&cli->arena, skipped));
        line("  step", text);
    }
    print_skips(cli, execution);
}

static void
print_request(struct cli *cli, const json_t *request, const json_t *execution)
{
    line("request",
         arena_printf(&cli->arena, "%" PRId64, json_count_of(request, "requestId")));
    line("job", json_text_of(request, "job"));
    print_state(cli, request);
    print_result(cli, request);
    if (execution)
        print_execution(cli, execution);
    line("params", print_compact(&cli->arena, json_object_get(request, "params")));
    line("requester", json_text_of(request, "requester"));
    line("lane", json_text_of(request, "lane"));
    line("priority",
         arena_printf(&cli->arena, "%" JSON_INTEGER_FORMAT,
                      json_integer_value(json_object_get(request, "priority"))));
    number(cli, "estimate", json_count_of(request, "estimate"));
    number(cli, "attempt", json_count_of(request, "attempt"));
    print_tries(cli, request);
    print_webhooks(cli, request);
    line("created", json_text_of(request, "createdAt"));
    line("not before", json_text_of(request, "notBefore"));
    line("expires", json_text_of(request, "expiresAt"));
    line("started", json_text_of(request, "startedAt"));
    line("finished", json_text_of(request, "finishedAt"));
    line("worker", json_text_of(request, "worker"));
}

int
verb_show(struct cli *cli, struct err *err)
{
    scoped(json_drop) json_t *request = NULL;
    scoped(json_drop) json_t *execution = NULL;
    int64_t id = 0;
    int r;

    if (cli_backfill_id(cli, &id))
        return backfill_print(cli, id, err);
    r = cli_request_id(cli, &id, err);

    if (r == 0)
        r = cli->backend->kind->show(cli->backend, id, 0, &request, err);
    if (r == 0 && option_given(&cli->options, OPTION_FOLLOW) &&
        follow_last_try(request) != id) {
        id = follow_last_try(request);
        json_drop(&request);
        request = NULL;
        r = cli->backend->kind->show(cli->backend, id, 0, &request, err);
    }
    if (r == 0 && !cli->json && json_count_of(request, "executionId") > 0)
        r = cli->backend->kind->execution(
            cli->backend, json_count_of(request, "executionId"), &execution, err);
    if (r < 0)
        return r;
    if (cli->json)
        print_json(request);
    else
        print_request(cli, request, execution);
    return 0;
}
