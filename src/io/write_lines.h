/*
 * What the writers of plain text files share (csv, jsonl): rows become lines in
 * a buffer that goes into the part. A writer embeds a line_writer and says how
 * a head and a row are spelled. All of it belongs to the thread of its step.
 */
#ifndef IO_WRITE_LINES_H
#define IO_WRITE_LINES_H

#include "base/buf.h"
#include "io/part.h"
#include "io/writer.h"

struct cell;
struct line_writer;

struct line_format {
    const char *name; /* stands in the state: a part of another format is no good */
    int (*head)(struct line_writer *lines, struct err *err); /* NULL: none */
    int (*row)(struct line_writer *lines, const struct cell *cells, struct err *err);
};

struct line_writer {
    struct writer writer;
    const struct line_format *format;
    struct part part;
    struct buf text; /* lines not yet in the part */
    const struct column *columns;
    size_t width;
    int64_t rows;
    int64_t resumed_width; /* of the part that is gone on with; 0 = a new one */
};

void line_writer_init(struct line_writer *lines, struct io_ctx *io,
                      const struct line_format *format);
void line_writer_release(struct line_writer *lines);

/* For the ops of the embedding writer, all but free. */
int line_writer_open(struct writer *writer, const char *state, struct err *err);
int line_writer_begin(struct writer *writer, const struct column *columns, size_t count,
                      struct err *err);
int line_writer_write(struct writer *writer, const struct row_set *rows,
                      struct err *err);
int line_writer_commit(struct writer *writer, struct buf *state, struct err *err);
int line_writer_finish(struct writer *writer, struct writer_summary *ret_summary,
                       struct err *err);

#endif
