/*
 * The head line names the columns (or `columns` does, with `header: false`);
 * `columns` as a map gives some of them types, and then each field must be one.
 * Every record has as many fields as the head, else it is a bad record.
 *
 * It restarts at the byte where the record after the last one begins; or, told
 * `restart: beginning`, reads the file anew, because it may have come again in
 * another order.
 */
#include "io/read_csv.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/strs.h"
#include "io/charset.h"
#include "io/columns.h"
#include "io/csv_scan.h"
#include "io/file_place.h"
#include "io/io_ctx.h"
#include "io/option.h"
#include "io/row.h"
#include "io/file_path.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct csv_reader {
    struct reader reader;
    const json_t *def;
    struct csv_scan scan;
    struct arena arena; /* names of columns */
    struct column *columns;
    size_t width;
    bool empty_is_text; /* empty: text */
    int64_t rows;       /* passed so far, bad ones too, from the very start */
};

static struct csv_reader *
csv_of(struct reader *reader)
{
    return container_of(reader, struct csv_reader, reader);
}

/* --- columns --- */

static void
columns_from_list(struct csv_reader *csv, const json_t *list)
{
    csv->width = json_array_size(list);
    csv->columns = arena_array(&csv->arena, struct column, csv->width);
    for (size_t i = 0; i < csv->width; i++)
        csv->columns[i] = (struct column){
            .name = json_string_value(json_array_get(list, i)), .type = CELL_TEXT};
}

static int
columns_from_head(struct csv_reader *csv, struct err *err)
{
    int r = csv_scan_next(&csv->scan, err);

    if (r < 0 || r == CSV_BAD)
        return -(int)err->code;
    if (r == CSV_END)
        return err_set(err, ERR_INVALID, "%s is empty; it needs a head line",
                       csv->scan.path);
    csv->width = csv->scan.n_fields;
    csv->columns = arena_array(&csv->arena, struct column, csv->width);
    for (size_t i = 0; i < csv->width; i++) {
        const struct csv_field *field = &csv->scan.fields[i];

        if (field->len == 0)
            return err_set(err, ERR_INVALID, "%s:%lld: column %zu has no name",
                           csv->scan.path, (long long)csv->scan.record_line, i + 1);
        csv->columns[i] =
            (struct column){.name = arena_strndup(&csv->arena, field->text, field->len),
                            .type = CELL_TEXT};
        for (size_t k = 0; k < i; k++) {
            if (str_eq(csv->columns[k].name, csv->columns[i].name))
                return err_set(err, ERR_INVALID, "%s:%lld: two columns named \"%s\"",
                               csv->scan.path, (long long)csv->scan.record_line,
                               csv->columns[i].name);
        }
    }
    return 0;
}

static int
apply_types(struct csv_reader *csv, const json_t *types, struct err *err)
{
    const char *name;
    json_t *word;

    json_object_foreach((json_t *)(uintptr_t)types, name, word)
    {
        size_t i = 0;

        while (i < csv->width && !str_eq(csv->columns[i].name, name))
            i++;
        if (i == csv->width)
            return err_set(err, ERR_INVALID,
                           "%s has no column \"%s\", which read.columns gives a type",
                           csv->scan.path, name);
        csv->columns[i].type = cell_type_of_word(json_string_value(word));
    }
    return 0;
}

/* Where the record after the last one begins. */
static int
go_to(struct csv_reader *csv, const char *position, struct err *err)
{
    struct file_place place;
    int r = file_place_get(csv->scan.fd, csv->scan.path, position, &place, err);

    if (r < 0)
        return r;
    csv->rows = place.rows;
    return csv_scan_seek(&csv->scan, place.offset, place.line, err);
}

static int
csv_open(struct reader *reader, const char *position, struct err *err)
{
    struct csv_reader *csv = csv_of(reader);
    const json_t *columns = json_object_get(csv->def, "columns");
    const json_t *header = json_object_get(csv->def, "header");
    scoped(buf_release) struct buf path = {0};
    int r;

    buf_init(&path, 4096);
    r = file_path_fill(reader->io, io_option_text(csv->def, "csv", ""), &path, err);
    if (r < 0)
        return r;
    r = csv_scan_open(&csv->scan, buf_str(&path),
                      io_option_char(csv->def, "delimiter", ','),
                      charset_find(io_option_text(csv->def, "encoding", "utf-8")), err);
    if (r < 0)
        return r;
    if (json_is_false(header) && !json_is_array(columns))
        return err_set(err, ERR_CONFIG,
                       "read.columns: with `header: false` it must list the names");
    if (json_is_array(columns))
        columns_from_list(csv, columns);
    if (!json_is_false(header)) {
        r = columns_from_head(csv, err);
        if (r < 0)
            return r;
    }
    if (json_is_object(columns)) {
        r = apply_types(csv, columns, err);
        if (r < 0)
            return r;
    }
    csv->scan.keep_blank = csv->width == 1;
    if (!position || reader->restart == READER_RESTART_BEGINNING)
        return 0;
    return go_to(csv, position, err);
}

