/*
 * Strict percent-decoding. Paths are split before they are decoded, so "%2F" is a
 * character of a segment and never a border; dot segments are refused, not resolved.
 */
#include "net/http_uri.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/utf8.h"

#include <string.h>

static int
hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* The byte that "%XX" stands for, or -1. */
static int
escaped_byte(const char *text, size_t len)
{
    int high, low;

    if (len < 3)
        return -1;
    high = hex_value(text[1]);
    low = hex_value(text[2]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* A query value may be a text of several lines; a path may not. */
static bool
is_refused_control(int byte, bool in_query)
{
    if (byte == '\t' || byte == '\n' || byte == '\r')
        return !in_query;
    return byte < 0x20 || byte == 0x7f;
}

int
http_uri_decode(struct arena *arena, const char *text, size_t len, bool plus_is_space,
                char **ret_text, struct err *err)
{
    char *out = arena_alloc(arena, len + 1);
    size_t used = 0;

    for (size_t i = 0; i < len; i++) {
        int byte = (unsigned char)text[i];

        if (text[i] == '+' && plus_is_space) {
            byte = ' ';
        } else if (text[i] == '%') {
            byte = escaped_byte(text + i, len - i);
            if (byte < 0)
                return err_set(err, ERR_INVALID,
                               "In the URL, \"%%\" must be followed by two "
                               "hexadecimal digits (a percent sign itself is %%25).");
            i += 2;
        }
        if (is_refused_control(byte, plus_is_space))
            return err_set(err, ERR_INVALID,
                           "The URL holds the control character %%%02X.",
                           (unsigned)byte);
        out[used++] = (char)byte;
    }
    if (!utf8_valid(out, used))
        return err_set(err, ERR_INVALID,
                       "The URL is not valid UTF-8 once percent-decoded.");
    out[used] = '\0';
    *ret_text = out;
    return 0;
}

static size_t
count_char(const char *text, char c)
{
    size_t count = 0;

    for (; *text != '\0'; text++)
        count += *text == c;
    return count;
}

static int
decode_pair(struct arena *arena, const char *pair, size_t len, struct http_param *param,
            struct err *err)
{
    const char *equals = memchr(pair, '=', len);
    size_t name_len = equals != NULL ? (size_t)(equals - pair) : len;
    size_t value_len = equals != NULL ? len - name_len - 1 : 0;
    const char *value = equals != NULL ? equals + 1 : "";
    char *name_text, *value_text;
    int r;

    r = http_uri_decode(arena, pair, name_len, true, &name_text, err);
    if (r < 0)
        return r;
    r = http_uri_decode(arena, value, value_len, true, &value_text, err);
    if (r < 0)
        return r;
    *param = (struct http_param){name_text, value_text};
    return 0;
}

int
http_uri_query(struct arena *arena, const char *query, struct http_param **ret_params,
               size_t *ret_count, struct err *err)
{
    struct http_param *params;
    size_t count = 0;
    int r;

    if (query == NULL)
        query = "";
    if (count_char(query, '&') >= HTTP_PARAMS_MAX)
        return err_set(err, ERR_INVALID, "The URL has more than %d query parameters.",
                       HTTP_PARAMS_MAX);
    params = arena_array(arena, struct http_param, count_char(query, '&') + 1);
    while (*query != '\0') {
        size_t len = strcspn(query, "&");

        if (len > 0) {
            r = decode_pair(arena, query, len, &params[count], err);
            if (r < 0)
                return r;
            count++;
        }
        query += len;
        query += *query == '&';
    }
    *ret_params = params;
    *ret_count = count;
    return 0;
}

int
http_uri_path(struct arena *arena, const char *path, const char ***ret_segments,
              size_t *ret_count, struct err *err)
{
    const char **segments;
    size_t count = 0;
    int r;

    if (*path != '/')
        return err_set(err, ERR_INVALID, "The path must begin with \"/\".");
    if (count_char(path, '/') > HTTP_SEGMENTS_MAX)
        return err_set(err, ERR_INVALID, "The path has more than %d segments.",
                       HTTP_SEGMENTS_MAX);
    segments = arena_array(arena, const char *, count_char(path, '/'));
    while (*path == '/' && !(count == 0 && path[1] == '\0')) {
        size_t len = strcspn(path + 1, "/");
        char *text;

        r = http_uri_decode(arena, path + 1, len, false, &text, err);
        if (r < 0)
            return r;
        if (strcmp(text, ".") == 0 || strcmp(text, "..") == 0)
            return err_set(err, ERR_INVALID,
                           "The path may hold no \".\" or \"..\" segment.");
        segments[count++] = text;
        path += len + 1;
    }
    *ret_segments = segments;
    *ret_count = count;
    return 0;
}

void
http_uri_escape(struct buf *buf, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";

    for (; *text != '\0'; text++) {
        if (strchr(plain, *text) != NULL)
            buf_add_char(buf, *text);
        else
            buf_addf(buf, "%%%02X", (unsigned)(unsigned char)*text);
    }
}
