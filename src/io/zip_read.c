/*
 * The directory at the end of the file is what counts: it has the sizes that
 * local headers may leave out. Every number in it is checked against the size of
 * the file before it is used.
 */
#include "io/zip_read.h"

#include "base/err.h"
#include "base/fsio.h"
#include "base/strs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define END_BYTES     22 /* end of central directory */
#define COMMENT_MAX   65535
#define LOCATOR_BYTES 20
#define END64_BYTES   56
#define CENTRAL_BYTES 46
#define LOCAL_BYTES   30

static uint64_t
number(const unsigned char *at, int bytes)
{
    uint64_t value = 0;

    for (int i = bytes - 1; i >= 0; i--)
        value = value << 8 | at[i];
    return value;
}

void
zip_init(struct zip_archive *zip)
{
    *zip = (struct zip_archive){.fd = -1};
}

void
zip_release(struct zip_archive *zip)
{
    if (!zip)
        return;
    fd_close(&zip->fd);
    free(zip->path);
    arena_release(&zip->arena);
    zip_init(zip);
}

static int
damaged(const struct zip_archive *zip, const char *what, struct err *err)
{
    return err_set(err, ERR_INVALID,
                   "%s is no whole ZIP file: %s; was it downloaded to its end?",
                   zip->path, what);
}

/* All of len bytes at offset. */
static int
read_at(const struct zip_archive *zip, void *to, size_t len, uint64_t offset,
        struct err *err)
{
    size_t have = 0;

    if (offset > zip->size || len > zip->size - offset)
        return damaged(zip, "something in it points behind its end", err);
    while (have < len) {
        ssize_t n =
            pread(zip->fd, (char *)to + have, len - have, (off_t)(offset + have));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(err, ERR_IO, errno, "cannot read %s", zip->path);
        if (n == 0)
            return damaged(zip, "it became shorter", err);
        have += (size_t)n;
    }
    return 0;
}

int
zip_is(const char *path, bool *ret_is, struct err *err)
{
    char magic[4] = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n;

    if (fd < 0)
        return err_errno(err, ERR_IO, errno, "cannot open %s", path);
    n = pread(fd, magic, sizeof(magic), 0);
    if (n < 0)
        (void)err_errno(err, ERR_IO, errno, "cannot read %s", path);
    (void)close(fd);
    *ret_is =
        n == 4 && (memcmp(magic, "PK\3\4", 4) == 0 || memcmp(magic, "PK\5\6", 4) == 0);
    return n < 0 ? -(int)err->code : 0;
}

/* --- directory --- */

struct directory {
    uint64_t count;
    uint64_t offset;
    uint64_t len;
};

/* Files over 4 GiB or with many members keep the numbers in a second record. */
static int
find_end64(const struct zip_archive *zip, uint64_t end, struct directory *dir,
           struct err *err)
{
    unsigned char bytes[END64_BYTES];
    int r;

    if (end < LOCATOR_BYTES)
        return damaged(zip, "its directory has no place", err);
    r = read_at(zip, bytes, LOCATOR_BYTES, end - LOCATOR_BYTES, err);
    if (r < 0)
        return r;
    if (number(bytes, 4) != 0x07064b50)
        return damaged(zip, "its directory has no place", err);
    r = read_at(zip, bytes, END64_BYTES, number(bytes + 8, 8), err);
    if (r < 0)
        return r;
    if (number(bytes, 4) != 0x06064b50)
        return damaged(zip, "its directory has no place", err);
    *dir = (struct directory){.count = number(bytes + 32, 8),
                              .len = number(bytes + 40, 8),
                              .offset = number(bytes + 48, 8)};
    return 0;
}

static int
find_directory(const struct zip_archive *zip, struct directory *ret_dir,
               struct err *err)
{
    size_t len = zip->size < END_BYTES + COMMENT_MAX ? (size_t)zip->size
                                                     : END_BYTES + COMMENT_MAX;
    scoped(xfree_ptr) unsigned char *tail = xmalloc(len + 1);
    uint64_t base = zip->size - len;
    int r = read_at(zip, tail, len, base, err);

    if (r < 0)
        return r;
    for (size_t i = len; i >= END_BYTES; i--) {
        const unsigned char *at = tail + i - END_BYTES;

        /* The record's own length of the comment must reach the file's end. */
        if (number(at, 4) != 0x06054b50 || number(at + 20, 2) != len - i)
            continue;
        *ret_dir = (struct directory){.count = number(at + 10, 2),
                                      .len = number(at + 12, 4),
                                      .offset = number(at + 16, 4)};
        if (ret_dir->count == 0xffff || ret_dir->len == 0xffffffff ||
            ret_dir->offset == 0xffffffff)
            return find_end64(zip, base + (uint64_t)(at - tail), ret_dir, err);
        return 0;
    }
    return damaged(zip, "it has no directory at its end", err);
}

