/*
 * JSON lines: one object a line, keys in the order of the columns. Integers and
 * decimals are numbers with all their digits, dates are ISO 8601 texts, bytes
 * are base64 texts, NaN and infinities are the texts "NaN", "Infinity", "-Infinity".
 */
#ifndef IO_WRITE_JSONL_H
#define IO_WRITE_JSONL_H

#include "io/writer.h"

struct cell;

/* A cell as a JSON value. */
void write_jsonl_cell(struct buf *out, const struct cell *cell);

int write_jsonl_new(struct io_ctx *io, const json_t *def, struct writer **ret_writer,
                    struct err *err) must_check;

#endif
