/*
 * APPNOTE 6.3: local header, data, data descriptor; at the end one directory
 * record for each entry, then, only if an offset or the count needs it, the
 * ZIP64 end record and its locator, then the end record. Spreadsheets are picky
 * about ZIP64 where it is not needed, so it stays away until it is.
 */
#include "io/xlsx_zip.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/strs.h"
#include "io/part.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define ZIP_VERSION      20
#define ZIP_VERSION_64   45
#define FLAG_DESCRIPTOR  0x0008
#define METHOD_STORED    0
#define METHOD_DEFLATED  8
#define DOS_TIME         0
#define DOS_DATE         0x0021 /* 1980-01-01, the earliest there is */
#define LIMIT_32         UINT64_C(0xFFFFFFFF)
#define LIMIT_16         0xFFFFu
#define ZIP64_EXTRA_ID   1
#define ZIP64_END_LENGTH 44 /* bytes of the record behind this field */

static void
put16(struct buf *out, unsigned value)
{
    buf_add_char(out, (char)(value & 0xFF));
    buf_add_char(out, (char)(value >> 8 & 0xFF));
}

static void
put32(struct buf *out, uint64_t value)
{
    put16(out, (unsigned)(value & 0xFFFF));
    put16(out, (unsigned)(value >> 16 & 0xFFFF));
}

static void
put64(struct buf *out, uint64_t value)
{
    put32(out, value & LIMIT_32);
    put32(out, value >> 32);
}

void
xlsx_zip_init(struct xlsx_zip *zip, struct part *part)
{
    *zip = (struct xlsx_zip){.part = part};
}

void
xlsx_zip_release(struct xlsx_zip *zip)
{
    free(zip->entries);
    *zip = (struct xlsx_zip){0};
}

void
xlsx_zip_recall(struct xlsx_zip *zip, const struct xlsx_zip_entry *entry)
{
    if (zip->count == zip->cap) {
        zip->cap = zip->cap ? zip->cap * 2 : 8;
        zip->entries = xrealloc(zip->entries, zip->cap * sizeof(*zip->entries));
    }
    zip->entries[zip->count++] = *entry;
}

static int
append(struct xlsx_zip *zip, struct buf *bytes, struct err *err)
{
    int r = buf_check(bytes, "zip directory", err);

    if (r < 0)
        return r;
    return part_append(zip->part, bytes->data, bytes->len, err);
}

/* What local header and directory record have in common. */
static void
put_common(struct buf *out, const struct xlsx_zip_entry *entry, unsigned version,
           unsigned sizes_known)
{
    put16(out, version);
    put16(out, entry->deflated ? FLAG_DESCRIPTOR : 0);
    put16(out, entry->deflated ? METHOD_DEFLATED : METHOD_STORED);
    put16(out, DOS_TIME);
    put16(out, DOS_DATE);
    put32(out, sizes_known ? entry->crc : 0);
    put32(out, sizes_known ? entry->packed : 0);
    put32(out, sizes_known ? entry->raw : 0);
    put16(out, (unsigned)strlen(entry->name));
}

static int
local_header(struct xlsx_zip *zip, const struct xlsx_zip_entry *entry, struct err *err)
{
    scoped(buf_release) struct buf out = {0};

    buf_init(&out, 0);
    buf_add(&out, "PK\3\4", 4);
    put_common(&out, entry, ZIP_VERSION, !entry->deflated);
    put16(&out, 0);
    buf_add_str(&out, entry->name);
    return append(zip, &out, err);
}

int
xlsx_zip_store(struct xlsx_zip *zip, const char *name, const char *text, size_t len,
               struct err *err)
{
    struct xlsx_zip_entry entry = {
        .offset = (uint64_t)zip->part->offset,
        .crc = (uint32_t)crc32(0, (const Bytef *)text, (uInt)len),
        .packed = (uint32_t)len,
        .raw = (uint32_t)len,
    };
    int r;

