/*
 * YAML as a tree of nodes that know their places. Only a part of YAML: one
 * document, maps with plain keys, lists, scalars. Anchors, aliases, tags and
 * merge keys are refused, as is a key that stands twice in one map. All memory
 * is the arena's; read-only afterwards.
 */
#ifndef CONFIG_YAML_NODE_H
#define CONFIG_YAML_NODE_H

#include "base/compiler.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct arena;
struct config_errors;

#define YNODE_FILE_MAX  ((size_t)1 << 20) /* bytes */
#define YNODE_DEPTH_MAX 32

enum ynode_kind { YNODE_SCALAR, YNODE_LIST, YNODE_MAP };

struct ynode {
    enum ynode_kind kind;
    bool quoted; /* scalar in quotes or as a block: a text whatever it looks like */
    const char *text; /* scalar, without NUL inside */
    unsigned line;    /* of the value, from 1 */
    unsigned column;  /* from 1, in characters */
    const char *key;  /* in a map: the name, and where it stands */
    unsigned key_line;
    unsigned key_column;
    struct ynode *first; /* members or items */
    struct ynode *next;
    size_t count; /* members or items */
};

/*
 * Read len bytes of text. All that can be found is reported, with where as the
 * file's name; a syntax error ends the reading. NULL when the tree is not fit to
 * be read further; an empty file is an empty map.
 */
struct ynode *ynode_parse(const char *text, size_t len, const char *where,
                          struct arena *arena, struct config_errors *errors);

/* Member of a map, NULL when absent (or node is NULL or no map). */
const struct ynode *ynode_get(const struct ynode *node, const char *key);

/* `key:` with nothing behind, ~ or null: as if it were not there. */
bool ynode_is_null(const struct ynode *node);

/* The node a JSON pointer leads to, or the last one on the way there. */
const struct ynode *ynode_find(const struct ynode *node, const char *pointer);

/* "a map", "a list", "a text" */
const char *ynode_kind_word(const struct ynode *node);

/*
 * As JSON. Plain scalars are typed as YAML 1.2 does it: null, true, false,
 * decimal numbers; all else is text. Refused: numbers that JSON cannot hold, and
 * those with leading zeros, which may be meant as text. New reference.
 */
json_t *ynode_json(const struct ynode *node, const char *where,
                   struct config_errors *errors);

#endif
