/* Ties the command line to the roles; nothing else. */
#include "cli/cli.h"

#include "base/strs.h"
#include "roles.h"

static int
run_role(const char *verb, const struct config *config, struct err *err)
{
    enum role role = str_eq(verb, "api")      ? ROLE_API
                     : str_eq(verb, "worker") ? ROLE_WORKER
                                              : ROLE_SERVE;

    return role_run(role, config, err);
}

int
main(int argc, char **argv)
{
    return cli_main(argc, argv, run_role);
}
