/*
 * The query runs from open to the last row on a connection that nobody else
 * uses meanwhile. With `restart: key` it becomes the inner part of one that orders
 * by the key and, going on, begins behind the last one (read_sql_key.c). Cells come as
 * the database declares them; where it has no exact type of ours (infinity, a year
 * 12000, SQLite's free typing) they stay what they are, as text.
 */
#include "io/read_sql.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/strs.h"
#include "db/db.h"
#include "io/cell_text.h"
#include "io/io_ctx.h"
#include "io/option.h"
#include "io/read_sql_key.h"
#include "io/row.h"
#include "io/sql_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DESCRIBE_NAME "the query"

struct sql_reader {
    struct reader reader;
    const json_t *def;
    struct arena arena; /* the query, its values, names of columns */
    struct db_sql sql;
    struct db_rows rows;
    struct column *columns;
    size_t width;
    int64_t given;              /* rows returned, from the very start */
    char mark[SHA256_HEX_SIZE]; /* of the query's text */
    struct sql_key key;         /* of `restart: key` */
    const char *extent;         /* only the extent of this column is asked */
};

static struct sql_reader *
sql_of(struct reader *reader)
{
    return container_of(reader, struct sql_reader, reader);
}

/* --- open --- */

static enum cell_type
cell_type_of(enum db_type type)
{
    static const enum cell_type types[] = {
        [DB_NULL] = CELL_NULL,           [DB_INT] = CELL_INT,
        [DB_REAL] = CELL_REAL,           [DB_TEXT] = CELL_TEXT,
        [DB_BLOB] = CELL_BYTES,          [DB_BOOL] = CELL_BOOL,
        [DB_DECIMAL] = CELL_DECIMAL,     [DB_DATE] = CELL_DATE,
        [DB_TIMESTAMP] = CELL_TIMESTAMP, [DB_TEXT_ARRAY] = CELL_TEXT,
        [DB_INT_ARRAY] = CELL_TEXT,
    };

    static_assert_count(types, DB_TYPE_COUNT);
    return types[type];
}

static int
describe_columns(struct sql_reader *sql, struct err *err)
{
    int count = db_column_count(&sql->rows);

    if (count < 1)
        return err_set(err, ERR_CONFIG,
                       "read.sql gives no columns; it must be a SELECT (or end in "
                       "RETURNING)");
    sql->width = (size_t)count;
    sql->columns = arena_array(&sql->arena, struct column, sql->width);
    for (int i = 0; i < count; i++)
        sql->columns[i] = (struct column){
            .name = arena_strdup(&sql->arena, db_column_name(&sql->rows, i)),
            .type = cell_type_of(db_column_type(&sql->rows, i)),
        };
    return 0;
}

static bool
by_key(const struct sql_reader *sql)
{
    return sql->reader.restart == READER_RESTART_KEY;
}

/* The name of a column, quoted. */
static const char *
quoted(struct arena *arena, const char *name)
{
    scoped(buf_release) struct buf buf = {0};

    buf_init(&buf, 0);
    for (; *name; name++) {
        if (*name == '"')
            buf_add_char(&buf, '"');
        buf_add_char(&buf, *name);
    }
    return arena_printf(arena, "\"%s\"", buf_str(&buf));
}

/* The query inside one that asks how far a column reaches, or that gives the rows of a
 * range of it, in its order. A lower end is never the least number there is. */
static const char *
range_around(struct sql_reader *sql, const char *text)
{
    const struct io_range *range = sql->reader.io->range;
    struct arena *arena = &sql->arena;
    const char *key = quoted(arena, sql->extent ? sql->extent : range->key);
    const char *lower = "";
    const char *upper = "";

    if (sql->extent)
        return arena_printf(arena,
                            "SELECT min(%s), max(%s), count(*) - count(%s) FROM "
                            "(%s\n) AS pawl_rows",
                            key, key, key, text);
    if (range->has_lower)
        lower = arena_printf(arena, " AND %s >= %lld", key, (long long)range->lower);
    if (range->has_upper)
        upper = arena_printf(arena, " AND %s < %lld", key, (long long)range->upper);
    return arena_printf(arena, "SELECT * FROM (%s\n) AS pawl_rows WHERE 1 = 1%s%s%s%s",
                        text, lower, upper, by_key(sql) ? "" : " ORDER BY ",
                        by_key(sql) ? "" : key);
}

static int
start_query(struct sql_reader *sql, struct db *db, struct err *err)
{
    const char *text = io_option_text(sql->def, "sql", "");
    bool pg = db_kind(db) == DB_PG;
    struct sql_text made;
    struct db_value *values;
    int r = sql_text_rewrite(text, pg, &sql->arena, &made, err);

    if (r < 0)
        return r;
    values =
        arena_array(&sql->arena, struct db_value, made.count + SQL_KEY_COLUMNS_MAX + 1);
    for (size_t i = 0; i < made.count; i++) {
        r = sql_text_value(text, made.names[i], sql->reader.io->params, pg, &sql->arena,
                           &values[i], err);
        if (r < 0)
            return r;
    }
    if (sql->extent || sql->reader.io->range)
        made.text = range_around(sql, made.text);
    if (by_key(sql) && !sql->extent) {
        r = sql_key_around(&sql->key, &made.text, values, &made.count, &sql->arena,
                           err);
        if (r < 0)
            return r;
    }
    sql->sql = (struct db_sql){
        .name = DESCRIBE_NAME,
        .text = made.text,
        .n_params = (unsigned char)made.count,
        .flags = DB_STREAM | DB_ONCE,
    };
    return db_query(db, &sql->sql, values, made.count, &sql->rows, err);
}

