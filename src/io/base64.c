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

static int
value_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool
base64_read(const char *text, size_t len, uint8_t *ret, size_t *ret_len)
{
    size_t count = len;
    uint32_t bits = 0;
    size_t n = 0;

    while (count > 0 && len - count < 2 && text[count - 1] == '=')
        count--;
    if (count % 4 == 1 || (count < len && len % 4 != 0))
        return false;
    for (size_t i = 0; i < count; i++) {
        int value = value_of(text[i]);

        if (value < 0)
            return false;
        bits = bits << 6 | (uint32_t)value;
        if (i % 4 != 0)
            ret[n++] = (uint8_t)(bits >> (6 - 2 * (i % 4)));
    }
    /* Bits that belong to no byte are zero. */
    if (count % 4 != 0 && bits & ((1u << (count % 4 == 2 ? 4 : 2)) - 1))
        return false;
    *ret_len = n;
    return true;
}
