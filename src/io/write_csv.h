/*
 * CSV as RFC 4180 has it: CRLF, quotes where needed. NULL is nothing at all, an
 * empty text is "". Texts that a spreadsheet would run as a formula get an
 * apostrophe in front, unless `raw: true`.
 */
#ifndef IO_WRITE_CSV_H
#define IO_WRITE_CSV_H

#include "io/writer.h"

int write_csv_new(struct io_ctx *io, const json_t *def, struct writer **ret_writer,
                  struct err *err) must_check;

#endif
