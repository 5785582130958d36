#include "cli/options.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/strs.h"

#include <string.h>

/* To add one: a constant in options.h, a row here, its bit in the verbs that take it.
 * clang-format off */
static const struct option_row rows[] = {
    [OPTION_CONFIG] = {"config", 'c', "FILE",
                       "the configuration; else PAWL_CONFIG, else ./pawl.yaml", false},
    [OPTION_SERVER] = {"server", 0, "URL",
                       "ask this server (http://host:port or unix:PATH); else "
                       "PAWL_SERVER, else the store of the configuration",
                       false},
    [OPTION_JSON] = {"json", 0, NULL, "print JSON instead of text", false},
    [OPTION_QUIET] = {"quiet", 'q', NULL, "no progress on stderr", false},
    [OPTION_HELP] = {"help", 'h', NULL, "print the help of the verb", false},
    [OPTION_PARAM] = {"param", 'p', "NAME=VALUE",
                      "a parameter of the job; may be repeated", true},
    [OPTION_PARAMS] =
        {"params", 0, "JSON|@FILE",
         "all parameters as a JSON object, or @ and a file that holds one", false},
    [OPTION_WAIT] =
        {"wait", 'w', NULL,
         "stay until the request is final; exit 1 if it FAILED, 5 if it STOPPED",
         false},
    [OPTION_FOLLOW] = {"follow", 0, NULL,
                       "when it failed and is tried again, go on with the next try",
                       false},
    [OPTION_OUTPUT] =
        {"output", 'o', "FILE",
         "put the result there (implies --wait); a folder takes the result's own name",
         false},
    [OPTION_PRIORITY] = {"priority", 0, "N", "-100 to 100, higher first", false},
    [OPTION_MAX_CALLS] = {"max-calls", 0, "N",
                          "at most so many calls of outside services, 0 = none", false},
    [OPTION_NOT_BEFORE] = {"not-before", 0, "TIME",
                           "do not start before, such as 2026-11-29T20:00:00Z", false},
    [OPTION_EXPIRES_AT] = {"expires-at", 0, "TIME",
                           "give it up if it has not started by then", false},
    [OPTION_REQUESTER] = {"requester", 0, "NAME", "in whose name", false},
    [OPTION_IDEMPOTENCY_KEY] =
        {"idempotency-key", 0, "KEY",
         "the same key and parameters again answer the same request", false},
    [OPTION_JOB] = {"job", 0, "JOB", "only those of this job", false},
    [OPTION_STATUS] = {"status", 0, "STATUS",
                       "only those QUEUED, RUNNING, DONE or FAILED", false},
    [OPTION_LIMIT] = {"limit", 0, "N", "at most so many (1 to 200, default 50)", false},
    [OPTION_AFTER] = {"after", 0, "ID[,ID]",
                      "submit: run when these requests are COMPLETED; requests: only "
                      "those older than this one, the next page",
                      false},
    [OPTION_NEXT] = {"next", 0, "N", "print the next N times of each (1 to 100)",
                     false},
    [OPTION_CONNECT] = {"connect", 0, NULL, "also open each database once", false},
    [OPTION_PARALLEL] = {"parallel", 0, "N", "so many of its items at once (default 1)",
                         false},
    [OPTION_ON_FAILURE] = {"on-failure", 0, "go-on|hold",
                           "what an item that fails does to the others", false},
    [OPTION_AGAIN] = {"again", 0, NULL, "also those that are COMPLETED already", false},
    [OPTION_SCHEMA] = {"schema", 0, "FILE.sql",
                       "SQL that makes and fills the tables of `main` in the scratch "
                       "store",
                       false},
    [OPTION_DATABASE] = {"database", 0, "NAME=URL",
                         "copy this one in place of the configured database; may be "
                         "repeated",
                         true},
    [OPTION_ALLOW_CALLS] = {"allow-calls", 0, NULL,
                            "let its steps call outside, again and again", false},
    [OPTION_ROUNDS] = {"rounds", 0, "N",
                       "kill it at no more than N places (1 to 100000, default 50)",
                       false},
    [OPTION_ANEW] = {"anew", 0, NULL,
                     "begin anew, also where a stopped or failed run could be gone on "
                     "with (restart: false)",
                     false},
    [OPTION_REPAIR] = {"repair", 0, NULL, "carry out the repairs that are safe", false},
    [OPTION_FILES] = {"files", 0, NULL,
                      "also read each result whole and compare its SHA-256", false},
    [OPTION_PRINT_ROLES] =
        {"print-roles", 0, NULL,
         "print the SQL that makes the roles of PostgreSQL and their rights, for psql; "
         "change nothing",
         false},
    [OPTION_MARKDOWN] = {"markdown", 0, NULL, "print the reference of all verbs",
                         false},
};
/* clang-format on */
static_assert_count(rows, OPTION_COUNT);
_Static_assert(OPTION_COUNT <= 64, "a bit for each option");

