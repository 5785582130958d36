/*
 * The head row names the columns, each at its letter; rows below are read by the
 * letters of their cells, because a sheet leaves empty cells and rows out. A cell
 * outside the named columns makes its row a bad one, so that nothing is lost
 * without a word. Blank rows are passed over.
 */
#include "io/read_xlsx.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/strs.h"
#include "io/cell_text.h"
#include "io/columns.h"
#include "io/file_path.h"
#include "io/io_ctx.h"
#include "io/option.h"
#include "io/row.h"
#include "io/xlsx_book.h"
#include "io/xlsx_cell.h"
#include "io/xml_scan.h"
#include "io/zip_place.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_COLUMN UINT16_MAX

struct xlsx_reader {
    struct reader reader;
    const json_t *def;
    char *path;
    struct xlsx_book book;
    const struct zip_entry *sheet;
    struct zip_stream stream;
    struct xml_scan *scan;
    struct columns columns;
    uint16_t at[XLSX_COLUMNS_MAX]; /* sheet's column → ours */
    struct buf joined;             /* a text in pieces, put together */
    int64_t passed;                /* rows of the sheet read so far, the head too */
    int64_t number;                /* of the last one, as Excel shows it */
};

static struct xlsx_reader *
xlsx_of(struct reader *reader)
{
    return container_of(reader, struct xlsx_reader, reader);
}

/* --- a row of the sheet --- */

static int
next_row(struct xlsx_reader *xlsx, struct xml_item *ret_item, struct err *err)
{
    int r = xml_scan_next(xlsx->scan, ret_item, err);
    int64_t number = 0;

    if (r < 0)
        return err_prefix(err, "%s", xlsx->path);
    if (r == XML_END)
        return r;
    xlsx->passed++;
    xlsx->number++;
    for (size_t i = 0; r == XML_ITEM && i < ret_item->count; i++) {
        const struct xml_field *field = &ret_item->fields[i];

        if (field->path[0] != '@')
            break;
        if (field->path_len == 2 && field->path[1] == 'r' &&
            text_parse_i64(field->text, field->len, &number) && number > 0)
            xlsx->number = number;
    }
    return r;
}

static bool
path_is(const struct xml_field *field, const char *path)
{
    return field->path_len == strlen(path) &&
           memcmp(field->path, path, field->path_len) == 0;
}

/* A further piece of the cell's text. */
static void
add_piece(struct xlsx_reader *xlsx, struct xlsx_raw *raw, const struct xml_field *field)
{
    if (!raw->has_value) {
        raw->value = field->text;
        raw->value_len = field->len;
        raw->has_value = true;
        return;
    }
    if (raw->value != xlsx->joined.data) {
        buf_clear(&xlsx->joined);
        buf_add(&xlsx->joined, raw->value, raw->value_len);
    }
    buf_add(&xlsx->joined, field->text, field->len);
    raw->value = buf_str(&xlsx->joined);
    raw->value_len = xlsx->joined.len;
}

/* The next cell from field *at on; false: there is none. *column moves to it. */
static bool
next_cell(struct xlsx_reader *xlsx, const struct xml_item *item, size_t *at,
          int *column, struct xlsx_raw *ret_raw)
{
    struct xlsx_raw raw = {0};

    for (; *at < item->count; (*at)++) {
        const struct xml_field *field = &item->fields[*at];

        if (path_is(field, "c/@r")) {
            raw.ref = field->text;
            raw.ref_len = field->len;
        } else if (path_is(field, "c/@t")) {
            raw.kind = field->text;
            raw.kind_len = field->len;
        } else if (path_is(field, "c/@s")) {
            raw.style = field->text;
            raw.style_len = field->len;
        } else if (path_is(field, "c/v") || path_is(field, "c/is/t") ||
                   path_is(field, "c/is/r/t")) {
            add_piece(xlsx, &raw, field);
        } else if (path_is(field, "c")) { /* the end of the cell */
            (*at)++;
            *column = raw.ref ? xlsx_column_of(raw.ref, raw.ref_len) : *column + 1;
            *ret_raw = raw;
            return true;
        }
    }
    return false;
}

/* --- open --- */

/* The head's names, each at its column. -ERR_INVALID, or 0 with no columns: blank. */
static int
read_head(struct xlsx_reader *xlsx, const struct xml_item *item, struct err *err)
{
    static const struct column text = {.name = "of the head", .type = CELL_TEXT};
    scoped(row_set_release) struct row_set names = {0};
    struct xlsx_raw raw;
    size_t at = 0;
    int column = -1, r = 0;

    row_set_init(&names, 0);
    row_set_clear(&names, 1);
    while (r == 0 && next_cell(xlsx, item, &at, &column, &raw)) {
        struct cell *cell = row_set_add(&names);
        char letters[4];

        r = xlsx_cell_put(&xlsx->book, &text, &raw, &names, cell, err);
        if (r < 0 || cell->type == CELL_NULL || column < 0 ||
            column >= XLSX_COLUMNS_MAX)
            continue;
        if (columns_find(&xlsx->columns, cell->text, cell->len) != COLUMNS_NONE)
            return err_set(err, ERR_INVALID, "%s: %s%lld: a second column named %.*s",
                           xlsx->path, xlsx_column_name((size_t)column, letters),
                           (long long)xlsx->number, (int)cell->len, cell->text);
        xlsx->at[column] = (uint16_t)xlsx->columns.width;
        r = columns_add(&xlsx->columns, cell->text, cell->len, err);
    }
    return r < 0 ? err_prefix(err, "%s: row %lld", xlsx->path, (long long)xlsx->number)
                 : 0;
}

