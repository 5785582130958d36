/*
 * The parser knows 64 bits only, so the digits pass through it inside a text. What
 * begins with the mark and has nothing but digits behind it was a number; a provider
 * that sends such a text of its own gets the number that it spells.
 */
#include "io/reply_number.h"

#include "base/arena.h"
#include "base/buf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MARK         '\x01'
#define MARK_JSON    "\\u0001"
#define DIGITS_MAX   1000
#define DIGITS_FIT   18 /* so many always fit */
#define NUMBER_BYTES "0123456789+-.eE"

/* Behind the closing quote; body[at] is the opening one. */
static size_t
skip_string(const char *body, size_t len, size_t at)
{
    for (at++; at < len && body[at] != '"'; at++)
        if (body[at] == '\\')
            at++;
    return at < len ? at + 1 : len;
}

static size_t
number_len(const char *body, size_t len)
{
    size_t n = 0;

    while (n < len && body[n] && strchr(NUMBER_BYTES, body[n]))
        n++;
    return n;
}

/* Digits only, as JSON has them: no zero before others. */
static bool
is_integer_text(const char *text, size_t len)
{
    size_t sign = len > 0 && text[0] == '-';

    if (len <= sign || len - sign > DIGITS_MAX || text[sign] == '0')
        return false;
    for (size_t i = sign; i < len; i++)
        if (text[i] < '0' || text[i] > '9')
            return false;
    return true;
}

static bool
is_too_long(const char *text, size_t len)
{
    char copy[DIGITS_MAX + 2];

    if (len <= DIGITS_FIT || !is_integer_text(text, len))
        return false;
    memcpy(copy, text, len);
    copy[len] = '\0';
    errno = 0;
    (void)strtoll(copy, NULL, 10);
    return errno == ERANGE;
}

bool
reply_number_mark(const char *body, size_t len, struct buf *out)
{
    bool any = false;

    for (size_t at = 0; at < len;) {
        size_t n = 1;
        bool marked = false;

        if (body[at] == '"') {
            n = skip_string(body, len, at) - at;
        } else if (body[at] == '-' || (body[at] >= '0' && body[at] <= '9')) {
            n = number_len(body + at, len - at);
            marked = is_too_long(body + at, n);
        }
        if (marked)
            buf_add_str(out, "\"" MARK_JSON);
        buf_add(out, body + at, n);
        if (marked)
            buf_add_char(out, '"');
        any = any || marked;
        at += n;
    }
    return any;
}

static void
remember(struct reply_decimals *decimals, const json_t *value)
{
    if (decimals->count == decimals->cap) {
        decimals->cap = decimals->cap * 2 + 16;
        decimals->list = xrealloc(decimals->list, decimals->cap * sizeof(void *));
    }
    decimals->list[decimals->count++] = value;
}

/* A text without its mark, to be put in its place; NULL: it has none. */
static json_t *
unmarked(const json_t *value, struct reply_decimals *decimals)
{
    const char *text = json_string_value(value);
    json_t *made;

    if (!text || text[0] != MARK ||
        !is_integer_text(text + 1, json_string_length(value) - 1))
        return NULL;
    made = json_string_nocheck(text + 1);
    remember(decimals, made);
    return made;
}

static void
collect(json_t *value, struct reply_decimals *decimals)
{
    const size_t count = json_array_size(value);

    for (size_t i = 0; i < count; i++) {
        json_t *made = unmarked(json_array_get(value, i), decimals);

        if (made)
            (void)json_array_set_new(value, i, made);
        else
            collect(json_array_get(value, i), decimals);
    }
    for (void *at = json_object_iter(value); at;
         at = json_object_iter_next(value, at)) {
        json_t *made = unmarked(json_object_iter_value(at), decimals);

        if (made)
            (void)json_object_iter_set_new(value, at, made);
        else
            collect(json_object_iter_value(at), decimals);
    }
}

static int
by_address(const void *a, const void *b)
{
    const json_t *const *left = a;
    const json_t *const *right = b;

    return (*left > *right) - (*left < *right);
}

void
reply_number_collect(json_t *root, struct reply_decimals *decimals)
{
    collect(root, decimals);
    if (decimals->count > 0)
        qsort(decimals->list, decimals->count, sizeof(void *), by_address);
}

bool
reply_number_is_decimal(const struct reply_decimals *decimals, const json_t *value)
{
    return decimals->count > 0 &&
           bsearch(&value, decimals->list, decimals->count, sizeof(void *), by_address);
}

void
reply_decimals_release(struct reply_decimals *decimals)
{
    free(decimals->list);
    *decimals = (struct reply_decimals){0};
}
