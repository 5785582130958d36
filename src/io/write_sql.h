/*
 * Rows into a database: `table` with mode insert or upsert, or a statement of
 * the user's own in `rows`, run once for each row with its columns as :name.
 *
 * Into `database: main` it writes only inside the checkpoint's transaction
 * (writer_apply, in_checkpoint); into another database it opens a transaction
 * at the first write of a chunk and commits it at commit.
 */
#ifndef IO_WRITE_SQL_H
#define IO_WRITE_SQL_H

#include "io/writer.h"

int write_sql_new(struct io_ctx *io, const json_t *def, struct writer **ret_writer,
                  struct err *err) must_check;

#endif
