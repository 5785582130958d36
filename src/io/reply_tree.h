/*
 * A reply as a tree: JSON as it is, XML read as if it were JSON (an element is a
 * member, one that repeats a list, an attribute "@name"). Paths are names with '/'
 * between. Bodies come from outside: a DTD, an entity, a key twice, half a document
 * are all refused. No state; any thread.
 */
#ifndef IO_REPLY_TREE_H
#define IO_REPLY_TREE_H

#include "base/compiler.h"
#include "io/reply_number.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct err;

enum reply_format { REPLY_JSON, REPLY_XML };

struct reply_tree {
    enum reply_format format;
    json_t *root;                   /* owned */
    struct reply_decimals decimals; /* those of its texts that were long integers */
};

/* Which of the two it is shows at its first character. -ERR_PROTOCOL, saying what came
 * instead and where it went wrong. */
int reply_tree_parse(const char *body, size_t len, struct reply_tree *ret_tree,
                     struct err *err) must_check;
void reply_tree_release(struct reply_tree *tree);

/* Called for each thing at the path, in order; > 0 ends the walk with that value. */
typedef int (*reply_fn)(void *arg, const json_t *value);

/*
 * Walk to a path from any value. Lists on the way are walked through, a list at the
 * end is told element by element; null and "" are nothing. Returns what fn ended the
 * walk with, else 0. loose: outer members may be left out of the path.
 */
int reply_each(const json_t *from, const char *path, bool loose, reply_fn fn,
               void *arg);

/* The first single value (no list or object) at the path, else NULL. */
const json_t *reply_scalar(const json_t *from, const char *path, bool loose);
/* The first thing at the path, whatever it is, not element by element; else NULL. */
const json_t *reply_value(const json_t *from, const char *path);

/* The text of a single value; room: for numbers. NULL for lists and objects. */
const char *reply_text(const json_t *value, char room[48]);

/* -ERR_CONFIG for an empty path or an empty name in it. */
int reply_path_check(const char *where, const char *path, struct err *err) must_check;

#endif