static const struct column *
csv_columns(struct reader *reader, size_t *ret_count)
{
    struct csv_reader *csv = csv_of(reader);

    *ret_count = csv->width;
    return csv->columns;
}

/* --- rows --- */

static int
put_cell(struct csv_reader *csv, struct row_set *rows, struct cell *cell, size_t column,
         struct err *err)
{
    const struct csv_field *field = &csv->scan.fields[column];
    const struct column *c = &csv->columns[column];
    int r;

    if (field->len == 0 && !field->quoted) {
        if (csv->empty_is_text && c->type == CELL_TEXT)
            return cell_set_text(rows, cell, CELL_TEXT, "", 0, c->name, err);
        return 0; /* NULL */
    }
    r = column_put(c, rows, cell, field->text, field->len, err);
    if (r < 0)
        return err_prefix(err, "%s:%lld", csv->scan.path,
                          (long long)csv->scan.record_line);
    return 0;
}

static int
put_record(struct csv_reader *csv, struct row_set *rows, struct err *err)
{
    struct cell *cells;
    int r;

    if (csv->scan.n_fields != csv->width)
        return err_set(err, ERR_INVALID,
                       "%s:%lld: %zu fields, the head has %zu; a text with the "
                       "delimiter or a line end in it needs quotes",
                       csv->scan.path, (long long)csv->scan.record_line,
                       csv->scan.n_fields, csv->width);
    cells = row_set_add(rows);
    for (size_t i = 0; i < csv->width; i++) {
        r = put_cell(csv, rows, &cells[i], i, err);
        if (r < 0) {
            row_set_drop_last(rows);
            return r;
        }
    }
    return 0;
}

static int
bad_record(struct csv_reader *csv, const char *error_class)
{
    char place[PATH_MAX + 32];

    (void)snprintf(place, sizeof(place), "%s:%lld", csv->scan.path,
                   (long long)csv->scan.record_line);
    csv->rows++;
    return reader_bad_record(&csv->reader, error_class, place);
}

static int
csv_read_chunk(struct reader *reader, size_t max_rows, struct row_set *rows,
               struct err *err)
{
    struct csv_reader *csv = csv_of(reader);
    int r;

    row_set_clear(rows, csv->width);
    while (rows->count < max_rows && !row_set_full(rows)) {
        r = csv_scan_next(&csv->scan, err);
        if (r < 0)
            return r;
        if (r == CSV_END)
            return READER_END;
        if (r == CSV_BAD)
            return bad_record(csv, READER_CLASS_PARSE);
        r = put_record(csv, rows, err);
        if (r < 0)
            return bad_record(csv, READER_CLASS_FORMAT);
        csv->rows++;
    }
    return READER_MORE;
}

static int
csv_position(struct reader *reader, struct buf *position, struct err *err)
{
    struct csv_reader *csv = csv_of(reader);
    struct file_place place = {
        .offset = csv_scan_offset(&csv->scan),
        .line = csv->scan.line,
        .rows = csv->rows,
    };

    if (reader->restart == READER_RESTART_BEGINNING) {
        buf_add_str(position, "{}");
        return 0;
    }
    return file_place_put(csv->scan.fd, csv->scan.path, &place, position, err);
}

static void
csv_free(struct reader *reader)
{
    struct csv_reader *csv = csv_of(reader);

    csv_scan_release(&csv->scan);
    arena_release(&csv->arena);
    free(csv);
}

static const struct reader_ops csv_ops = {
    .open = csv_open,
    .columns = csv_columns,
    .read_chunk = csv_read_chunk,
    .position = csv_position,
    .free = csv_free,
};

int
read_csv_new(struct io_ctx *io, const json_t *def, struct reader **ret_reader,
             struct err *err)
{
    struct csv_reader *csv = xcalloc(1, sizeof(*csv));

    csv->reader.ops = &csv_ops;
    csv->reader.io = io;
    csv->reader.restart = reader_restart_of(def);
    csv->def = def;
    csv->empty_is_text = str_eq(io_option_text(def, "empty", "null"), "text");
    csv_scan_init(&csv->scan);
    *ret_reader = &csv->reader;
    return 0;
}
