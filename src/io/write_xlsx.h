/*
 * Excel workbooks, written row by row in constant memory and without temporary
 * files; can be cut back to a checkpoint and gone on with to the same bytes.
 */
#ifndef IO_WRITE_XLSX_H
#define IO_WRITE_XLSX_H

#include "io/writer.h"

int write_xlsx_new(struct io_ctx *io, const json_t *def, struct writer **ret_writer,
                   struct err *err) must_check;

#endif