/* Counting rows is good for the same query; whoever mends its columns wants that,
 * whoever changes which rows it gives or their order does not. */
static void
note_change(struct sql_reader *sql, const char *mark, int64_t rows)
{
    if (mark && rows > 0 && !str_eq(mark, sql->mark))
        sql->reader.note = arena_printf(
            &sql->arena,
            "the query was changed since the stop: its first %lld rows count as read "
            "(if they are others, ask with restart: false)",
            (long long)rows);
}

/* Pass over the rows that are behind the position {rows, query}. */
static int
go_to(struct sql_reader *sql, const char *position, struct err *err)
{
    scoped(json_drop) json_t *root = NULL;
    const char *mark = NULL;
    int64_t rows = 0;
    int r = json_parse(position, strlen(position), 6, &root, err);

    if (r == 0 && json_is_object(root))
        r = json_get_i64(root, "rows", &rows, err);
    if (r >= 0 && json_is_object(root))
        r = json_get_str(root, "query", &mark, err);
    if (r < 0)
        return r;
    if (json_object_get(root, "key"))
        return err_set(err, ERR_INVALID,
                       "the step went on by a key until now, and its place is not "
                       "known by position; put `restart: key` back, or ask for a new "
                       "run (restart: false)");
    note_change(sql, mark, rows);
    while (sql->given < rows) {
        r = db_next(&sql->rows, err);
        if (r < 0)
            return r;
        if (r == 0)
            return err_set(err, ERR_INVALID,
                           "the query gives %lld rows, the checkpoint stands at %lld: "
                           "the data changed; ask for a new run (restart: false)",
                           (long long)sql->given, (long long)rows);
        sql->given++;
    }
    return 0;
}

static int
sql_open(struct reader *reader, const char *position, struct err *err)
{
    struct sql_reader *sql = sql_of(reader);
    const char *text = io_option_text(sql->def, "sql", "");
    const char *name = io_option_text(sql->def, "database", "main");
    struct db *db = NULL;
    int r = reader->io->database(reader->io, name, IO_DB_READ, &db, err);

    if (r < 0)
        return r; /* names the database itself */
    sha256_hex(text, strlen(text), sql->mark);
    sql->mark[16] = '\0';
    if (by_key(sql))
        r = sql_key_init(&sql->key, json_object_get(sql->def, "key"), position,
                         &sql->given, &sql->arena, err);
    if (r == 0)
        r = start_query(sql, db, err);
    if (r == 0)
        r = describe_columns(sql, err);
    if (r == 0 && by_key(sql))
        r = sql_key_find(&sql->key, sql->columns, sql->width, err);
    if (r == 0 && position && reader->restart == READER_RESTART_POSITION)
        r = go_to(sql, position, err);
    return r < 0 ? err_prefix(err, "database %s", name) : 0;
}

static const struct column *
sql_columns(struct reader *reader, size_t *ret_count)
{
    struct sql_reader *sql = sql_of(reader);

    *ret_count = sql->width;
    return sql->columns;
}

/* --- rows --- */

/* The typed cell that a text of the database spells, or the text itself. */
static int
put_text(struct row_set *rows, struct cell *cell, enum cell_type type,
         const struct db_value *value, const char *column, struct err *err)
{
    int r;

    if (type == CELL_DATE || type == CELL_TIMESTAMP) {
        if (cell_parse(cell, type, value->s.p, value->s.n))
            return 0;
        type = CELL_TEXT;
    }
    r = cell_set_text(rows, cell, type, value->s.p, value->s.n, column, err);
    if (r < 0 || type != CELL_DECIMAL)
        return r;
    if (cell_parse(cell, CELL_DECIMAL, cell->text, cell->len) ||
        cell_parse(cell, CELL_REAL, cell->text, cell->len))
        return 0; /* the second: NaN, Infinity, and what SQLite keeps as 1e+20 */
    cell->type = CELL_TEXT;
    return 0;
}

static int
put_cell(struct row_set *rows, struct cell *cell, const struct column *column,
         const struct db_value *value, struct err *err)
{
    switch (value->type) {
    case DB_INT:
        cell_set_i64(cell,
                     column->type == CELL_BOOL && (value->i | 1) == 1 ? CELL_BOOL
                                                                      : CELL_INT,
                     value->i);
        return 0;
    case DB_BOOL:
        cell_set_i64(cell, CELL_BOOL, value->i != 0);
        return 0;
    case DB_REAL:
        cell_set_real(cell, value->d);
        return 0;
    case DB_TEXT:
    case DB_BLOB:
    case DB_DECIMAL:
    case DB_DATE:
    case DB_TIMESTAMP:
        return put_text(rows, cell, cell_type_of(value->type), value, column->name,
                        err);
    case DB_NULL:
    case DB_TEXT_ARRAY:
    case DB_INT_ARRAY:
    case DB_TYPE_COUNT:
        break;
    }
    return 0;
}

