/*
 * Downloads. The ETag is the file's SHA-256, which never changes, so a download
 * that was cut can go on with Range and If-Range.
 */
#include "api/api_private.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fsio.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEGMENT_ID 3

enum range_kind { RANGE_NONE, RANGE_PART, RANGE_UNSATISFIABLE };

/* Digits only; -1 when text does not start with one or is too long. */
static int64_t
take_number(const char **text)
{
    int64_t value = 0;
    int digits = 0;

    for (; isdigit((unsigned char)**text); (*text)++) {
        if (++digits > 18)
            return -1;
        value = value * 10 + (**text - '0');
    }
    return digits ? value : -1;
}

/* One range of bytes; anything else of the header is ignored, as RFC 9110 allows. */
static enum range_kind
parse_range(const char *text, int64_t size, int64_t *ret_from, int64_t *ret_to)
{
    int64_t from;
    int64_t to;

    if (!text || strncmp(text, "bytes=", 6) != 0)
        return RANGE_NONE;
    text += 6;
    from = take_number(&text);
    if (*text != '-')
        return RANGE_NONE;
    text++;
    to = take_number(&text);
    if (*text || (from < 0 && to < 0))
        return RANGE_NONE;
    if (from < 0) {
        from = to >= size ? 0 : size - to;
        if (to == 0)
            return RANGE_UNSATISFIABLE;
        to = size - 1;
    } else if (to < 0 || to >= size) {
        to = size - 1;
    } else if (to < from) {
        return RANGE_NONE;
    }
    if (from >= size)
        return RANGE_UNSATISFIABLE;
    *ret_from = from;
    *ret_to = to;
    return RANGE_PART;
}

/* attachment; filename="ascii"; filename*=UTF-8''percent-encoded (RFC 6266, 5987) */
static const char *
disposition(struct arena *arena, const char *name)
{
    scoped(buf_release) struct buf plain = {0};
    scoped(buf_release) struct buf coded = {0};

    buf_init(&plain, 4096);
    buf_init(&coded, 4096);
    for (const unsigned char *c = (const unsigned char *)name; *c; c++) {
        if ((*c & 0xC0) != 0x80)
            buf_add_char(&plain, *c >= 0x20 && *c < 0x7F && *c != '"' && *c != '\\'
                                     ? (char)*c
                                     : '_');
        if (isalnum(*c) || strchr("-._~", *c))
            buf_add_char(&coded, (char)*c);
        else
            buf_addf(&coded, "%%%02X", *c);
    }
    return arena_printf(arena, "attachment; filename=\"%s\"; filename*=UTF-8''%s",
                        buf_str(&plain), buf_str(&coded));
}

/* Is this ETag among those of the header? */
static bool
names_etag(const char *header, const char *etag)
{
    return header && (strcmp(header, "*") == 0 || strstr(header, etag));
}

static int
range_of(struct http_request *req, struct reply *reply, const char *etag,
         struct http_file *file, struct err *err)
{
    const char *if_range = http_request_header(req, "If-Range");
    struct arena *arena = http_request_arena(req);
    int64_t size = file->length;
    int64_t from = 0;
    int64_t to = 0;

    if (if_range && strcmp(if_range, etag) != 0)
        return 0;
    switch (parse_range(http_request_header(req, "Range"), size, &from, &to)) {
    case RANGE_NONE:
        break;
    case RANGE_UNSATISFIABLE:
        return err_set(err, ERR_RANGE, "the result has %" PRId64 " bytes", size);
    case RANGE_PART:
        reply->answer.status = 206;
        file->offset = from;
        file->length = to - from + 1;
        api_reply_field(reply, "Content-Range",
                        arena_printf(arena, "bytes %" PRId64 "-%" PRId64 "/%" PRId64,
                                     from, to, size));
        break;
    }
    return 0;
}

int
api_request_result(struct api *api, struct http_request *req, struct reply *reply,
                   struct err *err)
{
    struct arena *arena = http_request_arena(req);
    struct http_file *file = arena_new(arena, struct http_file);
    struct service_result result = {.fd = -1};
    const char *etag;
    int64_t id = 0;
    int r;

    r = api_ask_query(req, NULL, 0, err);
    if (r == 0)
        r = api_ask_id(req, SEGMENT_ID, &id, err);
    if (r == 0)
        r = service_result(api->options.service, id, arena, &result, err);
    if (r < 0)
        return r;
    etag = arena_printf(arena, "\"%s\"", result.sha256);
    api_reply_field(reply, "ETag", etag);
    if (names_etag(http_request_header(req, "If-None-Match"), etag)) {
        fd_close(&result.fd);
        reply->answer.status = 304;
        return 0;
    }
    *file = (struct http_file){.fd = result.fd, .length = result.bytes};
    reply->answer.status = 200;
    r = range_of(req, reply, etag, file, err);
    if (r < 0) {
        fd_close(&file->fd);
        return r;
    }
    api_reply_field(reply, "Accept-Ranges", "bytes");
    api_reply_field(reply, "Content-Disposition", disposition(arena, result.name));
    api_reply_field(reply, "Cache-Control", "private, no-cache");
    reply->content_type = result.type;
    reply->file = file;
    return 0;
}
