/* pawl cancel ID, pawl stop ID. */
#include "cli/command.h"

#include "base/json.h"
#include "cli/backend.h"
#include "cli/print.h"

#include <inttypes.h>

static int
act(struct cli *cli, enum backend_act what, const char *asked, struct err *err)
{
    scoped(json_drop) json_t *answer = NULL;
    int64_t id = 0;
    int r = cli_request_id(cli, &id, err);

    if (r == 0)
        r = cli->backend->kind->act(cli->backend, what, id, &answer, err);
    if (r < 0)
        return r;
    if (cli->json)
        print_json(answer);
    else if (json_is_true(json_object_get(answer, "cancelled")))
        printf("request %" PRId64 " cancelled\n", id);
    else
        printf("request %" PRId64 " runs and was asked to %s; `pawl watch %" PRId64
               "` shows its end\n",
               id, asked, id);
    return 0;
}

int
verb_cancel(struct cli *cli, struct err *err)
{
    return act(cli, BACKEND_CANCEL, "end", err);
}

int
verb_stop(struct cli *cli, struct err *err)
{
    return act(cli, BACKEND_STOP, "stop at its next chunk", err);
}
