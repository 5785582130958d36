/*
 * expat pushes, we pull: the parser is stopped at the end of each item and
 * resumed for the next. While an item is open, one buffer holds the names of the
 * elements that are open, another their texts, each text behind its parent's;
 * the end of an element takes its text off and makes it a field.
 */
#include "io/xml_scan.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "io/xml_encoding.h"

#include <expat.h>
#include <stdlib.h>
#include <string.h>

#define READ_BYTES 65536

/* An element that is open. */
struct level {
    size_t path_len; /* of the path before it */
    size_t text;     /* where its own text begins in scan->text */
    bool has_children;
};

/* A field while its item is read: offsets into scan->kept. */
struct kept_field {
    size_t path, path_len, text, len;
};

struct xml_scan {
    struct xml_options options;
    XML_Parser parser;
    bool suspended;
    bool at_end; /* all bytes are with the parser */
    struct err failure;

    struct buf path; /* "/a/b" of the open elements */
    struct level levels[XML_DEPTH_MAX];
    int depth;
    int item_depth;   /* of the item's element; 0: none is open */
    size_t item_path; /* bytes of the path up to the item */
    bool item_too_large;
    bool item_done;

    struct buf text;
    struct buf kept; /* paths and texts of the fields */
    struct kept_field *fields;
    size_t n_fields;
    size_t fields_cap;
    struct xml_field *given;
    int64_t line;
};

static void
fail(struct xml_scan *scan, enum err_code code, const char *what)
{
    (void)err_set(&scan->failure, code, "%s:%lu:%lu: %s", scan->options.name,
                  XML_GetCurrentLineNumber(scan->parser),
                  XML_GetCurrentColumnNumber(scan->parser) + 1, what);
    (void)XML_StopParser(scan->parser, XML_FALSE);
}

/* --- fields --- */

static void
keep_field(struct xml_scan *scan, const char *path, size_t path_len, const char *text,
           size_t len)
{
    struct kept_field *field;

    if (scan->item_too_large)
        return;
    if (!scan->options.keep_blanks) {
        while (len > 0 && strchr(" \t\r\n", text[len - 1]))
            len--;
        while (len > 0 && strchr(" \t\r\n", *text)) {
            text++;
            len--;
        }
    }
    if (scan->n_fields == scan->fields_cap) {
        scan->fields_cap = scan->fields_cap ? scan->fields_cap * 2 : 64;
        scan->fields = xrealloc(scan->fields, scan->fields_cap * sizeof(*scan->fields));
        scan->given = xrealloc(scan->given, scan->fields_cap * sizeof(*scan->given));
    }
    field = &scan->fields[scan->n_fields++];
    field->path = scan->kept.len;
    field->path_len = path_len;
    buf_add(&scan->kept, path, path_len);
    field->text = scan->kept.len;
    field->len = len;
    buf_add(&scan->kept, text, len);
    scan->item_too_large = scan->kept.overflow || scan->n_fields >= XML_FIELDS_MAX;
}

static const char *
inner_path(const struct xml_scan *scan, size_t *ret_len)
{
    size_t start = scan->item_path + 1;

    if (scan->path.len <= start) {
        *ret_len = 1;
        return ".";
    }
    *ret_len = scan->path.len - start;
    return buf_str(&scan->path) + start;
}

static const char *
shown_name(const struct xml_scan *scan, const char *name)
{
    const char *colon = scan->options.local_names ? strchr(name, ':') : NULL;

    return colon ? colon + 1 : name;
}

static void
keep_attributes(struct xml_scan *scan, const XML_Char **attributes)
{
    size_t before = scan->path.len;

    for (; *attributes; attributes += 2) {
        const char *path;
        size_t len;

        buf_addf(&scan->path, "/@%s", shown_name(scan, attributes[0]));
        path = inner_path(scan, &len);
        keep_field(scan, path, len, attributes[1], strlen(attributes[1]));
        scan->path.len = before;
        scan->path.data[before] = '\0';
    }
}

/* --- events --- */

