/*
 * Nearly every byte is simply copied; a table tells which are not. Continuation
 * bytes of UTF-8 need no look, so a character beyond ASCII costs no decoding.
 */
#include "io/xlsx_escape.h"

#include <stdbool.h>
#include <string.h>

static inline char *
put(char *p, const char *text, size_t len)
{
    memcpy(p, text, len);
    return p + len;
}

#define put_lit(p, literal) put((p), (literal), sizeof(literal) - 1)

static char *
put_hex_escape(char *p, unsigned code)
{
    static const char digits[] = "0123456789ABCDEF";

    p = put_lit(p, "_x");
    for (int shift = 12; shift >= 0; shift -= 4)
        *p++ = digits[code >> shift & 15];
    *p++ = '_';
    return p;
}

static bool
is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F') || (c >= 'a' && c <= 'f');
}

/* _xHHHH_ in the user's own text would be read as an escape. */
static bool
looks_escaped(const char *text, size_t len)
{
    return len >= 7 && text[1] == 'x' && is_hex(text[2]) && is_hex(text[3]) &&
           is_hex(text[4]) && is_hex(text[5]) && text[6] == '_';
}

/* U+FFFE and U+FFFF are characters to Unicode but not to XML. */
static bool
is_noncharacter(const char *text, size_t len)
{
    return len >= 3 && (unsigned char)text[1] == 0xBF && (unsigned char)text[2] >= 0xBE;
}

/* One character that is not simply copied; moves *at behind it. */
static char *
put_special(char *p, const char *text, size_t len, size_t *at)
{
    unsigned char c = (unsigned char)text[*at];

    switch (c) {
    case '<':
        p = put_lit(p, "&lt;");
        break;
    case '>':
        p = put_lit(p, "&gt;");
        break;
    case '&':
        p = put_lit(p, "&amp;");
        break;
    case '_':
        if (looks_escaped(text + *at, len - *at))
            p = put_hex_escape(p, '_');
        else
            *p++ = '_';
        break;
    case 0xEF:
        if (is_noncharacter(text + *at, len - *at)) {
            p = put_hex_escape(p, 0xFF40u + (unsigned char)text[*at + 2]);
            *at += 2;
        } else {
            *p++ = (char)c;
        }
        break;
    default:
        p = put_hex_escape(p, c);
        break;
    }
    (*at)++;
    return p;
}

static const unsigned char special[256] = {
    [0] = 1,  [1] = 1,  [2] = 1,   [3] = 1,   [4] = 1,   [5] = 1,   [6] = 1,
    [7] = 1,  [8] = 1,  [11] = 1,  [12] = 1,  [13] = 1,  [14] = 1,  [15] = 1,
    [16] = 1, [17] = 1, [18] = 1,  [19] = 1,  [20] = 1,  [21] = 1,  [22] = 1,
    [23] = 1, [24] = 1, [25] = 1,  [26] = 1,  [27] = 1,  [28] = 1,  [29] = 1,
    [30] = 1, [31] = 1, ['<'] = 1, ['>'] = 1, ['&'] = 1, ['_'] = 1, [0xEF] = 1,
};

char *
xlsx_escape(char *p, const char *text, size_t len)
{
    size_t at = 0;

    while (at < len) {
        if (!special[(unsigned char)text[at]])
            *p++ = text[at++];
        else
            p = put_special(p, text, len, &at);
    }
    return p;
}
