/*
 * From argv to a verb and back to an exit status: read the options, find the
 * verb (or the role that the environment names), provide what it needs, run it,
 * report its failure once.
 */
#include "cli/cli.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/strs.h"
#include "cli/backend.h"
#include "cli/command.h"
#include "cli/print.h"
#include "config/config.h"
#include "config/errors.h"
#include "run/check.h"
#include "schedule/check.h"

#include <stdlib.h>
#include <string.h>

/* --- what verbs ask of us --- */

const char *
cli_word(const struct cli *cli, size_t n)
{
    return n < cli->options.word_count ? cli->options.words[n] : NULL;
}

int
cli_request_id(const struct cli *cli, int64_t *ret_id, struct err *err)
{
    struct err note = {0};

    if (parse_i64("ID", cli_word(cli, 1), 1, INT64_MAX, ret_id, &note) < 0)
        return err_set(err, ERR_USAGE,
                       "%.60s is not the id of a request; `pawl requests` lists them",
                       cli_word(cli, 1));
    return 0;
}

int
cli_backfill_id(const struct cli *cli, int64_t *ret_id)
{
    const char *word = cli_word(cli, 1);
    struct err note = {0};

    return word[0] == 'b' &&
           parse_i64("ID", word + 1, 1, INT64_MAX, ret_id, &note) == 0;
}

int
cli_exit_of(const json_t *request)
{
    if (str_eq(json_text_of(request, "outcome"), "STOPPED"))
        return err_exit_code(ERR_STOPPED);
    return str_eq(json_text_of(request, "status"), "FAILED") ? 1 : 0;
}

int
cli_load_config(struct cli *cli, struct err *err)
{
    scoped(config_errors_release) struct config_errors errors = {0};
    scoped(config_free_ptr) struct config *config = NULL;
    scoped(xfree_ptr) char *path = NULL;
    int r = config_find(cli->options.value[OPTION_CONFIG], NULL, NULL, &path, err);

    if (r == 0)
        r = config_load(path, NULL, NULL, &config, &errors, err);
    if (config) {
        run_check(config, &errors);
        schedule_check(config, &errors);
    }
    if (errors.count > 0) {
        config_errors_sort(&errors);
        config_errors_print(&errors, stderr);
        err_clear(err);
        return err_set(err, ERR_CONFIG, "%s cannot be used: %zu problem%s, see above",
                       path, errors.count + errors.left_out,
                       errors.count + errors.left_out == 1 ? "" : "s");
    }
    if (r < 0)
        return r;
    cli->config = config;
    config = NULL;
    return 0;
}

/* --- providing --- */

static int
open_backend(struct cli *cli, struct err *err)
{
    const char *server = cli->options.value[OPTION_SERVER];
    struct backend_local local = {.role = cli->verb->name};
    int r;

    /* A file that was named is meant, whatever the environment says. */
    if (!server && !option_given(&cli->options, OPTION_CONFIG))
        server = getenv("PAWL_SERVER");
    if (!str_empty(server))
        return backend_http_new(server, &cli->backend, err);
    r = cli_load_config(cli, err);
    if (r < 0)
        return r;
    local.config = cli->config;
    local.store = cli->config->store.api;
    if (cli->verb->need == NEED_WORKER && cli->config->store.worker)
        local.store = cli->config->store.worker;
    /* On PostgreSQL only the staying roles publish: another machine's file must not
     * change what all see. */
    local.publish = local.store && str_starts_with(local.store, "sqlite:");
    return backend_local_new(&local, &cli->backend, err);
}

static int
provide(struct cli *cli, struct err *err)
{
    switch (cli->verb->need) {
    case NEED_NOTHING:
        return 0;
    case NEED_CONFIG:
        return cli_load_config(cli, err);
    case NEED_BACKEND:
    case NEED_WORKER:
        return open_backend(cli, err);
    }
    return 0;
}

/* --- which verb --- */

static int
check_words(const struct cli *cli, struct err *err)
{
    const struct verb *verb = cli->verb;
    size_t given = cli->options.word_count > 0 ? cli->options.word_count - 1 : 0;

    if (given < verb->args_min)
        return err_set(err, ERR_USAGE, "`pawl %s` needs %s: pawl %s %s", verb->name,
                       verb->args, verb->name, verb->args);
    if (given > verb->args_max)
        return err_set(err, ERR_USAGE,
                       "`pawl %s` does not know what to do with %.60s; see `pawl help "
                       "%s`",
                       verb->name, cli->options.words[verb->args_max + 1], verb->name);
    return 0;
}

