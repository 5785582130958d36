/* Waiting longer each time, with jitter so that many do not come back at once.
 * All-zero but the limits is a fresh start. One thread at a time. */
#ifndef BASE_RETRY_H
#define BASE_RETRY_H

#include "base/compiler.h"

#include <stdint.h>

struct backoff {
    int64_t base_ms; /* the first wait, > 0 */
    int64_t max_ms;  /* the longest, >= base_ms */
    double factor;   /* growth, >= 1; 0 means 2 */
    double jitter;   /* 0..1: the wait is spread over (1 - jitter) .. 1 of itself */
    uint64_t (*rand_u64)(void); /* NULL: rand_u64(); tests give their own */
    int attempts;               /* waits handed out since the last reset */
};

/* The next wait in ms, 1 .. max_ms. */
int64_t backoff_next_ms(struct backoff *backoff);
/* It went well: start over. */
void backoff_reset(struct backoff *backoff);

#endif
