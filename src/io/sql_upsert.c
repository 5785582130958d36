/*
 * Many rows go as one array of texts for each column, which unnest makes rows of again
 * and which are cast to the types of the table's columns: a value is read by the same
 * input function as if it were bound alone. Rows of one statement may not meet the
 * same key twice, so of those the last is taken (DISTINCT ON). Should the statement
 * fail, a savepoint is gone back to and the rows follow one by one, so that the one
 * that is to blame can be named.
 */
#include "io/sql_upsert.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/strs.h"
#include "io/cell_text.h"
#include "io/row.h"
#include "io/sql_text.h"

#include <string.h>

#define ROWS_AT_ONCE 5000
#define SAVEPOINT    "pawl_upsert"

/* --- the statement for one row --- */

static bool
in_key(const json_t *key, const char *column)
{
    for (size_t i = 0; i < json_array_size(key); i++) {
        if (str_eq(json_string_value(json_array_get(key, i)), column))
            return true;
    }
    return false;
}

static void
add_names(struct buf *out, const struct column *columns, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        buf_add_str(out, i ? ", " : "");
        db_quote_name(out, columns[i].name);
    }
}

static void
add_conflict(struct buf *out, const json_t *key, const struct column *columns,
             size_t width)
{
    size_t set = 0;

    buf_add_str(out, " ON CONFLICT (");
    for (size_t i = 0; i < json_array_size(key); i++) {
        buf_add_str(out, i ? ", " : "");
        db_quote_name(out, json_string_value(json_array_get(key, i)));
    }
    buf_add_str(out, ") DO ");
    for (size_t i = 0; i < width; i++) {
        if (in_key(key, columns[i].name))
            continue;
        buf_add_str(out, set++ ? ", " : "UPDATE SET ");
        db_quote_name(out, columns[i].name);
        buf_add_str(out, " = excluded.");
        db_quote_name(out, columns[i].name);
    }
    if (set == 0)
        buf_add_str(out, "NOTHING");
}

static void
add_head(struct buf *out, const char *table, const struct column *columns, size_t width)
{
    buf_add_str(out, "INSERT INTO ");
    db_quote_table(out, table);
    buf_add_str(out, " (");
    add_names(out, columns, width);
    buf_add_str(out, ") ");
}

static int
check_columns(const json_t *key, const struct column *columns, size_t width,
              struct err *err)
{
    if (width > SQL_TEXT_PARAMS_MAX)
        return err_set(err, ERR_CONFIG, "write: %zu columns; an upsert takes %d", width,
                       SQL_TEXT_PARAMS_MAX);
    for (size_t i = 0; i < json_array_size(key); i++) {
        const char *name = json_string_value(json_array_get(key, i));
        bool found = false;

        for (size_t k = 0; k < width; k++)
            found = found || str_eq(columns[k].name, name);
        if (!found)
            return err_set(err, ERR_CONFIG,
                           "write.key: the rows read have no column \"%s\"", name);
    }
    return 0;
}

/* --- the statement for many --- */

static const struct db_sql column_type = {
    .name = "types of the table's columns",
    .text = "SELECT format_type(a.atttypid, -1) FROM pg_attribute a "
            "WHERE a.attrelid = to_regclass($1) AND a.attname = $2 AND a.attnum > 0 "
            "AND NOT a.attisdropped",
    .n_params = 2,
};

/* Adds CAST(r.cN AS type): 1, or 0 when the table has no such column. */
static int
add_cast(struct db *db, const char *table, const struct column *column, size_t number,
         struct arena *arena, const char **ret_cast, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    scoped(buf_release) struct buf quoted = {0};
    int r;

    buf_init(&quoted, 0);
    db_quote_table(&quoted, table);
    r = db_ask(db, &column_type, &rows, err, p_text(buf_str(&quoted)),
               p_text(column->name));
    if (r == 0)
        r = db_next(&rows, err);
    if (r == 1)
        *ret_cast =
            arena_printf(arena, "CAST(r.c%zu AS %s)", number, db_text(&rows, 0));
    return r;
}

