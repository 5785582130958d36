/*
 * flock on a file that stays: the lock belongs to the open file, so it goes
 * when the last descriptor of it closes, and cannot be lost by closing another
 * descriptor of the same file (as the process-wide fcntl locks are, which would
 * bite a program that has SQLite beside it).
 */
#include "base/fsio.h"

#include "base/civil.h"
#include "base/clock.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

/* What the holder wrote; it may be just about to, hence the other sentence. */
static void
read_holder(int fd, char ret[LOCKFILE_TEXT_SIZE])
{
    ssize_t got = pread(fd, ret, LOCKFILE_TEXT_SIZE - 1, 0);

    if (got <= 0) {
        snprintf(ret, LOCKFILE_TEXT_SIZE, "a process that has not written its name");
        return;
    }
    ret[got] = '\0';
    ret[strcspn(ret, "\n")] = '\0';
    /* Anyone who may write the file chooses this text: keep it printable. */
    for (char *at = ret; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7F)
            *at = '?';
}

static int
write_holder(int fd, const char *path, const char *what, struct err *err)
{
    char host[65] = "";
    char since[CIVIL_TEXT_SIZE];
    char text[LOCKFILE_TEXT_SIZE];
    int len;

    gethostname(host, sizeof(host) - 1);
    civil_format_us(clock_wall_us(clock_real()), 0, since);
    len = snprintf(text, sizeof(text), "%d@%s since %s, %.100s\n", (int)getpid(), host,
                   since, what);
    if (ftruncate(fd, 0) < 0)
        return err_errno(err, ERR_IO, errno, "cannot write %s", path);
    return fs_pwrite_all(fd, text, (size_t)len, 0, path, err);
}

int
lockfile_take(const char *path, const char *what, struct lockfile *ret,
              char ret_holder[LOCKFILE_TEXT_SIZE], struct err *err)
{
    scoped(fd_close) int fd =
        open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int r;

    if (fd < 0)
        return err_errno(err, ERR_IO, errno, "cannot open the lock file %s", path);
    do
        r = flock(fd, LOCK_EX | LOCK_NB);
    while (r < 0 && errno == EINTR);
    if (r < 0 && errno == EWOULDBLOCK) {
        read_holder(fd, ret_holder);
        return LOCKFILE_HELD;
    }
    if (r < 0)
        return err_errno(err, ERR_IO, errno, "cannot lock %s", path);
    r = write_holder(fd, path, what, err);
    if (r < 0)
        return r;
    ret->fd = fd;
    fd = -1;
    return LOCKFILE_TAKEN;
}

void
lockfile_release(struct lockfile *lock)
{
    if (lock)
        fd_close(&lock->fd);
}
