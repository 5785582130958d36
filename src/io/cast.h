/* One cell made into a cell of a type, as people write values. No state. */
#ifndef IO_CAST_H
#define IO_CAST_H

#include "base/compiler.h"

#include <stdbool.h>

struct cell;
struct row_set;

/* "integer", "date", "date:yyyyMMdd" …: is it a type that there is? */
bool cast_known(const char *type);
/* What it makes, an enum cell_type. */
int cast_type(const char *type);

/* Blank becomes null. Texts that are made live in rows. false: it is no such value. */
bool cast_cell(const char *type, struct row_set *rows, struct cell *cell);

/* Null, or only blanks? */
bool cell_is_blank(const struct cell *cell);

#endif
