/*
 * Keys are escaped once, at begin; a row is then pieces joined.
 */
#include "io/write_jsonl.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "io/base64.h"
#include "io/cell_text.h"
#include "io/io_ctx.h"
#include "io/row.h"
#include "io/write_lines.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct jsonl_writer {
    struct line_writer lines;
    struct buf *keys; /* width of them: ,"name": */
    size_t n_keys;
};

static void
add_quoted(struct buf *out, const char *text, size_t len)
{
    buf_add_char(out, '"');
    buf_add(out, text, len);
    buf_add_char(out, '"');
}

void
write_jsonl_cell(struct buf *out, const struct cell *cell)
{
    char text[CELL_TEXT_MAX];

    switch ((enum cell_type)cell->type) {
    case CELL_NULL:
    case CELL_TYPE_COUNT:
        buf_add_str(out, "null");
        return;
    case CELL_BOOL:
        buf_add_str(out, cell->i ? "true" : "false");
        return;
    case CELL_INT:
        buf_add(out, text, text_i64(text, cell->i));
        return;
    case CELL_REAL:
        if (isfinite(cell->real))
            buf_add(out, text, text_real(text, cell->real));
        else
            add_quoted(out, text, text_real(text, cell->real));
        return;
    case CELL_DECIMAL:
        buf_add(out, cell->text, cell->len);
        return;
    case CELL_DATE:
        add_quoted(out, text, text_date(text, cell->i));
        return;
    case CELL_TIMESTAMP:
        add_quoted(out, text, text_timestamp(text, cell->i, cell->zoneless, 'T'));
        return;
    case CELL_BYTES:
        buf_add_char(out, '"');
        base64_add(out, cell->text, cell->len);
        buf_add_char(out, '"');
        return;
    case CELL_TEXT:
        json_escape(out, cell->text, cell->len);
        return;
    }
}

static int
jsonl_row(struct line_writer *lines, const struct cell *cells, struct err *err)
{
    struct jsonl_writer *jsonl = container_of(lines, struct jsonl_writer, lines);
    struct buf *out = &lines->text;

    for (size_t i = 0; i < lines->width; i++) {
        buf_add(out, jsonl->keys[i].data, jsonl->keys[i].len);
        write_jsonl_cell(out, &cells[i]);
    }
    buf_add(out, "}\n", 2);
    return 0;
}

static const struct line_format jsonl_format = {
    .name = "jsonl",
    .row = jsonl_row,
};

static int
jsonl_begin(struct writer *writer, const struct column *columns, size_t count,
            struct err *err)
{
    struct jsonl_writer *jsonl =
        container_of(writer, struct jsonl_writer, lines.writer);

    jsonl->keys = xcalloc(count, sizeof(*jsonl->keys));
    jsonl->n_keys = count;
    for (size_t i = 0; i < count; i++) {
        buf_init(&jsonl->keys[i], 0);
        buf_add_char(&jsonl->keys[i], i ? ',' : '{');
        json_escape(&jsonl->keys[i], columns[i].name, strlen(columns[i].name));
        buf_add_char(&jsonl->keys[i], ':');
    }
    return line_writer_begin(writer, columns, count, err);
}

static void
jsonl_free(struct writer *writer)
{
    struct jsonl_writer *jsonl =
        container_of(writer, struct jsonl_writer, lines.writer);

    for (size_t i = 0; i < jsonl->n_keys; i++)
        buf_release(&jsonl->keys[i]);
    free(jsonl->keys);
    line_writer_release(&jsonl->lines);
    free(jsonl);
}

static const struct writer_ops jsonl_ops = {
    .open = line_writer_open,
    .begin = jsonl_begin,
    .write = line_writer_write,
    .commit = line_writer_commit,
    .finish = line_writer_finish,
    .free = jsonl_free,
};

int
write_jsonl_new(struct io_ctx *io, const json_t *def, struct writer **ret_writer,
                struct err *err)
{
    struct jsonl_writer *jsonl = xcalloc(1, sizeof(*jsonl));

    line_writer_init(&jsonl->lines, io, &jsonl_format);
    jsonl->lines.writer.ops = &jsonl_ops;
    *ret_writer = &jsonl->lines.writer;
    return 0;
}
