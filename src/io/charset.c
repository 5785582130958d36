/*
 * glibc's iconv does not know "MS949", which is what Windows and Java call the
 * encoding that it has as CP949; and it reads bytes that EUC-KR does not have as
 * control characters of the same number, so that CP949 read as EUC-KR would lose
 * syllables without a word. Hence the table of names, and the look at what comes
 * out of it.
 */
#include "io/charset.h"

#include "base/buf.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <string.h>

#define PIECE_BYTES 4096

/* To add one: a row. Line ends must be the byte \n (or its 16-bit form). */
/* clang-format off */
static const struct charset charsets[] = {
    {"utf-8", NULL, "utf8", 1, false, false},
    {"cp949", "CP949", "ms949 uhc windows949 ksc56011987 ksc5601", 1, false, false},
    {"euc-kr", "EUC-KR", "euckr", 1, false, false},
    {"utf-16le", "UTF-16LE", "utf16le", 2, false, false},
    {"utf-16be", "UTF-16BE", "utf16be", 2, true, false},
    {"utf-16", "UTF-16LE", "utf16", 2, false, true},
    {"windows-1252", "CP1252", "cp1252 ansi", 1, false, false},
    {"iso-8859-1", "ISO-8859-1", "latin1", 1, false, false},
    {"shift_jis", "CP932", "sjis cp932 windows31j ms932", 1, false, false},
    {"gb18030", "GB18030", "gbk gb2312 cp936", 1, false, false},
    {"big5", "BIG5", "cp950", 1, false, false},
};
/* clang-format on */

/* Letters and digits of both, whatever their case and what stands between. */
static bool
same_name(const char *a, const char *b, size_t b_len)
{
    size_t k = 0;

    for (; *a; a++) {
        if (*a == '-' || *a == '_' || *a == ' ')
            continue;
        while (k < b_len && (b[k] == '-' || b[k] == '_'))
            k++;
        if (k == b_len || tolower((unsigned char)*a) != b[k])
            return false;
        k++;
    }
    return k == b_len;
}

const struct charset *
charset_find(const char *name)
{
    for (size_t i = 0; i < sizeof(charsets) / sizeof(charsets[0]); i++) {
        const struct charset *c = &charsets[i];

        if (same_name(name, c->name, strlen(c->name)))
            return c;
        for (const char *p = c->other_names; *p;) {
            size_t len = strcspn(p, " ");

            if (same_name(name, p, len))
                return c;
            p += len;
            p += *p == ' ';
        }
    }
    return NULL;
}

void
charset_list(struct buf *out)
{
    for (size_t i = 0; i < sizeof(charsets) / sizeof(charsets[0]); i++)
        buf_addf(out, "%s%s", i ? " " : "", charsets[i].name);
}

bool
charset_decoder_open(struct charset_decoder *decoder, const struct charset *charset)
{
    iconv_t cd = iconv_open("UTF-8", charset->iconv);

    *decoder = (struct charset_decoder){.charset = charset, .cd = cd};
    /* iconv's failure is a pointer of all ones. */
    decoder->open = (intptr_t)cd != -1;
    return decoder->open;
}

void
charset_decoder_close(struct charset_decoder *decoder)
{
    if (decoder && decoder->open)
        (void)iconv_close(decoder->cd);
    if (decoder)
        *decoder = (struct charset_decoder){0};
}

static void
add_mark(struct buf *out, unsigned char byte)
{
    char mark[CHARSET_MARK_BYTES] = {(char)0xff, (char)(0x80 | byte >> 4),
                                     (char)(0x80 | (byte & 15))};

    buf_add(out, mark, sizeof(mark));
}

unsigned char
charset_marked(const char *mark)
{
    return (unsigned char)((mark[1] & 15) << 4 | (mark[2] & 15));
}

/* What came out well, but for the control characters that stand for no such byte. */
static void
add_piece(const struct charset *charset, const char *piece, size_t len, struct buf *out)
{
    bool exact = charset->unit == 2 || strcmp(charset->name, "iso-8859-1") == 0 ||
                 strcmp(charset->name, "gb18030") == 0;
    size_t start = 0;

    for (size_t i = 0; !exact && i + 1 < len; i++) {
        if (piece[i] != (char)0xc2 || (unsigned char)piece[i + 1] >= 0xa0)
            continue;
        buf_add(out, piece + start, i - start);
        add_mark(out, (unsigned char)piece[i + 1]);
        start = i + 2;
        i++;
    }
    buf_add(out, piece + start, len - start);
}

void
charset_decode(struct charset_decoder *decoder, const char *text, size_t len,
               struct buf *out)
{
    char piece[PIECE_BYTES];
    char *from = (char *)(uintptr_t)text; /* iconv reads it only */
    size_t left = len;

    assert(decoder->open);
    (void)iconv(decoder->cd, NULL, NULL, NULL, NULL);
    while (left > 0) {
        char *to = piece;
        size_t room = sizeof(piece);
        size_t n = iconv(decoder->cd, &from, &left, &to, &room);
        bool bad = n == (size_t)-1 && errno != E2BIG;

        add_piece(decoder->charset, piece, (size_t)(to - piece), out);
        for (unsigned i = 0; bad && left > 0 && i < decoder->charset->unit; i++) {
            add_mark(out, (unsigned char)*from++);
            left--;
        }
    }
}
