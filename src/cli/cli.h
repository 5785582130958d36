/*
 * The command line: `pawl VERB …` (verbs.c is the index). main.c calls it and
 * hands in how the staying roles run, so that this room knows neither api nor
 * worker. stdout carries data, stderr talk. One thread, but for `run`.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

struct config;
struct err;

/* Run serve, api or worker until it is told to end; the exit status, or < 0. */
typedef int (*cli_role_fn)(const char *verb, const struct config *config,
                           struct err *err);

/* The process's exit status: 0 ok, 1 the job FAILED, 2 usage, 3 refused, 4 not found,
 * 5 the job STOPPED, 69 store or server unreachable, 78 configuration. */
int cli_main(int argc, char **argv, cli_role_fn run_role);

#endif
