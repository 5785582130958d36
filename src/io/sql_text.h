/*
 * SQL that people write with :name in it, made into what the db room binds: each
 * name becomes $1, $2 … in order of first appearance, and never text. Nothing is
 * touched inside quotes, comments, dollar quotes and casts (::).
 */
#ifndef IO_SQL_TEXT_H
#define IO_SQL_TEXT_H

#include "base/compiler.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct arena;
struct db_value;
struct err;

#define SQL_TEXT_PARAMS_MAX 255

struct sql_text {
    const char *text;   /* with $n; in the arena */
    const char **names; /* in order of $1, $2 … */
    size_t count;
};

/* pg: dollar quotes, E'' strings and nested comments as PostgreSQL has them.
 * -ERR_CONFIG with line and column for a quote never closed, a bare $1, too many. */
int sql_text_rewrite(const char *sql, bool pg, struct arena *arena,
                     struct sql_text *ret_text, struct err *err) must_check;

/*
 * The value of one name from the run's parameters: texts, integers and booleans as
 * they are, other numbers as exact decimals (PostgreSQL) or doubles (SQLite), lists
 * as arrays. -ERR_CONFIG naming the name and its place in sql when there is none.
 */
int sql_text_value(const char *sql, const char *name, const json_t *params, bool pg,
                   struct arena *arena, struct db_value *ret_value,
                   struct err *err) must_check;

#endif
