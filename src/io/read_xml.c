/*
 * Each item becomes a row: the columns declared, or those that the first item
 * has. An XML file cannot be entered in the middle, so a restart parses what is
 * before the position again and drops it; that the file is the same is known
 * from its bytes up to there, in a ZIP file from the member's own checksum.
 */
#include "io/read_xml.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/strs.h"
#include "io/byte_source.h"
#include "io/columns.h"
#include "io/file_path.h"
#include "io/file_place.h"
#include "io/zip_place.h"
#include "io/io_ctx.h"
#include "io/option.h"
#include "io/row.h"
#include "io/xml_scan.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct xml_reader {
    struct reader reader;
    const json_t *def;
    struct byte_source source;
    struct xml_scan *scan;
    struct columns columns;
    struct columns paths; /* of the columns, in their order */
    bool empty_is_text;
    struct file_place place; /* behind the last item */
};

static struct xml_reader *
xml_of(struct reader *reader)
{
    return container_of(reader, struct xml_reader, reader);
}

/* --- open --- */

static int
start(struct xml_reader *xml, struct err *err)
{
    scoped(buf_release) struct buf path = {0};
    struct xml_options options = {
        .item = io_option_text(xml->def, "item", ""),
        .read = byte_source_read,
        .arg = &xml->source,
    };
    int r;

    xml_scan_freep(&xml->scan);
    xml->place = (struct file_place){.line = 1};
    buf_init(&path, PATH_MAX);
    r = file_path_fill(xml->reader.io, io_option_text(xml->def, "xml", ""), &path, err);
    if (r == 0)
        r = byte_source_open(&xml->source, buf_str(&path),
                             io_option_text(xml->def, "member", NULL), err);
    if (r < 0)
        return r;
    options.name = xml->source.name;
    return xml_scan_new(&options, &xml->scan, err);
}

/* The next item, counted; an enum xml_outcome. */
static int
next_item(struct xml_reader *xml, struct xml_item *ret_item, struct err *err)
{
    int r = xml_scan_next(xml->scan, ret_item, err);

    if (r == XML_ITEM || r == XML_BAD) {
        xml->place.offset = ret_item->end;
        xml->place.line = ret_item->line;
        xml->place.rows++;
    }
    return r;
}

/* Columns as declared; each stands in the field of its name or where `fields` says. */
static int
declare_columns(struct xml_reader *xml, struct err *err)
{
    json_t *fields = json_object_get(xml->def, "fields");
    const json_t *declared = json_object_get(xml->def, "columns");
    const char *name;
    json_t *value;

    columns_declare(&xml->columns, declared ? declared : fields);
    if (!declared) { /* their values are paths, not types */
        for (size_t i = 0; i < xml->columns.width; i++)
            xml->columns.list[i].type = CELL_NULL;
    }
    json_object_foreach(fields, name, value)
    {
        if (columns_find(&xml->columns, name, strlen(name)) == COLUMNS_NONE)
            return err_set(err, ERR_CONFIG,
                           "read.fields: \"%s\" is not among read.columns", name);
    }
    for (size_t i = 0; i < xml->columns.width; i++) {
        const char *path = io_option_text(fields, xml->columns.list[i].name,
                                          xml->columns.list[i].name);
        int r = columns_add(&xml->paths, path, strlen(path), err);

        if (r < 0)
            return r;
    }
    return 0;
}

static int
columns_of_first_item(struct xml_reader *xml, struct err *err)
{
    struct xml_item item;
    int r = next_item(xml, &item, err);

    if (r < 0)
        return r;
    if (r == XML_BAD)
        return -(int)err->code;
    if (r == XML_END)
        return err_set(err, ERR_INVALID,
                       "%s has no element %s to tell the columns by; name them under "
                       "read.columns",
                       xml->source.name, io_option_text(xml->def, "item", ""));
    for (size_t i = 0; i < item.count; i++) {
        const struct xml_field *field = &item.fields[i];

        if (columns_find(&xml->columns, field->path, field->path_len) != COLUMNS_NONE)
            continue; /* told as twice there when it is read */
        r = columns_add(&xml->columns, field->path, field->path_len, err);
        if (r == 0)
            r = columns_add(&xml->paths, field->path, field->path_len, err);
        if (r < 0)
            return err_prefix(err, "%s:%lld", xml->source.name, (long long)item.line);
    }
    return start(xml, err);
}

/* --- position --- */

/* Pass over the items before the position. */
static int
go_to(struct xml_reader *xml, const char *position, struct err *err)
{
    struct file_place place = {0};
    struct xml_item item;
    int r;

    if (xml->source.zipped)
        r = zip_place_get(xml->source.name, xml->source.stream.entry, position,
                          &place.rows, err);
    else
        r = file_place_get(xml->source.fd, xml->source.path, position, &place, err);
    while (r >= 0 && xml->place.rows < place.rows) {
        r = next_item(xml, &item, err);
        if (r == XML_END)
            return err_set(err, ERR_INVALID,
                           "%s has %lld items, the checkpoint stands behind %lld: the "
                           "file was changed; ask for a new run (restart: false)",
                           xml->source.name, (long long)xml->place.rows,
                           (long long)place.rows);
        if (r == XML_BAD)
            err_clear(err); /* told before the stop */
    }
    return r < 0 ? r : 0;
}

