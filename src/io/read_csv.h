/*
 * Rows of a CSV file (RFC 4180, UTF-8): quoted fields with line ends in them, CR
 * LF or LF, a byte order mark, any one-character delimiter. A field that is not
 * there at all is NULL, "" is the empty text. Remembers the byte each record
 * begins at, so it goes on at a position without reading what lies before.
 */
#ifndef IO_READ_CSV_H
#define IO_READ_CSV_H

#include "io/reader.h"

int read_csv_new(struct io_ctx *io, const json_t *def, struct reader **ret_reader,
                 struct err *err) must_check;

#endif
