/*
 * Percent-decoding, strict: bad hex, %00 and other control characters (but tab and
 * line ends in a query) and all that is not shortest-form UTF-8 are refused with
 * -ERR_INVALID (HTTP 400). Results live in the arena. No state; any thread.
 */
#ifndef NET_HTTP_URI_H
#define NET_HTTP_URI_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct err;

#define HTTP_PARAMS_MAX   100
#define HTTP_SEGMENTS_MAX 32

struct http_param {
    const char *name;
    const char *value; /* "" when there was no "=" */
};

/* plus_is_space: as in query strings. */
int http_uri_decode(struct arena *arena, const char *text, size_t len,
                    bool plus_is_space, char **ret_text, struct err *err) must_check;

/* "a=1&b=%20" in order, duplicates kept; query NULL or "" gives none. */
int http_uri_query(struct arena *arena, const char *query,
                   struct http_param **ret_params, size_t *ret_count,
                   struct err *err) must_check;

/* "/jobs/a%2Fb" → "jobs", "a/b": split first, decoded then. "/" has none. An empty
 * segment ("//", a trailing "/") is kept as ""; "." and ".." are refused. */
int http_uri_path(struct arena *arena, const char *path, const char ***ret_segments,
                  size_t *ret_count, struct err *err) must_check;

/* Append text so that it may stand in a path segment or a query value. */
struct buf;
void http_uri_escape(struct buf *buf, const char *text);

#endif