/* The role of the environment: NULL = none; "cli" = only what is typed. */
static int
role_of_environment(const char **ret_role, struct err *err)
{
    static const char *const known[] = {"serve", "api", "worker", "cli"};
    const char *role = getenv("PAWL_ROLE");

    *ret_role = NULL;
    if (str_empty(role))
        return 0;
    for (size_t i = 0; i < array_len(known); i++)
        if (str_eq(role, known[i])) {
            *ret_role = known[i];
            return 0;
        }
    return err_set(err, ERR_USAGE,
                   "PAWL_ROLE is %.60s; it must be serve, api, worker or cli", role);
}

static int
choose_verb(struct cli *cli, struct err *err)
{
    const char *role = NULL;
    const char *word = cli_word(cli, 0);
    int r = role_of_environment(&role, err);

    if (r < 0)
        return r;
    if (!word && option_given(&cli->options, OPTION_HELP))
        word = "help";
    if (!word && role && !str_eq(role, "cli"))
        word = role;
    if (!word)
        return err_set(err, ERR_USAGE, "no verb; `pawl help` lists them");
    cli->verb = verb_find(word);
    if (cli->verb)
        return 0;
    if (verb_nearest(word))
        return err_set(err, ERR_USAGE, "there is no verb %.60s; did you mean %s?", word,
                       verb_nearest(word));
    return err_set(err, ERR_USAGE, "there is no verb %.60s; `pawl help` lists them",
                   word);
}

static int
run_verb(struct cli *cli, struct err *err)
{
    int r = choose_verb(cli, err);

    if (r < 0)
        return r;
    if (option_given(&cli->options, OPTION_HELP)) {
        /* As `pawl help VERB`; without any verb as `pawl help`. */
        cli->options.words[1] = cli_word(cli, 0) ? cli->verb->name : NULL;
        cli->options.word_count = cli->options.words[1] ? 2 : 1;
        return verb_help(cli, err);
    }
    r = options_allow(&cli->options, cli->verb->takes, cli->verb->name, err);
    if (r == 0)
        r = check_words(cli, err);
    if (r == 0)
        r = provide(cli, err);
    return r < 0 ? r : cli->verb->run(cli, err);
}

/* --- the end --- */

/* Words of the API that mean something else here. */
static void
translate(struct cli *cli, struct err *err)
{
    const char *job = cli_word(cli, 1);

    if (err->code != ERR_JOB_NOT_FOUND || !job || cli->verb->need != NEED_BACKEND ||
        !str_eq(cli->verb->args, "JOB"))
        return; /* what restarts a request names its job itself */
    err_clear(err);
    err_set(
        err, ERR_JOB_NOT_FOUND,
        "there is no job %.100s; `pawl jobs` lists them. One that was just added to "
        "pawl.yaml comes with the next start of `pawl serve` or a worker",
        job);
}

static int
report(struct cli *cli, const struct err *err)
{
    scoped(buf_release) struct buf text = {0};
    scoped(buf_release) struct buf json = {0};
    int status = err_exit_code(err->code);
    struct json_out out;

    buf_init(&text, 0);
    print_escape(&text, err->text);
    fprintf(stderr, "pawl: %s\n", buf_str(&text));
    if (!cli->json)
        return status;
    buf_init(&json, 0);
    json_out_init(&out, &json);
    json_begin_object(&out);
    json_kv_str(&out, "code", err_word(err->code));
    json_kv_str(&out, "detail", err->text);
    json_kv_i64(&out, "exit", status);
    json_end_object(&out);
    puts(buf_str(&json));
    return status;
}

/* What could not be printed was not done: a full disk behind `> file`. */
static int
flush_out(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fputs("pawl: cannot write to stdout; is the disk full?\n", stderr);
    return status ? status : 1;
}

int
cli_main(int argc, char **argv, cli_role_fn run_role)
{
    struct cli cli = {.run_role = run_role};
    struct err err = {0};
    int r;

    r = options_parse(argc, argv, &cli.arena, &cli.options, &err);
    cli.json = option_given(&cli.options, OPTION_JSON);
    if (r == 0)
        r = run_verb(&cli, &err);
    if (r < 0) {
        translate(&cli, &err);
        r = report(&cli, &err);
    }
    backend_free(cli.backend);
    config_free(cli.config);
    arena_release(&cli.arena);
    return flush_out(r);
}