    assert(len < LIMIT_32);
    (void)str_copy(entry.name, sizeof(entry.name), name);
    r = local_header(zip, &entry, err);
    if (r < 0)
        return r;
    r = part_append(zip->part, text, len, err);
    if (r < 0)
        return r;
    xlsx_zip_recall(zip, &entry);
    return 0;
}

int
xlsx_zip_begin(struct xlsx_zip *zip, const char *name, struct err *err)
{
    struct xlsx_zip_entry entry = {
        .offset = (uint64_t)zip->part->offset,
        .deflated = 1,
    };
    int r;

    (void)str_copy(entry.name, sizeof(entry.name), name);
    r = local_header(zip, &entry, err);
    if (r < 0)
        return r;
    xlsx_zip_recall(zip, &entry);
    return 0;
}

int
xlsx_zip_end(struct xlsx_zip *zip, uint32_t crc, uint64_t packed, uint64_t raw,
             struct err *err)
{
    struct xlsx_zip_entry *entry = &zip->entries[zip->count - 1];
    scoped(buf_release) struct buf out = {0};

    assert(packed < LIMIT_32 && raw < LIMIT_32);
    entry->crc = crc;
    entry->packed = (uint32_t)packed;
    entry->raw = (uint32_t)raw;
    buf_init(&out, 0);
    buf_add(&out, "PK\7\10", 4);
    put32(&out, crc);
    put32(&out, packed);
    put32(&out, raw);
    return append(zip, &out, err);
}

static void
put_directory_record(struct buf *out, const struct xlsx_zip_entry *entry)
{
    int far = entry->offset >= LIMIT_32;
    unsigned version = far ? ZIP_VERSION_64 : ZIP_VERSION;

    buf_add(out, "PK\1\2", 4);
    put16(out, version);
    put_common(out, entry, version, 1);
    put16(out, far ? 12 : 0); /* extra field */
    put16(out, 0);            /* comment */
    put16(out, 0);            /* disk */
    put16(out, 0);            /* internal attributes */
    put32(out, 0);            /* external attributes */
    put32(out, far ? LIMIT_32 : entry->offset);
    buf_add_str(out, entry->name);
    if (far) {
        put16(out, ZIP64_EXTRA_ID);
        put16(out, 8);
        put64(out, entry->offset);
    }
}

static void
put_zip64_end(struct buf *out, uint64_t count, uint64_t start, uint64_t len)
{
    buf_add(out, "PK\6\6", 4);
    put64(out, ZIP64_END_LENGTH);
    put16(out, ZIP_VERSION_64);
    put16(out, ZIP_VERSION_64);
    put32(out, 0);
    put32(out, 0);
    put64(out, count);
    put64(out, count);
    put64(out, len);
    put64(out, start);
    buf_add(out, "PK\6\7", 4); /* locator */
    put32(out, 0);
    put64(out, start + len);
    put32(out, 1);
}

int
xlsx_zip_finish(struct xlsx_zip *zip, struct err *err)
{
    uint64_t start = (uint64_t)zip->part->offset;
    unsigned count = zip->count < LIMIT_16 ? (unsigned)zip->count : LIMIT_16;
    scoped(buf_release) struct buf out = {0};
    uint64_t len;

    buf_init(&out, 0);
    for (size_t i = 0; i < zip->count; i++)
        put_directory_record(&out, &zip->entries[i]);
    len = out.len;
    if (start >= LIMIT_32 || zip->count >= LIMIT_16)
        put_zip64_end(&out, zip->count, start, len);
    buf_add(&out, "PK\5\6", 4);
    put16(&out, 0);
    put16(&out, 0);
    put16(&out, count);
    put16(&out, count);
    put32(&out, len);
    put32(&out, start < LIMIT_32 ? start : LIMIT_32);
    put16(&out, 0);
    return append(zip, &out, err);
}
