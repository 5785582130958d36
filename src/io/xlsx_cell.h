/*
 * The value of one cell of a workbook, as it stands in the sheet, made a cell of
 * ours. One thread.
 */
#ifndef IO_XLSX_CELL_H
#define IO_XLSX_CELL_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>

struct cell;
struct column;
struct err;
struct row_set;
struct xlsx_book;

#define XLSX_COLUMNS_MAX 16384

/* A cell as the sheet has it; texts borrow. */
struct xlsx_raw {
    const char *ref; /* "B7", may be absent */
    size_t ref_len;
    const char *kind; /* s, str, inlineStr, b, e, d, n */
    size_t kind_len;
    const char *style;
    size_t style_len;
    const char *value;
    size_t value_len;
    bool has_value;
};

/* Column from 0, or -1 when ref is no reference within the sheet. */
int xlsx_column_of(const char *ref, size_t len);
/* "A", "BC": the letters of a column, for messages. ret has 4 bytes. */
const char *xlsx_column_name(size_t column, char ret[4]);

/*
 * Fills the cell; an empty text leaves it NULL. -ERR_INVALID: an error value (#N/A),
 * a number that is none, not of the column's type.
 */
int xlsx_cell_put(struct xlsx_book *book, const struct column *column,
                  const struct xlsx_raw *raw, struct row_set *rows, struct cell *cell,
                  struct err *err) must_check;

#endif
