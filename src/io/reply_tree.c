/*
 * XML goes through expat with everything that could make it grow switched off: a
 * DOCTYPE ends the reading, so there are no entities but the five of XML itself, and
 * depth is bounded. What is left is no larger than a few times the body, which has
 * a ceiling of its own.
 */
#include "io/reply_tree.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/strs.h"
#include "io/cell_text.h"
#include "io/xml_encoding.h"

#include <expat.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define XML_DEPTH_MAX JSON_DEPTH_MAX
#define LOOSE_DEPTH   4
#define SHOWN_BYTES   60
#define PATH_NAME_MAX 128

/* What a tree may need, about: "[{},{},…" needs a hundred times its own bytes. */
#define TREE_MAX_BYTES (INT64_C(512) << 20)
#define OBJECT_BYTES   256
#define VALUE_BYTES    128

/* --- XML --- */

struct xml_level {
    json_t *members; /* NULL: none yet */
    struct buf text;
};

struct xml_build {
    XML_Parser parser;
    struct xml_level levels[XML_DEPTH_MAX + 1];
    char *names[XML_DEPTH_MAX + 1];
    int depth; /* of open elements */
    json_t *root;
    const char *refused;
    int64_t bytes;
};

static void
xml_build_release(struct xml_build *build)
{
    for (int i = 0; i <= XML_DEPTH_MAX; i++) {
        json_decref(build->levels[i].members);
        buf_release(&build->levels[i].text);
        free(build->names[i]);
    }
    json_decref(build->root);
    if (build->parser)
        XML_ParserFree(build->parser);
}

static void
refuse(struct xml_build *build, const char *why)
{
    if (!build->refused)
        build->refused = why;
    XML_StopParser(build->parser, XML_FALSE);
}

/* A member that is there already becomes a list. */
static void
add_member(struct xml_level *level, const char *name, json_t *value)
{
    json_t *there;

    if (!level->members)
        level->members = json_object();
    there = json_object_get(level->members, name);
    if (!there) {
        json_object_set_new_nocheck(level->members, name, value);
    } else if (json_is_array(there)) {
        json_array_append_new(there, value);
    } else {
        json_t *list = json_array();

        json_array_append(list, there);
        json_array_append_new(list, value);
        json_object_set_new_nocheck(level->members, name, list);
    }
}

static void
on_start(void *arg, const XML_Char *name, const XML_Char **attributes)
{
    struct xml_build *build = arg;
    struct xml_level *level;

    if (build->depth >= XML_DEPTH_MAX) {
        refuse(build, "elements are nested too deep");
        return;
    }
    build->bytes += VALUE_BYTES;
    for (size_t i = 0; attributes[i]; i += 2)
        build->bytes += i == 0 ? OBJECT_BYTES + VALUE_BYTES : VALUE_BYTES;
    if (!build->levels[build->depth].members)
        build->bytes += OBJECT_BYTES;
    if (build->bytes > TREE_MAX_BYTES) {
        refuse(build, "it has too many elements for the memory");
        return;
    }
    build->depth++;
    level = &build->levels[build->depth];
    buf_clear(&level->text);
    free(build->names[build->depth]);
    build->names[build->depth] = xstrdup(name);
    for (; attributes[0]; attributes += 2) {
        scoped(buf_release) struct buf key = {0};

        buf_init(&key, 4096);
        buf_addf(&key, "@%s", attributes[0]);
        add_member(level, buf_str(&key), json_string_nocheck(attributes[1]));
    }
}

static json_t *
text_of(struct xml_level *level)
{
    const char *text = buf_str(&level->text);
    size_t len = level->text.len;

    while (len > 0 && strchr(" \t\r\n", *text)) {
        text++;
        len--;
    }
    while (len > 0 && strchr(" \t\r\n", text[len - 1]))
        len--;
    return json_stringn_nocheck(text, len);
}

static void
on_end(void *arg, const XML_Char *name)
{
    struct xml_build *build = arg;
    struct xml_level *level = &build->levels[build->depth];
    json_t *value = text_of(level);

    if (level->members) {
        if (json_string_length(value) > 0)
            json_object_set_nocheck(level->members, "#text", value);
        json_decref(value);
        value = level->members;
        level->members = NULL;
    }
    build->depth--;
    add_member(&build->levels[build->depth], build->names[build->depth + 1], value);
}

static void
on_text(void *arg, const XML_Char *text, int len)
{
    struct xml_build *build = arg;

    buf_add(&build->levels[build->depth].text, text, (size_t)len);
}

