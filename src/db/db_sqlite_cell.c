/*
 * SQLite: what a cell is. The storage class rules; the declared type only says
 * which kind of integer or text it is. A DECIMAL column in SQLite holds what its
 * NUMERIC affinity made of it, and is handed on as the digits SQLite prints.
 */
#include "db/sqlite.h"

#include "base/arena.h"

#include <ctype.h>
#include <strings.h>

struct type_row {
    const char *part; /* of the declared type; the first that occurs decides */
    enum db_type type;
};

static const struct type_row type_rows[] = {
    {"BOOL", DB_BOOL}, {"TIMESTAMP", DB_TIMESTAMP}, {"DATETIME", DB_TIMESTAMP},
    {"DATE", DB_DATE}, {"DEC", DB_DECIMAL},         {"NUMERIC", DB_DECIMAL},
    {"INT", DB_INT},   {"CHAR", DB_TEXT},           {"CLOB", DB_TEXT},
    {"TEXT", DB_TEXT}, {"BLOB", DB_BLOB},           {"BYTEA", DB_BLOB},
    {"REAL", DB_REAL}, {"FLOA", DB_REAL},           {"DOUB", DB_REAL},
};

static enum db_type
type_of_decl(const char *decl)
{
    for (size_t i = 0; decl && i < array_len(type_rows); i++) {
        if (strcasestr(decl, type_rows[i].part))
            return type_rows[i].type;
    }
    return DB_NULL;
}

int
sqlite_param_count(struct db *db, void *cursor)
{
    const struct sqlite_stmt *stmt = cursor;

    return stmt->n_params;
}

int
sqlite_column_count_of(struct db *db, void *cursor)
{
    const struct sqlite_stmt *stmt = cursor;

    return sqlite3_column_count(stmt->stmt);
}

const char *
sqlite_column_name_of(struct db *db, void *cursor, int column)
{
    const struct sqlite_stmt *stmt = cursor;
    const char *name = sqlite3_column_name(stmt->stmt, column);

    return name ? name : "";
}

enum db_type
sqlite_column_type_of(struct db *db, void *cursor, int column)
{
    struct sqlite_stmt *stmt = cursor;

    if (!stmt->types) {
        int count = sqlite3_column_count(stmt->stmt);

        stmt->types = xcalloc((size_t)count + 1, sizeof(*stmt->types));
        for (int i = 0; i < count; i++)
            stmt->types[i] = type_of_decl(sqlite3_column_decltype(stmt->stmt, i));
    }
    return stmt->types[column];
}

static bool
digits_at(const char *text, size_t at, size_t count)
{
    for (size_t i = at; i < at + count; i++) {
        if (!isdigit((unsigned char)text[i]))
            return false;
    }
    return true;
}

/* 2031-12-24 at the start? */
static bool
starts_with_date(const char *text, size_t len)
{
    return len >= 10 && digits_at(text, 0, 4) && text[4] == '-' &&
           digits_at(text, 5, 2) && text[7] == '-' && digits_at(text, 8, 2);
}

static bool
is_decimal(const char *text, size_t len)
{
    size_t i = len > 0 && (text[0] == '-' || text[0] == '+'), digits = 0;
    bool point = false;

    for (; i < len; i++) {
        if (text[i] == '.' && !point)
            point = true;
        else if (isdigit((unsigned char)text[i]))
            digits++;
        else
            return false;
    }
    return digits > 0;
}

/* Text in a column that declares more: believed only if it looks the part. */
static enum db_type
type_of_text(enum db_type declared, const char *text, size_t len)
{
    if (declared == DB_DATE && len == 10 && starts_with_date(text, len))
        return DB_DATE;
    if ((declared == DB_TIMESTAMP || declared == DB_DATE) && len > 10 &&
        starts_with_date(text, len) && (text[10] == ' ' || text[10] == 'T'))
        return DB_TIMESTAMP;
    if (declared == DB_TIMESTAMP && len == 10 && starts_with_date(text, len))
        return DB_DATE;
    if (declared == DB_DECIMAL && is_decimal(text, len))
        return DB_DECIMAL;
    return DB_TEXT;
}

const char *
sqlite_cell_text(struct db *db, void *cursor, int column, size_t *ret_len)
{
    const struct sqlite_stmt *stmt = cursor;
    const char *text;

    *ret_len = 0;
    if (sqlite3_column_type(stmt->stmt, column) == SQLITE_NULL)
        return NULL;
    text = (const char *)sqlite3_column_text(stmt->stmt, column);
    *ret_len = (size_t)sqlite3_column_bytes(stmt->stmt, column);
    return text ? text : "";
}

static struct db_value
text_cell(struct db *db, void *cursor, int column, enum db_type type)
{
    size_t len;
    const char *text = sqlite_cell_text(db, cursor, column, &len);

    return p_bytes(type, text, len);
}

static struct db_value
real_cell(struct db *db, void *cursor, int column)
{
    const struct sqlite_stmt *stmt = cursor;
    struct db_value value;

    if (sqlite_column_type_of(db, cursor, column) != DB_DECIMAL)
        return p_real(sqlite3_column_double(stmt->stmt, column));
    value = text_cell(db, cursor, column, DB_DECIMAL);
    if (!is_decimal(value.s.p, value.s.n)) /* 1.0e+20, Inf */
        return p_real(sqlite3_column_double(stmt->stmt, column));
    return value;
}

struct db_value
sqlite_cell(struct db *db, void *cursor, int column)
{
    const struct sqlite_stmt *stmt = cursor;
    enum db_type declared = sqlite_column_type_of(db, cursor, column);
    const void *data;
    struct db_value value;

    switch (sqlite3_column_type(stmt->stmt, column)) {
    case SQLITE_INTEGER:
        if (declared == DB_DECIMAL)
            return text_cell(db, cursor, column, DB_DECIMAL);
        value = p_i64(sqlite3_column_int64(stmt->stmt, column));
        if (declared == DB_BOOL && (value.i == 0 || value.i == 1))
            value.type = DB_BOOL;
        return value;
    case SQLITE_FLOAT:
        return real_cell(db, cursor, column);
    case SQLITE_TEXT:
        value = text_cell(db, cursor, column, DB_TEXT);
        value.type = type_of_text(declared, value.s.p, value.s.n);
        return value;
    case SQLITE_BLOB:
        data = sqlite3_column_blob(stmt->stmt, column);
        return p_blob(data ? data : "",
                      (size_t)sqlite3_column_bytes(stmt->stmt, column));
    default:
        return p_null();
    }
}
