/*
 * The parts of a workbook around its sheets: types, relationships, styles, the
 * list of sheets. The same sheets give the same bytes: there are no dates in them.
 */
#ifndef IO_XLSX_PARTS_H
#define IO_XLSX_PARTS_H

#include "base/compiler.h"

#include <stddef.h>

struct err;
struct xlsx_zip;

/* Entries that xlsx_parts_head makes, before the first sheet. */
#define XLSX_HEAD_PARTS 4

int xlsx_parts_head(struct xlsx_zip *zip, struct err *err) must_check;

/* Behind the last sheet. title: name of the first sheet, with a number for further
 * ones; characters that Excel refuses become '_'. NULL: Sheet1, Sheet2 … */
int xlsx_parts_tail(struct xlsx_zip *zip, const char *title, size_t sheets,
                    struct err *err) must_check;

#endif
