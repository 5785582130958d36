/*
 * Patterns in three stages. The parser (pattern_parse.c) makes a tree; the
 * emitter unrolls it into a program of six instructions; the matcher runs all
 * threads of that program side by side, one character at a time. So no text can
 * make a match slow, and nothing depends on the locale, which is why regcomp(3)
 * is not used: it counts bytes in the C locale.
 */
#include "base/pattern.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/pattern_tree.h"
#include "base/utf8.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PATTERN_CODE_MAX 4096 /* instructions */

enum op { OP_CHAR, OP_ANY, OP_CLASS, OP_SPLIT, OP_JUMP, OP_MATCH };

struct instr {
    enum op op;
    uint32_t code;
    const struct pattern_set *set;
    uint32_t to;    /* JUMP, SPLIT */
    uint32_t or_to; /* SPLIT */
};

struct pattern {
    struct arena arena; /* the class sets, and the small tree they hang on */
    struct instr *code;
    size_t len;
};

static struct instr *
emit(struct pattern *pattern, enum op op)
{
    struct instr *instr;

    if (pattern->len >= PATTERN_CODE_MAX)
        return NULL;
    instr = &pattern->code[pattern->len++];
    memset(instr, 0, sizeof(*instr));
    instr->op = op;
    return instr;
}

static bool emit_node(struct pattern *pattern, const struct pattern_node *node);

static bool
emit_alt(struct pattern *pattern, const struct pattern_node *node)
{
    const struct pattern_node *child;
    struct instr *jumps[PATTERN_TEXT_MAX];
    size_t count = 0;

    for (child = node->first; child != NULL; child = child->next) {
        struct instr *split = NULL;

        if (child->next != NULL) {
            split = emit(pattern, OP_SPLIT);
            if (split == NULL)
                return false;
            split->to = (uint32_t)pattern->len;
        }
        if (!emit_node(pattern, child))
            return false;
        if (split == NULL)
            break;
        jumps[count] = emit(pattern, OP_JUMP);
        if (jumps[count++] == NULL)
            return false;
        split->or_to = (uint32_t)pattern->len;
    }
    while (count > 0)
        jumps[--count]->to = (uint32_t)pattern->len;
    return true;
}

static bool
emit_star(struct pattern *pattern, const struct pattern_node *child)
{
    uint32_t start = (uint32_t)pattern->len;
    struct instr *split = emit(pattern, OP_SPLIT);
    struct instr *jump;

    if (split == NULL)
        return false;
    split->to = start + 1;
    if (!emit_node(pattern, child))
        return false;
    jump = emit(pattern, OP_JUMP);
    if (jump == NULL)
        return false;
    jump->to = start;
    split->or_to = (uint32_t)pattern->len;
    return true;
}

static bool
emit_optional(struct pattern *pattern, const struct pattern_node *child)
{
    struct instr *split = emit(pattern, OP_SPLIT);

    if (split == NULL)
        return false;
    split->to = (uint32_t)pattern->len;
    if (!emit_node(pattern, child))
        return false;
    split->or_to = (uint32_t)pattern->len;
    return true;
}

static bool
emit_repeat(struct pattern *pattern, const struct pattern_node *node)
{
    int i;

    for (i = 0; i < node->min; i++) {
        if (!emit_node(pattern, node->first))
            return false;
    }
    if (node->max == PATTERN_NO_LIMIT)
        return emit_star(pattern, node->first);
    /* x{0,2} as x?x? accepts the same texts as (x(x)?)?. */
    for (; i < node->max; i++) {
        if (!emit_optional(pattern, node->first))
            return false;
    }
    return true;
}

static bool
emit_node(struct pattern *pattern, const struct pattern_node *node)
{
    const struct pattern_node *child;
    struct instr *instr;

    switch (node->kind) {
    case NODE_CHAR:
        instr = emit(pattern, OP_CHAR);
        if (instr != NULL)
            instr->code = node->code;
        return instr != NULL;
    case NODE_ANY:
        return emit(pattern, OP_ANY) != NULL;
    case NODE_CLASS:
        instr = emit(pattern, OP_CLASS);
        if (instr != NULL)
            instr->set = node->set;
        return instr != NULL;
    case NODE_CAT:
        for (child = node->first; child != NULL; child = child->next) {
            if (!emit_node(pattern, child))
                return false;
        }
        return true;
    case NODE_ALT:
        return emit_alt(pattern, node);
    case NODE_REPEAT:
        return emit_repeat(pattern, node);
    }
    return false;
}

