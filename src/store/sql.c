/*
 * From the name of a statement to its text. The tables are generated from
 * src/sql/ by tools/sqlgen.awk.
 */
#include "store/store.h"
#include "store/sql_tables.h"

#include <assert.h>

const struct db_sql *
store_sql(const struct db *db, enum stmt stmt)
{
    const struct db_sql *sql = &store_statements[db_kind(db)][stmt];

    /* A statement of one database only was asked of the other. */
    assert(sql->text);
    return sql;
}

const char *
store_sql_columns(enum stmt stmt)
{
    return store_statement_columns[stmt];
}