static void
on_doctype(void *arg, const XML_Char *name, const XML_Char *system_id,
           const XML_Char *public_id, int has_internal_subset)
{
    refuse(arg, "it has a DOCTYPE, which may define entities: not accepted");
}

static int
parse_xml(const char *body, size_t len, json_t **ret_root, struct err *err)
{
    scoped(xml_build_release) struct xml_build build = {0};

    build.parser = XML_ParserCreate(NULL);
    if (!build.parser)
        return err_set(err, ERR_NOMEM, "cannot start the XML parser (expat)");
    XML_SetUserData(build.parser, &build);
    XML_SetElementHandler(build.parser, on_start, on_end);
    XML_SetCharacterDataHandler(build.parser, on_text);
    XML_SetStartDoctypeDeclHandler(build.parser, on_doctype);
    XML_SetUnknownEncodingHandler(build.parser, xml_encoding_find, NULL);
    if (XML_Parse(build.parser, body, (int)len, 1) != XML_STATUS_OK)
        return err_set(err, ERR_PROTOCOL, "the XML is wrong at line %lu: %s",
                       (unsigned long)XML_GetCurrentLineNumber(build.parser),
                       build.refused ? build.refused
                                     : XML_ErrorString(XML_GetErrorCode(build.parser)));
    *ret_root = build.levels[0].members;
    build.levels[0].members = NULL;
    return 0;
}

/* --- reading --- */

/* Counted before the parser has made them. */
static int64_t
json_tree_bytes(const char *body, size_t len)
{
    int64_t bytes = 0;
    bool quoted = false;

    for (size_t i = 0; i < len; i++) {
        char c = body[i];

        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '{' || c == '['))
            bytes += OBJECT_BYTES;
        else if (!quoted && c == ',')
            bytes += VALUE_BYTES;
    }
    return bytes;
}

static bool
begins_with_word(const char *body, size_t len, const char *word)
{
    size_t n = strlen(word);

    return len >= n && strncasecmp(body, word, n) == 0;
}

/* The first bytes, so that a person sees what came. */
static int
neither(const char *body, size_t len, struct err *err)
{
    char shown[SHOWN_BYTES + 1];
    size_t n = 0;

    if (len == 0)
        return err_set(err, ERR_PROTOCOL, "the reply is empty");
    for (; n < len && n < SHOWN_BYTES; n++)
        shown[n] = body[n] >= 0x20 && body[n] < 0x7F ? body[n] : '.';
    shown[n] = '\0';
    return err_set(err, ERR_PROTOCOL, "the reply is neither JSON nor XML: \"%s%s\"",
                   shown, len > n ? "…" : "");
}

/* Integers of more than 64 bits are no fault of the reply: they are kept digit by
 * digit, where the parser itself would refuse them. */
static int
parse_json(const char *body, size_t len, struct reply_tree *tree, struct err *err)
{
    scoped(buf_release) struct buf marked = {0};
    int r = json_parse(body, len, JSON_DEPTH_MAX, &tree->root, err);

    if (r != -ERR_INVALID)
        return r;
    buf_init(&marked, len * 3);
    if (reply_number_mark(body, len, &marked)) {
        err_clear(err);
        r = json_parse(buf_str(&marked), marked.len, JSON_DEPTH_MAX, &tree->root, err);
    }
    if (r == 0)
        reply_number_collect(tree->root, &tree->decimals);
    if (r != -ERR_INVALID)
        return r;
    err->code = ERR_PROTOCOL;
    (void)err_prefix(err, "the reply is no proper JSON");
    return -ERR_PROTOCOL;
}

int
reply_tree_parse(const char *body, size_t len, struct reply_tree *ret_tree,
                 struct err *err)
{
    struct reply_tree tree = {0};
    int r;

    if (len >= 3 && memcmp(body, "\xEF\xBB\xBF", 3) == 0) {
        body += 3;
        len -= 3;
    }
    while (len > 0 && strchr(" \t\r\n", *body)) {
        body++;
        len--;
    }
    if (begins_with_word(body, len, "<!doctype html") ||
        begins_with_word(body, len, "<html"))
        return err_set(err, ERR_PROTOCOL,
                       "the reply is an HTML page, neither JSON nor XML");
    if (len == 0 || !strchr("{[<", *body))
        return neither(body, len, err);
    if (*body == '<') {
        tree.format = REPLY_XML;
        r = parse_xml(body, len, &tree.root, err);
    } else if (json_tree_bytes(body, len) > TREE_MAX_BYTES) {
        r = err_set(err, ERR_PROTOCOL, "the reply has too many values for the memory");
    } else {
        tree.format = REPLY_JSON;
        r = parse_json(body, len, &tree, err);
    }
    if (r < 0)
        return r;
    *ret_tree = tree;
    return 0;
}

