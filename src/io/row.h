/*
 * Rows on their way from a reader to a writer. A row_set is one chunk: rows are
 * read (and processed) first and written then, so it keeps their bytes until
 * row_set_clear. It is reused for each chunk and keeps its memory, which is
 * bounded: a reader ends a chunk early when row_set_full says so, however many
 * rows were asked for.
 *
 * Owner: whoever called row_set_init. One thread at a time.
 */
#ifndef IO_ROW_H
#define IO_ROW_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

struct err;
struct row_block;

enum cell_type {
    CELL_NULL,      /* as a column type: not known, look at the cells */
    CELL_BOOL,      /* i: 0 or 1 */
    CELL_INT,       /* i */
    CELL_DECIMAL,   /* text: exact, [-]digits[.digits]; never NaN or an exponent */
    CELL_REAL,      /* real: may be NaN or infinite */
    CELL_TEXT,      /* text: UTF-8 as it came, not yet checked; may hold NUL bytes */
    CELL_BYTES,     /* text: any bytes */
    CELL_DATE,      /* i: days since 1970-01-01, proleptic Gregorian, may be negative */
    CELL_TIMESTAMP, /* i: microseconds since 1970-01-01; UTC unless zoneless */
    CELL_TYPE_COUNT
};

struct cell {
    uint8_t type;  /* enum cell_type */
    bool zoneless; /* TIMESTAMP: wall-clock time of an unnamed zone */
    uint32_t len;  /* bytes of text, where text is used */
    union {
        int64_t i;
        double real;
        const char *text; /* not NUL-terminated; lives until row_set_clear */
    };
};

struct column {
    const char *name;    /* UTF-8; lives as long as its reader */
    enum cell_type type; /* what the source declares; a cell may differ */
};

/* The items that the rows of a processed chunk belong to: the reader's row and what
 * became of it (outcome, code, row_count). */
struct item_view {
    const struct column *columns;
    size_t width;
    const struct cell *cells; /* count * width */
    size_t count;
};

struct row_set {
    size_t width;       /* cells in a row */
    size_t count;       /* rows */
    struct cell *cells; /* count * width, row after row */
    size_t cells_cap;
    size_t bytes;                  /* bytes of text kept */
    size_t max_bytes;              /* soft ceiling, see row_set_full */
    struct row_block *blocks;      /* all blocks, in order of filling */
    struct row_block *fill;        /* the one being filled */
    const struct item_view *items; /* of a chunk; NULL: each row is an item */
};

/* The longest single cell a reader may keep; longer is ERR_TOO_LARGE. */
#define CELL_MAX_BYTES ((size_t)16 << 20)
/* Default of row_set.max_bytes. */
#define ROW_SET_MAX_BYTES ((size_t)6 << 20)

/* max_bytes: 0 = ROW_SET_MAX_BYTES. */
void row_set_init(struct row_set *rows, size_t max_bytes);
void row_set_release(struct row_set *rows);

/* No rows, rows of width cells from now on; earlier cells and texts are gone. */
void row_set_clear(struct row_set *rows, size_t width);

/* A new last row with all cells NULL. The pointer is good until the next row_set_add.
 */
struct cell *row_set_add(struct row_set *rows);

/* Take the last row back (its bytes stay until row_set_clear). */
void row_set_drop_last(struct row_set *rows);

/* True when the set has as many bytes as a chunk may keep in memory. */
bool row_set_full(const struct row_set *rows);

static inline struct cell *
row_set_row(const struct row_set *rows, size_t row)
{
    return rows->cells + row * rows->width;
}

/* Room for len bytes (uninitialised) that live until row_set_clear. */
char *row_set_bytes(struct row_set *rows, size_t len);

/* Fill a cell; texts are copied into the set. column is for the message only. */
int cell_set_text(struct row_set *rows, struct cell *cell, enum cell_type type,
                  const char *text, size_t len, const char *column, struct err *err);

static inline void
cell_set_i64(struct cell *cell, enum cell_type type, int64_t value)
{
    cell->type = (uint8_t)type;
    cell->i = value;
}

static inline void
cell_set_real(struct cell *cell, double value)
{
    cell->type = CELL_REAL;
    cell->real = value;
}

const char *cell_type_name(enum cell_type type);

#endif