/* DISTINCT ON (keys) all FROM unnest(…) ORDER BY keys, the last first */
static void
add_select(struct buf *out, const char *const *casts, const json_t *key,
           const struct column *columns, size_t width)
{
    scoped(buf_release) struct buf keys = {0};

    buf_init(&keys, 0);
    for (size_t i = 0; i < width; i++) {
        if (in_key(key, columns[i].name))
            buf_addf(&keys, "%s%s", keys.len ? ", " : "", casts[i]);
    }
    buf_addf(out, "SELECT DISTINCT ON (%s) ", buf_str(&keys));
    for (size_t i = 0; i < width; i++)
        buf_addf(out, "%s%s", i ? ", " : "", casts[i]);
    buf_add_str(out, " FROM unnest(");
    for (size_t i = 0; i < width; i++)
        buf_addf(out, "%sCAST($%zu AS text[])", i ? ", " : "", i + 1);
    buf_add_str(out, ") WITH ORDINALITY AS r(");
    for (size_t i = 0; i < width; i++)
        buf_addf(out, "c%zu, ", i);
    buf_addf(out, "n) ORDER BY %s, r.n DESC", buf_str(&keys));
}

/* Leaves out->many.text NULL where the table is not as expected: the statement for one
 * row then tells what is wrong, in the database's words. */
static int
make_many(struct db *db, const char *table, const json_t *key,
          const struct column *columns, size_t width, struct arena *arena,
          struct sql_upsert *out, struct err *err)
{
    const char **casts = arena_array(arena, const char *, width);
    scoped(buf_release) struct buf text = {0};

    for (size_t i = 0; i < width; i++) {
        int r = add_cast(db, table, &columns[i], i, arena, &casts[i], err);

        if (r <= 0)
            return r;
    }
    buf_init(&text, 0);
    add_head(&text, table, columns, width);
    add_select(&text, casts, key, columns, width);
    add_conflict(&text, key, columns, width);
    out->many = (struct db_sql){
        .name = "write",
        .text = arena_strdup(arena, buf_str(&text)),
        .n_params = (unsigned char)width,
    };
    return 0;
}

int
sql_upsert_make(struct db *db, const char *table, const json_t *key,
                const struct column *columns, size_t width, struct arena *arena,
                struct sql_upsert *ret, struct err *err)
{
    struct sql_upsert made = {.width = width};
    scoped(buf_release) struct buf text = {0};
    int r = check_columns(key, columns, width, err);

    if (r < 0)
        return r;
    buf_init(&text, 0);
    add_head(&text, table, columns, width);
    buf_add_str(&text, "VALUES (");
    for (size_t i = 0; i < width; i++)
        buf_addf(&text, "%s$%zu", i ? ", " : "", i + 1);
    buf_add_str(&text, ")");
    add_conflict(&text, key, columns, width);
    sql_statement_of_columns(buf_str(&text), width, arena, &made.one);
    if (db_kind(db) == DB_PG)
        r = make_many(db, table, key, columns, width, arena, &made, err);
    if (r < 0)
        return r;
    *ret = made;
    return 0;
}

void
sql_upsert_release(struct sql_upsert *upsert)
{
    arena_release(&upsert->scratch);
}

/* --- rows --- */

static const char *
hex_of(const struct cell *cell, struct arena *arena)
{
    static const char digits[] = "0123456789abcdef";
    char *out = arena_alloc(arena, (size_t)cell->len * 2 + 3);

    out[0] = '\\';
    out[1] = 'x';
    for (size_t i = 0; i < cell->len; i++) {
        unsigned char byte = (unsigned char)cell->text[i];

        out[2 + 2 * i] = digits[byte >> 4];
        out[3 + 2 * i] = digits[byte & 15];
    }
    return out;
}

