/*
 * libyaml's events, gathered into nodes. libyaml tells the place of every event
 * but neither finds double keys nor limits what is used of YAML; both are done
 * here. The tree is built by recursion, as deep as YNODE_DEPTH_MAX at most.
 */
#include "config/yaml_node.h"

#include "base/arena.h"
#include "base/strs.h"
#include "base/utf8.h"
#include "config/errors.h"

#include <string.h>
#include <yaml.h>

struct builder {
    yaml_parser_t parser;
    const char *text;
    size_t len;
    const char *where;
    struct arena *arena;
    struct config_errors *errors;
    bool broken; /* a syntax error: stop */
};

/* What libyaml says, where our own words are plainer. */
static const struct {
    const char *theirs;
    const char *ours;
} sentences[] = {
    {"found character that cannot start any token",
     "this sign cannot start a value: indent with blanks (no tabs), and put texts that "
     "start with a sign such as @ % ` into quotes"},
    {"found a tab character that violates indentation",
     "a tab in the indentation: use blanks"},
    {"mapping values are not allowed in this context",
     "a second ':' on this line, or a wrong indentation: put the text into quotes if "
     "the colon belongs to it"},
    {"did not find expected key",
     "a key is expected here: look for a wrong indentation or a quote left open above"},
    {"did not find expected '-' indicator",
     "a '-' is expected here: the items of a list must stand in one column"},
    {"could not find expected ':'", "a ':' is missing after the key above"},
    {"did not find expected ',' or ']'", "a ',' or ']' is missing"},
    {"did not find expected ',' or '}'", "a ',' or '}' is missing"},
    {"found unexpected end of stream", "the quote that opens here is never closed"},
    {"found unknown escape character",
     "an unknown escape inside of \"…\": write \\\\ for a backslash, or use '…'"},
    {"did not find expected <document start>",
     "nothing may follow here: look for a wrong indentation"},
    {"control characters are not allowed", "a control character: remove it"},
};

static void report(struct builder *b, const yaml_mark_t *mark, const char *fmt, ...)
    printf_like(3, 4);

static void
report(struct builder *b, const yaml_mark_t *mark, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    config_errors_vadd(b->errors, b->where, (unsigned)mark->line + 1,
                       (unsigned)mark->column + 1, fmt, args);
    va_end(args);
}

/* Line and column of a byte, for what is found before libyaml counts. */
static yaml_mark_t
mark_of(const struct builder *b, size_t offset)
{
    yaml_mark_t mark = {0};
    size_t start = 0;
    size_t i;

    for (i = 0; i < offset && i < b->len; i++) {
        if (b->text[i] == '\n') {
            mark.line++;
            start = i + 1;
        }
    }
    mark.column = utf8_count(b->text + start, i - start);
    return mark;
}

static void
report_syntax(struct builder *b)
{
    const yaml_parser_t *parser = &b->parser;
    const char *problem = parser->problem != NULL ? parser->problem : "not valid YAML";
    yaml_mark_t mark = parser->problem_mark;
    size_t i;

    b->broken = true;
    if (parser->error == YAML_READER_ERROR)
        mark = mark_of(b, parser->problem_offset);
    /* A quote left open is found at the end of the file; its start says more. */
    if (str_eq(problem, "found unexpected end of stream"))
        mark = parser->context_mark;
    for (i = 0; i < array_len(sentences); i++) {
        if (str_eq(sentences[i].theirs, problem))
            problem = sentences[i].ours;
    }
    report(b, &mark, "%s", problem);
}

static bool
next_event(struct builder *b, yaml_event_t *event)
{
    if (yaml_parser_parse(&b->parser, event))
        return true;
    report_syntax(b);
    return false;
}

static void
refuse_extras(struct builder *b, const yaml_event_t *event, const yaml_char_t *anchor,
              const yaml_char_t *tag)
{
    if (anchor != NULL)
        report(b, &event->start_mark,
               "anchors (&%s) are not used here: write the value out",
               (const char *)anchor);
    if (tag != NULL)
        report(b, &event->start_mark,
               "tags (%s) are not used here: leave it out; quotes make a text",
               (const char *)tag);
}

static struct ynode *
node_new(struct builder *b, enum ynode_kind kind, const yaml_event_t *event)
{
    struct ynode *node = arena_new(b->arena, struct ynode);

    node->kind = kind;
    node->line = (unsigned)event->start_mark.line + 1;
    node->column = (unsigned)event->start_mark.column + 1;
    return node;
}

static struct ynode *
scalar_node(struct builder *b, const yaml_event_t *event)
{
    struct ynode *node = node_new(b, YNODE_SCALAR, event);
    const char *text = (const char *)event->data.scalar.value;
    size_t len = event->data.scalar.length;

    refuse_extras(b, event, event->data.scalar.anchor, event->data.scalar.tag);
    if (memchr(text, '\0', len) != NULL)
        report(b, &event->start_mark, "a NUL character (\\0) cannot be part of a text");
    node->text = arena_strndup(b->arena, text, len);
    node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    return node;
}

static struct ynode *build(struct builder *b, yaml_event_t *event, int depth);

