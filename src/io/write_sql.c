/*
 * Inserting goes by db_copy (COPY on PostgreSQL, one prepared INSERT on SQLite),
 * all else by one prepared statement for each row. The statement is made when
 * the first rows come, because only then is the kind of database known for a
 * writer whose connection is the checkpoint's.
 */
#include "io/write_sql.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/strs.h"
#include "db/db.h"
#include "io/cell_text.h"
#include "io/io_ctx.h"
#include "io/option.h"
#include "io/row.h"
#include "io/sql_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OWN_PARAM SIZE_MAX

struct sql_writer {
    struct writer writer;
    const json_t *def;
    const char *database;
    struct arena arena; /* the statement and what belongs to it */
    struct db *db;      /* of a database other than main */
    struct db_tx tx;
    const struct column *columns;
    size_t width;
    struct db_value *values;      /* of one row */
    char (*texts)[CELL_TEXT_MAX]; /* room for dates spelled out */
    bool prepared;
    bool copy;          /* by db_copy */
    const char **names; /* of columns, for db_copy */
    struct db_sql sql;
    size_t *sources;            /* $n: which column, or OWN_PARAM */
    struct db_value *constants; /* $n when OWN_PARAM */
    int64_t rows;
    int64_t chunk_start; /* rows before the set that is being written */
};

static struct sql_writer *
sql_of(struct writer *writer)
{
    return container_of(writer, struct sql_writer, writer);
}

/* --- open --- */

static bool
state_rows(const char *state, int64_t *ret_rows)
{
    scoped(json_drop) json_t *root = NULL;
    struct err ignored = {0};

    return json_parse(state, strlen(state), 4, &root, &ignored) == 0 &&
           json_is_object(root) &&
           json_get_i64(root, "rows", ret_rows, &ignored) == JSON_FOUND;
}

static int
sql_open(struct writer *writer, const char *state, struct err *err)
{
    struct sql_writer *sql = sql_of(writer);

    if (state && !state_rows(state, &sql->rows))
        return WRITER_STATE_UNUSABLE;
    if (writer->in_checkpoint)
        return 0;
    return writer->io->database(writer->io, sql->database, IO_DB_WRITE, &sql->db, err);
}

static int
sql_begin(struct writer *writer, const struct column *columns, size_t count,
          struct err *err)
{
    struct sql_writer *sql = sql_of(writer);

    sql->columns = columns;
    sql->width = count;
    sql->values =
        arena_array(&sql->arena, struct db_value, count + SQL_TEXT_PARAMS_MAX);
    sql->texts = arena_alloc_array(&sql->arena, CELL_TEXT_MAX, count);
    sql->names = arena_array(&sql->arena, const char *, count);
    for (size_t i = 0; i < count; i++)
        sql->names[i] = columns[i].name;
    return 0;
}

/* --- the statement --- */

static bool
is_key(const json_t *key, const char *column)
{
    for (size_t i = 0; i < json_array_size(key); i++) {
        if (str_eq(json_string_value(json_array_get(key, i)), column))
            return true;
    }
    return false;
}

static void
add_names(struct buf *out, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        buf_add_str(out, i ? ", " : "");
        db_quote_name(out, names[i]);
    }
}

static void
add_conflict(struct sql_writer *sql, struct buf *out, const json_t *key)
{
    size_t set = 0;

    buf_add_str(out, ") ON CONFLICT (");
    for (size_t i = 0; i < json_array_size(key); i++) {
        buf_add_str(out, i ? ", " : "");
        db_quote_name(out, json_string_value(json_array_get(key, i)));
    }
    buf_add_str(out, ") DO ");
    for (size_t i = 0; i < sql->width; i++) {
        if (is_key(key, sql->names[i]))
            continue;
        buf_add_str(out, set++ ? ", " : "UPDATE SET ");
        db_quote_name(out, sql->names[i]);
        buf_add_str(out, " = excluded.");
        db_quote_name(out, sql->names[i]);
    }
    if (set == 0)
        buf_add_str(out, "NOTHING");
}

static int
find_column(const struct sql_writer *sql, const char *name, size_t *ret_column)
{
    for (size_t i = 0; i < sql->width; i++) {
        if (str_eq(sql->names[i], name)) {
            *ret_column = i;
            return 1;
        }
    }
    return 0;
}

