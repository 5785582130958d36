/*
 * The columns of a reader whose records name their fields (JSON lines, XML).
 * Either `read.columns` declares them, a list of names or a map from name to
 * type, and a record's other fields are left out; or the first record names
 * them, and a later one with another field is an error, so that nothing is lost
 * without a word. Owner: the reader. One thread.
 */
#ifndef IO_COLUMNS_H
#define IO_COLUMNS_H

#include "base/arena.h"
#include "io/row.h"

#include <jansson.h>
#include <stdbool.h>

#define COLUMNS_MAX  2000 /* more are a mistake in the data */
#define COLUMNS_NONE ((size_t)-1)

struct columns {
    struct arena arena;
    struct column *list;
    size_t width;
    size_t cap;
    bool declared;
    size_t next; /* a guess: fields mostly come in the same order */
};

void columns_release(struct columns *columns);

/* def: the checked `columns` of a reader, NULL for none. */
void columns_declare(struct columns *columns, const json_t *def);

/* The first record has this field. -ERR_INVALID over COLUMNS_MAX. */
int columns_add(struct columns *columns, const char *name, size_t len,
                struct err *err) must_check;

/* Index of the column, or COLUMNS_NONE. */
size_t columns_find(struct columns *columns, const char *name, size_t len);

/*
 * The cell of a text: of the column's type, or text where it has none. The bytes
 * are copied. -ERR_INVALID naming column, text and type, -ERR_TOO_LARGE.
 */
int column_put(const struct column *column, struct row_set *rows, struct cell *cell,
               const char *text, size_t len, struct err *err) must_check;

/* "integer" → CELL_INT; what is no type word is CELL_TEXT. */
enum cell_type cell_type_of_word(const char *word);

#endif
