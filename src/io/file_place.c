/*
 * A few thousand bytes are enough for the checksum: rows are not repeated that
 * long, and a checkpoint must stay cheap.
 */
#include "io/file_place.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define MARK_BYTES 4096

/* Of the bytes before offset. */
static int
make_mark(int fd, const char *path, int64_t offset, int64_t *ret_mark, struct err *err)
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
    *ret_mark = (int64_t)crc32(0, (const Bytef *)bytes, (uInt)have);
    return 0;
}

int
file_place_put(int fd, const char *path, const struct file_place *place,
               struct buf *out, struct err *err)
{
    struct json_out json;
    int64_t mark = 0;
    int r = make_mark(fd, path, place->offset, &mark, err);

    if (r < 0)
        return r;
    json_out_init(&json, out);
    json_begin_object(&json);
    json_kv_i64(&json, "offset", place->offset);
    json_kv_i64(&json, "line", place->line);
    json_kv_i64(&json, "rows", place->rows);
    json_kv_i64(&json, "mark", mark);
    json_end_object(&json);
    return 0;
}

static int
parse(const char *text, struct file_place *place, int64_t *mark, struct err *err)
{
    scoped(json_drop) json_t *root = NULL;
    int r = json_parse(text, strlen(text), 4, &root, err);

    if (r == 0)
        r = json_get_i64(root, "offset", &place->offset, err);
    if (r == 0)
        r = json_get_i64(root, "line", &place->line, err);
    if (r == 0)
        r = json_get_i64(root, "rows", &place->rows, err);
    if (r == 0)
        r = json_get_i64(root, "mark", mark, err);
    return r == 0 && place->offset >= 0 ? 0 : -ERR_INVALID;
}

int
file_place_get(int fd, const char *path, const char *text, struct file_place *ret_place,
               struct err *err)
{
    struct stat st;
    struct file_place place = {0};
    int64_t mark = 0, found = 0;
    int r;

    if (fstat(fd, &st) != 0)
        return err_errno(err, ERR_IO, errno, "cannot look at %s", path);
    if (parse(text, &place, &mark, err) < 0) {
        err_clear(err);
        return err_set(err, ERR_INVALID, "the checkpoint is no position in %s", path);
    }
    if (st.st_size < place.offset)
        return err_set(err, ERR_INVALID,
                       "%s has %lld bytes, the checkpoint stands at %lld: the file was "
                       "changed; ask for a new run (restart: false)",
                       path, (long long)st.st_size, (long long)place.offset);
    r = make_mark(fd, path, place.offset, &found, err);
    if (r < 0)
        return r;
    if (found != mark)
        return err_set(err, ERR_INVALID,
                       "%s is not the file that was read up to byte %lld: it was "
                       "changed; ask for a new run (restart: false), and say `restart: "
                       "beginning` if its rows may come in another order each time",
                       path, (long long)place.offset);
    *ret_place = place;
    return 0;
}
