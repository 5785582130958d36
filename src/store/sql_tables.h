/*
 * What the generated statements.c defines; for sql.c and check-sql, others call
 * store_sql. A statement that a database does not have has no text there.
 */
#ifndef STORE_SQL_TABLES_H
#define STORE_SQL_TABLES_H

#include "db/db.h"
#include "store/statements.h"

extern const struct db_sql *const store_statements[2]; /* by enum db_kind */
extern const char *const store_statement_columns[STMT_COUNT];

#endif
