/*
 * struct config: the whole pawl.yaml, checked and with all defaults filled in.
 * Nobody else parses YAML. Read-only after config_load, so any thread may read
 * it; freed by config_free, and every pointer in it lives exactly as long.
 * Times are microseconds, sizes bytes. Paths are absolute.
 *
 * A job is kept twice: as struct config_job for the process itself, and as a
 * canonical JSON text (`definition`, docs/definition.md) with its SHA-256 that
 * is published to the store's job_definition table and read back by
 * queue/job.h. Steps stay JSON; config_job_problem finds the place in the file
 * for a JSON pointer, so that the rooms that understand steps can report
 * file:line:column too.
 */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include "base/compiler.h"
#include "base/arena.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct err;
struct config_errors;
struct ynode;

enum config_log_level {
    CONFIG_LOG_DEBUG,
    CONFIG_LOG_INFO,
    CONFIG_LOG_WARN,
    CONFIG_LOG_ERROR,
};

enum config_log_format { CONFIG_LOG_TEXT, CONFIG_LOG_JSON, CONFIG_LOG_JOURNAL };

/* A name with a value: databases (URL). */
struct config_database {
    const char *name;
    const char *url; /* sqlite:/abs/path or postgresql://...; may hold a password */
};

struct config_lane {
    const char *name;
    int64_t slots; /* 0-1000; 0 = this worker does not serve it */
};

struct config_budget {
    const char *name;
    int64_t per_day;    /* calls */
    const char *zone;   /* IANA name */
    int64_t spacing_us; /* least time between two calls; 0 = none */
};

/* What becomes of a fixed time that a change of clocks leaves out, or repeats. */
enum config_gap { CONFIG_GAP_RUN_AFTER, CONFIG_GAP_SKIP };
enum config_overlap {
    CONFIG_OVERLAP_FIRST,
    CONFIG_OVERLAP_SECOND,
    CONFIG_OVERLAP_BOTH
};

enum config_missed { CONFIG_MISSED_ONE, CONFIG_MISSED_SKIP, CONFIG_MISSED_ALL };

struct config_schedule {
    const char *name;
    const char *job;
    const char *cron; /* five or six fields or @word; read by schedule/cron.c */
    const char *zone;
    enum config_gap gap;
    enum config_overlap overlap;
    enum config_missed missed;
    int64_t missed_max; /* with CONFIG_MISSED_ALL: at most so many */
    bool paused;
    json_t *params;           /* object, checked against the job's parameters */
    const struct ynode *node; /* for positions */
};

enum config_kind { CONFIG_BATCH, CONFIG_TASK };

enum config_duplicates {
    CONFIG_DUPLICATES_DEFAULT, /* never after load */
    CONFIG_DUPLICATES_REFUSE,
    CONFIG_DUPLICATES_REUSE,
    CONFIG_DUPLICATES_ALLOW,
};

/* Bits of config_retry.on: after which outcome of FAILED a follow-up is made. */
enum config_retry_on {
    CONFIG_RETRY_ERROR = 1 << 0,
    CONFIG_RETRY_TIMEOUT = 1 << 1,
    CONFIG_RETRY_WORKER_LOST = 1 << 2,
};

struct config_retry {
    int64_t attempts;   /* tries in all, the first included; 1 = never again */
    int64_t backoff_us; /* before the second try, then doubled */
    int64_t max_backoff_us;
    unsigned on;  /* enum config_retry_on bits */
    bool drained; /* go on by itself after a drain */
};

struct config_estimate {
    const char *database; /* NULL = the job has no estimate */
    const char *sql;
    int64_t timeout_us;
    const char *otherwise; /* lane when there is no answer by then */
};

/* Whom to tell that a request has ended. */
struct config_webhook {
    const char *name;
    const char *url; /* https, or http to this machine */
    const char *key; /* the secret's name, one of `keys` */
    int64_t timeout_us;
};

struct config_job {
    const char *name;
    const char *title;       /* the name when none is given */
    const char *description; /* "" when none */
    enum config_kind kind;
    const char *lane; /* where it goes if not routed by size */
    int64_t
        large_over; /* an estimate of so many or more: lane "large"; -1 = no routing */
    struct config_estimate estimate;
    struct {
        const char *budget; /* NULL = no forecast of calls */
        int64_t per_item;   /* calls for each item of the estimate */
    } calls;
    enum config_duplicates duplicates;
    int64_t reuse_window_us;
    int64_t timeout_us;      /* from the claim; 0 = none */
    int64_t expire_after_us; /* from the submit; 0 = never */
    int64_t priority;        /* -100..100 */
    struct config_retry retry;
    const char **needs_keys;
    size_t needs_key_count;
    json_t *next;        /* array of names and {job, params}; NULL = none */
    const char *webhook; /* NULL = nobody is told */
    unsigned webhook_on; /* bits of webhooks.c: after which outcomes */
    bool makes_result;
    json_t *params; /* object name -> rule (docs/parameters.md); {} when none */
    json_t *steps;  /* array; NULL for a task */
    json_t *task;   /* object; NULL for a batch */

