/*
 * Reading a file by the tables: what all readers share. One reading is one
 * config_load; one thread.
 */
#ifndef CONFIG_READING_H
#define CONFIG_READING_H

#include "config/config.h"
#include "config/errors.h"
#include "config/settings.h"
#include "config/yaml_node.h"

struct reading {
    struct config *config;
    struct config_errors *errors;
    const char *file; /* as the user named it: for messages */
    const struct ynode *root;
    config_env_fn env;
    void *env_arg;
};

/* Note a problem at a node, or at its key. */
void reading_problem(struct reading *reading, const struct ynode *node, const char *fmt,
                     ...) printf_like(3, 4);
void reading_key_problem(struct reading *reading, const struct ynode *node,
                         const char *fmt, ...) printf_like(3, 4);

/* Read a map by a table into base. node NULL: defaults. owner is the map's name for
 * messages about what is missing; place is where these are noted. */
void reading_table(struct reading *reading, const struct setting_table *table,
                   const struct ynode *node, const char *owner, void *base);

/* Read one row; node NULL: its default. */
void reading_setting(struct reading *reading, const struct setting *setting,
                     const struct ynode *node, void *base);

/* An environment variable, NULL when not set or empty. In the arena. */
const char *reading_env(struct reading *reading, const char *name);

/* The text of a scalar, NULL with a problem noted when it is a map or a list. */
const char *reading_text(struct reading *reading, const struct ynode *node);

/* A whole number of a range, true if it was one. */
bool reading_i64(struct reading *reading, const struct ynode *node, int64_t min,
                 int64_t max, int64_t *ret);

/* A list of names (a single name counts as a list of one) without doubles. */
void reading_names(struct reading *reading, const struct ynode *node,
                   bool (*valid)(const char *name), const char *rule, const char ***ret,
                   size_t *ret_count);

/* True if node is a map; else a problem is noted. NULL is no map and no problem. */
bool reading_map(struct reading *reading, const struct ynode *node);

/* The member's key as a name; a problem is noted when it is none. */
bool reading_key(struct reading *reading, const struct ynode *member,
                 bool (*valid)(const char *name), const char *rule);

/* "; did you mean x?" or "". In the arena. */
const char *reading_hint(struct reading *reading, const char *written,
                         const char *const *words, size_t count);

/* [a-z0-9][a-z0-9-]{0,62}: jobs, lanes, schedules. */
bool is_plain_name(const char *name);
/* The same with '_' inside: databases, budgets. */
bool is_label(const char *name);
/* [A-Za-z][A-Za-z0-9_]{0,62}: parameters. */
bool is_param_name(const char *name);
/* [A-Za-z_][A-Za-z0-9_]{0,127}: environment variables. */
bool is_env_name(const char *name);

#define PLAIN_NAME_RULE                                                                \
    "small letters, digits and '-', not first '-', at most 63 characters"
#define LABEL_RULE      "small letters, digits, '-' and '_', at most 63 characters"
#define PARAM_NAME_RULE "a letter, then letters, digits and '_', at most 63 characters"
#define ENV_NAME_RULE   "letters, digits and '_', as in an environment variable"

/* Paths (paths.c): made absolute against folder; a database URL likewise. */
const char *path_absolute(struct arena *arena, const char *folder, const char *path);
const char *path_url(struct arena *arena, const char *folder, const char *url);

#endif
