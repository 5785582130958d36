/* Renames, sets, casts and drops columns: docs/collect.md. */
#ifndef IO_PROCESS_MAP_H
#define IO_PROCESS_MAP_H

#include "io/processor.h"

int process_map_check(const json_t *def, struct err *err) must_check;
int process_map_new(struct io_ctx *io, const json_t *def,
                    struct processor **ret_processor, struct err *err) must_check;

#endif
