/*
 * What of a workbook stands beside its sheets: their names and places, which
 * styles show a number as a date, and the texts that cells share (which go to a
 * temporary file when they are many). One thread.
 */
#ifndef IO_XLSX_BOOK_H
#define IO_XLSX_BOOK_H

#include "io/spool.h"
#include "io/zip_read.h"

#include <stdbool.h>

struct xml_scan;

/* How a style shows a number. */
enum xlsx_style { XLSX_NUMBER, XLSX_DATE, XLSX_TIMESTAMP, XLSX_TIME };

#define XLSX_TEXTS_MEMORY ((size_t)16 << 20)

struct xlsx_book {
    struct zip_archive zip;
    bool from_1904;
    unsigned char *styles; /* enum xlsx_style of each cell format */
    size_t n_styles;
    struct spool texts;   /* shared texts, one behind the other */
    struct spool borders; /* uint64_t: where each ends */
    uint64_t n_texts;
    struct buf text; /* the one last asked for */
};

void xlsx_book_init(struct xlsx_book *book, const char *temp_folder,
                    size_t texts_memory);
void xlsx_book_release(struct xlsx_book *book);

/*
 * sheet: its name, or its number from 1 as text; NULL: the first. -ERR_INVALID with
 * the sheets that there are.
 */
int xlsx_book_open(struct xlsx_book *book, const char *path, const char *sheet,
                   const struct zip_entry **ret_sheet, struct err *err) must_check;

/* A shared text, good until the next call. -ERR_INVALID: there is none of the number.
 */
int xlsx_book_text(struct xlsx_book *book, uint64_t index, const char **ret_text,
                   size_t *ret_len, struct err *err) must_check;

/* "_x000D_" in the texts of a workbook stands for a carriage return; in place. */
size_t xlsx_unescape(char *text, size_t len);

/* What a number format shows: "yyyy-mm-dd" → XLSX_DATE. */
enum xlsx_style xlsx_format_style(const char *format, size_t len);

/* A scan over a part of the workbook; `stream` must outlive it. */
int xlsx_part_scan(struct xlsx_book *book, struct zip_stream *stream,
                   const struct zip_entry *part, const char *item,
                   struct xml_scan **ret_scan, struct err *err) must_check;

#endif
