/*
 * The items of an XML document, one at a time, while it is read: an item is each
 * element at a given path, flattened to the texts of its leaves and attributes.
 * No document type, so no entities that swell; ceilings on depth and on the size
 * of an item. The bytes come from a function, so from a file, a member of a ZIP
 * file, or an answer in memory. One thread.
 */
#ifndef IO_XML_SCAN_H
#define IO_XML_SCAN_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct xml_scan;

#define XML_DEPTH_MAX      200
#define XML_FIELDS_MAX     100000
#define XML_ITEM_MAX_BYTES ((size_t)32 << 20)

/* At most cap bytes to out; *ret_len 0 at the end. */
typedef int (*xml_read_fn)(void *arg, char *out, size_t cap, size_t *ret_len,
                           struct err *err);

struct xml_options {
    const char *name; /* of the document, for messages; must outlive the scan */
    /* Names of elements: "list" anywhere, "items/item" an item in items, "/a/b" from
     * the root. An item within an item is part of the outer one. */
    const char *item;
    bool keep_blanks;  /* else texts lose the blanks at both ends */
    bool local_names;  /* x:row is row, for paths and fields */
    bool element_ends; /* the end of an element that has inner ones is a field too */
    xml_read_fn read;
    void *arg;
};

/* path within the item: "name", "a/b", "@id", "a/@id"; "." is its own text. */
struct xml_field {
    const char *path;
    size_t path_len;
    const char *text; /* UTF-8 */
    size_t len;
};

/* In the order of the document; good until the next xml_scan_next. */
struct xml_item {
    const struct xml_field *fields;
    size_t count;
    int64_t line; /* on which it begins, from 1 */
    int64_t end;  /* bytes of the document up to its end */
};

enum xml_outcome {
    XML_ITEM,
    XML_END,
    XML_BAD, /* an item over a ceiling, passed over: err says which */
};

int xml_scan_new(const struct xml_options *options, struct xml_scan **ret_scan,
                 struct err *err) must_check;
/* An enum xml_outcome, or -ERR_INVALID with name:line:column; *ret_item for XML_ITEM,
 * and its line for XML_BAD. */
int xml_scan_next(struct xml_scan *scan, struct xml_item *ret_item,
                  struct err *err) must_check;
void xml_scan_free(struct xml_scan *scan); /* accepts NULL */
void xml_scan_freep(struct xml_scan **scan);

#endif
