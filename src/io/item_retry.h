/*
 * `retry` of a chunk step: errors of which classes are tried again, how often in all,
 * and how long to wait before the next try. Read once, then read-only for all lanes.
 */
#ifndef IO_ITEM_RETRY_H
#define IO_ITEM_RETRY_H

#include "base/compiler.h"

#include <jansson.h>
#include <stdint.h>

struct err;
struct io_ctx;
struct io_option;

struct item_retry {
    unsigned on;        /* enum item_class; 0 = nothing is tried again */
    int attempts;       /* in all, the first included */
    int64_t backoff_ms; /* before the second, doubled for each further one */
    int64_t max_backoff_ms;
};

/* def: of the step. -ERR_CONFIG. */
int item_retry_read(const json_t *def, struct item_retry *ret_retry,
                    struct err *err) must_check;

enum item_retry_wait {
    ITEM_RETRY_AGAIN,
    ITEM_RETRY_STOP, /* the run is to end at the next occasion: this is one */
    ITEM_RETRY_CUT,  /* it is to end at once */
};

/* Wait before the next try; `tried`: how often it was tried, from 1. Any thread. */
enum item_retry_wait item_retry_wait(const struct item_retry *retry, struct io_ctx *io,
                                     int tried);

/* The keys, for documentation. */
const struct io_option *item_retry_options(size_t *ret_count);

#endif
