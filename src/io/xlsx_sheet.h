/*
 * The XML of one sheet after another, into a buffer that the caller drains.
 * Every cell keeps all its digits and letters: what a spreadsheet's number or
 * date cannot hold exactly becomes text, and what no cell can hold is an error.
 */
#ifndef IO_XLSX_SHEET_H
#define IO_XLSX_SHEET_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct cell;
struct column;
struct err;

#define XLSX_ROWS_MAX       1048576
#define XLSX_COLUMNS_MAX    16384
#define XLSX_CELL_UNITS_MAX 32767 /* UTF-16 units of text in a cell */

struct xlsx_sheet {
    struct buf xml;
    struct buf scratch;
    const struct column *columns;
    size_t width;
    char (*letters)[4]; /* "A" … "XFD" */
    bool autofilter;
};

/* columns must outlive the sheet; at most XLSX_COLUMNS_MAX. */
void xlsx_sheet_init(struct xlsx_sheet *sheet, const struct column *columns,
                     size_t width);
void xlsx_sheet_release(struct xlsx_sheet *sheet);

/* Everything up to and with the header row, which is row 1. */
int xlsx_sheet_open(struct xlsx_sheet *sheet, bool first, struct err *err) must_check;

/* row: number in the sheet, from 2; row_of_all: data row of the file, for messages. */
int xlsx_sheet_row(struct xlsx_sheet *sheet, uint32_t row, int64_t row_of_all,
                   const struct cell *cells, struct err *err) must_check;

void xlsx_sheet_close(struct xlsx_sheet *sheet, uint32_t last_row);

/* xl/styles.xml, which the cells above refer to. */
extern const char xlsx_styles_xml[];

#endif
