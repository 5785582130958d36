/*
 * Appending goes through a buffer of 256 KiB so that a writer may add cell by
 * cell. Only part_sync promises anything: what lies behind the last synced
 * offset after a crash is rubbish, and part_resume cuts it off.
 */
#include "io/part.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/fsio.h"
#include "base/plant.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
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

    if (fd < 0 && errno == ENOENT && (flags & O_CREAT))
        return err_set(err, ERR_IO,
                       "the results folder has gone away: there is no folder for %s; "
                       "mount it again, or start pawl anew, which makes it",
                       path);
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

/* PART_OPENED: there is a file of at least so many bytes. */
static int
part_look(const char *path, int64_t bytes, struct err *err)
{
    struct stat st;

    if (lstat(path, &st) != 0) {
        if (errno == ENOENT)
            return PART_SHORT;
        return err_errno(err, ERR_IO, errno, "cannot look at the result part %s", path);
    }
    return S_ISREG(st.st_mode) && st.st_size >= bytes ? PART_OPENED : PART_SHORT;
}

/* Where the kernel cannot copy between these two files. */
static int
copy_by_hand(int in, struct part *part, const char *from, int64_t bytes,
             struct err *err)
{
    while (bytes > 0) {
        size_t want =
            bytes < (int64_t)PART_BUFFER_BYTES ? (size_t)bytes : PART_BUFFER_BYTES;
        ssize_t n = read(in, part->buffer, want);
        int r;

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_errno(err, ERR_IO, n < 0 ? errno : EIO,
                             "cannot read the result part %s", from);
        r = fs_write_all(part->fd, part->buffer, (size_t)n, part->path, err);
        if (r < 0)
            return r;
        bytes -= n;
    }
    return 0;
}

static bool
kernel_cannot(int number)
{
    return number == EXDEV || number == EINVAL || number == ENOSYS ||
           number == EOPNOTSUPP || number == EPERM || number == EBADF;
}

/* Shares the blocks where the file system can. */
static int
copy_prefix(int in, struct part *part, const char *from, int64_t bytes, struct err *err)
{
    while (bytes > 0) {
        ssize_t n = copy_file_range(in, NULL, part->fd, NULL, (size_t)bytes, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0 || (n < 0 && kernel_cannot(errno)))
            return copy_by_hand(in, part, from, bytes, err);
        if (n < 0)
            return err_errno(err, errno == ENOSPC ? ERR_DISK_FULL : ERR_IO, errno,
                             "cannot copy %s to %s", from, part->path);
        bytes -= n;
    }
    return 0;
}

static int
resume_copy(struct part *part, const char *path, const char *from, int64_t bytes,
            struct err *err)
{
    scoped(fd_close) int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int r;

    if (in < 0)
        return errno == ENOENT ? PART_SHORT
                               : err_errno(err, ERR_IO, errno,
                                           "cannot open the result part %s", from);
    r = part_create(part, path, err);
    if (r == 0)
        r = copy_prefix(in, part, from, bytes, err);
    if (r < 0)
        return r;
    part->offset = bytes;
    return PART_OPENED;
}

int
part_resume(struct part *part, const char *path, const char *from, int64_t bytes,
            struct err *err)
{
    bool own = !from || strcmp(from, path) == 0;
    int r = part_look(own ? path : from, bytes, err);

    assert(bytes >= 0);
    if (r != PART_OPENED)
        return r;
    if (!own)
        return resume_copy(part, path, from, bytes, err);
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
    if (!planted("rename_before_fsync") && fdatasync(part->fd) != 0)
        return err_errno(err, ERR_IO, errno, "cannot make the result part %s durable",
                         part->path);
    return 0;
}
