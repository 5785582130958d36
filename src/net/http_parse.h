/*
 * HTTP/1.1 request parser: strict, incremental, fed with any cut of the bytes.
 *
 *      http_parse_init → http_parse … HEAD → http_parse … DONE → release
 *
 * What two readers could understand differently is refused (status + close), so
 * that nothing can be smuggled past a proxy. Memory: the head (at most about
 * 25 KiB) and the body (at most body_max); nothing else. One thread at a time.
 */
#ifndef NET_HTTP_PARSE_H
#define NET_HTTP_PARSE_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_METHOD_MAX    16
#define HTTP_TARGET_MAX    8192  /* → 414 */
#define HTTP_HEADERS_MAX   16384 /* all header lines → 431 */
#define HTTP_FIELDS_MAX    100   /* → 431 */
#define HTTP_CHUNK_EXT_MAX 1024  /* extensions of all chunks → 400 */

enum http_parse_outcome {
    HTTP_PARSE_MORE, /* all bytes eaten, more are needed */
    HTTP_PARSE_HEAD, /* the head is whole; set body_max now, then call again */
    HTTP_PARSE_DONE, /* the request is whole; the rest belongs to the next one */
    HTTP_PARSE_BAD,  /* answer with status and reason, then close */
};

struct http_span {
    uint32_t at; /* offset in head */
    uint32_t len;
};

struct http_parse {
    /* results, valid from HEAD on */
    struct buf head; /* the strings below are inside, NUL-terminated */
    struct buf body;
    struct http_span method;
    struct http_span target;
    struct http_span names[HTTP_FIELDS_MAX];
    struct http_span values[HTTP_FIELDS_MAX];
    size_t field_count;
    int minor; /* HTTP/1.minor */
    bool keep_alive;
    bool expect_continue; /* the client waits for "100 Continue" */
    bool chunked;
    int64_t content_length; /* announced; 0 when none */

    /* the caller's */
    size_t body_max; /* → 413, from Content-Length before any byte is read */

    /* after BAD */
    int status;
    const char *reason; /* fixed text */

    /* private */
    int state;
    uint32_t mark;      /* where the token being read began */
    uint32_t value_end; /* end of the value without trailing blanks */
    uint32_t header_bytes;
    uint32_t ext_bytes;
    int digits;
    uint64_t left; /* of the body or of this chunk */
};

void http_parse_init(struct http_parse *parser, size_t body_max);
void http_parse_release(struct http_parse *parser);

enum http_parse_outcome http_parse(struct http_parse *parser, const char *data,
                                   size_t len, size_t *ret_used);

const char *http_parse_method(const struct http_parse *parser);
const char *http_parse_target(const struct http_parse *parser);

/* First field of that name in any case, or NULL. */
const char *http_parse_field(const struct http_parse *parser, const char *name);

/* True when a body is announced, even one of chunks that may turn out empty. */
bool http_parse_has_body(const struct http_parse *parser);

#endif
