/*
 * Reads JSON lines: read: {jsonl: path, columns?, restart?}. Restarts at the byte
 * where the line after the last one begins, or from the beginning if told so.
 */
#ifndef IO_READ_JSONL_H
#define IO_READ_JSONL_H

#include "io/reader.h"

int read_jsonl_new(struct io_ctx *io, const json_t *def, struct reader **ret_reader,
                   struct err *err) must_check;

#endif
