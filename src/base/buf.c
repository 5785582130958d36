#include "base/buf.h"

#include "base/err.h"

#include <assert.h>
#include <inttypes.h>

#define BUF_CAP_FIRST ((size_t)256)

void
buf_init(struct buf *buf, size_t max)
{
    memset(buf, 0, sizeof(*buf));
    buf->max = max;
}

void
buf_release(struct buf *buf)
{
    if (!buf)
        return;
    free(buf->data);
    buf_init(buf, buf->max);
}

void
buf_clear(struct buf *buf)
{
    buf->len = 0;
    buf->overflow = false;
    if (buf->data)
        buf->data[0] = '\0';
}

static size_t
buf_ceiling(const struct buf *buf)
{
    return buf->max ? buf->max : BUF_MAX_DEFAULT;
}

/* Memory that runs out is treated as the ceiling: what grows here has a size
 * somebody outside chose, so it must end as an error and not as an abort. */
static bool
buf_grow(struct buf *buf, size_t need)
{
    size_t cap = buf->cap ? buf->cap : BUF_CAP_FIRST;
    char *data;

    while (cap < need)
        cap *= 2;
    if (cap > buf_ceiling(buf) + 1)
        cap = buf_ceiling(buf) + 1;
    data = realloc(buf->data, cap);
    if (!data)
        return false;
    buf->data = data;
    buf->cap = cap;
    return true;
}

char *
buf_reserve(struct buf *buf, size_t len)
{
    if (len > buf_ceiling(buf) - buf->len) {
        buf->overflow = true;
        return NULL;
    }
    /* One more for the NUL. */
    if (buf->len + len + 1 > buf->cap && !buf_grow(buf, buf->len + len + 1)) {
        buf->overflow = true;
        return NULL;
    }
    buf->data[buf->len + len] = '\0';
    return buf->data + buf->len;
}

void
buf_add(struct buf *buf, const void *data, size_t len)
{
    char *at = buf_reserve(buf, len);

    if (!at)
        return;
    if (len > 0)
        memcpy(at, data, len);
    buf->len += len;
}

void
buf_add_str(struct buf *buf, const char *str)
{
    buf_add(buf, str, strlen(str));
}

void
buf_add_char(struct buf *buf, char c)
{
    if (buf->len + 1 < buf->cap && buf->len < buf_ceiling(buf)) {
        buf->data[buf->len++] = c;
        buf->data[buf->len] = '\0';
        return;
    }
    buf_add(buf, &c, 1);
}

void
buf_add_i64(struct buf *buf, int64_t value)
{
    char text[24];
    int len = snprintf(text, sizeof(text), "%" PRId64, value);

    buf_add(buf, text, (size_t)len);
}

void
buf_vaddf(struct buf *buf, const char *fmt, va_list args)
{
    va_list again;
    char *at;
    int len;

    va_copy(again, args);
    len = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    assert(len >= 0);
    at = buf_reserve(buf, (size_t)len);
    if (!at)
        return;
    vsnprintf(at, (size_t)len + 1, fmt, args);
    buf->len += (size_t)len;
}

void
buf_addf(struct buf *buf, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    buf_vaddf(buf, fmt, args);
    va_end(args);
}

const char *
buf_str(const struct buf *buf)
{
    return buf->data ? buf->data : "";
}

int
buf_check(const struct buf *buf, const char *what, struct err *err)
{
    if (!buf->overflow)
        return 0;
    return err_set(err, ERR_TOO_LARGE, "%s is larger than the limit of %zu bytes", what,
                   buf_ceiling(buf));
}
