/*
 * Lines of a file with their exact offsets, out of a buffer that grows to the
 * longest line (with a ceiling). One thread.
 */
#ifndef IO_LINES_H
#define IO_LINES_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

#define LINE_MAX_BYTES ((size_t)32 << 20)

struct lines {
    int fd;
    char *path;
    char *data;
    size_t len;
    size_t cap;
    size_t at;    /* of the next line, in data */
    int64_t base; /* offset of data[0] in the file */
    int64_t line; /* number of the next line, from 1 */
    bool eof;
};

enum lines_outcome {
    LINES_LINE,
    LINES_END,
    LINES_TOO_LONG, /* longer than LINE_MAX_BYTES: passed over */
};

void lines_init(struct lines *lines);
void lines_release(struct lines *lines);

/* A regular file; a byte order mark of UTF-8 at its start is passed over. */
int lines_open(struct lines *lines, const char *path, struct err *err) must_check;
int lines_seek(struct lines *lines, int64_t offset, int64_t line,
               struct err *err) must_check;

/* The next line without its end (\n or \r\n), good until the next call. An enum
 * lines_outcome, or -ERR_IO. */
int lines_next(struct lines *lines, const char **ret_text, size_t *ret_len,
               struct err *err) must_check;

/* Offset of the next line in the file. */
int64_t lines_offset(const struct lines *lines);

#endif
