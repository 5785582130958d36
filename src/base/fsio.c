#include "base/fsio.h"

#include "base/err.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define READ_STEP ((size_t)16 << 10)

void
fd_close(int *fd)
{
    int saved = errno;

    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    errno = saved;
}

/* Folder of a path, as dirname but without touching the argument. */
static void
add_dir_of(const char *path, struct buf *dir)
{
    const char *slash = strrchr(path, '/');

    if (!slash)
        buf_add_str(dir, ".");
    else if (slash == path)
        buf_add_str(dir, "/");
    else
        buf_add(dir, path, (size_t)(slash - path));
}

int
fs_read_file(const char *path, size_t max_bytes, struct buf *buf, struct err *err)
{
    scoped(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t total = 0;

    if (fd < 0)
        return err_errno(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, errno,
                         "cannot read %s", path);
    for (;;) {
        char chunk[READ_STEP];
        ssize_t got = read(fd, chunk, sizeof(chunk));

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_errno(err, ERR_IO, errno, "cannot read %s", path);
        if (got == 0)
            return buf_check(buf, path, err);
        if ((size_t)got > max_bytes - total)
            return err_set(err, ERR_TOO_LARGE,
                           "%s is larger than the limit of %zu bytes", path, max_bytes);
        total += (size_t)got;
        buf_add(buf, chunk, (size_t)got);
    }
}

/* offset < 0: at the descriptor's own place. */
static int
write_all(int fd, const void *data, size_t len, int64_t offset, const char *path,
          struct err *err)
{
    const char *at = data;

    while (len > 0) {
        ssize_t put = offset < 0 ? write(fd, at, len) : pwrite(fd, at, len, offset);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return err_errno(err, ERR_IO, errno, "cannot write %s", path);
        at += put;
        len -= (size_t)put;
        if (offset >= 0)
            offset += put;
    }
    return 0;
}

int
fs_write_all(int fd, const void *data, size_t len, const char *path, struct err *err)
{
    return write_all(fd, data, len, -1, path, err);
}

int
fs_pwrite_all(int fd, const void *data, size_t len, int64_t offset, const char *path,
              struct err *err)
{
    return write_all(fd, data, len, offset, path, err);
}

int
fs_fsync(int fd, const char *path, struct err *err)
{
    /* No second try: after a failed fsync the kernel may have dropped the pages. */
    if (fsync(fd) < 0)
        return err_errno(err, ERR_IO, errno, "cannot flush %s to disk", path);
    return 0;
}

int
fs_fsync_dir(const char *dir, struct err *err)
{
    scoped(fd_close) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return err_errno(err, ERR_IO, errno, "cannot open the folder %s", dir);
    return fs_fsync(fd, dir, err);
}

int
fs_rename_durable(const char *from, const char *to, struct err *err)
{
    scoped(buf_release) struct buf from_dir = {0};
    scoped(buf_release) struct buf to_dir = {0};
    int r;

    if (rename(from, to) < 0)
        return err_errno(err, ERR_IO, errno, "cannot rename %s to %s", from, to);
    add_dir_of(from, &from_dir);
    add_dir_of(to, &to_dir);
    r = fs_fsync_dir(buf_str(&to_dir), err);
    if (r < 0 || strcmp(buf_str(&from_dir), buf_str(&to_dir)) == 0)
        return r;
    return fs_fsync_dir(buf_str(&from_dir), err);
}

static int
fill_temp(int fd, const char *temp, const void *data, size_t len, mode_t mode,
          struct err *err)
{
    int r = fs_write_all(fd, data, len, temp, err);

    if (r < 0)
        return r;
    if (fchmod(fd, mode) < 0)
        return err_errno(err, ERR_IO, errno, "cannot set the mode of %s", temp);
    return fs_fsync(fd, temp, err);
}

int
fs_replace_file(const char *path, const void *data, size_t len, mode_t mode,
                struct err *err)
{
    scoped(buf_release) struct buf dir = {0};
    scoped(buf_release) struct buf temp = {0};
    scoped(fd_close) int fd = -1;
    int r;

    add_dir_of(path, &dir);
    r = fs_open_temp(buf_str(&dir), ".new-", &temp, &fd, err);
    if (r < 0)
        return r;
    r = fill_temp(fd, buf_str(&temp), data, len, mode, err);
    if (r == 0)
        r = fs_rename_durable(buf_str(&temp), path, err);
    if (r < 0)
        fs_remove_quietly(buf_str(&temp));
    return r;
}

static int
mkdir_one(const char *path, struct err *err)
{
    struct stat st;

    if (mkdir(path, 0700) == 0)
        return 0;
    if (errno != EEXIST)
        return err_errno(err, ERR_IO, errno, "cannot make the folder %s", path);
    if (stat(path, &st) < 0)
        return err_errno(err, ERR_IO, errno, "cannot look at %s", path);
    if (!S_ISDIR(st.st_mode))
        return err_set(err, ERR_IO, "%s is in the way: it is not a folder", path);
    return 0;
}

int
fs_mkdir_private(const char *path, struct err *err)
{
    scoped(buf_release) struct buf part = {0};
    const char *at = path;

    for (;;) {
        const char *slash = strchr(at, '/');
        int r = 0;

        if (!slash)
            return *at == '\0' ? 0 : mkdir_one(path, err);
        buf_clear(&part);
        buf_add(&part, path, (size_t)(slash - path));
        if (part.len > 0)
            r = mkdir_one(buf_str(&part), err);
        if (r < 0)
            return r;
        at = slash + 1;
    }
}

int
fs_open_temp(const char *dir, const char *prefix, struct buf *path, int *ret_fd,
             struct err *err)
{
    size_t start = path->len;
    int r;
    int fd;

    buf_addf(path, "%s/%sXXXXXX", dir, prefix);
    r = buf_check(path, "the name of a temporary file", err);
    if (r < 0)
        return r;
    fd = mkostemp(path->data + start, O_CLOEXEC);
    if (fd < 0)
        return err_errno(err, ERR_IO, errno, "cannot make a file in %s", dir);
    *ret_fd = fd;
    return 0;
}

bool
fs_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

void
fs_remove_quietly(const char *path)
{
    int saved = errno;

    (void)!unlink(path);
    errno = saved;
}

/* Folders are entered by descriptor: a link put in the way leads nowhere. */
static void
remove_under(int parent, const char *name, int levels)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir;
    struct dirent *entry;

    if (fd < 0 || levels == 0) {
        fd_close(&fd);
        (void)!unlinkat(parent, name, 0);
        return;
    }
    dir = fdopendir(fd);
    if (!dir) {
        fd_close(&fd);
        return;
    }
    while ((entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            remove_under(dirfd(dir), entry->d_name, levels - 1);
    closedir(dir);
    (void)!unlinkat(parent, name, AT_REMOVEDIR);
}

void
fs_remove_tree_quietly(const char *path)
{
    int saved = errno;

    remove_under(AT_FDCWD, path, 100);
    errno = saved;
}
