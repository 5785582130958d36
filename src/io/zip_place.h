/*
 * A position in a member of a ZIP file: records before it, and the member's own
 * checksum, so that another file is known at once. One thread.
 */
#ifndef IO_ZIP_PLACE_H
#define IO_ZIP_PLACE_H

#include "base/compiler.h"

#include <stdint.h>

struct buf;
struct err;
struct zip_entry;

/* Append it as JSON; 0. */
int zip_place_put(const struct zip_entry *entry, int64_t rows, struct buf *out);

/* -ERR_INVALID: no such text, or of another member. name: for the message. */
int zip_place_get(const char *name, const struct zip_entry *entry, const char *text,
                  int64_t *ret_rows, struct err *err) must_check;

#endif