/* Read one event and what hangs on it; NULL at the end mark or when broken. */
static struct ynode *
build_next(struct builder *b, int depth)
{
    yaml_event_t event;
    struct ynode *node;

    if (!next_event(b, &event))
        return NULL;
    node = build(b, &event, depth);
    yaml_event_delete(&event);
    return node;
}

static void
build_list(struct builder *b, struct ynode *list, int depth)
{
    struct ynode **tail = &list->first;

    while ((*tail = build_next(b, depth + 1)) != NULL) {
        tail = &(*tail)->next;
        list->count++;
    }
}

static void
take_key(struct builder *b, const struct ynode *map, const struct ynode *key,
         struct ynode *value)
{
    yaml_mark_t mark = {.line = key->line - 1, .column = key->column - 1};
    const struct ynode *before;

    value->key_line = key->line;
    value->key_column = key->column;
    if (key->kind != YNODE_SCALAR) {
        report(b, &mark, "a key must be a plain name");
        value->key = "";
        return;
    }
    value->key = key->text;
    if (str_eq(key->text, "<<") && !key->quoted)
        report(b, &mark, "merge keys (<<) are not used here: write the values out");
    before = ynode_get(map, key->text);
    if (before != NULL)
        report(b, &mark, "%s stands here a second time, first in line %u: remove one",
               key->text, before->key_line);
}

static void
build_map(struct builder *b, struct ynode *map, int depth)
{
    struct ynode **tail = &map->first;
    struct ynode *key;
    struct ynode *value;

    while ((key = build_next(b, depth + 1)) != NULL) {
        value = build_next(b, depth + 1);
        if (value == NULL)
            return;
        take_key(b, map, key, value);
        *tail = value;
        tail = &value->next;
        map->count++;
    }
}

static struct ynode *
build(struct builder *b, yaml_event_t *event, int depth)
{
    struct ynode *node = NULL;

    if (depth > YNODE_DEPTH_MAX) {
        report(b, &event->start_mark, "nested deeper than %d levels", YNODE_DEPTH_MAX);
        b->broken = true;
        return NULL;
    }
    if (event->type == YAML_SCALAR_EVENT) {
        node = scalar_node(b, event);
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        node = node_new(b, YNODE_LIST, event);
        refuse_extras(b, event, event->data.sequence_start.anchor,
                      event->data.sequence_start.tag);
        build_list(b, node, depth);
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        node = node_new(b, YNODE_MAP, event);
        refuse_extras(b, event, event->data.mapping_start.anchor,
                      event->data.mapping_start.tag);
        build_map(b, node, depth);
    } else if (event->type == YAML_ALIAS_EVENT) {
        report(b, &event->start_mark,
               "aliases (*%s) are not used here: write the value out",
               (const char *)event->data.alias.anchor);
        node = node_new(b, YNODE_SCALAR, event);
        node->text = "";
    }
    return b->broken ? NULL : node;
}

/* stream start, document start, root node, document end, stream end */
static struct ynode *
build_document(struct builder *b)
{
    struct ynode *root = NULL;
    yaml_event_t event;
    int documents = 0;

    while (!b->broken && next_event(b, &event)) {
        yaml_event_type_t type = event.type;

        if (type == YAML_DOCUMENT_START_EVENT && ++documents == 2) {
            report(b, &event.start_mark,
                   "a second document: the whole configuration is one");
            b->broken = true;
        }
        if (type == YAML_SCALAR_EVENT || type == YAML_SEQUENCE_START_EVENT ||
            type == YAML_MAPPING_START_EVENT || type == YAML_ALIAS_EVENT)
            root = build(b, &event, 1);
        if (type == YAML_STREAM_END_EVENT && root == NULL && !b->broken)
            root = node_new(b, YNODE_MAP, &event);
        yaml_event_delete(&event);
        if (type == YAML_STREAM_END_EVENT)
            break;
    }
    return b->broken ? NULL : root;
}

static bool
check_bytes(struct builder *b)
{
    size_t good = utf8_valid_prefix(b->text, b->len);
    yaml_mark_t mark;

    if (good == b->len)
        return true;
    mark = mark_of(b, good);
    report(b, &mark, "not valid UTF-8: save the file as UTF-8");
    return false;
}

struct ynode *
ynode_parse(const char *text, size_t len, const char *where, struct arena *arena,
            struct config_errors *errors)
{
    struct builder b = {
        .text = text, .len = len, .where = where, .arena = arena, .errors = errors};
    struct ynode *root;

    if (!check_bytes(&b))
        return NULL;
    if (!yaml_parser_initialize(&b.parser)) {
        config_errors_add(errors, where, 0, 0, "no memory left to read it");
        return NULL;
    }
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3;
        len -= 3;
    }
    yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&b.parser, (const unsigned char *)text, len);
    root = build_document(&b);
    yaml_parser_delete(&b.parser);
    if (root != NULL && ynode_is_null(root)) {
        root->kind = YNODE_MAP;
    } else if (root != NULL && root->kind != YNODE_MAP) {
        config_errors_add(errors, where, root->line, root->column,
                          "the file must be a map of settings such as `jobs:`, not %s",
                          ynode_kind_word(root));
        return NULL;
    }
    return root;
}
