/*
 * The tables that say what may stand in pawl.yaml. Reading, error messages,
 * docs/config.md and the comparison at a reload all come from them. Constant.
 */
#ifndef CONFIG_SETTINGS_H
#define CONFIG_SETTINGS_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reading;
struct setting;
struct ynode;

enum setting_type {
    SETTING_TEXT, /* const char * */
    SETTING_NAME, /* const char *: [a-z0-9][a-z0-9-]{0,62} */
    SETTING_PATH, /* const char *, made absolute */
    SETTING_URL,  /* const char *: a database; a relative SQLite path made absolute */
    SETTING_INTEGER,  /* int64_t */
    SETTING_BOOLEAN,  /* bool */
    SETTING_DURATION, /* int64_t, microseconds */
    SETTING_BYTES,    /* int64_t */
    SETTING_WORD,     /* enum: the index among words */
    SETTING_GROUP,    /* a map read by another table into the same struct */
    SETTING_SECTION,  /* anything with a reader of its own */
    SETTING_TYPE_COUNT
};

/* node is NULL when the section is absent. */
typedef void (*setting_read_fn)(struct reading *reading, const struct setting *setting,
                                const struct ynode *node, void *base);

struct setting_table {
    const char *title; /* heading in docs/config.md */
    const char *help;
    const struct setting *rows;
    size_t count;
};

struct setting {
    const char *name;
    enum setting_type type;
    size_t offset;        /* into the struct the table is read into */
    const char *fallback; /* as it would be written; NULL = absent is fine */
    int64_t min;
    int64_t max;
    const char *const *words;          /* SETTING_WORD, ended by NULL */
    bool needed;                       /* absent is an error */
    bool reloadable;                   /* changes at SIGHUP, else at the next start */
    const char *env;                   /* variable that overrides it */
    const struct setting_table *group; /* SETTING_GROUP; of a section: for the docs */
    setting_read_fn read;              /* SETTING_SECTION */
    const char *shape;                 /* SETTING_SECTION: its type in the docs */
    const char *help;
};

/* The whole file, into struct config; the other tables hang on its rows. */
extern const struct setting_table config_settings;

#endif
