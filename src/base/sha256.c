#include "base/sha256.h"

#include <assert.h>
#include <limits.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

/* libcrypto fails here only when memory is gone. */
static void
must(int ok)
{
    if (ok == 1)
        return;
    fprintf(stderr, "pawl: SHA-256 failed in libcrypto (out of memory?)\n");
    abort();
}

void
sha256_init(struct sha256 *sha)
{
    sha->ctx = EVP_MD_CTX_new();
    must(sha->ctx != NULL);
    must(EVP_DigestInit_ex(sha->ctx, EVP_sha256(), NULL));
}

void
sha256_update(struct sha256 *sha, const void *data, size_t len)
{
    must(EVP_DigestUpdate(sha->ctx, data, len));
}

void
sha256_final(struct sha256 *sha, uint8_t ret[SHA256_BYTES])
{
    unsigned int len = 0;

    must(EVP_DigestFinal_ex(sha->ctx, ret, &len));
    assert(len == SHA256_BYTES);
    must(EVP_DigestInit_ex(sha->ctx, EVP_sha256(), NULL));
}

void
sha256_final_hex(struct sha256 *sha, char ret[SHA256_HEX_SIZE])
{
    uint8_t digest[SHA256_BYTES];

    sha256_final(sha, digest);
    hex_encode(digest, sizeof(digest), ret);
}

void
sha256_release(struct sha256 *sha)
{
    if (!sha)
        return;
    EVP_MD_CTX_free(sha->ctx);
    sha->ctx = NULL;
}

void
sha256_of(const void *data, size_t len, uint8_t ret[SHA256_BYTES])
{
    unsigned int got = 0;

    must(EVP_Digest(data, len, ret, &got, EVP_sha256(), NULL));
    assert(got == SHA256_BYTES);
}

void
sha256_hex(const void *data, size_t len, char ret[SHA256_HEX_SIZE])
{
    uint8_t digest[SHA256_BYTES];

    sha256_of(data, len, digest);
    hex_encode(digest, sizeof(digest), ret);
}

void
hmac_sha256(const void *key, size_t key_len, const void *data, size_t len,
            uint8_t ret[SHA256_BYTES])
{
    unsigned int got = 0;

    assert(key_len <= INT_MAX);
    must(HMAC(EVP_sha256(), key, (int)key_len, data, len, ret, &got) != NULL);
    assert(got == SHA256_BYTES);
}

void
hex_encode(const void *data, size_t len, char *ret)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *bytes = data;

    for (size_t i = 0; i < len; i++) {
        ret[2 * i] = digits[bytes[i] >> 4];
        ret[2 * i + 1] = digits[bytes[i] & 15];
    }
    ret[2 * len] = '\0';
}
