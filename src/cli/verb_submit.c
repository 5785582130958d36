/* pawl submit JOB: ask for a run, and stay for it if wanted. */
#include "cli/command.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/backend.h"
#include "cli/follow.h"
#include "cli/params.h"
#include "cli/print.h"

#include <inttypes.h>

/* That the calls will not do for today: worth a line even where JSON goes out. */
static void
print_warning(const json_t *answer)
{
    scoped(buf_release) struct buf buf = {0};
    const char *warning = json_text_of(answer, "warning");

    if (!*warning)
        return;
    buf_init(&buf, 0);
    print_escape(&buf, warning);
    fprintf(stderr, "pawl: %s\n", buf_str(&buf));
}

static void
print_submitted(struct cli *cli, const json_t *answer, FILE *out)
{
    int64_t estimate = json_count_of(answer, "estimate");

    fprintf(out, "request %" PRId64 " %s in lane %s",
            json_count_of(answer, "requestId"), json_text_of(answer, "status"),
            json_text_of(answer, "lane"));
    if (estimate >= 0)
        fprintf(out, ", about %s rows", print_count(&cli->arena, estimate));
    if (json_is_true(json_object_get(answer, "reused")))
        fputs(" (one that waited already)", out);
    fputc('\n', out);
}

int
verb_submit(struct cli *cli, struct err *err)
{
    const char *job = cli_word(cli, 1);
    bool wait = option_given(&cli->options, OPTION_WAIT) ||
                option_given(&cli->options, OPTION_OUTPUT);
    scoped(json_drop) json_t *body = NULL;
    scoped(json_drop) json_t *answer = NULL;
    int r;

    if (wait && !backend_has_workers(cli->backend))
        return err_set(
            err, ERR_CONNECT,
            "no server runs on this store, so nobody would carry the request "
            "out while you wait; start `pawl serve`, or use `pawl run %s`",
            job);
    r = follow_check_output(cli, err);
    if (r == 0)
        r = params_body(cli, job, &body, err);
    if (r == 0)
        r = cli->backend->kind->submit(cli->backend, job, body,
                                       cli->options.value[OPTION_IDEMPOTENCY_KEY],
                                       &answer, err);
    if (r < 0)
        return r;
    if (!option_given(&cli->options, OPTION_QUIET))
        print_warning(answer);
    if (!wait) {
        if (cli->json)
            print_json(answer);
        else
            print_submitted(cli, answer, stdout);
        if (!backend_has_workers(cli->backend))
            fputs(
                "pawl: no server runs on this store; `pawl serve` will carry it out\n",
                stderr);
        return 0;
    }
    if (!option_given(&cli->options, OPTION_QUIET))
        print_submitted(cli, answer, stderr);
    return follow_to_end(cli, json_count_of(answer, "requestId"), true, err);
}
