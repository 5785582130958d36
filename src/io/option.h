/*
 * The keys of a `read` or `write` object: a table beside each reader and writer
 * says which there are, one function checks an object against it. Afterwards
 * the getters need no error: what is there has the declared type.
 */
#ifndef IO_OPTION_H
#define IO_OPTION_H

#include "base/compiler.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct err;

enum io_option_type {
    IO_OPTION_TEXT, /* not empty */
    IO_OPTION_CHAR, /* one ASCII character, not a quote or line end; "\t" too */
    IO_OPTION_BOOL,
    IO_OPTION_WORD,        /* one of `words` */
    IO_OPTION_LIST,        /* of texts, not empty */
    IO_OPTION_ONE_OR_LIST, /* a text, or a list of texts */
    IO_OPTION_CHARSET,     /* the name of an encoding, see io/charset.h */
    IO_OPTION_NUMBER,      /* a whole number from 1 on */
    IO_OPTION_NAME,        /* a text, or a whole number from 1 on */
    IO_OPTION_TEXTS,       /* map from name to text, not empty */
    IO_OPTION_MAP,         /* any map; whoever reads it checks it */
    IO_OPTION_TYPES,       /* column name → type word (text, integer, …) */
    IO_OPTION_ANY,
    IO_OPTION_COUNT,    /* a whole number >= 0 */
    IO_OPTION_DURATION, /* 500ms, 2s, 1h30m */
    IO_OPTION_SIZE,     /* bytes: 5MiB */
};

struct io_option {
    const char *name;
    enum io_option_type type;
    bool required;
    const char *words; /* IO_OPTION_WORD: separated by blanks */
    const char *help;  /* one line */
};

/* -ERR_CONFIG naming `where` ("read", "write"), the key, and what would be right. */
int io_options_check(const char *where, const json_t *def,
                     const struct io_option *options, size_t count,
                     struct err *err) must_check;

/* After the check; fallback when the key is absent. */
const char *io_option_text(const json_t *def, const char *name, const char *fallback);
bool io_option_bool(const json_t *def, const char *name);
int64_t io_option_number(const json_t *def, const char *name, int64_t fallback);
int64_t io_option_ms(const json_t *def, const char *name, int64_t fallback_ms);
int64_t io_option_size(const json_t *def, const char *name, int64_t fallback);
char io_option_char(const json_t *def, const char *name, char fallback);

#endif
