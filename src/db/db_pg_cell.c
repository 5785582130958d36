/* PostgreSQL: what a cell is, from the type's oid and the text the server sent. */
#include "db/pg.h"

#include "base/arena.h"

struct oid_row {
    Oid oid;
    enum db_type type;
};

static const struct oid_row oid_rows[] = {
    {16, DB_BOOL},      {17, DB_BLOB},   {20, DB_INT},         {21, DB_INT},
    {23, DB_INT},       {26, DB_INT},    {700, DB_REAL},       {701, DB_REAL},
    {1700, DB_DECIMAL}, {1082, DB_DATE}, {1114, DB_TIMESTAMP}, {1184, DB_TIMESTAMP},
};

static enum db_type
type_of_oid(Oid oid)
{
    for (size_t i = 0; i < array_len(oid_rows); i++) {
        if (oid_rows[i].oid == oid)
            return oid_rows[i].type;
    }
    return DB_TEXT;
}

int
pg_param_count(struct db *db, void *cursor)
{
    return PQnparams(((struct pg_cursor *)cursor)->res);
}

int
pg_column_count(struct db *db, void *cursor)
{
    return PQnfields(((struct pg_cursor *)cursor)->res);
}

const char *
pg_column_name(struct db *db, void *cursor, int column)
{
    const char *name = PQfname(((struct pg_cursor *)cursor)->res, column);

    return name ? name : "";
}

enum db_type
pg_column_type(struct db *db, void *cursor, int column)
{
    return type_of_oid(PQftype(((struct pg_cursor *)cursor)->res, column));
}

const char *
pg_cell_text(struct db *db, void *state, int column, size_t *ret_len)
{
    const struct pg_cursor *cursor = state;

    *ret_len = 0;
    if (PQgetisnull(cursor->res, cursor->row, column))
        return NULL;
    *ret_len = (size_t)PQgetlength(cursor->res, cursor->row, column);
    return PQgetvalue(cursor->res, cursor->row, column);
}

void
pg_forget_bytes(struct pg_cursor *cursor)
{
    int count = cursor->bytes ? PQnfields(cursor->res) : 0;

    for (int i = 0; i < count; i++) {
        PQfreemem(cursor->bytes[i]);
        cursor->bytes[i] = NULL;
    }
}

/* Decoded once per row and kept until the next. */
static struct db_value
blob_cell(struct pg_cursor *cursor, int column)
{
    size_t count = (size_t)PQnfields(cursor->res);

    if (!cursor->bytes) {
        cursor->bytes = xcalloc(count, sizeof(*cursor->bytes));
        cursor->lens = xcalloc(count, sizeof(*cursor->lens));
    }
    if (!cursor->bytes[column])
        cursor->bytes[column] = PQunescapeBytea(
            (const unsigned char *)PQgetvalue(cursor->res, cursor->row, column),
            &cursor->lens[column]);
    return p_blob(cursor->bytes[column] ? cursor->bytes[column] : "",
                  cursor->lens[column]);
}

struct db_value
pg_cell(struct db *db, void *state, int column)
{
    struct pg_cursor *cursor = state;
    enum db_type type = pg_column_type(db, state, column);
    size_t len;
    const char *text = pg_cell_text(db, state, column, &len);

    if (!text)
        return p_null();
    switch (type) {
    case DB_INT:
        return p_i64(strtoll(text, NULL, 10));
    case DB_BOOL:
        return p_bool(text[0] == 't');
    case DB_REAL:
        return p_real(strtod(text, NULL));
    case DB_BLOB:
        return blob_cell(cursor, column);
    case DB_NULL:
    case DB_TEXT:
    case DB_DECIMAL:
    case DB_DATE:
    case DB_TIMESTAMP:
    case DB_TEXT_ARRAY:
    case DB_INT_ARRAY:
    case DB_TYPE_COUNT:
        break;
    }
    return p_bytes(type, text, len);
}
