/*
 * The grammar of patterns, one function per level (recursive descent). It is
 * kept to what PostgreSQL's regular expressions read the same way. Whoever adds
 * something here adds it to docs/parameters.md and to tests/vectors/params.json,
 * which the SQL side runs too.
 */
#include "base/pattern_tree.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/utf8.h"

#include <string.h>

#define PATTERN_DEPTH_MAX 20  /* groups in groups */
#define PATTERN_COUNT_MAX 255 /* PostgreSQL's ceiling of {m,n} */

struct parser {
    const char *text;
    size_t len;
    size_t at;
    int depth;
    struct arena *arena;
    struct err *err;
};

static int parse_alt(struct parser *p, struct pattern_node **ret_node);

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

static struct pattern_node *
node_new(struct parser *p, enum pattern_node_kind kind)
{
    struct pattern_node *node = arena_new(p->arena, struct pattern_node);

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
parse_range(struct parser *p, struct pattern_range *ret_range)
{
    struct pattern_range range;
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
parse_class(struct parser *p, struct pattern_node **ret_node)
{
    struct pattern_set *set;
    struct pattern_node *node = node_new(p, NODE_CLASS);
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
parse_group(struct parser *p, struct pattern_node **ret_node)
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
parse_atom(struct parser *p, struct pattern_node **ret_node)
{
    struct pattern_node *node;
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
        *ret_max = PATTERN_NO_LIMIT;
        if (peek(p) != '}') {
            r = parse_number(p, ret_max);
            if (r < 0)
                return r;
        }
    }
    if (peek(p) != '}')
        return fault(p, "'{' without '}'");
    if (*ret_max != PATTERN_NO_LIMIT && *ret_max < *ret_min)
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
parse_repeat(struct parser *p, struct pattern_node **ret_node)
{
    struct pattern_node *atom;
    struct pattern_node *repeat;
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
        repeat->max = peek(p) == '?' ? 1 : PATTERN_NO_LIMIT;
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
parse_cat(struct parser *p, struct pattern_node **ret_node)
{
    struct pattern_node *cat = node_new(p, NODE_CAT);
    struct pattern_node **tail = &cat->first;
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
parse_alt(struct parser *p, struct pattern_node **ret_node)
{
    struct pattern_node *alt = node_new(p, NODE_ALT);
    struct pattern_node **tail = &alt->first;
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

int
pattern_parse(const char *text, struct arena *arena, struct pattern_node **ret_root,
              struct err *err)
{
    struct parser p = {.text = text, .len = strlen(text), .arena = arena, .err = err};
    int r;

    if (p.len > PATTERN_TEXT_MAX)
        return err_set(err, ERR_INVALID, "pattern: longer than 500 bytes");
    if (!utf8_valid(text, p.len))
        return err_set(err, ERR_INVALID, "pattern: not valid UTF-8");
    if (p.len > 0 && text[0] == '^')
        p.at = 1;
    r = parse_alt(&p, ret_root);
    if (r < 0)
        return r;
    if (!at_end(&p))
        return fault(&p, "')' without '('");
    return 0;
}
