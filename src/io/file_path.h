/* Where a reader finds its file. */
#ifndef IO_FILE_PATH_H
#define IO_FILE_PATH_H

#include "base/compiler.h"

struct buf;
struct err;
struct io_ctx;

/* Append the path: a template as in template_path, or `run:NAME` for a file that a
 * step `fetch` of the same job has fetched. -ERR_CONFIG. */
int file_path_fill(struct io_ctx *io, const char *text, struct buf *out,
                   struct err *err) must_check;

#endif
