/*
 * A line longer than the ceiling is passed over piece by piece: the buffer is
 * emptied, and what follows up to its end goes the same way.
 */
#include "io/lines.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/fsio.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES ((size_t)256 << 10)

void
lines_init(struct lines *lines)
{
    *lines = (struct lines){.fd = -1, .line = 1};
}

void
lines_release(struct lines *lines)
{
    if (!lines)
        return;
    fd_close(&lines->fd);
    free(lines->path);
    free(lines->data);
    lines_init(lines);
}

/* Drop what is read and read more behind the rest. */
static int
fill(struct lines *lines, struct err *err)
{
    ssize_t n;

    if (lines->at > 0) {
        memmove(lines->data, lines->data + lines->at, lines->len - lines->at);
        lines->len -= lines->at;
        lines->base += (int64_t)lines->at;
        lines->at = 0;
    }
    if (lines->cap - lines->len < READ_BYTES) {
        lines->cap = lines->cap ? lines->cap * 2 : 2 * READ_BYTES;
        lines->data = xrealloc(lines->data, lines->cap);
    }
    do {
        n = read(lines->fd, lines->data + lines->len, lines->cap - lines->len);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_errno(err, ERR_IO, errno, "cannot read %s", lines->path);
    lines->len += (size_t)n;
    lines->eof = n == 0;
    return 0;
}

int
lines_open(struct lines *lines, const char *path, struct err *err)
{
    struct stat st;
    int r;

    lines_release(lines);
    lines->path = xstrdup(path);
    lines->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (lines->fd < 0)
        return err_errno(err, ERR_IO, errno, "cannot open %s", path);
    if (fstat(lines->fd, &st) != 0)
        return err_errno(err, ERR_IO, errno, "cannot look at %s", path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_IO, "%s is not a file; give the path of one", path);
    r = fill(lines, err);
    if (r == 0 && lines->len >= 3 && memcmp(lines->data, "\xEF\xBB\xBF", 3) == 0)
        lines->at = 3;
    return r;
}

int
lines_seek(struct lines *lines, int64_t offset, int64_t line, struct err *err)
{
    if (lseek(lines->fd, offset, SEEK_SET) < 0)
        return err_errno(err, ERR_IO, errno, "cannot seek in %s", lines->path);
    lines->base = offset;
    lines->line = line;
    lines->len = 0;
    lines->at = 0;
    lines->eof = false;
    return 0;
}

int64_t
lines_offset(const struct lines *lines)
{
    return lines->base + (int64_t)lines->at;
}

/* The end of the line at `at`, seen from `seen` on; SIZE_MAX: not there yet. */
static size_t
line_end(const struct lines *lines, size_t seen)
{
    const char *end = NULL;

    if (lines->len > lines->at + seen)
        end =
            memchr(lines->data + lines->at + seen, '\n', lines->len - lines->at - seen);
    if (end)
        return (size_t)(end - lines->data);
    return lines->eof ? lines->len : SIZE_MAX;
}

int
lines_next(struct lines *lines, const char **ret_text, size_t *ret_len, struct err *err)
{
    bool too_long = false;
    size_t seen = 0, end, len;
    int r;

    while ((end = line_end(lines, seen)) == SIZE_MAX) {
        seen = lines->len - lines->at;
        if (seen >= LINE_MAX_BYTES) {
            too_long = true;
            lines->at = lines->len;
            seen = 0;
        }
        r = fill(lines, err);
        if (r < 0)
            return r;
    }
    if (end == lines->at && end == lines->len && !too_long)
        return LINES_END;
    *ret_text = lines->data + lines->at;
    len = end - lines->at;
    if (len > 0 && lines->data[end - 1] == '\r')
        len--;
    *ret_len = len;
    lines->at = end + (end < lines->len);
    lines->line++;
    return too_long ? LINES_TOO_LONG : LINES_LINE;
}
