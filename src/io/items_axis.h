/*
 * One factor of the product that `read: {items: …}` goes over: the values of a
 * list, of a range, of a parameter, or the rows of a query. All of them are in
 * memory, so there are ceilings. One thread.
 */
#ifndef IO_ITEMS_AXIS_H
#define IO_ITEMS_AXIS_H

#include "io/row.h"

#include <jansson.h>

struct arena;
struct err;
struct io_ctx;
struct reader;

#define AXIS_VALUES_MAX 1000000
#define AXIS_BYTES_MAX  ((size_t)64 << 20)

struct items_axis {
    const char *name;
    struct row_set rows; /* its values, row after row */
    const struct column *columns;
    struct reader *query; /* keeps the names of its columns; NULL: no query */
};

/* Is it the description of one? -ERR_CONFIG naming read.items.NAME. */
int items_axis_check(const char *name, const json_t *def, struct err *err) must_check;

/* Its values; names and columns go into the arena. An axis that failed is released
 * like any other. */
int items_axis_fill(struct items_axis *axis, const char *name, const json_t *def,
                    struct io_ctx *io, struct arena *arena, struct err *err) must_check;
void items_axis_release(struct items_axis *axis);

#endif
