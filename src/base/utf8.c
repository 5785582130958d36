#include "base/utf8.h"

#include "base/buf.h"

/*
 * What may follow a lead byte. The second byte's range is where overlong forms,
 * surrogates and code points past U+10FFFF are shut out (Unicode, table 3-7).
 */
struct lead {
    uint8_t first, last; /* lead bytes of this kind */
    uint8_t second_min, second_max;
    uint8_t bytes;
};

static const struct lead leads[] = {
    {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
    {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3},
    {0xEE, 0xEF, 0x80, 0xBF, 3}, {0xF0, 0xF0, 0x90, 0xBF, 4},
    {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
};

static const struct lead *
lead_of(uint8_t byte)
{
    for (size_t i = 0; i < array_len(leads); i++)
        if (byte >= leads[i].first && byte <= leads[i].last)
            return &leads[i];
    return NULL;
}

/*
 * Read one code point. True: *ret_used bytes make it. False: *ret_used (>= 1)
 * bytes are the longest start of one, to be replaced together.
 */
static bool
decode(const uint8_t *text, size_t len, uint32_t *ret_code, size_t *ret_used)
{
    const struct lead *lead;
    uint32_t code;

    *ret_used = 1;
    if (text[0] < 0x80) {
        *ret_code = text[0];
        return true;
    }
    lead = lead_of(text[0]);
    if (!lead)
        return false;
    code = text[0] & (0x7FU >> lead->bytes);
    for (size_t i = 1; i < lead->bytes; i++) {
        uint8_t min = i == 1 ? lead->second_min : 0x80;
        uint8_t max = i == 1 ? lead->second_max : 0xBF;

        *ret_used = i;
        if (i >= len || text[i] < min || text[i] > max)
            return false;
        code = code << 6 | (text[i] & 0x3FU);
    }
    *ret_used = lead->bytes;
    *ret_code = code;
    return true;
}

size_t
utf8_decode(const char *text, size_t len, uint32_t *ret_code)
{
    uint32_t code;
    size_t used;

    if (len == 0 || !decode((const uint8_t *)text, len, &code, &used))
        return 0;
    *ret_code = code;
    return used;
}

size_t
utf8_encode(uint32_t code, char *ret)
{
    if (code < 0x80) {
        ret[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        ret[0] = (char)(0xC0 | code >> 6);
        ret[1] = (char)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        if (code >= 0xD800 && code <= 0xDFFF)
            return 0;
        ret[0] = (char)(0xE0 | code >> 12);
        ret[1] = (char)(0x80 | (code >> 6 & 0x3F));
        ret[2] = (char)(0x80 | (code & 0x3F));
        return 3;
    }
    if (code > 0x10FFFF)
        return 0;
    ret[0] = (char)(0xF0 | code >> 18);
    ret[1] = (char)(0x80 | (code >> 12 & 0x3F));
    ret[2] = (char)(0x80 | (code >> 6 & 0x3F));
    ret[3] = (char)(0x80 | (code & 0x3F));
    return 4;
}

/* Texts are mostly ASCII: skip it eight bytes at a time. */
static size_t
skip_ascii(const char *text, size_t at, size_t len)
{
    while (at + 8 <= len) {
        uint64_t word;

        memcpy(&word, text + at, sizeof(word));
        if (word & UINT64_C(0x8080808080808080))
            break;
        at += 8;
    }
    while (at < len && (unsigned char)text[at] < 0x80)
        at++;
    return at;
}

size_t
utf8_valid_prefix(const char *text, size_t len)
{
    size_t at = skip_ascii(text, 0, len);

    while (at < len) {
        uint32_t code;
        size_t used;

        if (!decode((const uint8_t *)text + at, len - at, &code, &used))
            return at;
        at = skip_ascii(text, at + used, len);
    }
    return at;
}

bool
utf8_valid(const char *text, size_t len)
{
    return utf8_valid_prefix(text, len) == len;
}

void
utf8_repair(const char *text, size_t len, struct buf *buf)
{
    size_t at = 0;

    while (at < len) {
        size_t good = utf8_valid_prefix(text + at, len - at);
        uint32_t code;
        size_t used;

        buf_add(buf, text + at, good);
        at += good;
        if (at == len)
            return;
        decode((const uint8_t *)text + at, len - at, &code, &used);
        buf_add_str(buf, "\xEF\xBF\xBD");
        at += used;
    }
}

/* Where the point starting at `at` ends; a bad byte is a point of its own. */
static size_t
next_point(const char *text, size_t at, size_t len)
{
    uint32_t code;
    size_t used = utf8_decode(text + at, len - at, &code);

    return at + (used ? used : 1);
}

size_t
utf8_count(const char *text, size_t len)
{
    size_t count = 0;

    for (size_t at = 0; at < len; at = next_point(text, at, len))
        count++;
    return count;
}

size_t
utf8_cut(const char *text, size_t len, size_t max_bytes)
{
    size_t back;

    if (len <= max_bytes)
        return len;
    /* Only a well-formed point across the border moves it; it has at most four
     * bytes, so it starts at most three before. */
    for (back = 1; back <= 3 && back <= max_bytes; back++) {
        size_t start = max_bytes - back;
        uint32_t code;
        size_t used = utf8_decode(text + start, len - start, &code);

        if (used > back)
            return start;
        if (used > 0)
            break;
    }
    return max_bytes;
}

size_t
utf8_prefix(const char *text, size_t len, size_t max_points)
{
    size_t at = 0;

    while (at < len && max_points-- > 0)
        at = next_point(text, at, len);
    return at;
}
