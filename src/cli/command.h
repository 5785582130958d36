/*
 * What a verb is, and what it is given: for the files of this room only. A verb
 * lives in verb_NAME.c and is a row of verbs.c.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "base/arena.h"
#include "cli/cli.h"
#include "cli/options.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct backend;

/* A person left with Ctrl-C: what shells expect. */
#define EXIT_INTERRUPTED 130
#define EXIT_USAGE       2
#define EXIT_CONFIG      78

/* What the dispatcher provides before run is called. */
enum verb_need {
    NEED_NOTHING,
    NEED_CONFIG,  /* cli->config */
    NEED_BACKEND, /* cli->backend, over HTTP or our own store */
    NEED_WORKER,  /* the same; our own store with the rights of a worker */
};

struct cli {
    struct arena arena;
    struct options options;
    const struct verb *verb;
    cli_role_fn run_role;
    struct config *config;   /* NULL when the answer comes from --server */
    struct backend *backend; /* of verbs that need one */
    bool json;
};

/* Exit status (>= 0), or a failure that the dispatcher reports. */
typedef int (*verb_fn)(struct cli *cli, struct err *err);

struct verb {
    const char *name;
    const char *args; /* for people: "JOB", "[VERB]" */
    size_t args_min;
    size_t args_max;
    const char *help; /* one line */
    enum verb_need need;
    uint64_t takes; /* OPTION_BIT of each option besides those that all take */
    verb_fn run;
    const char *more; /* for `pawl help VERB`; NULL = nothing to add */
};

const struct verb *verbs(size_t *ret_count);
const struct verb *verb_find(const char *name);
/* The verb a person may have meant; NULL when none is near. */
const char *verb_nearest(const char *name);

/* The nth word behind the verb; NULL when it was not given. */
const char *cli_word(const struct cli *cli, size_t n);
/* The word behind the verb as the id of a request. */
int cli_request_id(const struct cli *cli, int64_t *ret_id, struct err *err) must_check;
/* The word behind the verb as that of a backfill, b7: 1; 0 = it is none. */
int cli_backfill_id(const struct cli *cli, int64_t *ret_id);
/* Print one (verb_backfill.c). */
int backfill_print(struct cli *cli, int64_t backfill_id, struct err *err) must_check;
/* Find, read and check the file; what is wrong with it goes to stderr. */
int cli_load_config(struct cli *cli, struct err *err) must_check;

/* Exit status of a request that is final. */
int cli_exit_of(const json_t *request);

int verb_role(struct cli *cli, struct err *err);
int verb_run(struct cli *cli, struct err *err);
int verb_torture(struct cli *cli, struct err *err);
int verb_submit(struct cli *cli, struct err *err);
int verb_show(struct cli *cli, struct err *err);
int verb_why(struct cli *cli, struct err *err);
int verb_watch(struct cli *cli, struct err *err);
int verb_cancel(struct cli *cli, struct err *err);
int verb_stop(struct cli *cli, struct err *err);
int verb_restart(struct cli *cli, struct err *err);
int verb_recover(struct cli *cli, struct err *err);
int verb_requests(struct cli *cli, struct err *err);
int verb_jobs(struct cli *cli, struct err *err);
int verb_schedules(struct cli *cli, struct err *err);
int verb_lanes(struct cli *cli, struct err *err);
int verb_budgets(struct cli *cli, struct err *err);
int verb_backfill(struct cli *cli, struct err *err);
int verb_backfills(struct cli *cli, struct err *err);
int verb_pause(struct cli *cli, struct err *err);
int verb_resume(struct cli *cli, struct err *err);
int verb_workers(struct cli *cli, struct err *err);
int verb_check(struct cli *cli, struct err *err);
int verb_doctor(struct cli *cli, struct err *err);
int verb_fsck(struct cli *cli, struct err *err);
int verb_prune(struct cli *cli, struct err *err);
int verb_migrate(struct cli *cli, struct err *err);
int verb_help(struct cli *cli, struct err *err);
int verb_version(struct cli *cli, struct err *err);

#endif
