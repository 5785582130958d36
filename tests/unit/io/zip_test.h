/* ZIP files for the tests of readers, made in memory, and made wrong on purpose. */
#ifndef TESTS_UNIT_IO_ZIP_TEST_H
#define TESTS_UNIT_IO_ZIP_TEST_H

#include "reader_test.h"

#include <zlib.h>

struct zip_build {
    struct buf out;
    struct buf directory;
    unsigned count;
};

static inline void
put_le(struct buf *buf, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        buf_add_char(buf, (char)(i < 8 ? value >> (8 * i) : 0));
}

static inline void
zip_build_init(struct zip_build *zip)
{
    *zip = (struct zip_build){0};
    buf_init(&zip->out, (size_t)512 << 20);
    buf_init(&zip->directory, 0);
}

static inline void
zip_build_release(struct zip_build *zip)
{
    buf_release(&zip->out);
    buf_release(&zip->directory);
}

/* What both headers of a member have in common. */
static inline void
put_member(struct buf *buf, const char *name, unsigned method, unsigned flags,
           uint32_t crc, size_t packed, size_t raw)
{
    put_le(buf, 20, 2);
    put_le(buf, flags, 2);
    put_le(buf, method, 2);
    put_le(buf, 0x00210000, 4); /* 1980-01-01 */
    put_le(buf, crc, 4);
    put_le(buf, packed, 4);
    put_le(buf, raw, 4);
    put_le(buf, strlen(name), 2);
    put_le(buf, 0, 2);
}

static inline void
zip_build_add(struct zip_build *zip, const char *name, const void *data, size_t len,
              bool deflated, unsigned flags)
{
    z_stream z = {0};
    size_t cap = len + len / 100 + 1024, packed = len, offset = zip->out.len;
    char *out = malloc(cap);
    uint32_t crc = (uint32_t)crc32(crc32(0, NULL, 0), data, (uInt)len);

    assert_non_null(out);
    if (deflated) {
        assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, -15, 9, 0), Z_OK);
        z.next_in = (Bytef *)(uintptr_t)data;
        z.avail_in = (uInt)len;
        z.next_out = (Bytef *)out;
        z.avail_out = (uInt)cap;
        assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
        packed = z.total_out;
        (void)deflateEnd(&z);
    }
    put_le(&zip->out, 0x04034b50, 4);
    put_member(&zip->out, name, deflated ? 8 : 0, flags, crc, packed, len);
    buf_add_str(&zip->out, name);
    buf_add(&zip->out, deflated ? out : data, packed);
    put_le(&zip->directory, 0x02014b50, 4);
    put_le(&zip->directory, 20, 2);
    put_member(&zip->directory, name, deflated ? 8 : 0, flags, crc, packed, len);
    put_le(&zip->directory, 0, 2 + 2 + 2 + 4);
    put_le(&zip->directory, offset, 4);
    buf_add_str(&zip->directory, name);
    zip->count++;
    free(out);
}

static inline void
zip_build_end(struct zip_build *zip)
{
    size_t offset = zip->out.len;

    buf_add(&zip->out, zip->directory.data, zip->directory.len);
    put_le(&zip->out, 0x06054b50, 4);
    put_le(&zip->out, 0, 4);
    put_le(&zip->out, zip->count, 2);
    put_le(&zip->out, zip->count, 2);
    put_le(&zip->out, zip->directory.len, 4);
    put_le(&zip->out, offset, 4);
    put_le(&zip->out, 0, 2);
}

#endif
