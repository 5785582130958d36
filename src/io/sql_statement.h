/*
 * A statement of a job that is run for rows: each :name in it is a column of the row,
 * or else a parameter of the run. Made when the kind of database and the columns are
 * known; all it holds lies in the arena that it was made in.
 */
#ifndef IO_SQL_STATEMENT_H
#define IO_SQL_STATEMENT_H

#include "db/db.h"
#include "io/cell_text.h"

#include <jansson.h>

struct arena;
struct cell;
struct column;

struct sql_statement {
    struct db_sql sql;
    size_t *sources;              /* $n: which column, or SQL_FROM_PARAMS */
    struct db_value *constants;   /* $n when SQL_FROM_PARAMS */
    struct db_value *values;      /* of one row */
    char (*texts)[CELL_TEXT_MAX]; /* room for dates spelled out */
};

#define SQL_FROM_PARAMS SIZE_MAX

/* where: "write.rows", for messages. */
int sql_statement_make(const char *text, const char *where,
                       const struct column *columns, size_t width, const json_t *params,
                       bool pg, struct arena *arena, struct sql_statement *ret,
                       struct err *err) must_check;

/* text is ready for the database: $1 is the first column, and so on. */
void sql_statement_of_columns(const char *text, size_t width, struct arena *arena,
                              struct sql_statement *ret);

int sql_statement_run(struct sql_statement *statement, struct db *db,
                      const struct cell *cells, struct err *err) must_check;

/* A cell as a parameter. text: CELL_TEXT_MAX bytes that live as long as the value. */
struct db_value sql_value_of(const struct cell *cell, char *text);

#endif
