/*
 * Insert, or change by key: one statement for a row, and on PostgreSQL one for
 * thousands, where a round trip for each row would cost most of the time. What stands
 * there afterwards is the same: of rows with the same key the last one.
 */
#ifndef IO_SQL_UPSERT_H
#define IO_SQL_UPSERT_H

#include "base/arena.h"
#include "io/sql_statement.h"

struct row_set;

struct sql_upsert {
    struct sql_statement one;
    struct db_sql many; /* text NULL: only one by one */
    size_t width;
    struct arena scratch; /* of the rows under way */
};

/* key: list of column names. db: of the kind that it is used with. */
int sql_upsert_make(struct db *db, const char *table, const json_t *key,
                    const struct column *columns, size_t width, struct arena *arena,
                    struct sql_upsert *ret, struct err *err) must_check;
void sql_upsert_release(struct sql_upsert *upsert);

/* In a transaction. *ret_bad: the row that failed, from 0; rows->count: not known. */
int sql_upsert_rows(struct sql_upsert *upsert, struct db *db,
                    const struct row_set *rows, size_t *ret_bad,
                    struct err *err) must_check;

#endif