/* Numbers that do not fit their 32 bits stand in the extra field, in this order. */
static void
widen(struct zip_entry *entry, const unsigned char *extra, size_t len)
{
    uint64_t *const wide[] = {&entry->raw, &entry->packed, &entry->offset};

    while (len >= 4) {
        size_t size = (size_t)number(extra + 2, 2);
        const unsigned char *at = extra + 4;

        if (size > len - 4)
            return;
        for (size_t i = 0; number(extra, 2) == 1 && i < array_len(wide); i++) {
            if (*wide[i] != 0xffffffff)
                continue;
            if (at + 8 > extra + 4 + size)
                return;
            *wide[i] = number(at, 8);
            at += 8;
        }
        extra += 4 + size;
        len -= 4 + size;
    }
}

/* One member from at on; *ret_len: the bytes it takes. */
static int
take_entry(struct zip_archive *zip, const unsigned char *at, size_t len,
           struct zip_entry *entry, size_t *ret_len, struct err *err)
{
    size_t name, extra, all;

    if (len < CENTRAL_BYTES || number(at, 4) != 0x02014b50)
        return damaged(zip, "its directory is damaged", err);
    name = (size_t)number(at + 28, 2);
    extra = (size_t)number(at + 30, 2);
    all = CENTRAL_BYTES + name + extra + (size_t)number(at + 32, 2);
    if (all > len)
        return damaged(zip, "its directory is damaged", err);
    *entry = (struct zip_entry){
        .name = arena_strndup(&zip->arena, (const char *)at + CENTRAL_BYTES, name),
        .encrypted = at[8] & 1,
        .method = (uint16_t)number(at + 10, 2),
        .crc = (uint32_t)number(at + 16, 4),
        .packed = number(at + 20, 4),
        .raw = number(at + 24, 4),
        .offset = number(at + 42, 4),
    };
    widen(entry, at + CENTRAL_BYTES + name, extra);
    *ret_len = all;
    return 0;
}

static int
read_directory(struct zip_archive *zip, struct err *err)
{
    struct directory dir = {0};
    scoped(xfree_ptr) unsigned char *bytes = NULL;
    size_t at = 0;
    int r = find_directory(zip, &dir, err);

    if (r < 0)
        return r;
    if (dir.count > ZIP_ENTRIES_MAX || dir.len > ZIP_DIRECTORY_MAX)
        return err_set(err, ERR_TOO_LARGE, "%s has %llu members; %d is the most",
                       zip->path, (unsigned long long)dir.count, ZIP_ENTRIES_MAX);
    bytes = xmalloc((size_t)dir.len + 1);
    r = read_at(zip, bytes, (size_t)dir.len, dir.offset, err);
    if (r < 0)
        return r;
    zip->entries = arena_array(&zip->arena, struct zip_entry, (size_t)dir.count + 1);
    for (uint64_t i = 0; i < dir.count; i++) {
        size_t len = 0;

        r = take_entry(zip, bytes + at, (size_t)dir.len - at, &zip->entries[i], &len,
                       err);
        if (r < 0)
            return r;
        at += len;
        zip->count++;
    }
    return 0;
}

int
zip_open(struct zip_archive *zip, const char *path, struct err *err)
{
    struct stat st;

    zip_release(zip);
    zip->path = xstrdup(path);
    zip->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (zip->fd < 0)
        return err_errno(err, ERR_IO, errno, "cannot open %s", path);
    if (fstat(zip->fd, &st) != 0)
        return err_errno(err, ERR_IO, errno, "cannot look at %s", path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_IO, "%s is not a file; give the path of one", path);
    zip->size = (uint64_t)st.st_size;
    return read_directory(zip, err);
}

const struct zip_entry *
zip_find(const struct zip_archive *zip, const char *name)
{
    for (size_t i = 0; i < zip->count; i++) {
        if (str_eq(zip->entries[i].name, name))
            return &zip->entries[i];
    }
    return NULL;
}

/* --- a member --- */

static int
bad_member(const struct zip_stream *stream, const char *what, struct err *err)
{
    return err_set(err, ERR_INVALID, "%s: member %.100s: %s", stream->zip->path,
                   stream->entry->name, what);
}