static bool
is_item(const struct xml_scan *scan)
{
    const char *path = buf_str(&scan->path), *item = scan->options.item;
    size_t len = strlen(item);

    if (*item == '/')
        return strcmp(path, item) == 0;
    return scan->path.len > len && path[scan->path.len - len - 1] == '/' &&
           memcmp(path + scan->path.len - len, item, len) == 0;
}

static void
on_start(void *arg, const XML_Char *name, const XML_Char **attributes)
{
    struct xml_scan *scan = arg;

    if (scan->failure.code)
        return;
    if (scan->depth == XML_DEPTH_MAX) {
        fail(scan, ERR_TOO_LARGE, "elements nested deeper than 200 levels");
        return;
    }
    if (scan->depth > 0)
        scan->levels[scan->depth - 1].has_children = true;
    scan->levels[scan->depth++] =
        (struct level){.path_len = scan->path.len, .text = scan->text.len};
    buf_addf(&scan->path, "/%s", shown_name(scan, name));
    if (scan->path.overflow) {
        fail(scan, ERR_TOO_LARGE, "names of elements too long");
        return;
    }
    if (scan->item_depth == 0 && is_item(scan)) {
        scan->item_depth = scan->depth;
        scan->item_path = scan->path.len;
        scan->line = (int64_t)XML_GetCurrentLineNumber(scan->parser);
    }
    if (scan->item_depth)
        keep_attributes(scan, attributes);
}

static bool
is_blank(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!strchr(" \t\r\n", text[i]))
            return false;
    }
    return true;
}

static void
on_end(void *arg, const XML_Char *name)
{
    struct xml_scan *scan = arg;
    struct level *level;

    if (scan->failure.code)
        return;
    level = &scan->levels[scan->depth - 1];
    if (scan->item_depth) {
        const char *text = buf_str(&scan->text) + level->text;
        size_t len = scan->text.len - level->text, path_len;
        const char *path = inner_path(scan, &path_len);

        if (!level->has_children || scan->options.element_ends || !is_blank(text, len))
            keep_field(scan, path, path_len, text, len);
    }
    scan->text.len = level->text;
    scan->path.len = level->path_len;
    if (scan->path.data)
        scan->path.data[scan->path.len] = '\0';
    if (scan->depth == scan->item_depth) {
        scan->item_depth = 0;
        scan->item_done = true;
        (void)XML_StopParser(scan->parser, XML_TRUE);
    }
    scan->depth--;
}

static void
on_text(void *arg, const XML_Char *text, int len)
{
    struct xml_scan *scan = arg;

    if (!scan->item_depth || scan->failure.code || scan->item_too_large)
        return;
    buf_add(&scan->text, text, (size_t)len);
    scan->item_too_large = scan->text.overflow;
}

static void
on_doctype(void *arg, const XML_Char *name, const XML_Char *system_id,
           const XML_Char *public_id, int has_internal)
{
    struct xml_scan *scan = arg;

    if (!scan->failure.code)
        fail(scan, ERR_INVALID,
             "a document type (<!DOCTYPE) is not read, because entities can make a "
             "small file endless; is it an HTML page?");
}

/* --- reading --- */

int
xml_scan_new(const struct xml_options *options, struct xml_scan **ret_scan,
             struct err *err)
{
    scoped(xml_scan_freep) struct xml_scan *scan = xcalloc(1, sizeof(*scan));

    scan->options = *options;
    buf_init(&scan->path, 65536);
    buf_init(&scan->text, XML_ITEM_MAX_BYTES);
    buf_init(&scan->kept, XML_ITEM_MAX_BYTES);
    scan->parser = XML_ParserCreate(NULL);
    if (!scan->parser)
        return err_set(err, ERR_NOMEM, "no memory to read %s", options->name);
    XML_SetUserData(scan->parser, scan);
    XML_SetElementHandler(scan->parser, on_start, on_end);
    XML_SetCharacterDataHandler(scan->parser, on_text);
    XML_SetStartDoctypeDeclHandler(scan->parser, on_doctype);
    XML_SetUnknownEncodingHandler(scan->parser, xml_encoding_find, NULL);
    *ret_scan = scan;
    scan = NULL;
    return 0;
}