static int
find_head(struct xlsx_reader *xlsx, struct err *err)
{
    int64_t wanted = json_integer_value(json_object_get(xlsx->def, "row"));
    struct xml_item item;
    int r;

    while (xlsx->columns.width == 0) {
        r = next_row(xlsx, &item, err);
        if (r < 0)
            return r;
        if (r == XML_BAD)
            return -(int)err->code;
        if (r == XML_END || (wanted && xlsx->number > wanted))
            return err_set(err, ERR_INVALID, "%s: %s is blank; it needs a head row",
                           xlsx->path,
                           wanted ? "the row that read.row names" : "the sheet");
        if (xlsx->number < wanted)
            continue;
        r = read_head(xlsx, &item, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int
apply_types(struct xlsx_reader *xlsx, const json_t *types, struct err *err)
{
    const char *name;
    json_t *word;

    json_object_foreach((json_t *)(uintptr_t)types, name, word)
    {
        size_t i = columns_find(&xlsx->columns, name, strlen(name));

        if (i == COLUMNS_NONE)
            return err_set(err, ERR_INVALID,
                           "%s has no column \"%s\", which read.columns gives a type",
                           xlsx->path, name);
        xlsx->columns.list[i].type = cell_type_of_word(json_string_value(word));
    }
    return 0;
}

static int
open_sheet(struct xlsx_reader *xlsx, struct err *err)
{
    const json_t *sheet = json_object_get(xlsx->def, "sheet");
    struct io_ctx *io = xlsx->reader.io;
    scoped(buf_release) struct buf path = {0};
    char number[CELL_TEXT_MAX + 1] = "";
    int r;

    buf_init(&path, PATH_MAX);
    r = file_path_fill(io, io_option_text(xlsx->def, "xlsx", ""), &path, err);
    if (r < 0)
        return r;
    xlsx->path = xstrdup(buf_str(&path));
    if (json_is_integer(sheet))
        number[text_i64(number, json_integer_value(sheet))] = '\0';
    xlsx_book_init(&xlsx->book, io->temp_folder ? io->temp_folder : P_tmpdir,
                   XLSX_TEXTS_MEMORY);
    r = xlsx_book_open(&xlsx->book, xlsx->path,
                       json_is_integer(sheet) ? number : json_string_value(sheet),
                       &xlsx->sheet, err);
    if (r < 0)
        return r;
    return xlsx_part_scan(&xlsx->book, &xlsx->stream, xlsx->sheet, "sheetData/row",
                          &xlsx->scan, err);
}

static int
go_to(struct xlsx_reader *xlsx, const char *position, struct err *err)
{
    struct xml_item item;
    int64_t passed = 0;
    int r = zip_place_get(xlsx->path, xlsx->sheet, position, &passed, err);

    while (r >= 0 && xlsx->passed < passed) {
        r = next_row(xlsx, &item, err);
        if (r == XML_END)
            return err_set(err, ERR_INVALID,
                           "%s has %lld rows, the checkpoint stands behind %lld",
                           xlsx->path, (long long)xlsx->passed, (long long)passed);
        if (r == XML_BAD)
            err_clear(err); /* told before the stop */
    }
    return r < 0 ? r : 0;
}

static int
xlsx_open(struct reader *reader, const char *position, struct err *err)
{
    struct xlsx_reader *xlsx = xlsx_of(reader);
    const json_t *columns = json_object_get(xlsx->def, "columns");
    bool header = !json_is_false(json_object_get(xlsx->def, "header"));
    int r = 0;

    if (!header && !json_is_array(columns))
        return err_set(err, ERR_CONFIG,
                       "read.columns: with `header: false` it must list the names");
    for (size_t i = 0; i < XLSX_COLUMNS_MAX; i++)
        xlsx->at[i] = NO_COLUMN;
    if (!header) {
        columns_declare(&xlsx->columns, columns);
        for (size_t i = 0; i < xlsx->columns.width && i < XLSX_COLUMNS_MAX; i++)
            xlsx->at[i] = (uint16_t)i;
    }
    r = open_sheet(xlsx, err);
    if (r == 0 && header)
        r = find_head(xlsx, err);
    if (r == 0 && header && json_is_object(columns))
        r = apply_types(xlsx, columns, err);
    if (r < 0 || !position || reader->restart == READER_RESTART_BEGINNING)
        return r;
    return go_to(xlsx, position, err);
}

static const struct column *
xlsx_columns(struct reader *reader, size_t *ret_count)
{
    struct xlsx_reader *xlsx = xlsx_of(reader);

    *ret_count = xlsx->columns.width;
    return xlsx->columns.list;
}

/* --- rows --- */

static int
put_cell(struct xlsx_reader *xlsx, int column, const struct xlsx_raw *raw,
         struct row_set *rows, struct cell *cells, struct err *err)
{
    static const struct column nowhere = {.name = "without a name"};
    struct cell lost = {0};
    char letters[4];
    uint16_t i;
    int r;

    if (column < 0 || column >= XLSX_COLUMNS_MAX)
        return err_set(err, ERR_INVALID, "%s: row %lld: \"%.*s\" is no cell",
                       xlsx->path, (long long)xlsx->number,
                       (int)(raw->ref_len < 20 ? raw->ref_len : 20), raw->ref);
    i = xlsx->at[column];
    r = xlsx_cell_put(&xlsx->book, i == NO_COLUMN ? &nowhere : &xlsx->columns.list[i],
                      raw, rows, i == NO_COLUMN ? &lost : &cells[i], err);
    if (r == 0 && lost.type != CELL_NULL)
        r = err_set(err, ERR_INVALID,
                    "it stands in a column that the head gives no name");
    if (r == 0)
        return 0;
    return err_prefix(err, "%s: %s%lld", xlsx->path,
                      xlsx_column_name((size_t)column, letters),
                      (long long)xlsx->number);
}

/* The row, unless it is blank. */
static int
put_row(struct xlsx_reader *xlsx, const struct xml_item *item, struct row_set *rows,
        struct err *err)
{
    struct cell *cells = row_set_add(rows);
    struct xlsx_raw raw;
    bool blank = true;
    size_t at = 0;
    int column = -1, r = 0;

    while (r == 0 && next_cell(xlsx, item, &at, &column, &raw))
        r = put_cell(xlsx, column, &raw, rows, cells, err);
    for (size_t i = 0; i < xlsx->columns.width; i++)
        blank = blank && cells[i].type == CELL_NULL;
    if (r < 0 || blank)
        row_set_drop_last(rows);
    return r;
}

static int
bad_row(struct xlsx_reader *xlsx)
{
    char place[PATH_MAX + 32];

    (void)snprintf(place, sizeof(place), "%s:%lld", xlsx->path,
                   (long long)xlsx->number);
    return reader_bad_record(&xlsx->reader, READER_CLASS_FORMAT, place);
}

static int
xlsx_read_chunk(struct reader *reader, size_t max_rows, struct row_set *rows,
                struct err *err)
{
    struct xlsx_reader *xlsx = xlsx_of(reader);
    int64_t from = json_integer_value(json_object_get(xlsx->def, "row"));
    struct xml_item item;
    int r;

    row_set_clear(rows, xlsx->columns.width);
    while (rows->count < max_rows && !row_set_full(rows)) {
        r = next_row(xlsx, &item, err);
        if (r < 0)
            return r;
        if (r == XML_END)
            return READER_END;
        if (xlsx->number < from)
            continue; /* without a head: titles above the data */
        if (r == XML_BAD || put_row(xlsx, &item, rows, err) < 0)
            return bad_row(xlsx);
    }
    return READER_MORE;
}

static int
xlsx_position(struct reader *reader, struct buf *position, struct err *err)
{
    struct xlsx_reader *xlsx = xlsx_of(reader);

    if (reader->restart == READER_RESTART_BEGINNING) {
        buf_add_str(position, "{}");
        return 0;
    }
    return zip_place_put(xlsx->sheet, xlsx->passed, position);
}

static void
xlsx_free(struct reader *reader)
{
    struct xlsx_reader *xlsx = xlsx_of(reader);

    xml_scan_free(xlsx->scan);
    zip_stream_release(&xlsx->stream);
    xlsx_book_release(&xlsx->book);
    columns_release(&xlsx->columns);
    buf_release(&xlsx->joined);
    free(xlsx->path);
    free(xlsx);
}

static const struct reader_ops xlsx_ops = {
    .open = xlsx_open,
    .columns = xlsx_columns,
    .read_chunk = xlsx_read_chunk,
    .position = xlsx_position,
    .free = xlsx_free,
};

int
read_xlsx_new(struct io_ctx *io, const json_t *def, struct reader **ret_reader,
              struct err *err)
{
    struct xlsx_reader *xlsx = xcalloc(1, sizeof(*xlsx));

    xlsx->reader.ops = &xlsx_ops;
    xlsx->reader.io = io;
    xlsx->reader.restart = reader_restart_of(def);
    xlsx->def = def;
    buf_init(&xlsx->joined, CELL_MAX_BYTES);
    xlsx_book_init(&xlsx->book, P_tmpdir, XLSX_TEXTS_MEMORY);
    *ret_reader = &xlsx->reader;
    return 0;
}