const struct option_row *
option_row(enum option option)
{
    return &rows[option];
}

struct parse {
    int argc;
    char **argv;
    int at; /* of the argument being read */
    struct options *options;
};

static int
unknown(const char *given, size_t len, struct err *err)
{
    const char *names[OPTION_COUNT];
    const char *near;
    char name[64];

    for (size_t i = 0; i < OPTION_COUNT; i++)
        names[i] = rows[i].name;
    snprintf(name, sizeof(name), "%.*s", (int)len, given);
    near = str_nearest(name, names, OPTION_COUNT);
    if (near)
        return err_set(err, ERR_USAGE, "there is no option --%s; did you mean --%s?",
                       name, near);
    return err_set(err, ERR_USAGE,
                   "there is no option --%s; `pawl help VERB` lists those of a verb",
                   name);
}

/* text: what was joined to the option by "=" or stands behind its letter, or NULL. */
static int
take(struct parse *parse, enum option option, const char *text, struct err *err)
{
    const struct option_row *row = &rows[option];
    struct options *options = parse->options;

    if (row->arg && !text) {
        if (parse->at + 1 >= parse->argc)
            return err_set(err, ERR_USAGE, "--%s needs a value: --%s %s", row->name,
                           row->name, row->arg);
        text = parse->argv[++parse->at];
    }
    if (!row->arg && text)
        return err_set(err, ERR_USAGE, "--%s takes no value; leave out =%s", row->name,
                       text);
    if (options->value[option] && !row->repeats && row->arg)
        return err_set(err, ERR_USAGE, "--%s was given twice; give it once", row->name);
    options->value[option] = text ? text : "";
    if (option == OPTION_PARAM)
        options->params[options->param_count++] = text;
    if (option == OPTION_DATABASE)
        options->databases[options->database_count++] = text;
    return 0;
}

static int
take_long(struct parse *parse, const char *arg, struct err *err)
{
    size_t len = strcspn(arg, "=");

    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (strlen(rows[i].name) == len && memcmp(rows[i].name, arg, len) == 0)
            return take(parse, (enum option)i, arg[len] ? arg + len + 1 : NULL, err);
    return unknown(arg, len, err);
}

/* "-qw" is -q -w; "-pa=1" is -p a=1. */
static int
take_letters(struct parse *parse, const char *letters, struct err *err)
{
    int r = 0;

    for (; r == 0 && *letters; letters++) {
        size_t i = 0;

        while (i < OPTION_COUNT && rows[i].letter != *letters)
            i++;
        if (i == OPTION_COUNT)
            return err_set(err, ERR_USAGE,
                           "there is no option -%c; `pawl help VERB` lists those of a "
                           "verb",
                           *letters);
        if (rows[i].arg)
            return take(parse, (enum option)i, letters[1] ? letters + 1 : NULL, err);
        r = take(parse, (enum option)i, NULL, err);
    }
    return r;
}

int
options_parse(int argc, char **argv, struct arena *arena, struct options *ret_options,
              struct err *err)
{
    struct options options = {
        .params = arena_array(arena, const char *, (size_t)argc + 1),
        .databases = arena_array(arena, const char *, (size_t)argc + 1),
        .words = arena_array(arena, const char *, (size_t)argc + 1),
    };
    struct parse parse = {.argc = argc, .argv = argv, .options = &options};
    bool ended = false;
    int r = 0;

    for (parse.at = 1; r == 0 && parse.at < argc; parse.at++) {
        const char *arg = argv[parse.at];

        if (ended || arg[0] != '-' || !arg[1])
            options.words[options.word_count++] = arg;
        else if (str_eq(arg, "--"))
            ended = true;
        else if (arg[1] == '-')
            r = take_long(&parse, arg + 2, err);
        else
            r = take_letters(&parse, arg + 1, err);
    }
    if (r == 0)
        *ret_options = options;
    return r;
}

int
options_allow(const struct options *options, uint64_t takes, const char *verb,
              struct err *err)
{
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (options->value[i] && !(takes & OPTION_BIT(i)))
            return err_set(
                err, ERR_USAGE,
                "`pawl %s` takes no --%s; `pawl help %s` lists what it takes", verb,
                rows[i].name, verb);
    return 0;
}
