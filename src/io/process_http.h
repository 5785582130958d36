/* Calls an API for each item: docs/collect.md. */
#ifndef IO_PROCESS_HTTP_H
#define IO_PROCESS_HTTP_H

#include "io/processor.h"

int process_http_check(const json_t *def, struct err *err) must_check;
int process_http_new(struct io_ctx *io, const json_t *def,
                     struct processor **ret_processor, struct err *err) must_check;

#endif
