/*
 * Encodings of texts that come in, made UTF-8 by the C library's iconv under the
 * names that people use. One thread.
 */
#ifndef IO_CHARSET_H
#define IO_CHARSET_H

#include "base/compiler.h"

#include <iconv.h>
#include <stdbool.h>
#include <stddef.h>

struct buf;

struct charset {
    const char *name;  /* as we write it: "cp949" */
    const char *iconv; /* NULL: UTF-8, which needs no conversion */
    const char *other_names;
    unsigned unit; /* bytes of a line end: 1, or 2 for UTF-16 */
    bool big_endian;
    bool from_bom; /* which UTF-16 it is says its byte order mark */
};

/* By any of its names, in any case, with or without - and _; NULL: none of ours. */
const struct charset *charset_find(const char *name);

/* All names, for messages: "utf-8 cp949 …". */
void charset_list(struct buf *out);

struct charset_decoder {
    const struct charset *charset;
    iconv_t cd;
    bool open;
};

/* The charset has an iconv name. False: the C library here does not know it. */
bool charset_decoder_open(struct charset_decoder *decoder,
                          const struct charset *charset);
void charset_decoder_close(struct charset_decoder *decoder);

/*
 * Append a whole text (a line) as UTF-8. A byte that is none of the charset leaves
 * CHARSET_MARK_BYTES that are not UTF-8, so that whoever checks the text finds the
 * place; charset_marked gives the byte back.
 */
#define CHARSET_MARK_BYTES 3
void charset_decode(struct charset_decoder *decoder, const char *text, size_t len,
                    struct buf *out);
unsigned char charset_marked(const char *mark);

#endif
