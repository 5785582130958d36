/*
 * expat wants a table of what each first byte means: a code point, or that a
 * second byte follows. iconv is asked for each. "euc-kr" is read as CP949, which
 * holds it, because that is what senders mean by it.
 */
#include "io/xml_encoding.h"

#include "base/arena.h"
#include "io/charset.h"

#include <iconv.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct encoding {
    iconv_t cd;
};

/* The code point of len bytes; -1: they are none, or none within 16 bits. */
static int
code_of(const struct encoding *encoding, const char *bytes, size_t len)
{
    uint32_t code = 0;
    char *from = (char *)(uintptr_t)bytes, *to = (char *)&code;
    size_t left = len, room = sizeof(code);

    (void)iconv(encoding->cd, NULL, NULL, NULL, NULL);
    if (iconv(encoding->cd, &from, &left, &to, &room) != 0 || left > 0 || room > 0)
        return -1;
    return code <= 0xffff && (code < 0xd800 || code > 0xdfff) ? (int)code : -1;
}

static int
two_bytes(void *arg, const char *bytes)
{
    return code_of(arg, bytes, 2);
}

static void
release(void *arg)
{
    struct encoding *encoding = arg;

    (void)iconv_close(encoding->cd);
    free(encoding);
}

int
xml_encoding_find(void *arg, const XML_Char *name, XML_Encoding *info)
{
    const struct charset *charset = charset_find(name);
    struct encoding *encoding;
    iconv_t cd;

    if (!charset || !charset->iconv || charset->unit != 1)
        return XML_STATUS_ERROR;
    cd = iconv_open("UCS-4LE",
                    strcmp(charset->name, "euc-kr") == 0 ? "CP949" : charset->iconv);
    if ((intptr_t)cd == -1)
        return XML_STATUS_ERROR;
    encoding = xcalloc(1, sizeof(*encoding));
    encoding->cd = cd;
    for (int i = 0; i < 256; i++) {
        char byte = (char)i;
        int code = code_of(encoding, &byte, 1);

        info->map[i] = i < 0x80 ? i : code >= 0xa0 ? code : -2;
    }
    info->data = encoding;
    info->convert = two_bytes;
    info->release = release;
    return XML_STATUS_OK;
}
