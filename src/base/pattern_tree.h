/*
 * Between the two halves of patterns: the tree that pattern_parse.c makes and
 * pattern.c turns into a program. Not for others.
 */
#ifndef BASE_PATTERN_TREE_H
#define BASE_PATTERN_TREE_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct err;

#define PATTERN_TEXT_MAX 500  /* bytes */
#define PATTERN_NO_LIMIT (-1) /* max of x* */

enum pattern_node_kind {
    NODE_CHAR,
    NODE_ANY,
    NODE_CLASS,
    NODE_CAT,
    NODE_ALT,
    NODE_REPEAT
};

struct pattern_range {
    uint32_t from;
    uint32_t to;
};

struct pattern_set {
    bool negated;
    size_t count;
    struct pattern_range ranges[];
};

struct pattern_node {
    enum pattern_node_kind kind;
    uint32_t code;
    const struct pattern_set *set;
    int min; /* NODE_REPEAT */
    int max;
    struct pattern_node *first; /* CAT and ALT: list of children; REPEAT: the one */
    struct pattern_node *next;  /* among siblings */
};

/* The tree, in the arena; -ERR_INVALID with the place. */
int pattern_parse(const char *text, struct arena *arena, struct pattern_node **ret_root,
                  struct err *err) must_check;

#endif
