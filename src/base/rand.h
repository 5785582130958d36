/* Randomness of the kernel (getrandom): good for tokens and nonces. Any thread.
 * Aborts if the kernel gives none, which Linux does not do after boot. */
#ifndef BASE_RAND_H
#define BASE_RAND_H

#include "base/compiler.h"

#include <stdint.h>

void rand_bytes(void *data, size_t len);
uint64_t rand_u64(void);

/* Evenly from 0 .. limit-1; limit > 0. */
uint64_t rand_below(uint64_t limit);

/* 128 bits as 32 small hex digits and NUL. */
#define RAND_HEX128_SIZE 33
void rand_hex128(char ret[RAND_HEX128_SIZE]);

#endif