static int
check_key(const struct sql_writer *sql, const json_t *key, struct err *err)
{
    size_t column;

    for (size_t i = 0; i < json_array_size(key); i++) {
        const char *name = json_string_value(json_array_get(key, i));

        if (!find_column(sql, name, &column))
            return err_set(err, ERR_CONFIG,
                           "write.key: the rows read have no column \"%s\"", name);
    }
    return 0;
}

static int
make_upsert(struct sql_writer *sql, struct err *err)
{
    const json_t *key = json_object_get(sql->def, "key");
    scoped(buf_release) struct buf text = {0};
    int r = check_key(sql, key, err);

    if (r < 0)
        return r;
    if (sql->width > SQL_TEXT_PARAMS_MAX)
        return err_set(err, ERR_CONFIG, "write: %zu columns; an upsert takes %d",
                       sql->width, SQL_TEXT_PARAMS_MAX);
    buf_init(&text, 0);
    buf_add_str(&text, "INSERT INTO ");
    db_quote_table(&text, io_option_text(sql->def, "table", ""));
    buf_add_str(&text, " (");
    add_names(&text, sql->names, sql->width);
    buf_add_str(&text, ") VALUES (");
    for (size_t i = 0; i < sql->width; i++)
        buf_addf(&text, "%s$%zu", i ? ", " : "", i + 1);
    add_conflict(sql, &text, key);
    sql->sources = arena_array(&sql->arena, size_t, sql->width);
    for (size_t i = 0; i < sql->width; i++)
        sql->sources[i] = i;
    sql->sql.text = arena_strdup(&sql->arena, buf_str(&text));
    sql->sql.n_params = (unsigned char)sql->width;
    return buf_check(&text, "the upsert", err);
}

/* :name is a column of the row, or else a parameter of the run. */
static int
make_statement(struct sql_writer *sql, bool pg, struct err *err)
{
    const char *text = io_option_text(sql->def, "rows", "");
    struct sql_text made;
    int r = sql_text_rewrite(text, pg, &sql->arena, &made, err);

    if (r < 0)
        return err_prefix(err, "write.rows");
    sql->sources = arena_array(&sql->arena, size_t, made.count + 1);
    sql->constants = arena_array(&sql->arena, struct db_value, made.count + 1);
    for (size_t i = 0; i < made.count; i++) {
        if (find_column(sql, made.names[i], &sql->sources[i]))
            continue;
        sql->sources[i] = OWN_PARAM;
        r = sql_text_value(text, made.names[i], sql->writer.io->params, pg, &sql->arena,
                           &sql->constants[i], err);
        if (r < 0)
            return err_prefix(err, "write.rows (no column of the rows read either)");
    }
    sql->sql.text = made.text;
    sql->sql.n_params = (unsigned char)made.count;
    return 0;
}

static int
prepare(struct sql_writer *sql, struct db *db, struct err *err)
{
    int r = 0;

    sql->sql.name = "write";
    if (json_object_get(sql->def, "rows"))
        r = make_statement(sql, db_kind(db) == DB_PG, err);
    else if (str_eq(io_option_text(sql->def, "mode", "insert"), "upsert"))
        r = make_upsert(sql, err);
    else
        sql->copy = true;
    sql->prepared = r == 0;
    return r;
}

/* --- rows --- */

static enum db_type
text_type(const struct cell *cell)
{
    return cell->type == CELL_BYTES     ? DB_BLOB
           : cell->type == CELL_DECIMAL ? DB_DECIMAL
                                        : DB_TEXT;
}

/* text: room of CELL_TEXT_MAX bytes that lives as long as the value. */
static struct db_value
value_of(const struct cell *cell, char *text)
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

/* Puts the database's name before a failure, and the remedy where we know one. */
static int
failed(const struct sql_writer *sql, int r, struct err *err)
{
    if (r == -ERR_STORE_BUSY && sql->db && db_kind(sql->db) == DB_SQLITE)
        return err_prefix(
            err,
            "write to database %s (a step that reads and writes one SQLite "
            "file needs it in WAL mode: PRAGMA journal_mode=WAL)",
            sql->database);
    return err_prefix(err, "write to database %s", sql->database);
}

/* The driver counts rows within the chunk: say where that begins. */
static int
copy_failed(const struct sql_writer *sql, struct err *err)
{
    return err_prefix(err, "in the chunk that begins with row %lld",
                      (long long)(sql->chunk_start + 1));
}

