/*
 * RFC 4648 base64 with padding: how bytes travel in text formats.
 */
#ifndef IO_BASE64_H
#define IO_BASE64_H

#include <stddef.h>

struct buf;

void base64_add(struct buf *buf, const char *data, size_t len);

#endif
