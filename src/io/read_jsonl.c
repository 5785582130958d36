/*
 * An object a line. jansson checks it; the bytes of each value are found by a
 * second walk over the line, because a decimal must not go through a double and
 * an object in a field is handed on as it stands.
 */
#include "io/read_jsonl.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/utf8.h"
#include "io/columns.h"
#include "io/file_place.h"
#include "io/io_ctx.h"
#include "io/lines.h"
#include "io/option.h"
#include "io/row.h"
#include "io/file_path.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct jsonl_reader {
    struct reader reader;
    const json_t *def;
    struct lines lines;
    struct columns columns;
    int64_t line; /* of the record at hand */
    int64_t rows; /* lines passed, bad ones too, blank ones not */
};

/* A record that can be made no row; of the functions that make rows only. */
enum line_outcome { LINE_ROW, LINE_BAD_PARSE, LINE_BAD_FORMAT };

static struct jsonl_reader *
jsonl_of(struct reader *reader)
{
    return container_of(reader, struct jsonl_reader, reader);
}

/* --- a line --- */

static bool
is_blank(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] != ' ' && text[i] != '\t')
            return false;
    return true;
}

/* The next line that is not blank; an enum lines_outcome, or < 0. */
static int
next_line(struct jsonl_reader *jsonl, const char **ret_text, size_t *ret_len,
          struct err *err)
{
    int r;

    do {
        jsonl->line = jsonl->lines.line;
        r = lines_next(&jsonl->lines, ret_text, ret_len, err);
    } while (r == LINES_LINE && is_blank(*ret_text, *ret_len));
    return r;
}

/* "byte 17: …" of base/json.h becomes file:line:column. */
static void
place_error(struct jsonl_reader *jsonl, const char *text, size_t len, struct err *err)
{
    struct err found = *err;
    const char *what = found.text;
    size_t byte = 0;

    if (strncmp(what, "byte ", 5) == 0) {
        char *end;

        byte = strtoul(what + 5, &end, 10);
        what = *end == ':' ? end + 2 : what;
    }
    err_clear(err);
    (void)err_set(err, ERR_INVALID, "%s:%lld:%zu: %s", jsonl->lines.path,
                  (long long)jsonl->line, utf8_count(text, byte < len ? byte : len) + 1,
                  what);
}

/* A row of it can be made, or its outcome with err set. */
static int
parse_line(struct jsonl_reader *jsonl, const char *text, size_t len, json_t **ret,
           struct err *err)
{
    if (json_parse(text, len, JSON_DEPTH_MAX, ret, err) < 0) {
        place_error(jsonl, text, len, err);
        return LINE_BAD_PARSE;
    }
    if (json_is_object(*ret))
        return LINE_ROW;
    (void)err_set(err, ERR_INVALID, "%s:%lld: %s where an object belongs",
                  jsonl->lines.path, (long long)jsonl->line, json_type_word(*ret));
    return LINE_BAD_FORMAT;
}

