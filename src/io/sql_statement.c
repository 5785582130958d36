#include "io/sql_statement.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/strs.h"
#include "io/row.h"
#include "io/sql_text.h"

static enum db_type
text_type(const struct cell *cell)
{
    return cell->type == CELL_BYTES     ? DB_BLOB
           : cell->type == CELL_DECIMAL ? DB_DECIMAL
                                        : DB_TEXT;
}

struct db_value
sql_value_of(const struct cell *cell, char *text)
{
    switch ((enum cell_type)cell->type) {
    case CELL_BOOL:
        return p_bool(cell->i != 0);
    case CELL_INT:
        return p_i64(cell->i);
    case CELL_REAL:
        return p_real(cell->real);
    case CELL_DATE:
        return p_bytes(DB_DATE, text, text_date(text, cell->i));
    case CELL_TIMESTAMP:
        return p_bytes(DB_TIMESTAMP, text,
                       text_timestamp(text, cell->i, cell->zoneless, ' '));
    case CELL_DECIMAL:
    case CELL_TEXT:
    case CELL_BYTES:
        return p_bytes(text_type(cell), cell->text, cell->len);
    case CELL_NULL:
    case CELL_TYPE_COUNT:
        break;
    }
    return p_null();
}

static size_t
find_column(const struct column *columns, size_t width, const char *name)
{
    for (size_t i = 0; i < width; i++) {
        if (str_eq(columns[i].name, name))
            return i;
    }
    return SQL_FROM_PARAMS;
}

static void
make_room(struct sql_statement *made, size_t count, struct arena *arena)
{
    made->sql.name = "write";
    made->sql.n_params = (unsigned char)count;
    made->sources = arena_array(arena, size_t, count + 1);
    made->constants = arena_array(arena, struct db_value, count + 1);
    made->values = arena_array(arena, struct db_value, count + 1);
    made->texts = arena_alloc_array(arena, CELL_TEXT_MAX, count + 1);
}

int
sql_statement_make(const char *text, const char *where, const struct column *columns,
                   size_t width, const json_t *params, bool pg, struct arena *arena,
                   struct sql_statement *ret, struct err *err)
{
    struct sql_statement made = {0};
    struct sql_text rewritten;
    int r = sql_text_rewrite(text, pg, arena, &rewritten, err);

    if (r < 0)
        return err_prefix(err, "%s", where);
    make_room(&made, rewritten.count, arena);
    made.sql.text = rewritten.text;
    for (size_t i = 0; i < rewritten.count; i++) {
        made.sources[i] = find_column(columns, width, rewritten.names[i]);
        if (made.sources[i] != SQL_FROM_PARAMS)
            continue;
        r = sql_text_value(text, rewritten.names[i], params, pg, arena,
                           &made.constants[i], err);
        if (r < 0)
            return err_prefix(err, "%s (no column of the rows read either)", where);
    }
    *ret = made;
    return 0;
}

void
sql_statement_of_columns(const char *text, size_t width, struct arena *arena,
                         struct sql_statement *ret)
{
    struct sql_statement made = {0};

    make_room(&made, width, arena);
    made.sql.text = arena_strdup(arena, text);
    for (size_t i = 0; i < width; i++)
        made.sources[i] = i;
    *ret = made;
}

int
sql_statement_run(struct sql_statement *statement, struct db *db,
                  const struct cell *cells, struct err *err)
{
    size_t count = statement->sql.n_params;

    for (size_t k = 0; k < count; k++) {
        size_t source = statement->sources[k];

        statement->values[k] = source == SQL_FROM_PARAMS
                                   ? statement->constants[k]
                                   : sql_value_of(&cells[source], statement->texts[k]);
    }
    return db_exec(db, &statement->sql, statement->values, count, err);
}
