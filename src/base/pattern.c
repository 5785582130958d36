/*
 * Patterns in three stages. The parser (recursive descent, one function per
 * level of the grammar) makes a tree; the emitter unrolls it into a program of
 * six instructions; the matcher runs all threads of that program side by side,
 * one character at a time. So no text can make a match slow, and nothing
 * depends on the locale, which is why regcomp(3) is not used: it counts bytes
 * in the C locale.
 *
 * The grammar is kept to what PostgreSQL's regular expressions read the same
 * way. Whoever adds something here adds it to docs/parameters.md and to
 * tests/vectors/params.json, which the SQL side runs too.
 */
#include "base/pattern.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/utf8.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PATTERN_TEXT_MAX  500  /* bytes */
#define PATTERN_CODE_MAX  4096 /* instructions */
#define PATTERN_DEPTH_MAX 20   /* groups in groups */
#define PATTERN_COUNT_MAX 255  /* PostgreSQL's ceiling of {m,n} */
#define NO_LIMIT          -1

enum node_kind { NODE_CHAR, NODE_ANY, NODE_CLASS, NODE_CAT, NODE_ALT, NODE_REPEAT };

struct range {
    uint32_t from;
    uint32_t to;
};

struct class_set {
    bool negated;
    size_t count;
    struct range ranges[];
};

struct node {
    enum node_kind kind;
    uint32_t code;
    const struct class_set *set;
    int min; /* NODE_REPEAT */
    int max;
    struct node *first; /* CAT and ALT: list of children; REPEAT: the one */
    struct node *next;  /* among siblings */
};

enum op { OP_CHAR, OP_ANY, OP_CLASS, OP_SPLIT, OP_JUMP, OP_MATCH };

struct instr {
    enum op op;
    uint32_t code;
    const struct class_set *set;
    uint32_t to;    /* JUMP, SPLIT */
    uint32_t or_to; /* SPLIT */
};

struct pattern {
    struct arena arena; /* the class sets, and the small tree they hang on */
    struct instr *code;
    size_t len;
};

struct parser {
    const char *text;
    size_t len;
    size_t at;
    int depth;
    struct arena *arena;
    struct err *err;
};

static int parse_alt(struct parser *p, struct node **ret_node);

static int
fault(struct parser *p, const char *what)
{
    return err_set(p->err, ERR_INVALID, "pattern, character %zu: %s",
                   utf8_count(p->text, p->at) + 1, what);
}

static int
peek(const struct parser *p)
{
    return p->at < p->len ? (unsigned char)p->text[p->at] : -1;
}

static uint32_t
take_code(struct parser *p)
{
    uint32_t code = 0;

    p->at += utf8_decode(p->text + p->at, p->len - p->at, &code);
    return code;
}

static struct node *
node_new(struct parser *p, enum node_kind kind)
{
    struct node *node = arena_new(p->arena, struct node);

    node->kind = kind;
    return node;
}

