/*
 * The state of a checkpoint is small: the format, the bytes and rows so far and
 * the width, so that a changed query cannot go on in the middle of a file.
 */
#include "io/write_lines.h"

#include "base/err.h"
#include "base/json.h"
#include "io/io_ctx.h"
#include "io/row.h"

#include <string.h>

#define FLUSH_BYTES    ((size_t)64 << 10)
#define TEXT_MAX_BYTES ((size_t)512 << 20) /* a row of many giant cells */

void
line_writer_init(struct line_writer *lines, struct io_ctx *io,
                 const struct line_format *format)
{
    lines->writer.io = io;
    lines->format = format;
    part_init(&lines->part);
    buf_init(&lines->text, TEXT_MAX_BYTES);
}

void
line_writer_release(struct line_writer *lines)
{
    part_release(&lines->part);
    buf_release(&lines->text);
}

/* Is this a state of our format? Fills bytes, rows and width. */
static bool
state_read(struct line_writer *lines, const char *state, int64_t *ret_bytes)
{
    scoped(json_drop) json_t *root = NULL;
    struct err ignored = {0};
    const char *format = "";
    int64_t bytes = -1, rows = -1, width = 0;

    if (json_parse(state, strlen(state), 4, &root, &ignored) < 0 ||
        json_get_str(root, "format", &format, &ignored) < 0 ||
        json_get_i64(root, "bytes", &bytes, &ignored) < 0 ||
        json_get_i64(root, "rows", &rows, &ignored) < 0 ||
        json_get_i64(root, "width", &width, &ignored) < 0)
        return false;
    if (strcmp(format, lines->format->name) != 0 || bytes < 0 || rows < 0 || width < 1)
        return false;
    lines->rows = rows;
    lines->resumed_width = width;
    *ret_bytes = bytes;
    return true;
}

int
line_writer_open(struct writer *writer, const char *state, struct err *err)
{
    struct line_writer *lines = container_of(writer, struct line_writer, writer);
    int64_t bytes;
    int r;

    if (!state)
        return part_create(&lines->part, writer->io->part_path, err);
    if (!state_read(lines, state, &bytes))
        return WRITER_STATE_UNUSABLE;
    r = part_resume(&lines->part, writer->io->part_path, writer->io->part_from, bytes,
                    err);
    if (r == PART_SHORT) {
        lines->rows = 0;
        lines->resumed_width = 0;
        return WRITER_STATE_UNUSABLE;
    }
    return r;
}

static int
flush(struct line_writer *lines, struct err *err)
{
    int r = buf_check(&lines->text, "the text of a row", err);

    if (r < 0)
        return r;
    r = part_append(&lines->part, lines->text.data, lines->text.len, err);
    if (r < 0)
        return r;
    buf_clear(&lines->text);
    return 0;
}

int
line_writer_begin(struct writer *writer, const struct column *columns, size_t count,
                  struct err *err)
{
    struct line_writer *lines = container_of(writer, struct line_writer, writer);

    if (lines->resumed_width && (size_t)lines->resumed_width != count)
        return err_set(err, ERR_INVALID,
                       "the source has %zu columns now, the file begun has %lld; ask "
                       "for a new run (restart: false)",
                       count, (long long)lines->resumed_width);
    lines->columns = columns;
    lines->width = count;
    if (lines->resumed_width || !lines->format->head)
        return 0;
    return lines->format->head(lines, err);
}

int
line_writer_write(struct writer *writer, const struct row_set *rows, struct err *err)
{
    struct line_writer *lines = container_of(writer, struct line_writer, writer);
    int r;

    for (size_t i = 0; i < rows->count; i++) {
        r = lines->format->row(lines, row_set_row(rows, i), err);
        if (r < 0)
            return r;
        lines->rows++;
        if (lines->text.len >= FLUSH_BYTES) {
            r = flush(lines, err);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

int
line_writer_commit(struct writer *writer, struct buf *state, struct err *err)
{
    struct line_writer *lines = container_of(writer, struct line_writer, writer);
    struct json_out out;
    int r;

    r = flush(lines, err);
    if (r < 0)
        return r;
    r = part_sync(&lines->part, err);
    if (r < 0)
        return r;
    json_out_init(&out, state);
    json_begin_object(&out);
    json_kv_str(&out, "format", lines->format->name);
    json_kv_i64(&out, "bytes", lines->part.offset);
    json_kv_i64(&out, "rows", lines->rows);
    json_kv_i64(&out, "width", (int64_t)lines->width);
    json_end_object(&out);
    return buf_check(state, "the writer's state", err);
}

int
line_writer_finish(struct writer *writer, struct writer_summary *ret_summary,
                   struct err *err)
{
    struct line_writer *lines = container_of(writer, struct line_writer, writer);
    int r;

    r = flush(lines, err);
    if (r < 0)
        return r;
    r = part_sync(&lines->part, err);
    if (r < 0)
        return r;
    *ret_summary =
        (struct writer_summary){.rows = lines->rows, .bytes = lines->part.offset};
    return 0;
}
