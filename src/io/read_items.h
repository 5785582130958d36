/*
 * Rows out of the definition itself: read: {items: {NAME: values, …}} gives each
 * combination of the values, the last name turning fastest. Restarts at the number
 * of the combination, among values that are known to be the same.
 */
#ifndef IO_READ_ITEMS_H
#define IO_READ_ITEMS_H

#include "io/reader.h"

int read_items_check(const json_t *def, struct err *err) must_check;
int read_items_new(struct io_ctx *io, const json_t *def, struct reader **ret_reader,
                   struct err *err) must_check;
int read_items_extent(struct io_ctx *io, const json_t *def, const char *key,
                      int64_t *ret_least, int64_t *ret_greatest,
                      struct err *err) must_check;

#endif