void
xml_scan_free(struct xml_scan *scan)
{
    if (!scan)
        return;
    if (scan->parser)
        XML_ParserFree(scan->parser);
    buf_release(&scan->path);
    buf_release(&scan->text);
    buf_release(&scan->kept);
    free(scan->fields);
    free(scan->given);
    free(scan);
}

void
xml_scan_freep(struct xml_scan **scan)
{
    xml_scan_free(*scan);
    *scan = NULL;
}

static int
not_xml(struct xml_scan *scan, struct err *err)
{
    enum XML_Error code = XML_GetErrorCode(scan->parser);
    bool cut =
        scan->at_end &&
        (code == XML_ERROR_NO_ELEMENTS || code == XML_ERROR_UNCLOSED_TOKEN ||
         code == XML_ERROR_PARTIAL_CHAR || code == XML_ERROR_UNCLOSED_CDATA_SECTION);

    if (scan->failure.code)
        return err_set(err, scan->failure.code, "%s", scan->failure.text);
    return err_set(err, ERR_INVALID, "%s:%lu:%lu: %s%s", scan->options.name,
                   XML_GetCurrentLineNumber(scan->parser),
                   XML_GetCurrentColumnNumber(scan->parser) + 1, XML_ErrorString(code),
                   cut ? "; it ends too early: was it downloaded whole?" : "");
}

/* More for the parser, or on with what it has. */
static int
go_on(struct xml_scan *scan, struct err *err)
{
    enum XML_Status status;
    size_t len = 0;
    void *room;
    int r;

    if (scan->suspended) {
        scan->suspended = false;
        status = XML_ResumeParser(scan->parser);
    } else {
        room = XML_GetBuffer(scan->parser, READ_BYTES);
        if (!room)
            return err_set(err, ERR_NOMEM, "no memory to read %s", scan->options.name);
        r = scan->options.read(scan->options.arg, room, READ_BYTES, &len, err);
        if (r < 0)
            return r;
        scan->at_end = len == 0;
        status = XML_ParseBuffer(scan->parser, (int)len, scan->at_end);
    }
    if (status == XML_STATUS_ERROR)
        return not_xml(scan, err);
    scan->suspended = status == XML_STATUS_SUSPENDED;
    return 0;
}

static void
give_item(struct xml_scan *scan, struct xml_item *ret_item)
{
    const char *kept = buf_str(&scan->kept);

    for (size_t i = 0; i < scan->n_fields; i++) {
        const struct kept_field *field = &scan->fields[i];

        scan->given[i] = (struct xml_field){
            .path = kept + field->path,
            .path_len = field->path_len,
            .text = kept + field->text,
            .len = field->len,
        };
    }
    *ret_item = (struct xml_item){
        .fields = scan->given,
        .count = scan->n_fields,
        .line = scan->line,
        .end = (int64_t)XML_GetCurrentByteIndex(scan->parser) +
               XML_GetCurrentByteCount(scan->parser),
    };
}

int
xml_scan_next(struct xml_scan *scan, struct xml_item *ret_item, struct err *err)
{
    bool too_large;
    int r;

    scan->item_done = false;
    scan->item_too_large = false;
    scan->n_fields = 0;
    buf_clear(&scan->kept);
    buf_clear(&scan->text); /* between items it is empty, but may have overflowed */
    while (!scan->item_done) {
        if (scan->at_end && !scan->suspended)
            return XML_END;
        r = go_on(scan, err);
        if (r < 0)
            return r;
    }
    give_item(scan, ret_item);
    too_large = scan->item_too_large;
    if (!too_large)
        return XML_ITEM;
    (void)err_set(
        err, ERR_TOO_LARGE, "%s:%lld: an item of more than %zu bytes or %d fields",
        scan->options.name, (long long)scan->line, XML_ITEM_MAX_BYTES, XML_FIELDS_MAX);
    return XML_BAD;
}
