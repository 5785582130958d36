/*
 * A ZIP file is known by its first bytes, not by its name: services send either
 * under any.
 */
#include "io/byte_source.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fsio.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMES_SHOWN 5

void
byte_source_init(struct byte_source *source)
{
    *source = (struct byte_source){.fd = -1};
    zip_init(&source->zip);
}

void
byte_source_release(struct byte_source *source)
{
    if (!source)
        return;
    fd_close(&source->fd);
    free(source->path);
    free(source->name);
    zip_stream_release(&source->stream);
    zip_release(&source->zip);
    byte_source_init(source);
}

static int
no_such_member(const struct zip_archive *zip, const char *member, struct err *err)
{
    scoped(buf_release) struct buf list = {0};

    buf_init(&list, 0);
    for (size_t i = 0; i < zip->count && i < NAMES_SHOWN; i++)
        buf_addf(&list, "%s%.60s", i ? ", " : "", zip->entries[i].name);
    if (zip->count > NAMES_SHOWN)
        buf_addf(&list, " and %zu more", zip->count - NAMES_SHOWN);
    if (!member)
        return err_set(err, ERR_INVALID,
                       "%s has %zu members; say which by read.member: %s", zip->path,
                       zip->count, buf_str(&list));
    return err_set(err, ERR_INVALID, "%s has no member %.100s; it has: %s", zip->path,
                   member, buf_str(&list));
}

static int
open_member(struct byte_source *source, const char *member, struct err *err)
{
    const struct zip_entry *entry = NULL;
    scoped(buf_release) struct buf name = {0};
    int r = zip_open(&source->zip, source->path, err);

    if (r < 0)
        return r;
    if (member)
        entry = zip_find(&source->zip, member);
    else if (source->zip.count == 1)
        entry = &source->zip.entries[0];
    if (!entry)
        return no_such_member(&source->zip, member, err);
    buf_init(&name, 0);
    buf_addf(&name, "%s(%s)", source->path, entry->name);
    free(source->name);
    source->name = xstrdup(buf_str(&name));
    source->zipped = true;
    return zip_stream_open(&source->stream, &source->zip, entry, err);
}

int
byte_source_open(struct byte_source *source, const char *path, const char *member,
                 struct err *err)
{
    struct stat st;
    bool zipped = false;
    int r;

    byte_source_release(source);
    source->path = xstrdup(path);
    source->name = xstrdup(path);
    r = zip_is(path, &zipped, err);
    if (r < 0)
        return r;
    if (zipped)
        return open_member(source, member, err);
    source->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (source->fd < 0)
        return err_errno(err, ERR_IO, errno, "cannot open %s", path);
    if (fstat(source->fd, &st) != 0)
        return err_errno(err, ERR_IO, errno, "cannot look at %s", path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_IO, "%s is not a file; give the path of one", path);
    if (member)
        return err_set(err, ERR_INVALID,
                       "%s is no ZIP file, so it has no member %.100s", path, member);
    return 0;
}

int
byte_source_read(void *arg, char *out, size_t cap, size_t *ret_len, struct err *err)
{
    struct byte_source *source = arg;
    ssize_t n;

    if (source->zipped)
        return zip_stream_read(&source->stream, out, cap, ret_len, err);
    do {
        n = read(source->fd, out, cap);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_errno(err, ERR_IO, errno, "cannot read %s", source->path);
    *ret_len = (size_t)n;
    return 0;
}
