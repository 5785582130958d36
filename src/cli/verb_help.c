/* pawl help [VERB], pawl version, and docs/cli.md: all from the two tables. */
#include "cli/command.h"

#include "base/err.h"
#include "base/strs.h"
#include "cli/print.h"
#include "version.h"

#include <string.h>

#define EVERY_VERB  (OPTION_BIT(OPTION_HELP))
#define NAME_WIDTH  10
#define WORDS_WIDTH 9
#define ARG_WIDTH   26

static const char intro[] =
    "pawl runs jobs that take too long for a web request: it keeps them in a\n"
    "database, runs each on some worker, shows the progress and keeps the result.\n";

static const char exits[] =
    "Exit status: 0 ok, 1 the job FAILED, 2 usage, 3 refused, 4 not found, 5 the job\n"
    "STOPPED, 69 store or server unreachable, 78 configuration, 130 left by Ctrl-C.\n";

static const char roles[] =
    "Without a verb PAWL_ROLE decides: serve, api or worker start; cli prints this.\n";

static const char *
usage_of(const struct verb *verb, char *out, size_t size)
{
    snprintf(out, size, "pawl %s%s%s%s", verb->name, verb->takes ? " [OPTIONS]" : "",
             *verb->args ? " " : "", verb->args);
    return out;
}

/* "-p, --param NAME=VALUE" */
static const char *
option_text(const struct option_row *row, char *out, size_t size)
{
    char letter[8] = "    ";

    if (row->letter)
        snprintf(letter, sizeof(letter), "-%c, ", row->letter);
    snprintf(out, size, "%s--%s%s%s", letter, row->name, row->arg ? " " : "",
             row->arg ? row->arg : "");
    return out;
}

static void
print_options(uint64_t takes)
{
    char text[64];

    for (int i = 0; i < OPTION_COUNT; i++)
        if (takes & OPTION_BIT(i)) {
            const struct option_row *row = option_row((enum option)i);

            printf("  %-*s %s\n", ARG_WIDTH, option_text(row, text, sizeof(text)),
                   row->help);
        }
}

static void
print_verb(const struct verb *verb)
{
    char text[128];

    printf("%s\n\n%s\n", usage_of(verb, text, sizeof(text)), verb->help);
    if (verb->more)
        printf("\n%s\n", verb->more);
    printf("\nOptions:\n");
    print_options(verb->takes | EVERY_VERB);
}

static void
print_all(void)
{
    const struct verb *list;
    size_t count = 0;

    list = verbs(&count);
    printf("%s\nusage: pawl VERB [OPTIONS] [WORDS]\n\n", intro);
    for (size_t i = 0; i < count; i++)
        if (strlen(list[i].args) <= WORDS_WIDTH)
            printf("  %-*s %-*s %s\n", NAME_WIDTH, list[i].name, WORDS_WIDTH,
                   list[i].args, list[i].help);
        else
            printf("  %-*s %s\n  %-*s %s\n", NAME_WIDTH, list[i].name, list[i].args,
                   NAME_WIDTH + 1 + WORDS_WIDTH, "", list[i].help);
    printf("\n`pawl help VERB` tells the options of a verb.\n%s\n%s", roles, exits);
}

/* --- docs/cli.md --- */

/* A bar would end the cell of the table. */
static void
print_cell(const char *arg)
{
    if (!arg)
        return;
    putchar(' ');
    for (; *arg; arg++) {
        if (*arg == '|')
            putchar('\\');
        putchar(*arg);
    }
}

static void
print_markdown_verb(const struct verb *verb)
{
    char text[128];

    printf("\n## %s\n\n`%s`\n\n%s%s\n", verb->name, usage_of(verb, text, sizeof(text)),
           verb->help, str_ends_with(verb->help, "?") ? "" : ".");
    if (verb->more)
        printf("\n```\n%s\n```\n", verb->more);
    if (!verb->takes)
        return;
    printf("\n| option | |\n|---|---|\n");
    for (int i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *row = option_row((enum option)i);

        if (!(verb->takes & OPTION_BIT(i)))
            continue;
        printf("| `");
        if (row->letter)
            printf("-%c`, `", row->letter);
        printf("--%s", row->name);
        print_cell(row->arg);
        printf("` | %s |\n", row->help);
    }
}

static void
print_markdown(void)
{
    const struct verb *list;
    size_t count = 0;

    list = verbs(&count);
    printf("# The command line\n\n"
           "Made from the tables of src/cli (verbs.c, options.c) by\n"
           "`tools/docs-check --write BUILD`; do not edit.\n\n%s\n%s\n"
           "Data goes to stdout, talk and progress to stderr. With `--json` a failure\n"
           "is a line of JSON on stdout too: `{\"code\": …, \"detail\": …, \"exit\": "
           "…}`.\n\n%s",
           intro, roles, exits);
    for (size_t i = 0; i < count; i++)
        print_markdown_verb(&list[i]);
}

int
verb_help(struct cli *cli, struct err *err)
{
    const char *name = cli_word(cli, 1);
    const struct verb *verb = name ? verb_find(name) : NULL;

    if (name && !verb)
        return err_set(err, ERR_USAGE, "there is no verb %.60s; `pawl help` lists them",
                       name);
    if (option_given(&cli->options, OPTION_MARKDOWN))
        print_markdown();
    else if (verb)
        print_verb(verb);
    else
        print_all();
    return 0;
}

int
verb_version(struct cli *cli, struct err *err)
{
    (void)err;
    if (cli->json)
        puts("{\"version\":\"" PAWL_VERSION "\"}");
    else
        puts("pawl " PAWL_VERSION);
    return 0;
}
