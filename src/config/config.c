/*
 * Finding, loading and looking up. The order of a load: bytes → nodes → tables
 * → references → definitions; each stage runs even if an earlier one noted
 * problems, as long as there is a tree, so that all are told at once.
 */
#include "config/config.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fsio.h"
#include "base/strs.h"
#include "config/reading.h"
#include "config/sections.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define IDLE_TX_MAX_US (10 * US_PER_S)

int
config_find(const char *explicit_path, config_env_fn env, void *env_arg,
            char **ret_path, struct err *err)
{
    const char *named =
        env != NULL ? env(env_arg, "PAWL_CONFIG") : secure_getenv("PAWL_CONFIG");
    const char *path = explicit_path;
    const char *source = "-c";

    if (path == NULL && !str_empty(named)) {
        path = named;
        source = "PAWL_CONFIG";
    }
    if (path == NULL && access("pawl.yaml", F_OK) != 0)
        return err_set(err, ERR_CONFIG,
                       "no configuration: there is no pawl.yaml here; name one with "
                       "-c FILE or PAWL_CONFIG");
    if (path != NULL && access(path, R_OK) != 0)
        return err_errno(err, ERR_CONFIG, errno, "configuration %s (from %s)", path,
                         source);
    *ret_path = xstrdup(path != NULL ? path : "pawl.yaml");
    return 0;
}

static int
take_path(struct config *config, const char *path, struct err *err)
{
    scoped(xfree_ptr) char *real = realpath(path, NULL);
    struct stat st;
    char *slash;

    if (real == NULL || stat(real, &st) != 0)
        return err_errno(err, ERR_CONFIG, errno, "configuration %s", path);
    config->file = arena_strdup(&config->arena, path);
    config->path = arena_strdup(&config->arena, real);
    slash = strrchr(real, '/');
    *slash = '\0';
    config->folder = *real != '\0' ? arena_strdup(&config->arena, real) : "/";
    config->version = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
    return 0;
}

static int
read_file(const char *path, struct buf *text, struct err *err)
{
    struct err cause = {0};

    buf_init(text, YNODE_FILE_MAX + 1);
    if (fs_read_file(path, YNODE_FILE_MAX, text, &cause) < 0)
        return err_set(err, ERR_CONFIG, "%s", cause.text);
    return 0;
}

static int
told(const struct config_errors *errors, struct err *err)
{
    char first[400];

    config_errors_text(errors, 0, first, sizeof(first));
    if (errors->count + errors->left_out == 1)
        return err_set(err, ERR_CONFIG, "%s", first);
    return err_set(err, ERR_CONFIG, "%s (and %zu more; pawl check tells all)", first,
                   errors->count + errors->left_out - 1);
}

int
config_load(const char *path, config_env_fn env, void *env_arg,
            struct config **ret_config, struct config_errors *errors, struct err *err)
{
    scoped(config_free_ptr) struct config *config = xcalloc(1, sizeof(*config));
    scoped(buf_release) struct buf text = {0};
    struct reading reading = {.config = config,
                              .errors = errors,
                              .file = path,
                              .env = env,
                              .env_arg = env_arg};
    size_t i;
    int r;

    r = take_path(config, path, err);
    if (r == 0)
        r = read_file(path, &text, err);
    if (r < 0)
        return r;
    reading.root = ynode_parse(buf_str(&text), text.len, path, &config->arena, errors);
    if (reading.root != NULL) {
        reading_table(&reading, &config_settings, reading.root, "", config);
        config_check_references(&reading);
    }
    for (i = 0; errors->count == 0 && i < config->job_count; i++)
        config_make_definition(&reading, &config->jobs[i]);
    if (errors->count > 0) {
        config_errors_sort(errors);
        return told(errors, err);
    }
    *ret_config = config;
    config = NULL;
    return 0;
}

void
config_free(struct config *config)
{
    size_t i;

    if (config == NULL)
        return;
    for (i = 0; i < config->job_count; i++) {
        json_decref(config->jobs[i].next);
        json_decref(config->jobs[i].params);
        json_decref(config->jobs[i].steps);
        json_decref(config->jobs[i].task);
    }
    for (i = 0; i < config->schedule_count; i++)
        json_decref(config->schedules[i].params);
    arena_release(&config->arena);
    free(config);
}

void
config_free_ptr(struct config **config)
{
    config_free(*config);
}

const struct config_job *
config_job_find(const struct config *config, const char *name)
{
    size_t i;

    for (i = 0; i < config->job_count; i++) {
        if (str_eq(config->jobs[i].name, name))
            return &config->jobs[i];
    }
    return NULL;
}

const struct config_lane *
config_lane_find(const struct config *config, const char *name)
{
    size_t i;

    for (i = 0; i < config->lane_count; i++) {
        if (str_eq(config->lanes[i].name, name))
            return &config->lanes[i];
    }
    return NULL;
}

const struct config_budget *
config_budget_find(const struct config *config, const char *name)
{
    size_t i;

    for (i = 0; i < config->budget_count; i++) {
        if (str_eq(config->budgets[i].name, name))
            return &config->budgets[i];
    }
    return NULL;
}

const char *
config_database_url(const struct config *config, const char *name)
{
    size_t i;

    if (str_eq(name, "main"))
        return config->store.worker;
    for (i = 0; i < config->database_count; i++) {
        if (str_eq(config->databases[i].name, name))
            return config->databases[i].url;
    }
    return NULL;
}

int
config_idle_tx_ms(const struct config *config)
{
    int64_t half_us = config->worker.dead_after_us / 2;

    return (int)((half_us < IDLE_TX_MAX_US ? half_us : IDLE_TX_MAX_US) / US_PER_MS);
}

void
config_job_place(const struct config_job *job, const char *pointer, unsigned *ret_line,
                 unsigned *ret_column)
{
    const struct ynode *node = ynode_find(job->node, pointer);

    *ret_line = node == job->node ? node->key_line : node->line;
    *ret_column = node == job->node ? node->key_column : node->column;
}

void
config_job_problem(const struct config *config, const struct config_job *job,
                   struct config_errors *errors, const char *pointer, const char *fmt,
                   ...)
{
    unsigned line;
    unsigned column;
    va_list args;

    config_job_place(job, pointer, &line, &column);
    va_start(args, fmt);
    config_errors_vadd(errors, config->file, line, column, fmt, args);
    va_end(args);
}
