/* pawl why ID: what holds a request up, or how it ended. */
#include "cli/command.h"

#include "base/buf.h"
#include "base/json.h"
#include "cli/backend.h"
#include "cli/print.h"

#include <inttypes.h>

static void
print_reason(const json_t *reason)
{
    scoped(buf_release) struct buf text = {0};

    buf_init(&text, 0);
    print_escape(&text, json_text_of(reason, "text"));
    printf("%s: %s\n", json_text_of(reason, "code"), buf_str(&text));
}

static void
print_holders(const json_t *reason)
{
    const json_t *holder;
    size_t i;

    json_array_foreach(json_object_get(reason, "holders"), i, holder)
    {
        printf("    request %" PRId64 "  %s\n", json_count_of(holder, "requestId"),
               json_text_of(holder, "job"));
    }
}

int
verb_why(struct cli *cli, struct err *err)
{
    scoped(json_drop) json_t *answer = NULL;
    const json_t *reason;
    int64_t id = 0;
    size_t i;
    int r = cli_request_id(cli, &id, err);

    if (r == 0)
        r = cli->backend->kind->why(cli->backend, id, &answer, err);
    if (r < 0)
        return r;
    if (cli->json) {
        print_json(answer);
        return 0;
    }
    json_array_foreach(json_object_get(answer, "reasons"), i, reason)
    {
        print_reason(reason);
        print_holders(reason);
    }
    if (json_array_size(json_object_get(answer, "reasons")) == 0)
        printf("Nothing holds it up: it is about to be claimed.\n");
    return 0;
}
