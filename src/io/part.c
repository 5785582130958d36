/*
 * Appending goes through a buffer of 256 KiB so that a writer may add cell by
 * cell. Only part_sync promises anything: what lies behind the last synced
 * offset after a crash is rubbish, and part_resume cuts it off.
 */
#include "io/part.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/fsio.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PART_BUFFER_BYTES ((size_t)256 << 10)

void
part_init(struct part *part)
{
    *part = (struct part){.fd = -1};
}

void
part_release(struct part *part)
{
    if (!part)
        return;
    fd_close(&part->fd);
    free(part->path);
    free(part->buffer);
    part_init(part);
}

static int
part_open_fd(struct part *part, const char *path, int flags, struct err *err)
{
    int fd = open(path, flags | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return err_errno(err, ERR_IO, errno, "cannot open the result part %s", path);
    part_release(part);
    part->fd = fd;
    part->path = xstrdup(path);
    part->buffer = xmalloc(PART_BUFFER_BYTES);
    return 0;
}

int
part_create(struct part *part, const char *path, struct err *err)
{
    return part_open_fd(part, path, O_CREAT | O_TRUNC, err);
}

int
part_resume(struct part *part, const char *path, int64_t bytes, struct err *err)
{
    struct stat st;
    int r;

    assert(bytes >= 0);
    if (lstat(path, &st) != 0) {
        if (errno == ENOENT)
            return PART_SHORT;
        return err_errno(err, ERR_IO, errno, "cannot look at the result part %s", path);
    }
    if (st.st_size < bytes)
        return PART_SHORT;
    r = part_open_fd(part, path, 0, err);
    if (r < 0)
        return r;
    if (ftruncate(part->fd, bytes) != 0 || lseek(part->fd, bytes, SEEK_SET) < 0)
        return err_errno(err, ERR_IO, errno, "cannot cut %s back to its checkpoint",
                         path);
    part->offset = bytes;
    return PART_OPENED;
}

static int
part_flush(struct part *part, struct err *err)
{
    int r = fs_write_all(part->fd, part->buffer, part->used, part->path, err);

    if (r < 0)
        return r;
    part->used = 0;
    return 0;
}

int
part_append(struct part *part, const void *data, size_t len, struct err *err)
{
    int r;

    assert(part->fd >= 0);
    if (len == 0)
        return 0;
    if (part->used + len > PART_BUFFER_BYTES) {
        r = part_flush(part, err);
        if (r < 0)
            return r;
    }
    if (len > PART_BUFFER_BYTES) {
        r = fs_write_all(part->fd, data, len, part->path, err);
        if (r < 0)
            return r;
    } else {
        memcpy(part->buffer + part->used, data, len);
        part->used += len;
    }
    part->offset += (int64_t)len;
    return 0;
}

int
part_sync(struct part *part, struct err *err)
{
    int r = part_flush(part, err);

    if (r < 0)
        return r;
    /* The length is data too: fdatasync writes it when it changed. */
    if (fdatasync(part->fd) != 0)
        return err_errno(err, ERR_IO, errno, "cannot make the result part %s durable",
                         part->path);
    return 0;
}
