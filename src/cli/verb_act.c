/* What is done to a request: cancel, stop, restart; and recover, to an execution. */
#include "cli/command.h"

#include "base/err.h"
#include "base/json.h"
#include "base/strs.h"
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

static int
cancel_backfill(struct cli *cli, int64_t id, struct err *err)
{
    scoped(json_drop) json_t *answer = NULL;
    int r = cli->backend->kind->act(cli->backend, BACKEND_CANCEL_BACKFILL, id, &answer,
                                    err);

    if (r < 0)
        return r;
    if (cli->json)
        print_json(answer);
    else
        printf("backfill %" PRId64 " cancelled; %" PRId64 " of its items still end\n",
               id, json_count_of(answer, "open"));
    return 0;
}

int
verb_cancel(struct cli *cli, struct err *err)
{
    int64_t id = 0;

    if (cli_backfill_id(cli, &id))
        return cancel_backfill(cli, id, err);
    return act(cli, BACKEND_CANCEL, "end", err);
}

int
verb_stop(struct cli *cli, struct err *err)
{
    return act(cli, BACKEND_STOP, "stop at its next chunk", err);
}

int
verb_restart(struct cli *cli, struct err *err)
{
    scoped(json_drop) json_t *answer = NULL;
    int64_t id = 0;
    int r = cli_request_id(cli, &id, err);

    if (r == 0)
        r = cli->backend->kind->act(cli->backend, BACKEND_RESTART, id, &answer, err);
    if (r < 0)
        return r;
    if (cli->json)
        print_json(answer);
    else if (json_is_true(json_object_get(answer, "reused")))
        printf("request %" PRId64 " goes on with it already and waits no longer\n",
               json_count_of(answer, "requestId"));
    else if (json_is_false(json_object_get(answer, "goesOn")))
        printf("request %" PRId64 " begins the work of request %" PRId64 " anew\n",
               json_count_of(answer, "requestId"), id);
    else
        printf("request %" PRId64 " goes on with the work of request %" PRId64 "\n",
               json_count_of(answer, "requestId"), id);
    return 0;
}

int
verb_recover(struct cli *cli, struct err *err)
{
    scoped(json_drop) json_t *answer = NULL;
    struct err note = {0};
    int64_t id = 0;
    int r;

    if (parse_i64("EXECUTION", cli_word(cli, 1), 1, INT64_MAX, &id, &note) < 0)
        return err_set(err, ERR_USAGE,
                       "%.60s is not the id of an execution; `pawl show ID` of its "
                       "request tells it",
                       cli_word(cli, 1));
    r = cli->backend->kind->act(cli->backend, BACKEND_RECOVER, id, &answer, err);
    if (r < 0)
        return r;
    if (cli->json)
        print_json(answer);
    else
        printf("execution %" PRId64 " is %s; its request was %" PRId64 "\n", id,
               json_text_of(answer, "state"), json_count_of(answer, "requestId"));
    return 0;
}
