/*
 * Reads a sheet of an Excel workbook: read: {xlsx: path, sheet?, row?, …}.
 * Restarts by passing over the rows before the position, in a sheet that is known
 * to be the same; or from the beginning if told so.
 */
#ifndef IO_READ_XLSX_H
#define IO_READ_XLSX_H

#include "io/reader.h"

int read_xlsx_new(struct io_ctx *io, const json_t *def, struct reader **ret_reader,
                  struct err *err) must_check;

#endif