int
zip_stream_open(struct zip_stream *stream, struct zip_archive *zip,
                const struct zip_entry *entry, struct err *err)
{
    unsigned char head[LOCAL_BYTES];
    int r;

    zip_stream_release(stream);
    stream->zip = zip;
    stream->entry = entry;
    if (entry->encrypted)
        return bad_member(stream, "it is encrypted, which pawl cannot read", err);
    if (entry->method != 0 && entry->method != Z_DEFLATED)
        return bad_member(stream, "it is neither stored nor deflated; pack it anew",
                          err);
    r = read_at(zip, head, LOCAL_BYTES, entry->offset, err);
    if (r < 0)
        return r;
    if (number(head, 4) != 0x04034b50)
        return bad_member(stream, "its header is damaged", err);
    stream->at =
        entry->offset + LOCAL_BYTES + number(head + 26, 2) + number(head + 28, 2);
    stream->left = entry->packed;
    if (stream->at > zip->size || stream->left > zip->size - stream->at)
        return damaged(zip, "something in it points behind its end", err);
    if (entry->method == Z_DEFLATED) {
        if (inflateInit2(&stream->z, -15) != Z_OK)
            return err_set(err, ERR_NOMEM, "no memory to unpack %s", zip->path);
        stream->inflating = true;
    }
    stream->in = xmalloc(ZIP_STREAM_BUF);
    stream->crc = (uint32_t)crc32(0, NULL, 0);
    return 0;
}

void
zip_stream_release(struct zip_stream *stream)
{
    if (!stream)
        return;
    if (stream->inflating)
        (void)inflateEnd(&stream->z);
    free(stream->in);
    *stream = (struct zip_stream){0};
}

/* At most cap packed bytes to `to`. */
static int
take_packed(struct zip_stream *stream, void *to, size_t cap, size_t *ret_len,
            struct err *err)
{
    size_t len = stream->left < cap ? (size_t)stream->left : cap;
    int r = read_at(stream->zip, to, len, stream->at, err);

    if (r < 0)
        return r;
    stream->at += len;
    stream->left -= len;
    *ret_len = len;
    return 0;
}

static int
inflate_some(struct zip_stream *stream, char *out, size_t cap, size_t *ret_len,
             struct err *err)
{
    z_stream *z = &stream->z;
    int r = Z_OK;

    z->next_out = (Bytef *)out;
    z->avail_out = (uInt)(cap < UINT32_MAX ? cap : UINT32_MAX);
    cap = z->avail_out;
    while (z->avail_out == cap && r == Z_OK) {
        if (z->avail_in == 0) {
            size_t len = 0;

            if (stream->left == 0)
                return bad_member(stream, "its data end too early", err);
            r = take_packed(stream, stream->in, ZIP_STREAM_BUF, &len, err);
            if (r < 0)
                return r;
            z->next_in = stream->in;
            z->avail_in = (uInt)len;
        }
        r = inflate(z, Z_NO_FLUSH);
    }
    if (r != Z_OK && r != Z_STREAM_END)
        return bad_member(stream, "its data are damaged", err);
    stream->ended = r == Z_STREAM_END;
    *ret_len = cap - z->avail_out;
    return 0;
}

static int
check_ceilings(const struct zip_stream *stream, struct err *err)
{
    uint64_t in = stream->entry->packed - stream->left;

    if (stream->out > ZIP_RATIO_FREE && stream->out / ZIP_RATIO_MAX > in)
        return err_set(err, ERR_TOO_LARGE,
                       "%s: member %.100s swells to more than %d times its size; such "
                       "files are made to do harm, and pawl reads none",
                       stream->zip->path, stream->entry->name, ZIP_RATIO_MAX);
    if (stream->zip->out > ZIP_OUT_MAX)
        return err_set(err, ERR_TOO_LARGE, "%s: more than %llu GiB come out of it",
                       stream->zip->path, (unsigned long long)(ZIP_OUT_MAX >> 30));
    return 0;
}

int
zip_stream_read(struct zip_stream *stream, char *out, size_t cap, size_t *ret_len,
                struct err *err)
{
    size_t len = 0;
    int r = 0;

    if (stream->inflating && !stream->ended)
        r = inflate_some(stream, out, cap, &len, err);
    else if (!stream->inflating)
        r = take_packed(stream, out, cap, &len, err);
    if (r < 0)
        return r;
    stream->out += len;
    stream->zip->out += len;
    stream->crc = (uint32_t)crc32(stream->crc, (const Bytef *)out, (uInt)len);
    r = check_ceilings(stream, err);
    if (r < 0)
        return r;
    if (len == 0 &&
        (stream->out != stream->entry->raw || stream->crc != stream->entry->crc))
        return bad_member(stream, "its checksum or length is wrong: it is damaged",
                          err);
    *ret_len = len;
    return 0;
}
