/* A body that is a document: out of its zip, into UTF-8. No state. */
#ifndef IO_DOCUMENT_H
#define IO_DOCUMENT_H

#include "base/compiler.h"

#include <jansson.h>
#include <stddef.h>

struct buf;
struct err;

/* The entry `zip` of the body, or with NULL the body itself. raw has the ceiling.
 * -ERR_PROTOCOL, -ERR_NOT_FOUND, -ERR_TOO_LARGE. */
int document_unpack(const char *body, size_t len, const char *zip, struct buf *raw,
                    struct err *err) must_check;

/* encodings: a list of names as iconv knows them, tried in order (NULL: utf-8). out has
 * the ceiling. -ERR_PROTOCOL, -ERR_CONFIG, -ERR_TOO_LARGE. */
int document_decode(const struct buf *raw, const json_t *encodings, struct buf *out,
                    struct err *err) must_check;

#endif
