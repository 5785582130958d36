/*
 * Records of a CSV file, one at a time, out of a buffer that grows to the
 * longest record (with a ceiling). Fields borrow the buffer until the next
 * record. One thread.
 */
#ifndef IO_CSV_SCAN_H
#define IO_CSV_SCAN_H

#include "base/buf.h"
#include "base/compiler.h"
#include "io/charset.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

#define CSV_RECORD_MAX_BYTES ((size_t)32 << 20)

struct csv_field {
    const char *text;
    size_t len;
    bool quoted;
};

/* A line's border: in what was decoded, and in the file. */
struct csv_border {
    int64_t at;
    int64_t offset;
};

/* What a file in another encoding than UTF-8 needs besides. */
struct csv_decoding {
    struct charset_decoder decoder; /* not open: the file is UTF-8 */
    char *raw;                      /* bytes that are not decoded yet */
    size_t raw_len;
    size_t raw_cap;
    int64_t raw_base;           /* offset of raw[0] in the file */
    struct buf line;            /* one line, decoded */
    struct csv_border *borders; /* of the lines in csv_scan.data */
    size_t n_borders;
    size_t borders_cap;
};

struct csv_scan {
    int fd;
    char *path;
    struct csv_decoding decoding;
    char delimiter;
    bool keep_blank; /* a blank line is a record of one NULL, not passed over */
    char *data;      /* UTF-8 from `base` on */
    size_t len;
    size_t cap;
    size_t at;    /* of the next record, in data */
    int64_t base; /* offset of data[0] in the file; decoded: bytes before it */
    int64_t line; /* number of the line that the next record begins on, from 1 */
    bool eof;
    struct csv_field *fields; /* of the last record */
    size_t n_fields;
    size_t fields_cap;
    size_t record_at;    /* where the last record begins in data */
    int64_t record_line; /* the line that the last record began on */
};

enum csv_scan_outcome {
    CSV_RECORD,
    CSV_END,
    CSV_BAD, /* no record can be made of it: err says why; the scan stands behind it */
};

void csv_scan_init(struct csv_scan *scan);
void csv_scan_release(struct csv_scan *scan);

/* Only a regular file: a position must be good for a second reading. A byte order
 * mark is skipped. */
int csv_scan_open(struct csv_scan *scan, const char *path, char delimiter,
                  const struct charset *charset, struct err *err) must_check;

/* Go to a record's first byte, an offset in the file. */
int csv_scan_seek(struct csv_scan *scan, int64_t offset, int64_t line,
                  struct err *err) must_check;

/* An enum csv_scan_outcome, or < 0. */
int csv_scan_next(struct csv_scan *scan, struct err *err) must_check;

/* Offset of the next record's first byte in the file. */
int64_t csv_scan_offset(const struct csv_scan *scan);

#endif