/* As text, NULL for NULL. */
static int
spell(const struct cell *cell, struct arena *arena, const char **ret, struct err *err)
{
    char text[CELL_TEXT_MAX];

    switch ((enum cell_type)cell->type) {
    case CELL_NULL:
    case CELL_TYPE_COUNT:
        *ret = NULL;
        return 0;
    case CELL_BOOL:
        *ret = cell->i ? "t" : "f";
        return 0;
    case CELL_INT:
        *ret = arena_strndup(arena, text, text_i64(text, cell->i));
        return 0;
    case CELL_REAL:
        *ret = arena_strndup(arena, text, text_real(text, cell->real));
        return 0;
    case CELL_DATE:
        *ret = arena_strndup(arena, text, text_date(text, cell->i));
        return 0;
    case CELL_TIMESTAMP:
        *ret = arena_strndup(arena, text,
                             text_timestamp(text, cell->i, cell->zoneless, ' '));
        return 0;
    case CELL_BYTES:
        *ret = hex_of(cell, arena);
        return 0;
    case CELL_DECIMAL:
    case CELL_TEXT:
        if (cell->len > 0 && memchr(cell->text, '\0', cell->len))
            return err_set(err, ERR_INVALID, "a text has a NUL byte in it");
        *ret = arena_strndup(arena, cell->text, cell->len);
        return 0;
    }
    return 0;
}

static int
one_by_one(struct sql_upsert *upsert, struct db *db, const struct row_set *rows,
           size_t from, size_t to, size_t *ret_bad, struct err *err)
{
    for (size_t i = from; i < to; i++) {
        int r = sql_statement_run(&upsert->one, db, row_set_row(rows, i), err);

        if (r < 0) {
            *ret_bad = i;
            return r;
        }
    }
    return 0;
}

static int
all_at_once(struct sql_upsert *upsert, struct db *db, const struct row_set *rows,
            size_t from, size_t to, size_t *ret_bad, struct err *err)
{
    struct arena *arena = &upsert->scratch;
    struct db_value *values;
    size_t count = to - from;

    arena_clear(arena);
    values = arena_array(arena, struct db_value, upsert->width);
    for (size_t k = 0; k < upsert->width; k++) {
        const char **texts = arena_array(arena, const char *, count);

        for (size_t i = 0; i < count; i++) {
            int r = spell(&row_set_row(rows, from + i)[k], arena, &texts[i], err);

            if (r < 0) {
                *ret_bad = from + i;
                return r;
            }
        }
        values[k] = p_text_array(texts, count);
    }
    return db_exec(db, &upsert->many, values, upsert->width, err);
}

/* Is one of the rows to blame, rather than the connection or another transaction? */
static bool
a_row_failed(struct db *db, int r)
{
    return db_usable(db) &&
           (r == -ERR_DB || r == -ERR_DB_CONSTRAINT || r == -ERR_INVALID);
}

static int
slice(struct sql_upsert *upsert, struct db *db, const struct row_set *rows, size_t from,
      size_t to, size_t *ret_bad, struct err *err)
{
    int r = db_savepoint(db, SAVEPOINT, err);

    if (r == 0)
        r = all_at_once(upsert, db, rows, from, to, ret_bad, err);
    if (r == 0)
        return db_release(db, SAVEPOINT, err);
    if (!a_row_failed(db, r))
        return r;
    err_clear(err);
    r = db_rollback_to(db, SAVEPOINT, err);
    return r < 0 ? r : one_by_one(upsert, db, rows, from, to, ret_bad, err);
}

int
sql_upsert_rows(struct sql_upsert *upsert, struct db *db, const struct row_set *rows,
                size_t *ret_bad, struct err *err)
{
    *ret_bad = rows->count;
    if (!upsert->many.text)
        return one_by_one(upsert, db, rows, 0, rows->count, ret_bad, err);
    for (size_t from = 0; from < rows->count; from += ROWS_AT_ONCE) {
        size_t left = rows->count - from;
        int r = slice(upsert, db, rows, from,
                      from + (left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE), ret_bad, err);

        if (r < 0)
            return r;
    }
    return 0;
}