static int
xml_open(struct reader *reader, const char *position, struct err *err)
{
    struct xml_reader *xml = xml_of(reader);
    int r = start(xml, err);

    if (r == 0)
        r = declare_columns(xml, err);
    if (r == 0 && !xml->columns.declared)
        r = columns_of_first_item(xml, err);
    if (r < 0 || !position || reader->restart == READER_RESTART_BEGINNING)
        return r;
    return go_to(xml, position, err);
}

static int
xml_position(struct reader *reader, struct buf *position, struct err *err)
{
    struct xml_reader *xml = xml_of(reader);

    if (reader->restart == READER_RESTART_BEGINNING) {
        buf_add_str(position, "{}");
        return 0;
    }
    if (xml->source.zipped)
        return zip_place_put(xml->source.stream.entry, xml->place.rows, position);
    return file_place_put(xml->source.fd, xml->source.path, &xml->place, position, err);
}

static const struct column *
xml_columns(struct reader *reader, size_t *ret_count)
{
    struct xml_reader *xml = xml_of(reader);

    *ret_count = xml->columns.width;
    return xml->columns.list;
}

/* --- rows --- */

static int
put_field(struct xml_reader *xml, const struct xml_field *field, struct row_set *rows,
          struct cell *cells, struct err *err)
{
    size_t i = columns_find(&xml->paths, field->path, field->path_len);
    const struct column *column;

    if (i == COLUMNS_NONE) {
        if (xml->columns.declared || (field->len == 0 && field->path[0] == '.'))
            return 0;
        return err_set(err, ERR_INVALID,
                       "\"%.*s\" is no column: the first item has none of that name; "
                       "name those to be read under read.columns",
                       (int)(field->path_len < 80 ? field->path_len : 80), field->path);
    }
    column = &xml->columns.list[i];
    if (cells[i].type != CELL_NULL)
        return err_set(err, ERR_INVALID, "%s is there twice in one item", column->name);
    if (field->len == 0 && !(xml->empty_is_text &&
                             (column->type == CELL_TEXT || column->type == CELL_NULL)))
        return 0;
    return column_put(column, rows, &cells[i], field->text, field->len, err);
}

static int
put_item(struct xml_reader *xml, const struct xml_item *item, struct row_set *rows,
         struct err *err)
{
    struct cell *cells = row_set_add(rows);

    for (size_t i = 0; i < item->count; i++) {
        int r = put_field(xml, &item->fields[i], rows, cells, err);

        if (r < 0) {
            row_set_drop_last(rows);
            return err_prefix(err, "%s:%lld", xml->source.name, (long long)item->line);
        }
    }
    return 0;
}

static int
bad_item(struct xml_reader *xml, const struct xml_item *item)
{
    char place[PATH_MAX + 32];

    (void)snprintf(place, sizeof(place), "%s:%lld", xml->source.name,
                   (long long)item->line);
    return reader_bad_record(&xml->reader, READER_CLASS_FORMAT, place);
}

static int
xml_read_chunk(struct reader *reader, size_t max_rows, struct row_set *rows,
               struct err *err)
{
    struct xml_reader *xml = xml_of(reader);
    struct xml_item item;
    int r;

    row_set_clear(rows, xml->columns.width);
    while (rows->count < max_rows && !row_set_full(rows)) {
        r = next_item(xml, &item, err);
        if (r < 0)
            return r;
        if (r == XML_END)
            return READER_END;
        if (r == XML_BAD || put_item(xml, &item, rows, err) < 0)
            return bad_item(xml, &item);
    }
    return READER_MORE;
}

static void
xml_free(struct reader *reader)
{
    struct xml_reader *xml = xml_of(reader);

    xml_scan_free(xml->scan);
    byte_source_release(&xml->source);
    columns_release(&xml->columns);
    columns_release(&xml->paths);
    free(xml);
}

static const struct reader_ops xml_ops = {
    .open = xml_open,
    .columns = xml_columns,
    .read_chunk = xml_read_chunk,
    .position = xml_position,
    .free = xml_free,
};

int
read_xml_new(struct io_ctx *io, const json_t *def, struct reader **ret_reader,
             struct err *err)
{
    struct xml_reader *xml = xcalloc(1, sizeof(*xml));

    xml->reader.ops = &xml_ops;
    xml->reader.io = io;
    xml->reader.restart = reader_restart_of(def);
    xml->def = def;
    xml->empty_is_text = str_eq(io_option_text(def, "empty", "null"), "text");
    byte_source_init(&xml->source);
    *ret_reader = &xml->reader;
    return 0;
}
