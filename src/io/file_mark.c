/*
 * A few thousand bytes are enough: rows are not repeated that long, and a
 * checkpoint must stay cheap.
 */
#include "io/file_mark.h"

#include "base/err.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#define MARK_BYTES 4096

int
file_mark_make(int fd, const char *path, int64_t offset, uint32_t *ret_mark,
               struct err *err)
{
    char bytes[MARK_BYTES];
    int64_t start = offset > MARK_BYTES ? offset - MARK_BYTES : 0;
    size_t want = (size_t)(offset - start), have = 0;

    while (have < want) {
        ssize_t n = pread(fd, bytes + have, want - have, start + (int64_t)have);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(err, ERR_IO, errno, "cannot read %s", path);
        if (n == 0)
            break;
        have += (size_t)n;
    }
    *ret_mark = (uint32_t)crc32(0, (const Bytef *)bytes, (uInt)have);
    return 0;
}

int
file_mark_check(int fd, const char *path, int64_t offset, int64_t mark, struct err *err)
{
    off_t size = lseek(fd, 0, SEEK_END);
    uint32_t found = 0;
    int r;

    if (size < 0)
        return err_errno(err, ERR_IO, errno, "cannot look at %s", path);
    if (size < offset)
        return err_set(err, ERR_INVALID,
                       "%s has %lld bytes, the checkpoint stands at %lld: the file was "
                       "changed; ask for a new run (restart: false)",
                       path, (long long)size, (long long)offset);
    r = mark < 0 ? 0 : file_mark_make(fd, path, offset, &found, err);
    if (r < 0)
        return r;
    if (mark >= 0 && found != (uint32_t)mark)
        return err_set(err, ERR_INVALID,
                       "%s is not the file that was read up to byte %lld: it was "
                       "changed; ask for a new run (restart: false), and say `restart: "
                       "beginning` if its rows may come in another order each time",
                       path, (long long)offset);
    return 0;
}
