/*
 * The file gets whole buffers only, so that adding costs no system call each.
 */
#include "io/spool.h"

#include "base/err.h"
#include "base/fsio.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

void
spool_init(struct spool *spool, const char *folder, size_t limit)
{
    *spool = (struct spool){.fd = -1, .folder = folder, .limit = limit};
    buf_init(&spool->tail, SIZE_MAX / 2);
}

void
spool_release(struct spool *spool)
{
    if (!spool)
        return;
    fd_close(&spool->fd);
    buf_release(&spool->tail);
}

static int
to_file(struct spool *spool, struct err *err)
{
    scoped(buf_release) struct buf path = {0};
    int r;

    if (spool->fd < 0) {
        buf_init(&path, 4096);
        r = fs_open_temp(spool->folder, "spool-", &path, &spool->fd, err);
        if (r < 0)
            return r;
        fs_remove_quietly(buf_str(&path));
    }
    r = fs_write_all(spool->fd, spool->tail.data, spool->tail.len, "a temporary file",
                     err);
    if (r < 0)
        return r;
    spool->filed += spool->tail.len;
    buf_clear(&spool->tail);
    return 0;
}

int
spool_add(struct spool *spool, const void *data, size_t len, struct err *err)
{
    buf_add(&spool->tail, data, len);
    return spool->tail.len > spool->limit ? to_file(spool, err) : 0;
}

uint64_t
spool_size(const struct spool *spool)
{
    return spool->filed + spool->tail.len;
}

int
spool_read(const struct spool *spool, uint64_t offset, void *ret, size_t len,
           struct err *err)
{
    char *to = ret;

    assert(offset + len <= spool_size(spool));
    while (len > 0 && offset < spool->filed) {
        size_t want =
            spool->filed - offset < len ? (size_t)(spool->filed - offset) : len;
        ssize_t n = pread(spool->fd, to, want, (off_t)offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_errno(err, ERR_IO, n < 0 ? errno : EIO,
                             "cannot read a temporary file");
        to += n;
        offset += (uint64_t)n;
        len -= (size_t)n;
    }
    if (len > 0)
        memcpy(to, spool->tail.data + (offset - spool->filed), len);
    return 0;
}
