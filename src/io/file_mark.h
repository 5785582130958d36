/*
 * Is a file still the one in which a checkpoint stands? A position carries the
 * checksum of the bytes before it: a file that grew at its end passes, one that
 * was made anew in another order does not. One thread.
 */
#ifndef IO_FILE_MARK_H
#define IO_FILE_MARK_H

#include "base/compiler.h"

#include <stdint.h>

struct err;

/* Of the (at most 4096) bytes before offset. -ERR_IO. */
int file_mark_make(int fd, const char *path, int64_t offset, uint32_t *ret_mark,
                   struct err *err) must_check;

/* -ERR_INVALID: the file is shorter or another. mark -1: only its length is known. */
int file_mark_check(int fd, const char *path, int64_t offset, int64_t mark,
                    struct err *err) must_check;

#endif
