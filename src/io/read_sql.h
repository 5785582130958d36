/*
 * Rows of a SELECT, streamed from SQLite or PostgreSQL in constant memory. :name
 * parameters are bound from the run's. A position is the number of rows given so
 * far, so the query needs an ORDER BY that fixes the order; with `restart:
 * requery` there is none: the query itself leaves handled rows out.
 */
#ifndef IO_READ_SQL_H
#define IO_READ_SQL_H

#include "io/reader.h"

int read_sql_new(struct io_ctx *io, const json_t *def, struct reader **ret_reader,
                 struct err *err) must_check;

int read_sql_extent(struct io_ctx *io, const json_t *def, const char *key,
                    int64_t *ret_least, int64_t *ret_greatest,
                    struct err *err) must_check;

#endif
