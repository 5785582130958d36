/* SHA-256, in pieces or at once. One struct belongs to one thread. */
#ifndef BASE_SHA256_H
#define BASE_SHA256_H

#include "base/compiler.h"

#include <stdint.h>

#define SHA256_BYTES    32
#define SHA256_HEX_SIZE 65 /* with NUL */

struct sha256 {
    void *ctx; /* libcrypto's */
};

void sha256_init(struct sha256 *sha);
void sha256_update(struct sha256 *sha, const void *data, size_t len);
/* The digest; sha is then ready for another message. */
void sha256_final(struct sha256 *sha, uint8_t ret[SHA256_BYTES]);
void sha256_final_hex(struct sha256 *sha, char ret[SHA256_HEX_SIZE]);
void sha256_release(struct sha256 *sha);

void sha256_of(const void *data, size_t len, uint8_t ret[SHA256_BYTES]);
void sha256_hex(const void *data, size_t len, char ret[SHA256_HEX_SIZE]);

/* HMAC (RFC 2104) with it; a key of any length. */
void hmac_sha256(const void *key, size_t key_len, const void *data, size_t len,
                 uint8_t ret[SHA256_BYTES]);

/* Small hex digits and NUL: ret holds 2 * len + 1. */
void hex_encode(const void *data, size_t len, char *ret);

#endif
