#include "io/document.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/strs.h"
#include "base/utf8.h"
#include "io/unzip.h"

#include <errno.h>
#include <iconv.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

static int
take_piece(void *arg, const void *data, size_t len, struct err *err)
{
    struct buf *buf = arg;

    buf_add(buf, data, len);
    return buf_check(buf, "the document", err);
}

static void
close_iconv(iconv_t *cd)
{
    if (*cd != (iconv_t)-1)
        iconv_close(*cd);
}

/* 1: converted, 0: not in this encoding, < 0. */
static int
convert(const char *encoding, const struct buf *raw, struct buf *out, struct err *err)
{
    scoped(close_iconv) iconv_t cd = iconv_open("UTF-8", encoding);
    char *in = raw->data;
    size_t left = raw->len;
    char piece[4096];

    if (cd == (iconv_t)-1)
        return err_set(err, ERR_CONFIG, "there is no encoding \"%s\"", encoding);
    while (left > 0) {
        char *at = piece;
        size_t room = sizeof(piece);
        size_t n = iconv(cd, &in, &left, &at, &room);

        buf_add(out, piece, (size_t)(at - piece));
        if (n == (size_t)-1 && errno != E2BIG)
            return 0;
    }
    return 1;
}

int
document_decode(const struct buf *raw, const json_t *encodings, struct buf *out,
                struct err *err)
{
    size_t count = encodings ? json_array_size(encodings) : 1;

    for (size_t i = 0; i < count; i++) {
        const char *encoding =
            encodings ? json_string_value(json_array_get(encodings, i)) : "utf-8";
        int r = 0;

        buf_clear(out);
        if (strcasecmp(encoding, "utf-8") == 0) {
            if (!utf8_valid(buf_str(raw), raw->len))
                continue;
            buf_add(out, raw->data, raw->len);
            r = 1;
        } else {
            r = convert(encoding, raw, out, err);
        }
        if (r < 0)
            return r;
        if (r == 1)
            return buf_check(out, "the document", err);
    }
    return err_set(err, ERR_PROTOCOL,
                   "the document is in none of the encodings that `encoding` names");
}

int
document_unpack(const char *body, size_t len, const char *zip, struct buf *raw,
                struct err *err)
{
    const struct unzip_source source = {.data = body ? body : "", .size = (int64_t)len};

    if (zip)
        return unzip_entry(&source, zip, (int64_t)raw->max, take_piece, raw, err);
    return len > 0 ? take_piece(raw, body, len, err) : 0;
}