void
reply_tree_release(struct reply_tree *tree)
{
    json_decref(tree->root);
    tree->root = NULL;
    reply_decimals_release(&tree->decimals);
}

/* --- paths --- */

static bool
is_nothing(const json_t *value)
{
    return json_is_null(value) ||
           (json_is_string(value) && json_string_length(value) == 0);
}

struct walk {
    reply_fn fn;
    void *arg;
    bool whole;   /* lists at the end are told as they are */
    bool reached; /* something stood there, even if it was nothing */
};

static int
tell(struct walk *walk, const json_t *value)
{
    const json_t *element;
    size_t i;

    walk->reached = true;
    if (walk->whole || !json_is_array(value))
        return is_nothing(value) ? 0 : walk->fn(walk->arg, value);
    json_array_foreach(value, i, element)
    {
        int r = tell(walk, element);

        if (r != 0)
            return r;
    }
    return 0;
}

static int
follow(struct walk *walk, const json_t *value, const char *path)
{
    size_t len = strcspn(path, "/");
    const char *rest = path[len] == '/' ? path + len + 1 : NULL;
    char name[PATH_NAME_MAX];
    const json_t *next = NULL;
    const json_t *element;
    size_t i;

    if (len >= sizeof(name))
        return 0;
    memcpy(name, path, len);
    name[len] = '\0';
    if (json_is_object(value)) {
        next = json_object_get(value, name);
    } else if (json_is_array(value)) {
        if (len > 0 && strspn(name, "0123456789") == len)
            next = json_array_get(value, strtoul(name, NULL, 10));
        else
            json_array_foreach(value, i, element)
            {
                int r = follow(walk, element, path);

                if (r != 0)
                    return r;
            }
    }
    if (!next)
        return 0;
    return rest ? follow(walk, next, rest) : tell(walk, next);
}

static int
follow_from(struct walk *walk, const json_t *from, const char *path, int depth)
{
    int r = str_eq(path, ".") ? tell(walk, from) : follow(walk, from, path);
    const char *key;
    json_t *value;

    if (r != 0 || walk->reached || depth == 0 || !json_is_object(from))
        return r;
    json_object_foreach((json_t *)(uintptr_t)from, key, value)
    {
        r = follow_from(walk, value, path, depth - 1);
        if (r != 0 || walk->reached)
            return r;
    }
    return 0;
}

int
reply_each(const json_t *from, const char *path, bool loose, reply_fn fn, void *arg)
{
    struct walk walk = {.fn = fn, .arg = arg};

    return follow_from(&walk, from, path, loose ? LOOSE_DEPTH : 0);
}

static int
take_scalar(void *arg, const json_t *value)
{
    const json_t **ret = arg;

    if (json_is_object(value) || json_is_array(value))
        return 0;
    *ret = value;
    return 1;
}

const json_t *
reply_scalar(const json_t *from, const char *path, bool loose)
{
    const json_t *found = NULL;

    reply_each(from, path, loose, take_scalar, &found);
    return found;
}

static int
take_any(void *arg, const json_t *value)
{
    *(const json_t **)arg = value;
    return 1;
}

const json_t *
reply_value(const json_t *from, const char *path)
{
    const json_t *found = NULL;
    struct walk walk = {.fn = take_any, .arg = &found, .whole = true};

    follow_from(&walk, from, path, 0);
    return found;
}

const char *
reply_text(const json_t *value, char room[48])
{
    _Static_assert(CELL_TEXT_MAX <= 48, "room for a number");
    size_t len = 0;

    if (json_is_string(value))
        return json_string_value(value);
    if (json_is_boolean(value))
        return json_is_true(value) ? "true" : "false";
    if (json_is_integer(value))
        len = text_i64(room, json_integer_value(value));
    else if (json_is_real(value))
        len = text_real(room, json_real_value(value));
    else
        return NULL;
    if (len > 47)
        len = 47;
    room[len] = '\0';
    return room;
}

int
reply_path_check(const char *where, const char *path, struct err *err)
{
    if (str_eq(path, "."))
        return 0;
    if (str_empty(path) || *path == '/' || path[strlen(path) - 1] == '/' ||
        strstr(path, "//"))
        return err_set(err, ERR_CONFIG,
                       "%s: \"%s\" is no path; names with / between, such as "
                       "response/body/items",
                       where, path ? path : "");
    return 0;
}
