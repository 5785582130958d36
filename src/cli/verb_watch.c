/* pawl watch ID: stay with a request until it is final. */
#include "cli/command.h"

#include "cli/follow.h"

int
verb_watch(struct cli *cli, struct err *err)
{
    int64_t id = 0;
    int r = cli_request_id(cli, &id, err);

    if (r == 0)
        r = follow_check_output(cli, err);
    return r < 0 ? r
                 : follow_to_end(cli, id, option_given(&cli->options, OPTION_FOLLOW),
                                 err);
}
