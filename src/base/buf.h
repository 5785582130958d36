/*
 * A growing byte buffer with a ceiling. Whatever a user can make long (a body,
 * a message, a cell) goes into a buf whose ceiling was given at buf_init; going
 * over it is an error, never an abort. Owner frees by buf_release; no locking.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdarg.h>

struct err;

struct buf {
    char *data; /* always NUL-terminated when size > 0 was ever appended */
    size_t len; /* bytes used, without the NUL */
    size_t cap;
    size_t max;    /* ceiling in bytes; 0 = BUF_MAX_DEFAULT */
    bool overflow; /* an append did not fit: the content is incomplete */
};

#define BUF_MAX_DEFAULT ((size_t)64 << 20)

void buf_init(struct buf *buf, size_t max);
void buf_release(struct buf *buf);
void buf_clear(struct buf *buf);

/*
 * Appending never fails at the spot: past the ceiling nothing is added and
 * overflow is set. Look once, at the end, with buf_check.
 */
void buf_add(struct buf *buf, const void *data, size_t len);
void buf_add_str(struct buf *buf, const char *str);
void buf_add_char(struct buf *buf, char c);
void buf_add_i64(struct buf *buf, int64_t value);
void buf_addf(struct buf *buf, const char *fmt, ...) printf_like(2, 3);
void buf_vaddf(struct buf *buf, const char *fmt, va_list args) printf_like(2, 0);

/* Room for len more bytes, to be written by the caller who then adds to buf->len;
 * NULL past the ceiling (overflow is set). */
char *buf_reserve(struct buf *buf, size_t len);

/* The content as a C string; "" when empty. Valid until the next append. */
const char *buf_str(const struct buf *buf);

/* 0, or -ERR_TOO_LARGE naming what. */
int buf_check(const struct buf *buf, const char *what, struct err *err) must_check;

#endif
