/*
 * The ZIP frame of a workbook, written from front to back: nothing already
 * written is touched again, so a checkpoint can cut the file anywhere behind an
 * entry's border. Sizes of deflated entries stand behind them (data
 * descriptors); offsets past 4 GiB use ZIP64. Dates are fixed (1980-01-01): the
 * same rows give the same bytes.
 */
#ifndef IO_XLSX_ZIP_H
#define IO_XLSX_ZIP_H

#include "base/compiler.h"

#include <stddef.h>
#include <stdint.h>

struct err;
struct part;

#define XLSX_ZIP_NAME_MAX 40

/* Entries stay below 4 GiB, packed and unpacked: sheets end before. */
struct xlsx_zip_entry {
    char name[XLSX_ZIP_NAME_MAX];
    uint64_t offset; /* of its header */
    uint32_t crc;
    uint32_t packed;
    uint32_t raw;
    int deflated;
};

struct xlsx_zip {
    struct part *part;
    struct xlsx_zip_entry *entries;
    size_t count;
    size_t cap;
};

void xlsx_zip_init(struct xlsx_zip *zip, struct part *part);
void xlsx_zip_release(struct xlsx_zip *zip);

/* A small entry, whole, not compressed. */
int xlsx_zip_store(struct xlsx_zip *zip, const char *name, const char *text, size_t len,
                   struct err *err) must_check;

/* The head of a deflated entry; its data follow in the part, then _end. */
int xlsx_zip_begin(struct xlsx_zip *zip, const char *name, struct err *err) must_check;
int xlsx_zip_end(struct xlsx_zip *zip, uint32_t crc, uint64_t packed, uint64_t raw,
                 struct err *err) must_check;

/* An entry that is in the part already, for a resume. */
void xlsx_zip_recall(struct xlsx_zip *zip, const struct xlsx_zip_entry *entry);

/* The directory; nothing may follow. */
int xlsx_zip_finish(struct xlsx_zip *zip, struct err *err) must_check;

#endif
