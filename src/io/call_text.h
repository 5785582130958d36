/*
 * Texts of a call with {name} in them: a column of the item, a parameter, {key:NAME},
 * {token}, {date:FORMAT}; each value escaped for the place it goes to. Any thread, as
 * long as each has its own struct call_names.
 */
#ifndef IO_CALL_TEXT_H
#define IO_CALL_TEXT_H

#include "base/compiler.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct cell;
struct column;
struct err;
struct io_ctx;

enum call_place {
    CALL_PLAIN,  /* as it is: a body, or a text that is escaped later (JSON) */
    CALL_URL,    /* literal as it is, values percent-encoded */
    CALL_QUERY,  /* all of it percent-encoded */
    CALL_HEADER, /* no control characters */
    CALL_FILE,   /* a name within a zip or a folder: no separators in values */
};

/* Where names get their values; first that has it. Zeroed: nowhere. */
struct call_names {
    struct io_ctx *io;            /* parameters, keys, the date */
    const struct column *columns; /* of the item */
    const struct cell *cells;
    size_t width;
    const char *extra_name; /* one more name */
    const char *extra_value;
    const char *token;  /* NULL: there is none */
    const char *budget; /* whose zone {date:…} is in; NULL: UTC */
};

/* Braces in pairs and names as they may be, else -ERR_CONFIG. */
int call_text_check(const char *where, const char *text, struct err *err) must_check;

/* -ERR_CONFIG for a name that nobody knows or a key that is not set; -ERR_INVALID for
 * a value that cannot stand there. */
int call_text_fill(const char *where, const char *text, struct call_names *names,
                   enum call_place place, struct buf *out, struct err *err) must_check;

/* fn for each {key:NAME} in the text. */
/* The same for a text that does not leave as a call: a {key:NAME} has no place in it.
 */
int call_text_check_plain(const char *where, const char *text,
                          struct err *err) must_check;

void call_text_keys(const char *text, void (*fn)(void *arg, const char *name),
                    void *arg);

void percent_encode(struct buf *out, const char *text, size_t len);

/* Name an item to people by its columns, as far as there is room. */
void call_names_show(const struct call_names *names, struct buf *text);

/* A cell as text; room of CELL_TEXT_MAX bytes. */
void cell_as_text(const struct cell *cell, char *room, const char **ret_text,
                  size_t *ret_len);

#endif
