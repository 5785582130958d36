/*
 * Three bytes become four characters; the last group is padded with '='.
 */
#include "io/base64.h"

#include "base/buf.h"

#include <stdint.h>

void
base64_add(struct buf *buf, const char *data, size_t len)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < len; i += 3) {
        size_t n = len - i < 3 ? len - i : 3;
        uint32_t bits = 0;
        char group[4];

        for (size_t k = 0; k < 3; k++)
            bits = bits << 8 | (k < n ? (unsigned char)data[i + k] : 0u);
        for (size_t k = 0; k < 4; k++)
            group[k] = k <= n ? digits[bits >> (18 - 6 * k) & 63] : '=';
        buf_add(buf, group, sizeof(group));
    }
}
