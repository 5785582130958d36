/*
 * Integers in JSON replies that are too long for 64 bits: identifiers mostly, which
 * must not lose a digit. They are read as texts that are known to be decimals.
 */
#ifndef IO_REPLY_NUMBER_H
#define IO_REPLY_NUMBER_H

#include "base/compiler.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct buf;

struct reply_decimals {
    const json_t **list; /* borrowed from the tree, ascending by address */
    size_t count;
    size_t cap;
};

/* Append body to out, long integers in it as marked texts. false: there is none. */
bool reply_number_mark(const char *body, size_t len, struct buf *out);

/* Take the marks off again in a tree made of that, and remember which texts had one. */
void reply_number_collect(json_t *root, struct reply_decimals *decimals);

bool reply_number_is_decimal(const struct reply_decimals *decimals,
                             const json_t *value);
void reply_decimals_release(struct reply_decimals *decimals);

#endif