    const char *definition;   /* canonical JSON text */
    char hash[65];            /* SHA-256 of it, hex */
    const struct ynode *node; /* the job in the file, for positions */
};

struct config {
    const char *file;   /* as the user named it: for messages */
    const char *path;   /* the same, absolute */
    const char *folder; /* that holds it */
    int64_t version; /* config_version; not given: the file's time in ms since 1970 */

    struct {
        const char *url; /* for every role that has none of its own */
        const char *api;
        const char *worker;
        const char *listen; /* direct connection for LISTEN; NULL = poll */
        int64_t connect_timeout_us;
        int64_t statement_timeout_us;
    } store;

    struct config_database *databases;
    size_t database_count;
    const char *results;
    const char *state;
    struct config_lane *lanes;
    size_t lane_count;
    int64_t reuse_window_us; /* default of jobs */

    struct {
        const char *seat; /* NULL = taken from the state folder */
        int64_t heartbeat_us;
        int64_t dead_after_us;
        int64_t takeover_after_us;
        int64_t drain_us;
        int64_t reap_us;
        int64_t safety_scan_us; /* with LISTEN */
        int64_t poll_us;        /* without */
        int64_t record_retry_us;
    } worker;

    struct {
        const char *listen; /* host:port */
        const char *socket; /* path; NULL = <sqlite file>.sock, none on PostgreSQL */
        int64_t max_body;
        int64_t max_connections;
        int64_t max_bulk; /* requests in one POST /requests */
        int64_t header_timeout_us;
        int64_t body_timeout_us;
        int64_t idle_timeout_us;
        int64_t max_wait_us; /* ceiling of ?wait= */
    } api;

    struct {
        enum config_log_level level;
        enum config_log_format format;
    } log;

    struct {
        int64_t results_us; /* 0 = for ever */
        int64_t history_us;
        int64_t idempotency_us;
    } retention;

    const char **keys; /* names only; values stay in the environment */
    size_t key_count;
    struct config_budget *budgets;
    size_t budget_count;
    struct config_webhook *webhooks;
    size_t webhook_count;
    struct config_job *jobs; /* in the order of the file */
    size_t job_count;
    struct config_schedule *schedules;
    size_t schedule_count;

    struct arena arena; /* owns all strings, arrays and the node tree */
};

/* Answers an environment variable, NULL when not set. */
typedef const char *(*config_env_fn)(void *arg, const char *name);

/*
 * Which file: explicit (from -c) if not NULL, else PAWL_CONFIG, else
 * ./pawl.yaml. *ret_path is malloc'ed, and as the user wrote it. -ERR_CONFIG when
 * there is no such file. env NULL = the process's environment.
 */
int config_find(const char *explicit_path, config_env_fn env, void *env_arg,
                char **ret_path, struct err *err) must_check;

/*
 * Read, check and complete the file, at most 1 MiB. On -ERR_CONFIG, errors holds
 * all that is wrong (sorted) and err the first of it with the count; if the file
 * cannot be read, errors is empty and err tells why. *ret_config is written only
 * on 0. Nothing is opened or made: folders, databases and keys may be missing.
 */
int config_load(const char *path, config_env_fn env, void *env_arg,
                struct config **ret_config, struct config_errors *errors,
                struct err *err) must_check;

void config_free(struct config *config);
void config_free_ptr(struct config **config); /* for scoped() */

/* NULL when there is none of that name. */
const struct config_job *config_job_find(const struct config *config, const char *name);
const struct config_lane *config_lane_find(const struct config *config,
                                           const char *name);
const struct config_budget *config_budget_find(const struct config *config,
                                               const char *name);
const struct config_webhook *config_webhook_find(const struct config *config,
                                                 const char *name);
/* "main" answers the store's own URL (role worker). */
const char *config_database_url(const struct config *config, const char *name);

/* How long a transaction that writes may stand still before its server ends it, in ms.
 * A process that was frozen at any moment has lost its locks when others may call it
 * dead: at most dead_after - heartbeat later, which is two thirds of dead_after or
 * more. */
int config_idle_tx_ms(const struct config *config);

/*
 * Note a problem of a job at a JSON pointer into its definition, such as
 * "/steps/0/read/sql"; a pointer that leads nowhere falls back to the nearest
 * thing above it. For the rooms that check steps.
 */
void config_job_problem(const struct config *config, const struct config_job *job,
                        struct config_errors *errors, const char *pointer,
                        const char *fmt, ...) printf_like(5, 6);

/* The same place as numbers. */
void config_job_place(const struct config_job *job, const char *pointer,
                      unsigned *ret_line, unsigned *ret_column);

/* Names of the settings that differ between the two and cannot be changed without
 * a restart, one call of report each. */
void config_compare(const struct config *running, const struct config *loaded,
                    void (*report)(void *arg, const char *setting), void *arg);

/* docs/config.md, from the settings tables. */
void config_print_reference(FILE *out);

#endif
