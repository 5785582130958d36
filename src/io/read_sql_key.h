/*
 * Reading by key: the query of a job is put inside one that orders its rows by some of
 * its columns and, when going on, begins behind the key of the last row that was
 * committed. Rows that come or go before that key meanwhile do no harm, as counting
 * rows would.
 */
#ifndef IO_READ_SQL_KEY_H
#define IO_READ_SQL_KEY_H

#include "base/buf.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct column;
struct db_rows;
struct db_value;

#define SQL_KEY_COLUMNS_MAX 8

struct sql_key {
    const char *names[SQL_KEY_COLUMNS_MAX];
    int columns[SQL_KEY_COLUMNS_MAX]; /* their places in the row */
    size_t count;
    json_t *from;    /* the key to begin behind; NULL = the first row */
    bool passed;     /* its row was still there */
    struct buf last; /* of the last row taken, JSON; empty = none */
    struct buf next;
};

/* def: a name or a list of names. position: NULL = the start. *ret_given: rows up to
 * there. */
int sql_key_init(struct sql_key *key, const json_t *def, const char *position,
                 int64_t *ret_given, struct arena *arena, struct err *err) must_check;
void sql_key_release(struct sql_key *key);

/* Put the query *text around, with the key's values behind the *count that it has
 * (there is room for SQL_KEY_COLUMNS_MAX more). */
int sql_key_around(struct sql_key *key, const char **text, struct db_value *values,
                   size_t *count, struct arena *arena, struct err *err) must_check;

/* Where are the key's columns? -ERR_CONFIG naming one that is not there. */
int sql_key_find(struct sql_key *key, const struct column *columns, size_t width,
                 struct err *err) must_check;

enum sql_key_outcome {
    SQL_KEY_TAKEN,
    SQL_KEY_PASS, /* the row that was committed last: not to be given again */
};

/* The key of the current row: it must not be NULL and not that of the row before. */
int sql_key_take(struct sql_key *key, const struct db_rows *rows,
                 struct err *err) must_check;

void sql_key_position(const struct sql_key *key, int64_t given, struct buf *position);

#endif
