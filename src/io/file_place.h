/*
 * A position in a file read from front to back, as a checkpoint keeps it: where
 * the next record begins, and the checksum of the bytes before it. A file that
 * grew at its end still has it; one that was made anew in another order does not,
 * and is refused. One thread.
 */
#ifndef IO_FILE_PLACE_H
#define IO_FILE_PLACE_H

#include "base/compiler.h"

#include <stdint.h>

struct buf;
struct err;

struct file_place {
    int64_t offset; /* bytes before the record */
    int64_t line;   /* its number, from 1 */
    int64_t rows;   /* records before it */
};

/* Append it as JSON. -ERR_IO. */
int file_place_put(int fd, const char *path, const struct file_place *place,
                   struct buf *out, struct err *err) must_check;

/* -ERR_INVALID: no such text, or the file is shorter by now, or another one. */
int file_place_get(int fd, const char *path, const char *text,
                   struct file_place *ret_place, struct err *err) must_check;

#endif
