/*
 * The compressor of a workbook's sheets. It can be brought to a point where its
 * whole state is a CRC and two lengths: xlsx_deflate_border ends the block,
 * aligns to a byte and forgets all history. A fresh compressor that is given
 * these three numbers goes on with the very same bytes.
 */
#ifndef IO_XLSX_DEFLATE_H
#define IO_XLSX_DEFLATE_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct part;
struct xlsx_deflate;

/* Raw deflate into part. name: "zlib-1" … "zlib-9", or "isal-1" when built with
 * ISA-L. NULL: not built in, or no such. */
struct xlsx_deflate *xlsx_deflate_new(const char *name, struct part *part);
void xlsx_deflate_free(struct xlsx_deflate *packer);

/* What `compressor: WORD` of a job means here; NULL = the default. */
const char *xlsx_deflate_choose(const char *word);

/* A new stream, or one that goes on at a border. */
void xlsx_deflate_begin(struct xlsx_deflate *packer, uint32_t crc,
                        uint64_t packed_bytes, uint64_t raw_bytes);

int xlsx_deflate_add(struct xlsx_deflate *packer, const void *data, size_t len,
                     struct err *err) must_check;
int xlsx_deflate_border(struct xlsx_deflate *packer, struct err *err) must_check;
int xlsx_deflate_end(struct xlsx_deflate *packer, struct err *err) must_check;

/* Exact after begin, border and end; raw_bytes always. */
uint32_t xlsx_deflate_crc(const struct xlsx_deflate *packer);
uint64_t xlsx_deflate_packed_bytes(const struct xlsx_deflate *packer);
uint64_t xlsx_deflate_raw_bytes(const struct xlsx_deflate *packer);

#endif