static int
copy_rows(struct sql_writer *sql, struct db *db, const struct row_set *rows,
          struct err *err)
{
    scoped(db_copy_abort) struct db_copy copy = {0};
    int64_t copied;
    int r = db_copy_begin(db, io_option_text(sql->def, "table", ""), sql->names,
                          sql->width, &copy, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < rows->count; i++) {
        const struct cell *cells = row_set_row(rows, i);

        for (size_t k = 0; k < sql->width; k++)
            sql->values[k] = value_of(&cells[k], sql->texts[k]);
        r = db_copy_row(&copy, sql->values, err);
        if (r < 0)
            return copy_failed(sql, err);
    }
    r = db_copy_end(&copy, &copied, err);
    return r < 0 ? copy_failed(sql, err) : 0;
}

static int
run_statements(struct sql_writer *sql, struct db *db, const struct row_set *rows,
               struct err *err)
{
    size_t count = sql->sql.n_params;

    for (size_t i = 0; i < rows->count; i++) {
        const struct cell *cells = row_set_row(rows, i);
        int r;

        for (size_t k = 0; k < count; k++) {
            size_t source = sql->sources[k];

            sql->values[k] = source == OWN_PARAM
                                 ? sql->constants[k]
                                 : value_of(&cells[source], sql->texts[source]);
        }
        r = db_exec(db, &sql->sql, sql->values, count, err);
        if (r < 0)
            return err_prefix(err, "row %lld",
                              (long long)(sql->chunk_start + (int64_t)i + 1));
    }
    return 0;
}

static int
sql_apply(struct writer *writer, struct db *db, const struct row_set *rows,
          struct err *err)
{
    struct sql_writer *sql = sql_of(writer);
    int r = sql->prepared ? 0 : prepare(sql, db, err);

    if (r == 0 && rows->count > 0)
        r = sql->copy ? copy_rows(sql, db, rows, err)
                      : run_statements(sql, db, rows, err);
    return r < 0 ? failed(sql, r, err) : 0;
}

static int
sql_write(struct writer *writer, const struct row_set *rows, struct err *err)
{
    struct sql_writer *sql = sql_of(writer);
    int r;

    sql->chunk_start = sql->rows;
    if (!writer->in_checkpoint) {
        if (!sql->tx.db) {
            r = db_begin(sql->db, DB_WRITE, &sql->tx, err);
            if (r < 0)
                return failed(sql, r, err);
        }
        r = sql_apply(writer, sql->db, rows, err);
        if (r < 0)
            return r;
    }
    sql->rows += (int64_t)rows->count;
    return 0;
}

static int
commit_own(struct sql_writer *sql, struct err *err)
{
    int r = sql->tx.db ? db_commit(&sql->tx, err) : 0;

    return r < 0 ? failed(sql, r, err) : 0;
}

static int
sql_commit(struct writer *writer, struct buf *state, struct err *err)
{
    struct sql_writer *sql = sql_of(writer);
    int r = commit_own(sql, err);

    if (r < 0)
        return r;
    buf_addf(state, "{\"rows\":%lld}", (long long)sql->rows);
    return buf_check(state, "the writer's state", err);
}

static int
sql_finish(struct writer *writer, struct writer_summary *ret_summary, struct err *err)
{
    struct sql_writer *sql = sql_of(writer);
    int r = commit_own(sql, err);

    if (r < 0)
        return r;
    *ret_summary = (struct writer_summary){.rows = sql->rows};
    return 0;
}

static void
sql_free(struct writer *writer)
{
    struct sql_writer *sql = sql_of(writer);

    db_tx_end(&sql->tx);
    arena_release(&sql->arena);
    free(sql);
}

static const struct writer_ops sql_ops = {
    .open = sql_open,
    .begin = sql_begin,
    .write = sql_write,
    .commit = sql_commit,
    .finish = sql_finish,
    .apply = sql_apply,
    .free = sql_free,
};

int
write_sql_new(struct io_ctx *io, const json_t *def, struct writer **ret_writer,
              struct err *err)
{
    struct sql_writer *sql = xcalloc(1, sizeof(*sql));

    sql->writer.ops = &sql_ops;
    sql->writer.io = io;
    sql->def = def;
    sql->database = io_option_text(def, "database", "");
    sql->writer.in_checkpoint = str_eq(sql->database, "main");
    *ret_writer = &sql->writer;
    return 0;
}