static int
put_row(struct sql_reader *sql, struct row_set *rows, struct err *err)
{
    struct cell *cells;

    if (by_key(sql)) {
        int r = sql_key_take(&sql->key, &sql->rows, err);

        if (r != SQL_KEY_TAKEN)
            return r < 0 ? err_prefix(err, "row %lld", (long long)sql->given + 1) : 0;
    }
    cells = row_set_add(rows);
    for (size_t i = 0; i < sql->width; i++) {
        struct db_value value = db_cell(&sql->rows, (int)i);
        int r = put_cell(rows, &cells[i], &sql->columns[i], &value, err);

        if (r < 0)
            return err_prefix(err, "row %lld", (long long)sql->given + 1);
    }
    sql->given++;
    return 0;
}

static int
sql_read_chunk(struct reader *reader, size_t max_rows, struct row_set *rows,
               struct err *err)
{
    struct sql_reader *sql = sql_of(reader);
    int r;

    row_set_clear(rows, sql->width);
    while (rows->count < max_rows && !row_set_full(rows)) {
        r = db_next(&sql->rows, err);
        if (r < 0)
            return r;
        if (r == 0) {
            db_rows_end(&sql->rows);
            return READER_END;
        }
        r = put_row(sql, rows, err);
        if (r < 0)
            return r;
    }
    return READER_MORE;
}

static int
sql_position(struct reader *reader, struct buf *position, struct err *err)
{
    struct sql_reader *sql = sql_of(reader);

    if (reader->restart == READER_RESTART_REQUERY)
        buf_add_str(position, "{}");
    else if (by_key(sql))
        sql_key_position(&sql->key, sql->given, position);
    else
        buf_addf(position, "{\"rows\":%lld,\"query\":\"%.16s\"}", (long long)sql->given,
                 sql->mark);
    return 0;
}

static void
sql_free(struct reader *reader)
{
    struct sql_reader *sql = sql_of(reader);

    db_rows_end(&sql->rows);
    sql_key_release(&sql->key);
    arena_release(&sql->arena);
    free(sql);
}

static const struct reader_ops sql_ops = {
    .open = sql_open,
    .columns = sql_columns,
    .read_chunk = sql_read_chunk,
    .position = sql_position,
    .free = sql_free,
};

static enum reader_restart
restart_of(const char *word)
{
    if (str_eq(word, "requery"))
        return READER_RESTART_REQUERY;
    return str_eq(word, "key") ? READER_RESTART_KEY : READER_RESTART_POSITION;
}

/* Values of the one row that tells the extent. */
static int
read_extent(struct sql_reader *sql, int64_t *ret_least, int64_t *ret_greatest,
            struct err *err)
{
    int r = db_next(&sql->rows, err);

    if (r <= 0 || (db_is_null(&sql->rows, 0) && db_i64(&sql->rows, 2) == 0))
        return r < 0 ? r : 0;
    if (db_i64(&sql->rows, 2) > 0)
        return err_set(err, ERR_CONFIG,
                       "partition.key: column %s is NULL in %lld rows, so they would "
                       "be in no partition; leave them out or take another key",
                       sql->extent, (long long)db_i64(&sql->rows, 2));
    if (db_cell(&sql->rows, 0).type != DB_INT || db_cell(&sql->rows, 1).type != DB_INT)
        return err_set(err, ERR_CONFIG,
                       "partition.key: column %s holds no whole numbers only; cast it, "
                       "or take another key",
                       sql->extent);
    *ret_least = db_i64(&sql->rows, 0);
    *ret_greatest = db_i64(&sql->rows, 1);
    return 1;
}

int
read_sql_extent(struct io_ctx *io, const json_t *def, const char *key,
                int64_t *ret_least, int64_t *ret_greatest, struct err *err)
{
    const char *name = io_option_text(def, "database", "main");
    scoped(reader_freep) struct reader *reader = NULL;
    struct db *db = NULL;
    int r = read_sql_new(io, def, &reader, err);

    if (r == 0)
        r = io->database(io, name, IO_DB_READ, &db, err);
    if (r < 0)
        return r;
    sql_of(reader)->extent = key;
    r = start_query(sql_of(reader), db, err);
    if (r == 0)
        r = read_extent(sql_of(reader), ret_least, ret_greatest, err);
    return r < 0 ? err_prefix(err, "database %s", name) : r;
}

int
read_sql_new(struct io_ctx *io, const json_t *def, struct reader **ret_reader,
             struct err *err)
{
    struct sql_reader *sql = xcalloc(1, sizeof(*sql));

    sql->reader.ops = &sql_ops;
    sql->reader.io = io;
    sql->reader.restart = restart_of(io_option_text(def, "restart", NULL));
    sql->def = def;
    *ret_reader = &sql->reader;
    return 0;
}
