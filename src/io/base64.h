/*
 * RFC 4648 base64 with padding: how bytes travel in text formats.
 */
#ifndef IO_BASE64_H
#define IO_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

void base64_add(struct buf *buf, const char *data, size_t len);

/* len characters, with or without their padding, and nothing else between them; false
 * if it is none. ret has room for len / 4 * 3 + 2 bytes, and may be text itself. */
bool base64_read(const char *text, size_t len, uint8_t *ret, size_t *ret_len);

#endif
