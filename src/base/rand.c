#include "base/rand.h"

#include "base/sha256.h"

#include <assert.h>
#include <errno.h>
#include <sys/random.h>

void
rand_bytes(void *data, size_t len)
{
    char *at = data;

    while (len > 0) {
        ssize_t got = getrandom(at, len, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            fprintf(stderr, "pawl: the kernel gives no random bytes\n");
            abort();
        }
        at += got;
        len -= (size_t)got;
    }
}

uint64_t
rand_u64(void)
{
    uint64_t value;

    rand_bytes(&value, sizeof(value));
    return value;
}

uint64_t
rand_below(uint64_t limit)
{
    uint64_t too_few;
    uint64_t value;

    assert(limit > 0);
    /* The first 2^64 mod limit values would make small results more frequent. */
    too_few = -limit % limit;
    do
        value = rand_u64();
    while (value < too_few);
    return value % limit;
}

void
rand_hex128(char ret[RAND_HEX128_SIZE])
{
    uint8_t bytes[16];

    rand_bytes(bytes, sizeof(bytes));
    hex_encode(bytes, sizeof(bytes), ret);
}
