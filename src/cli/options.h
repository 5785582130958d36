/*
 * All options in one table: parsing, help and docs/cli.md follow from it. An
 * option means the same with every verb that takes it.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct err;

enum option {
    OPTION_CONFIG,
    OPTION_SERVER,
    OPTION_JSON,
    OPTION_QUIET,
    OPTION_HELP,
    OPTION_PARAM,
    OPTION_PARAMS,
    OPTION_WAIT,
    OPTION_FOLLOW,
    OPTION_OUTPUT,
    OPTION_PRIORITY,
    OPTION_MAX_CALLS,
    OPTION_NOT_BEFORE,
    OPTION_EXPIRES_AT,
    OPTION_REQUESTER,
    OPTION_IDEMPOTENCY_KEY,
    OPTION_JOB,
    OPTION_STATUS,
    OPTION_LIMIT,
    OPTION_AFTER,
    OPTION_NEXT,
    OPTION_CONNECT,
    OPTION_PARALLEL,
    OPTION_ON_FAILURE,
    OPTION_AGAIN,
    OPTION_SCHEMA,
    OPTION_DATABASE,
    OPTION_ALLOW_CALLS,
    OPTION_ROUNDS,
    OPTION_ANEW,
    OPTION_REPAIR,
    OPTION_FILES,
    OPTION_PRINT_ROLES,
    OPTION_MARKDOWN,
    OPTION_COUNT
};

#define OPTION_BIT(option) (UINT64_C(1) << (option))

struct option_row {
    const char *name; /* without the dashes */
    char letter;      /* 0 = none */
    const char *arg;  /* "FILE"; NULL = a flag */
    const char *help;
    bool repeats;
};

/* Values and words point into argv. */
struct options {
    const char *value[OPTION_COUNT]; /* NULL = not given; a flag has "" */
    const char **params;             /* each -p, in order */
    size_t param_count;
    const char **databases; /* each --database, in order */
    size_t database_count;
    const char **words; /* what is no option; the verb is the first */
    size_t word_count;
};

const struct option_row *option_row(enum option option);

/* Read argv[1…]; `--` ends the options. -ERR_USAGE with a "did you mean". */
int options_parse(int argc, char **argv, struct arena *arena,
                  struct options *ret_options, struct err *err) must_check;

/* -ERR_USAGE when one was given that is not in takes; verb is for the message. */
int options_allow(const struct options *options, uint64_t takes, const char *verb,
                  struct err *err) must_check;

static inline bool
option_given(const struct options *options, enum option option)
{
    return options->value[option] != NULL;
}

#endif
