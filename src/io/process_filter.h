/* Lets rows through or not: docs/collect.md. */
#ifndef IO_PROCESS_FILTER_H
#define IO_PROCESS_FILTER_H

#include "io/processor.h"

int process_filter_check(const json_t *def, struct err *err) must_check;
int process_filter_new(struct io_ctx *io, const json_t *def,
                       struct processor **ret_processor, struct err *err) must_check;

#endif
