/*
 * Only texts can need quotes or an apostrophe (and numbers, when the delimiter
 * is one of their characters); so the other types go straight in.
 */
#include "io/write_csv.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/utf8.h"
#include "io/base64.h"
#include "io/cell_text.h"
#include "io/option.h"
#include "io/row.h"
#include "io/write_lines.h"

#include <stdlib.h>
#include <string.h>

struct csv_writer {
    struct line_writer lines;
    struct buf scratch;
    char delimiter;
    bool bom;
    bool raw;
    unsigned char special[256]; /* bytes that make quotes necessary */
};

static bool
needs_quotes(const struct csv_writer *csv, const char *text, size_t len)
{
    if (len == 0)
        return true; /* "" is the empty text, nothing is NULL */
    for (size_t i = 0; i < len; i++) {
        if (csv->special[(unsigned char)text[i]])
            return true;
    }
    /* Some readers trim what is not quoted. */
    return text[0] == ' ' || text[len - 1] == ' ';
}

static void
add_quoted(struct buf *out, const char *text, size_t len)
{
    buf_add_char(out, '"');
    while (len > 0) {
        const char *quote = memchr(text, '"', len);
        size_t n = quote ? (size_t)(quote - text) + 1 : len;

        buf_add(out, text, n);
        if (quote)
            buf_add_char(out, '"');
        text += n;
        len -= n;
    }
    buf_add_char(out, '"');
}

static void
add_field(struct csv_writer *csv, const char *text, size_t len)
{
    struct buf *out = &csv->lines.text;

    if (needs_quotes(csv, text, len))
        add_quoted(out, text, len);
    else
        buf_add(out, text, len);
}

/* What a spreadsheet takes for the start of a formula (OWASP's list). */
static bool
is_formula(const char *text, size_t len)
{
    return len > 0 && text[0] != '\0' && strchr("=+-@\t\r", text[0]);
}

static void
add_text(struct csv_writer *csv, const char *text, size_t len)
{
    bool neutralise = !csv->raw && is_formula(text, len);

    if (neutralise || !utf8_valid(text, len)) {
        buf_clear(&csv->scratch);
        if (neutralise)
            buf_add_char(&csv->scratch, '\'');
        utf8_repair(text, len, &csv->scratch);
        text = csv->scratch.data;
        len = csv->scratch.len;
    }
    add_field(csv, text, len);
}

static void
add_cell(struct csv_writer *csv, const struct cell *cell)
{
    char text[CELL_TEXT_MAX];

    switch ((enum cell_type)cell->type) {
    case CELL_NULL:
    case CELL_TYPE_COUNT:
        return;
    case CELL_BOOL:
        buf_add_str(&csv->lines.text, cell->i ? "true" : "false");
        return;
    case CELL_INT:
        add_field(csv, text, text_i64(text, cell->i));
        return;
    case CELL_REAL:
        add_field(csv, text, text_real(text, cell->real));
        return;
    case CELL_DATE:
        add_field(csv, text, text_date(text, cell->i));
        return;
    case CELL_TIMESTAMP:
        add_field(csv, text, text_timestamp(text, cell->i, cell->zoneless, 'T'));
        return;
    case CELL_DECIMAL:
        add_field(csv, cell->text, cell->len);
        return;
    case CELL_BYTES:
        buf_clear(&csv->scratch);
        base64_add(&csv->scratch, cell->text, cell->len);
        add_field(csv, buf_str(&csv->scratch), csv->scratch.len);
        return;
    case CELL_TEXT:
        add_text(csv, cell->text, cell->len);
        return;
    }
}

static int
csv_head(struct line_writer *lines, struct err *err)
{
    struct csv_writer *csv = container_of(lines, struct csv_writer, lines);

    if (csv->bom)
        buf_add(&lines->text, "\xEF\xBB\xBF", 3);
    for (size_t i = 0; i < lines->width; i++) {
        if (i > 0)
            buf_add_char(&lines->text, csv->delimiter);
        add_text(csv, lines->columns[i].name, strlen(lines->columns[i].name));
    }
    buf_add(&lines->text, "\r\n", 2);
    return 0;
}

static int
csv_row(struct line_writer *lines, const struct cell *cells, struct err *err)
{
    struct csv_writer *csv = container_of(lines, struct csv_writer, lines);

    for (size_t i = 0; i < lines->width; i++) {
        if (i > 0)
            buf_add_char(&lines->text, csv->delimiter);
        add_cell(csv, &cells[i]);
    }
    buf_add(&lines->text, "\r\n", 2);
    return buf_check(&csv->scratch, "the text of a cell", err);
}

static const struct line_format csv_format = {
    .name = "csv",
    .head = csv_head,
    .row = csv_row,
};

static void
csv_free(struct writer *writer)
{
    struct csv_writer *csv = container_of(writer, struct csv_writer, lines.writer);

    line_writer_release(&csv->lines);
    buf_release(&csv->scratch);
    free(csv);
}

static const struct writer_ops csv_ops = {
    .open = line_writer_open,
    .begin = line_writer_begin,
    .write = line_writer_write,
    .commit = line_writer_commit,
    .finish = line_writer_finish,
    .free = csv_free,
};

int
write_csv_new(struct io_ctx *io, const json_t *def, struct writer **ret_writer,
              struct err *err)
{
    struct csv_writer *csv = xcalloc(1, sizeof(*csv));

    line_writer_init(&csv->lines, io, &csv_format);
    csv->lines.writer.ops = &csv_ops;
    buf_init(&csv->scratch, 2 * CELL_MAX_BYTES);
    csv->delimiter = io_option_char(def, "delimiter", ',');
    csv->bom = io_option_bool(def, "bom");
    csv->raw = io_option_bool(def, "raw");
    csv->special[(unsigned char)csv->delimiter] = 1;
    csv->special['"'] = 1;
    csv->special['\r'] = 1;
    csv->special['\n'] = 1;
    *ret_writer = &csv->lines.writer;
    return 0;
}