static const char *
skip_blanks(const char *at)
{
    while (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n')
        at++;
    return at;
}

/* Behind the string that begins at at. */
static const char *
skip_string(const char *at)
{
    for (at++; *at != '"'; at++)
        at += *at == '\\';
    return at + 1;
}

/* Behind the value that begins at at; the line is known to be JSON, so it ends. */
static const char *
skip_value(const char *at)
{
    int depth = 0;

    do {
        if (*at == '"') {
            at = skip_string(at);
            continue;
        }
        depth += *at == '{' || *at == '[';
        depth -= *at == '}' || *at == ']';
        at++;
        if (depth == 0 && at[-1] != '}' && at[-1] != ']')
            while (!strchr(" \t\r\n,]}", *at))
                at++;
    } while (depth > 0);
    return at;
}

/* --- columns --- */

static int
columns_of_first_line(struct jsonl_reader *jsonl, struct err *err)
{
    scoped(json_drop) json_t *root = NULL;
    int64_t offset = lines_offset(&jsonl->lines);
    const char *text, *key;
    json_t *value;
    size_t len = 0;
    int r = next_line(jsonl, &text, &len, err);

    if (r < 0)
        return r;
    if (r != LINES_LINE)
        return err_set(err, ERR_INVALID,
                       "%s %s to tell the columns by; name them under read.columns",
                       jsonl->lines.path,
                       r == LINES_END ? "has no line" : "has too long a first line");
    r = parse_line(jsonl, text, len, &root, err);
    if (r != LINE_ROW)
        return -(int)err->code;
    json_object_foreach(root, key, value)
    {
        r = columns_add(&jsonl->columns, key, strlen(key), err);
        if (r < 0)
            return err_prefix(err, "%s:%lld", jsonl->lines.path,
                              (long long)jsonl->line);
    }
    if (jsonl->columns.width == 0)
        return err_set(err, ERR_INVALID,
                       "%s:%lld: an object with nothing in it tells no columns; name "
                       "them under read.columns",
                       jsonl->lines.path, (long long)jsonl->line);
    return lines_seek(&jsonl->lines, offset, 1, err);
}

static int
jsonl_open(struct reader *reader, const char *position, struct err *err)
{
    struct jsonl_reader *jsonl = jsonl_of(reader);
    scoped(buf_release) struct buf path = {0};
    struct file_place place;
    int r;

    buf_init(&path, PATH_MAX);
    r = file_path_fill(reader->io, io_option_text(jsonl->def, "jsonl", ""), &path, err);
    if (r == 0)
        r = lines_open(&jsonl->lines, buf_str(&path), err);
    if (r < 0)
        return r;
    columns_declare(&jsonl->columns, json_object_get(jsonl->def, "columns"));
    if (!jsonl->columns.declared)
        r = columns_of_first_line(jsonl, err);
    if (r < 0 || !position || reader->restart == READER_RESTART_BEGINNING)
        return r;
    r = file_place_get(jsonl->lines.fd, jsonl->lines.path, position, &place, err);
    if (r < 0)
        return r;
    jsonl->rows = place.rows;
    return lines_seek(&jsonl->lines, place.offset, place.line, err);
}

static const struct column *
jsonl_columns(struct reader *reader, size_t *ret_count)
{
    struct jsonl_reader *jsonl = jsonl_of(reader);

    *ret_count = jsonl->columns.width;
    return jsonl->columns.list;
}

/* --- rows --- */

/* raw: the value's bytes in the line. */
static int
put_value(const struct column *column, struct row_set *rows, struct cell *cell,
          const json_t *value, const char *raw, size_t len, struct err *err)
{
    bool nested = json_is_object(value) || json_is_array(value);

    if (json_is_null(value))
        return 0;
    if (column->type == CELL_NULL) { /* as JSON has it */
        if (json_is_integer(value))
            cell_set_i64(cell, CELL_INT, json_integer_value(value));
        else if (json_is_real(value))
            cell_set_real(cell, json_real_value(value));
        else if (json_is_boolean(value))
            cell_set_i64(cell, CELL_BOOL, json_is_true(value));
        if (!json_is_string(value) && !nested)
            return 0;
    }
    if (json_is_string(value)) {
        raw = json_string_value(value);
        len = json_string_length(value);
    } else if (nested && column->type != CELL_NULL && column->type != CELL_TEXT) {
        return err_set(err, ERR_INVALID, "column %s: %s is no %s", column->name,
                       json_type_word(value), cell_type_name(column->type));
    }
    return column_put(column, rows, cell, raw, len, err);
}

static int
put_object(struct jsonl_reader *jsonl, const json_t *root, const char *text,
           struct row_set *rows, struct err *err)
{
    struct cell *cells = row_set_add(rows);
    const char *at = skip_blanks(text) + 1;
    const char *key;
    json_t *value;

    /* jansson keeps members in the order in which they stand. */
    json_object_foreach((json_t *)(uintptr_t)root, key, value)
    {
        size_t i = columns_find(&jsonl->columns, key, strlen(key));
        const char *raw =
            skip_blanks(skip_blanks(skip_string(skip_blanks(at))) + 1); /* key, colon */
        const char *end = skip_value(raw);
        int r = 0;

        at = skip_blanks(end) + 1;
        if (i != COLUMNS_NONE)
            r = put_value(&jsonl->columns.list[i], rows, &cells[i], value, raw,
                          (size_t)(end - raw), err);
        else if (!jsonl->columns.declared)
            r = err_set(err, ERR_INVALID,
                        "\"%.80s\" is no column: the first line has none of that name; "
                        "name those to be read under read.columns",
                        key);
        if (r < 0) {
            row_set_drop_last(rows);
            return err_prefix(err, "%s:%lld", jsonl->lines.path,
                              (long long)jsonl->line);
        }
    }
    return 0;
}

/* An enum line_outcome; err is set unless LINE_ROW. */
static int
put_line(struct jsonl_reader *jsonl, const char *text, size_t len, struct row_set *rows,
         struct err *err)
{
    scoped(json_drop) json_t *root = NULL;
    int r = parse_line(jsonl, text, len, &root, err);

    if (r != LINE_ROW)
        return r;
    return put_object(jsonl, root, text, rows, err) < 0 ? LINE_BAD_FORMAT : LINE_ROW;
}

static int
bad_line(struct jsonl_reader *jsonl, const char *error_class)
{
    char place[PATH_MAX + 32];

    (void)snprintf(place, sizeof(place), "%s:%lld", jsonl->lines.path,
                   (long long)jsonl->line);
    return reader_bad_record(&jsonl->reader, error_class, place);
}

static int
jsonl_read_chunk(struct reader *reader, size_t max_rows, struct row_set *rows,
                 struct err *err)
{
    struct jsonl_reader *jsonl = jsonl_of(reader);
    const char *text = NULL;
    size_t len = 0;
    int r;

    row_set_clear(rows, jsonl->columns.width);
    while (rows->count < max_rows && !row_set_full(rows)) {
        r = next_line(jsonl, &text, &len, err);
        if (r < 0)
            return r;
        if (r == LINES_END)
            return READER_END;
        jsonl->rows++;
        if (r == LINES_TOO_LONG) {
            (void)err_set(err, ERR_TOO_LARGE, "%s:%lld: a line longer than %zu bytes",
                          jsonl->lines.path, (long long)jsonl->line, LINE_MAX_BYTES);
            return bad_line(jsonl, READER_CLASS_PARSE);
        }
        r = put_line(jsonl, text, len, rows, err);
        if (r != LINE_ROW)
            return bad_line(jsonl, r == LINE_BAD_PARSE ? READER_CLASS_PARSE
                                                       : READER_CLASS_FORMAT);
    }
    return READER_MORE;
}

static int
jsonl_position(struct reader *reader, struct buf *position, struct err *err)
{
    struct jsonl_reader *jsonl = jsonl_of(reader);
    struct file_place place = {
        .offset = lines_offset(&jsonl->lines),
        .line = jsonl->lines.line,
        .rows = jsonl->rows,
    };

    if (reader->restart == READER_RESTART_BEGINNING) {
        buf_add_str(position, "{}");
        return 0;
    }
    return file_place_put(jsonl->lines.fd, jsonl->lines.path, &place, position, err);
}

static void
jsonl_free(struct reader *reader)
{
    struct jsonl_reader *jsonl = jsonl_of(reader);

    lines_release(&jsonl->lines);
    columns_release(&jsonl->columns);
    free(jsonl);
}

static const struct reader_ops jsonl_ops = {
    .open = jsonl_open,
    .columns = jsonl_columns,
    .read_chunk = jsonl_read_chunk,
    .position = jsonl_position,
    .free = jsonl_free,
};

int
read_jsonl_new(struct io_ctx *io, const json_t *def, struct reader **ret_reader,
               struct err *err)
{
    struct jsonl_reader *jsonl = xcalloc(1, sizeof(*jsonl));

    jsonl->reader.ops = &jsonl_ops;
    jsonl->reader.io = io;
    jsonl->reader.restart = reader_restart_of(def);
    jsonl->def = def;
    lines_init(&jsonl->lines);
    *ret_reader = &jsonl->reader;
    return 0;
}
