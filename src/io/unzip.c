/*
 * The directory at the end of a zip decides, as the format wants it: local headers may
 * lack sizes. Only what is in use is understood: stored and deflated, no encryption,
 * no zip64 (nothing beyond 4 GiB).
 */
#include "io/unzip.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/strs.h"

#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <zlib.h>

#define END_SIG       0x06054b50u
#define DIRECTORY_SIG 0x02014b50u
#define LOCAL_SIG     0x04034b50u
#define END_BYTES     22
#define ENTRY_BYTES   46
#define LOCAL_BYTES   30
#define COMMENT_MAX   65535
#define PIECE         65536
#define DIRECTORY_MAX (64u << 20)
#define NAMES_SHOWN   200
#define SHOWN_BYTES   40

struct zip_entry {
    uint16_t flags;
    uint16_t method;
    uint32_t crc;
    uint32_t packed;
    uint32_t bytes;
    uint32_t offset;
};

static uint16_t
u16(const unsigned char *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static uint32_t
u32(const unsigned char *at)
{
    return (uint32_t)u16(at) | (uint32_t)u16(at + 2) << 16;
}

static int
cut_off(struct err *err)
{
    return err_set(err, ERR_PROTOCOL,
                   "the zip is cut off or damaged; it must be fetched again");
}

static int
read_at(const struct unzip_source *source, int64_t at, void *out, size_t len,
        struct err *err)
{
    size_t done = 0;

    if (at < 0 || at > source->size || (int64_t)len > source->size - at)
        return cut_off(err);
    if (source->data) {
        memcpy(out, (const char *)source->data + at, len);
        return 0;
    }
    while (done < len) {
        ssize_t n = pread(source->fd, (char *)out + done, len - done,
                          (off_t)(at + (int64_t)done));

        if (n <= 0)
            return n < 0 ? err_set(err, ERR_IO, "cannot read the zip") : cut_off(err);
        done += (size_t)n;
    }
    return 0;
}

/* With its first bytes, so that a person sees what came. */
static int
no_zip(const struct unzip_source *source, struct err *err)
{
    char shown[SHOWN_BYTES + 1] = "";
    int64_t n = source->size < SHOWN_BYTES ? source->size : SHOWN_BYTES;
    int r = read_at(source, 0, shown, (size_t)n, err);

    if (r < 0)
        return r;
    if (n == 0)
        return err_set(err, ERR_PROTOCOL, "what came is empty, not a zip");
    if (strncasecmp(shown, "<!doctype html", 14) == 0 ||
        strncasecmp(shown, "<html", 5) == 0)
        return err_set(err, ERR_PROTOCOL, "what came is an HTML page, not a zip");
    for (int64_t i = 0; i < n; i++)
        if (shown[i] < 0x20 || shown[i] > 0x7E)
            shown[i] = '.';
    return err_set(err, ERR_PROTOCOL, "what came is not a zip; it begins \"%s\"",
                   shown);
}

/* The end record is searched backwards: a comment may follow it. */
static int
find_end(const struct unzip_source *source, unsigned char end[END_BYTES],
         struct err *err)
{
    int64_t tail =
        source->size < END_BYTES + COMMENT_MAX ? source->size : END_BYTES + COMMENT_MAX;
    scoped(xfree_ptr) unsigned char *bytes = xmalloc((size_t)tail + 1);
    unsigned char first[4] = {0};
    int r = 0;

    if (source->size >= 4)
        r = read_at(source, 0, first, 4, err);
    if (r < 0)
        return r;
    if (source->size < 4 || first[0] != 'P' || first[1] != 'K')
        return no_zip(source, err);
    r = read_at(source, source->size - tail, bytes, (size_t)tail, err);
    for (int64_t at = tail - END_BYTES; r == 0 && at >= 0; at--)
        if (u32(bytes + at) == END_SIG) {
            memcpy(end, bytes + at, END_BYTES);
            return 0;
        }
    return r < 0 ? r : cut_off(err);
}

static bool
is_wanted(const char *wanted, const char *name, size_t len)
{
    if (str_eq(wanted, "*"))
        return len > 0 && name[len - 1] != '/';
    return strlen(wanted) == len && memcmp(wanted, name, len) == 0;
}

static int
find_entry(const struct unzip_source *source, const char *name,
           struct zip_entry *ret_entry, struct err *err)
{
    scoped(xfree_ptr) unsigned char *directory = NULL;
    scoped(buf_release) struct buf names = {0};
    unsigned char end[END_BYTES] = {0};
    uint32_t len;
    size_t at = 0;
    int r = find_end(source, end, err);

    if (r < 0)
        return r;
    len = u32(end + 12);
    if (len > DIRECTORY_MAX || u32(end + 16) == UINT32_MAX)
        return err_set(err, ERR_TOO_LARGE, "the zip has too many entries, or is zip64");
    directory = xmalloc((size_t)len + 1);
    r = read_at(source, u32(end + 16), directory, len, err);
    if (r < 0)
        return r;
    buf_init(&names, NAMES_SHOWN);
    while (at + ENTRY_BYTES <= len && u32(directory + at) == DIRECTORY_SIG) {
        const unsigned char *entry = directory + at;
        size_t n = u16(entry + 28);

        if (at + ENTRY_BYTES + n > len)
            return cut_off(err);
        if (is_wanted(name, (const char *)entry + ENTRY_BYTES, n)) {
            *ret_entry =
                (struct zip_entry){u16(entry + 8),  u16(entry + 10), u32(entry + 16),
                                   u32(entry + 20), u32(entry + 24), u32(entry + 42)};
            return 0;
        }
        buf_addf(&names, "%s%.*s", names.len ? ", " : "", (int)n,
                 (const char *)entry + ENTRY_BYTES);
        at += ENTRY_BYTES + n + u16(entry + 30) + u16(entry + 32);
    }
    return err_set(err, ERR_NOT_FOUND, "the zip has no entry \"%s\"; it has: %s", name,
                   names.len ? buf_str(&names) : "none");
}

struct unpacking {
    unzip_fn fn;
    void *arg;
    int64_t done;
    int64_t max_bytes;
    uLong crc;
};

static int
give(struct unpacking *unpacking, const unsigned char *data, size_t len,
     struct err *err)
{
    unpacking->done += (int64_t)len;
    if (unpacking->done > unpacking->max_bytes)
        return err_set(err, ERR_TOO_LARGE,
                       "the entry of the zip has more than the %lld bytes allowed",
                       (long long)unpacking->max_bytes);
    unpacking->crc = crc32(unpacking->crc, data, (uInt)len);
    return unpacking->fn(unpacking->arg, data, len, err);
}

static int
inflate_piece(z_stream *z, struct unpacking *unpacking, unsigned char *out, bool *ended,
              struct err *err)
{
    do {
        int rc;
        int r;

        z->next_out = out;
        z->avail_out = PIECE;
        rc = inflate(z, Z_NO_FLUSH);
        if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
            return cut_off(err);
        r = give(unpacking, out, PIECE - z->avail_out, err);
        if (r < 0)
            return r;
        *ended = rc == Z_STREAM_END;
    } while (!*ended && z->avail_out == 0);
    return 0;
}

static void
end_inflate(z_stream *z)
{
    (void)inflateEnd(z);
}

static int
unpack(const struct unzip_source *source, const struct zip_entry *entry, int64_t at,
       struct unpacking *unpacking, struct err *err)
{
    scoped(xfree_ptr) unsigned char *in = xmalloc(PIECE);
    scoped(xfree_ptr) unsigned char *out = xmalloc(PIECE);
    scoped(end_inflate) z_stream z = {0};
    uint32_t left = entry->packed;
    bool ended = entry->method == 0;

    if (inflateInit2(&z, -MAX_WBITS) != Z_OK)
        return err_set(err, ERR_NOMEM, "no memory to unpack the zip");
    while (left > 0) {
        size_t n = left < PIECE ? left : PIECE;
        int r = read_at(source, at, in, n, err);

        z.next_in = in;
        z.avail_in = (uInt)n;
        if (r == 0)
            r = entry->method == 0 ? give(unpacking, in, n, err)
                                   : inflate_piece(&z, unpacking, out, &ended, err);
        if (r < 0)
            return r;
        at += (int64_t)n;
        left -= (uint32_t)n;
    }
    return ended ? 0 : cut_off(err);
}

int
unzip_entry(const struct unzip_source *source, const char *name, int64_t max_bytes,
            unzip_fn fn, void *arg, struct err *err)
{
    struct unpacking unpacking = {fn, arg, 0, max_bytes, crc32(0, NULL, 0)};
    struct zip_entry entry = {0};
    unsigned char local[LOCAL_BYTES];
    int r = find_entry(source, name, &entry, err);

    if (r < 0)
        return r;
    if (entry.flags & 1)
        return err_set(err, ERR_PROTOCOL, "the entry of the zip is encrypted");
    if (entry.method != 0 && entry.method != 8)
        return err_set(err, ERR_PROTOCOL,
                       "the zip uses method %u; only deflate is known", entry.method);
    if (entry.bytes > max_bytes)
        return err_set(err, ERR_TOO_LARGE,
                       "the entry of the zip has %u bytes, more than the %lld allowed",
                       entry.bytes, (long long)max_bytes);
    r = read_at(source, entry.offset, local, sizeof(local), err);
    if (r < 0)
        return r;
    if (u32(local) != LOCAL_SIG)
        return cut_off(err);
    r = unpack(source, &entry,
               (int64_t)entry.offset + LOCAL_BYTES + u16(local + 26) + u16(local + 28),
               &unpacking, err);
    if (r < 0)
        return r;
    if ((uint32_t)unpacking.crc != entry.crc || unpacking.done != entry.bytes)
        return cut_off(err);
    return 0;
}
