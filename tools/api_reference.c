/* Writes docs/api-routes.md to standard output: `tools/docs-check --write`. */
#include "api/api_private.h"

#include "base/err.h"

#include <stdio.h>

static void
print_routes(void)
{
    size_t count = 0;
    const struct route *routes = api_routes(&count);

    puts("# Routes and codes\n\n"
         "Made from the tables in `src/api/routes.c` and `src/base/err.def`\n"
         "(`tools/docs-check --write`). What the bodies hold is told in "
         "[api.md](api.md).\n"
         "\n"
         "| method | path | what it does |\n|---|---|---|");
    for (size_t i = 0; i < count; i++)
        printf("| %s | `%s` | %s |\n", routes[i].method, routes[i].path,
               routes[i].help);
}

static void
print_codes(void)
{
    puts("\n`GET` also answers `HEAD`. Every failure is a problem document with one of "
         "these codes;\nthe last column is the exit status of the command line.\n\n"
         "| code | status | exit |\n|---|---|---|");
    for (int code = ERR_NONE + 1; code < ERR_COUNT; code++)
        printf("| `%s` | %d | %d |\n", err_word((enum err_code)code),
               err_http_status((enum err_code)code),
               err_exit_code((enum err_code)code));
}

int
main(void)
{
    print_routes();
    print_codes();
    return 0;
}
