/*
 * Reading members of a ZIP file, one stream at a time, with ceilings against
 * files made to swell: on the number of members, on what may come out, and on
 * how many times more comes out than went in. Nothing is ever unpacked to disk,
 * so the names of members are only names. One thread.
 */
#ifndef IO_ZIP_READ_H
#define IO_ZIP_READ_H

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

struct err;

#define ZIP_ENTRIES_MAX   100000
#define ZIP_OUT_MAX       (UINT64_C(16) << 30) /* of all streams of one archive */
#define ZIP_RATIO_MAX     300
#define ZIP_RATIO_FREE    (UINT64_C(32) << 20) /* the ratio counts from here on */
#define ZIP_DIRECTORY_MAX ((size_t)64 << 20)

struct zip_entry {
    const char *name; /* in the archive's arena */
    uint64_t offset;  /* of its local header */
    uint64_t packed;
    uint64_t raw;
    uint32_t crc;
    uint16_t method;
    bool encrypted;
};

struct zip_archive {
    int fd;
    char *path;
    uint64_t size;
    struct zip_entry *entries;
    size_t count;
    uint64_t out; /* bytes that came out of all streams so far */
    struct arena arena;
};

void zip_init(struct zip_archive *zip);
void zip_release(struct zip_archive *zip);

/* Does the file begin as a ZIP file does? -ERR_IO when it cannot be read. */
int zip_is(const char *path, bool *ret_is, struct err *err) must_check;

/* -ERR_INVALID: no ZIP file, half a file, a damaged directory. -ERR_TOO_LARGE. */
int zip_open(struct zip_archive *zip, const char *path, struct err *err) must_check;

/* By its exact name; NULL: there is none. */
const struct zip_entry *zip_find(const struct zip_archive *zip, const char *name);

#define ZIP_STREAM_BUF 65536

struct zip_stream {
    struct zip_archive *zip;
    const struct zip_entry *entry;
    z_stream z;
    bool inflating;
    bool ended;
    uint64_t at; /* of the next packed byte in the file */
    uint64_t left;
    uint64_t out;
    uint32_t crc;
    unsigned char *in;
};

/* All-zero is a stream that is not open. -ERR_INVALID: encrypted, packed in a way we do
 * not know, or a damaged header. */
int zip_stream_open(struct zip_stream *stream, struct zip_archive *zip,
                    const struct zip_entry *entry, struct err *err) must_check;
void zip_stream_release(struct zip_stream *stream);

/* At most cap bytes; *ret_len 0: the end, and length and checksum are right. */
int zip_stream_read(struct zip_stream *stream, char *out, size_t cap, size_t *ret_len,
                    struct err *err) must_check;

#endif
