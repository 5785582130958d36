/* pawl serve, api, worker: roles that stay. main.c knows how. */
#include "cli/command.h"

int
verb_role(struct cli *cli, struct err *err)
{
    return cli->run_role(cli->verb->name, cli->config, err);
}