/* After a backslash: a punctuation mark, which then stands for itself. */
static int
parse_escape(struct parser *p, uint32_t *ret_code)
{
    int c;

    p->at++;
    c = peek(p);
    if (c < 0)
        return fault(p, "a backslash at the end; write \\\\ for the sign itself");
    if (c >= 128 || c <= ' ' || c == '_' || (c >= '0' && c <= '9') ||
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
        return fault(p, "a backslash may stand before punctuation only; write [0-9] "
                        "for \\d, [A-Za-z0-9_] for \\w");
    *ret_code = take_code(p);
    return 0;
}

static int
parse_class_char(struct parser *p, uint32_t *ret_code)
{
    int c = peek(p);

    if (c < 0)
        return fault(p, "'[' without ']'");
    if (c == '\\')
        return parse_escape(p, ret_code);
    if (c == '[')
        return fault(p, "write \\[ inside of [ ]; names like [:alpha:] are not known "
                        "here");
    *ret_code = take_code(p);
    return 0;
}

static int
parse_range(struct parser *p, struct range *ret_range)
{
    struct range range;
    int r;

    r = parse_class_char(p, &range.from);
    if (r < 0)
        return r;
    range.to = range.from;
    /* A minus sign last in the brackets is itself. */
    if (peek(p) == '-' && p->at + 1 < p->len && p->text[p->at + 1] != ']') {
        p->at++;
        r = parse_class_char(p, &range.to);
        if (r < 0)
            return r;
        if (range.to < range.from)
            return fault(p, "the range before this runs backwards");
    }
    *ret_range = range;
    return 0;
}

static int
parse_class(struct parser *p, struct node **ret_node)
{
    struct class_set *set;
    struct node *node = node_new(p, NODE_CLASS);
    int r;

    p->at++;
    /* No more ranges than bytes left. */
    set =
        arena_alloc(p->arena, sizeof(*set) + (p->len - p->at) * sizeof(set->ranges[0]));
    if (peek(p) == '^') {
        set->negated = true;
        p->at++;
    }
    if (peek(p) == ']')
        return fault(p, "nothing between [ and ]; write \\] for the bracket itself");
    while (peek(p) != ']') {
        r = parse_range(p, &set->ranges[set->count]);
        if (r < 0)
            return r;
        set->count++;
    }
    p->at++;
    node->set = set;
    *ret_node = node;
    return 0;
}

static int
parse_group(struct parser *p, struct node **ret_node)
{
    int r;

    p->at++;
    if (peek(p) == '?')
        return fault(p, "(? is not known here; use a plain group ( )");
    if (++p->depth > PATTERN_DEPTH_MAX)
        return fault(p, "more than 20 groups in one another");
    r = parse_alt(p, ret_node);
    if (r < 0)
        return r;
    p->depth--;
    if (peek(p) != ')')
        return fault(p, "'(' without ')'");
    p->at++;
    return 0;
}

static int
parse_atom(struct parser *p, struct node **ret_node)
{
    struct node *node;
    int r;

    switch (peek(p)) {
    case '(':
        return parse_group(p, ret_node);
    case '[':
        return parse_class(p, ret_node);
    case '*':
    case '+':
    case '?':
    case '{':
        return fault(p, "nothing to repeat before this; write \\ before the sign for "
                        "the sign itself");
    case '^':
    case '$':
        return fault(p, "the whole text is matched anyway: leave ^ and $ out, or write "
                        "\\^ \\$ for the signs");
    case ']':
    case '}':
        return fault(p, "write \\ before a bracket that stands for itself");
    case '.':
        p->at++;
        *ret_node = node_new(p, NODE_ANY);
        return 0;
    default:
        break;
    }
    node = node_new(p, NODE_CHAR);
    if (peek(p) == '\\') {
        r = parse_escape(p, &node->code);
        if (r < 0)
            return r;
    } else {
        node->code = take_code(p);
    }
    *ret_node = node;
    return 0;
}

static int
parse_number(struct parser *p, int *ret_number)
{
    int number = 0;
    size_t from = p->at;

    while (peek(p) >= '0' && peek(p) <= '9') {
        number = number * 10 + (peek(p) - '0');
        if (number > PATTERN_COUNT_MAX)
            return fault(p, "a count may be at most 255");
        p->at++;
    }
    if (p->at == from)
        return fault(p, "a count is {2}, {2,} or {2,5}; write \\{ for the bracket "
                        "itself");
    *ret_number = number;
    return 0;
}

static int
parse_braces(struct parser *p, int *ret_min, int *ret_max)
{
    int r;

    p->at++;
    r = parse_number(p, ret_min);
    if (r < 0)
        return r;
    *ret_max = *ret_min;
    if (peek(p) == ',') {
        p->at++;
        *ret_max = NO_LIMIT;
        if (peek(p) != '}') {
            r = parse_number(p, ret_max);
            if (r < 0)
                return r;
        }
    }
    if (peek(p) != '}')
        return fault(p, "'{' without '}'");
    if (*ret_max != NO_LIMIT && *ret_max < *ret_min)
        return fault(p, "the second count is smaller than the first");
    p->at++;
    return 0;
}

static bool
at_repeat(const struct parser *p)
{
    int c = peek(p);

    return c == '*' || c == '+' || c == '?' || c == '{';
}

static int
parse_repeat(struct parser *p, struct node **ret_node)
{
    struct node *atom;
    struct node *repeat;
    int r;

    r = parse_atom(p, &atom);
    if (r < 0)
        return r;
    if (!at_repeat(p)) {
        *ret_node = atom;
        return 0;
    }
    repeat = node_new(p, NODE_REPEAT);
    repeat->first = atom;
    if (peek(p) == '{') {
        r = parse_braces(p, &repeat->min, &repeat->max);
        if (r < 0)
            return r;
    } else {
        repeat->min = peek(p) == '+' ? 1 : 0;
        repeat->max = peek(p) == '?' ? 1 : NO_LIMIT;
        p->at++;
    }
    if (at_repeat(p))
        return fault(p, "one repetition upon another; put a group ( ) around the inner "
                        "one");
    *ret_node = repeat;
    return 0;
}

/* A `$` that ends the pattern says what is so anyway. */
static bool
at_end(const struct parser *p)
{
    return p->at == p->len || (p->text[p->at] == '$' && p->at + 1 == p->len);
}

static int
parse_cat(struct parser *p, struct node **ret_node)
{
    struct node *cat = node_new(p, NODE_CAT);
    struct node **tail = &cat->first;
    int r;

    while (!at_end(p) && peek(p) != '|' && peek(p) != ')') {
        r = parse_repeat(p, tail);
        if (r < 0)
            return r;
        tail = &(*tail)->next;
    }
    if (cat->first == NULL)
        return fault(p, "an empty alternative; use ( )? for something that may be "
                        "missing");
    *ret_node = cat;
    return 0;
}

static int
parse_alt(struct parser *p, struct node **ret_node)
{
    struct node *alt = node_new(p, NODE_ALT);
    struct node **tail = &alt->first;
    int r;

    for (;;) {
        r = parse_cat(p, tail);
        if (r < 0)
            return r;
        tail = &(*tail)->next;
        if (peek(p) != '|')
            break;
        p->at++;
    }
    *ret_node = alt;
    return 0;
}

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

static bool emit_node(struct pattern *pattern, const struct node *node);

static bool
emit_alt(struct pattern *pattern, const struct node *node)
{
    const struct node *child;
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
emit_star(struct pattern *pattern, const struct node *child)
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
emit_optional(struct pattern *pattern, const struct node *child)
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
emit_repeat(struct pattern *pattern, const struct node *node)
{
    int i;

    for (i = 0; i < node->min; i++) {
        if (!emit_node(pattern, node->first))
            return false;
    }
    if (node->max == NO_LIMIT)
        return emit_star(pattern, node->first);
    /* x{0,2} as x?x? accepts the same texts as (x(x)?)?. */
    for (; i < node->max; i++) {
        if (!emit_optional(pattern, node->first))
            return false;
    }
    return true;
}

static bool
emit_node(struct pattern *pattern, const struct node *node)
{
    const struct node *child;
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
    struct parser p = {
        .text = text, .len = strlen(text), .arena = &pattern->arena, .err = err};
    struct node *root;
    int r;

    if (p.len > PATTERN_TEXT_MAX)
        return err_set(err, ERR_INVALID, "pattern: longer than 500 bytes");
    if (!utf8_valid(text, p.len))
        return err_set(err, ERR_INVALID, "pattern: not valid UTF-8");
    if (p.len > 0 && text[0] == '^')
        p.at = 1;
    r = parse_alt(&p, &root);
    if (r < 0)
        return r;
    if (!at_end(&p))
        return fault(&p, "')' without '('");
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
set_holds(const struct class_set *set, uint32_t code)
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
