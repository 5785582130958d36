/*
 * Records of a CSV file, one at a time, out of a buffer that grows to the
 * longest record (with a ceiling). Fields borrow the buffer until the next
 * record. One thread.
 */
#ifndef IO_CSV_SCAN_H
#define IO_CSV_SCAN_H

#include "base/compiler.h"

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

struct csv_scan {
    int fd;
    char *path;
    char delimiter;
    bool keep_blank; /* a blank line is a record of one NULL, not passed over */
    char *data;      /* bytes of the file from `base` on */
    size_t len;
    size_t cap;
    size_t at;    /* of the next record, in data */
    int64_t base; /* offset of data[0] in the file */
    int64_t line; /* number of the line that the next record begins on, from 1 */
    bool eof;
    struct csv_field *fields; /* of the last record */
    size_t n_fields;
    size_t fields_cap;
    int64_t record_line; /* the line that the last record began on */
};

enum csv_scan_outcome { CSV_RECORD, CSV_END };

void csv_scan_init(struct csv_scan *scan);
void csv_scan_release(struct csv_scan *scan);

/* Only a regular file: a position must be good for a second reading. A byte order
 * mark is skipped. */
int csv_scan_open(struct csv_scan *scan, const char *path, char delimiter,
                  struct err *err) must_check;

/* Go to a record's first byte. -ERR_INVALID when the file is shorter. */
int csv_scan_seek(struct csv_scan *scan, int64_t offset, int64_t line,
                  struct err *err) must_check;

/* An enum csv_scan_outcome, or < 0. */
int csv_scan_next(struct csv_scan *scan, struct err *err) must_check;

/* Offset of the next record's first byte. */
int64_t csv_scan_offset(const struct csv_scan *scan);

#endif