static int
pattern_compile(struct pattern *pattern, const char *text, struct err *err)
{
    struct pattern_node *root;
    int r;

    r = pattern_parse(text, &pattern->arena, &root, err);
    if (r < 0)
        return r;
    pattern->code = xcalloc(PATTERN_CODE_MAX, sizeof(*pattern->code));
    if (!emit_node(pattern, root) || emit(pattern, OP_MATCH) == NULL)
        return err_set(err, ERR_INVALID,
                       "pattern: its counts multiply to more than 4096 places; use "
                       "smaller ones, or max_length");
    pattern->code = xrealloc(pattern->code, pattern->len * sizeof(*pattern->code));
    return 0;
}

int
pattern_new(const char *text, struct pattern **ret_pattern, struct err *err)
{
    struct pattern *pattern = xcalloc(1, sizeof(*pattern));
    int r;

    r = pattern_compile(pattern, text, err);
    if (r < 0) {
        pattern_free(pattern);
        return r;
    }
    *ret_pattern = pattern;
    return 0;
}

void
pattern_free(struct pattern *pattern)
{
    if (pattern == NULL)
        return;
    arena_release(&pattern->arena);
    free(pattern->code);
    free(pattern);
}

/* The threads alive before a character: places in the program, each at most once. */
struct threads {
    uint32_t *places;
    size_t count;
    uint32_t *seen; /* round in which the place was added last */
    uint32_t round;
};

/* Add place and all that is reached from it without reading a character. */
static void
threads_add(struct threads *threads, const struct pattern *pattern, uint32_t place,
            uint32_t *stack)
{
    size_t depth = 0;

    stack[depth++] = place;
    while (depth > 0) {
        const struct instr *instr;

        place = stack[--depth];
        if (threads->seen[place] == threads->round)
            continue;
        threads->seen[place] = threads->round;
        instr = &pattern->code[place];
        if (instr->op == OP_JUMP || instr->op == OP_SPLIT) {
            stack[depth++] = instr->to;
            if (instr->op == OP_SPLIT)
                stack[depth++] = instr->or_to;
        } else {
            threads->places[threads->count++] = place;
        }
    }
}

static bool
set_holds(const struct pattern_set *set, uint32_t code)
{
    size_t i;

    for (i = 0; i < set->count; i++) {
        if (code >= set->ranges[i].from && code <= set->ranges[i].to)
            return !set->negated;
    }
    return set->negated;
}

static bool
instr_reads(const struct instr *instr, uint32_t code)
{
    return instr->op == OP_ANY || (instr->op == OP_CHAR && instr->code == code) ||
           (instr->op == OP_CLASS && set_holds(instr->set, code));
}

static void
threads_clear(struct threads *threads)
{
    threads->count = 0;
    threads->round++;
}

bool
pattern_matches(const struct pattern *pattern, const char *text, size_t len)
{
    size_t n = pattern->len;
    /* Two lists of places, their marks, and a stack: each place is stacked at most
     * twice a round, once for each instruction that leads to it. */
    scoped(xfree_ptr) uint32_t *memory = xcalloc(n * 6 + 2, sizeof(uint32_t));
    struct threads now = {.places = memory, .seen = memory + n, .round = 1};
    struct threads then = {
        .places = memory + 2 * n, .seen = memory + 3 * n, .round = 1};
    uint32_t *stack = memory + 4 * n;
    size_t at = 0;
    size_t i;

    threads_add(&now, pattern, 0, stack);
    while (at < len && now.count > 0) {
        struct threads swap = now;
        uint32_t code;
        size_t used = utf8_decode(text + at, len - at, &code);

        if (used == 0)
            return false;
        at += used;
        for (i = 0; i < now.count; i++) {
            if (instr_reads(&pattern->code[now.places[i]], code))
                threads_add(&then, pattern, now.places[i] + 1, stack);
        }
        now = then;
        then = swap;
        threads_clear(&then);
    }
    for (i = 0; i < now.count; i++) {
        if (pattern->code[now.places[i]].op == OP_MATCH)
            return at == len;
    }
    return false;
}
