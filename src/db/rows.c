/* Rows as callers read them: by index, converted as they ask. */
#include "db/db.h"

#include "base/buf.h"
#include "base/err.h"
#include "db/driver.h"

#include <math.h>
#include <stdlib.h>

int
db_next(struct db_rows *rows, struct err *err)
{
    struct db *db = rows->db;
    int r = db->driver->next(db, rows->cursor, err);

    if (r < 0 && db->in_tx)
        db->tx_failed = true;
    return r;
}

void
db_rows_end(struct db_rows *rows)
{
    if (!rows || !rows->db)
        return;
    rows->db->driver->end(rows->db, rows->cursor);
    *rows = (struct db_rows){0};
}

int
db_param_count(const struct db_rows *rows)
{
    return rows->db->driver->param_count(rows->db, rows->cursor);
}

int
db_column_count(const struct db_rows *rows)
{
    return rows->db->driver->column_count(rows->db, rows->cursor);
}

const char *
db_column_name(const struct db_rows *rows, int column)
{
    return rows->db->driver->column_name(rows->db, rows->cursor, column);
}

enum db_type
db_column_type(const struct db_rows *rows, int column)
{
    return rows->db->driver->column_type(rows->db, rows->cursor, column);
}

int
db_column(const struct db_rows *rows, const char *name)
{
    int count = db_column_count(rows);

    for (int i = 0; i < count; i++) {
        if (strcmp(db_column_name(rows, i), name) == 0)
            return i;
    }
    return -1;
}

struct db_value
db_cell(const struct db_rows *rows, int column)
{
    return rows->db->driver->cell(rows->db, rows->cursor, column);
}

bool
db_is_null(const struct db_rows *rows, int column)
{
    return db_cell(rows, column).type == DB_NULL;
}

const char *
db_text(const struct db_rows *rows, int column)
{
    size_t len;

    return rows->db->driver->cell_text(rows->db, rows->cursor, column, &len);
}

size_t
db_text_len(const struct db_rows *rows, int column)
{
    size_t len = 0;

    rows->db->driver->cell_text(rows->db, rows->cursor, column, &len);
    return len;
}

/* Towards zero, and to the nearest end when out of range (SQLite's rule). */
static int64_t
i64_of_double(double d)
{
    if (isnan(d))
        return 0;
    if (d >= 9223372036854775807.0)
        return INT64_MAX;
    if (d <= -9223372036854775808.0)
        return INT64_MIN;
    return (int64_t)d;
}

int64_t
db_i64(const struct db_rows *rows, int column)
{
    struct db_value cell = db_cell(rows, column);
    const char *text;

    switch (cell.type) {
    case DB_NULL:
        return 0;
    case DB_INT:
    case DB_BOOL:
        return cell.i;
    case DB_REAL:
        return i64_of_double(cell.d);
    case DB_TEXT:
    case DB_BLOB:
    case DB_DECIMAL:
    case DB_DATE:
    case DB_TIMESTAMP:
    case DB_TEXT_ARRAY:
    case DB_INT_ARRAY:
    case DB_TYPE_COUNT:
        break;
    }
    text = db_text(rows, column);
    return text ? strtoll(text, NULL, 10) : 0;
}

double
db_double(const struct db_rows *rows, int column)
{
    struct db_value cell = db_cell(rows, column);
    const char *text;

    if (cell.type == DB_REAL)
        return cell.d;
    if (cell.type == DB_INT || cell.type == DB_BOOL)
        return (double)cell.i;
    text = db_text(rows, column);
    return text ? strtod(text, NULL) : 0.0;
}

bool
db_bool(const struct db_rows *rows, int column)
{
    struct db_value cell = db_cell(rows, column);

    if (cell.type == DB_TEXT)
        return cell.s.n > 0 && (cell.s.p[0] == 't' || cell.s.p[0] == 'T');
    return db_double(rows, column) != 0.0;
}

void
db_quote_name(struct buf *buf, const char *name)
{
    buf_add_char(buf, '"');
    for (const char *p = name; *p; p++) {
        if (*p == '"')
            buf_add_char(buf, '"');
        buf_add_char(buf, *p);
    }
    buf_add_char(buf, '"');
}

void
db_quote_table(struct buf *buf, const char *table)
{
    buf_add_char(buf, '"');
    for (const char *p = table; *p; p++) {
        if (*p == '.') {
            buf_add_str(buf, "\".\"");
            continue;
        }
        if (*p == '"')
            buf_add_char(buf, '"');
        buf_add_char(buf, *p);
    }
    buf_add_char(buf, '"');
}
