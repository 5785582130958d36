/*
 * Inserting goes by db_copy (COPY on PostgreSQL, one prepared INSERT on SQLite),
 * upserts by sql_upsert.c, all else by statements of the job: `item` once for each item
 * of the chunk, then `rows` for each row. The statements are made when the first rows
 * come, because only then is the connection known: it is the checkpoint's, whose
 * transaction the rows belong to. Only with `checkpoint: none` does the writer commit
 * by itself, on a connection of its own.
 */
#include "io/write_sql.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/strs.h"
#include "db/db.h"
#include "io/formats.h"
#include "io/io_ctx.h"
#include "io/option.h"
#include "io/processor.h"
#include "io/row.h"
#include "io/sql_statement.h"
#include "io/sql_upsert.h"

#include <stdlib.h>
#include <string.h>

struct statements {
    struct sql_statement *list;
    size_t count;
};

struct sql_writer {
    struct writer writer;
    const json_t *def;
    const char *database;
    struct arena arena; /* the statements and what belongs to them */
    struct db *db;      /* with `checkpoint: none` */
    struct db_tx tx;
    const struct column *columns;
    size_t width;
    bool prepared;
    bool copy;   /* by db_copy */
    bool upsert; /* by sql_upsert */
    struct sql_upsert upserting;
    struct statements of_item;
    struct statements of_row;
    const char **names;      /* of columns, for db_copy */
    struct db_value *values; /* of one row, for db_copy */
    char (*texts)[CELL_TEXT_MAX];
    int64_t rows;
    int64_t chunk_start; /* rows before the set that is being written */
    int64_t committed;   /* rows, with `checkpoint: none` */
};

static struct sql_writer *
sql_of(struct writer *writer)
{
    return container_of(writer, struct sql_writer, writer);
}

/* --- open --- */

/* To start over would write rows again that are there: so another state is refused. */
static int
sql_open(struct writer *writer, const char *state, struct err *err)
{
    struct sql_writer *sql = sql_of(writer);

    if (state && !writer_state_rows(state, "sql", &sql->rows))
        return err_set(
            err, ERR_INVALID,
            "what was begun is no write to a database: the step's definition "
            "has changed; ask for a new run (restart: false)");
    sql->committed = sql->rows;
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
    return 0;
}

/* --- the statements --- */

/* A text, or a list of texts. */
static int
make_statements(struct sql_writer *sql, const char *key, const struct column *columns,
                size_t width, bool pg, struct statements *ret, struct err *err)
{
    const json_t *def = json_object_get(sql->def, key);
    size_t count = json_is_array(def) ? json_array_size(def) : def != NULL;
    struct statements made = {arena_array(&sql->arena, struct sql_statement, count),
                              count};

    for (size_t i = 0; i < count; i++) {
        const json_t *one = json_is_array(def) ? json_array_get(def, i) : def;
        const char *where = json_is_array(def)
                                ? arena_printf(&sql->arena, "write.%s[%zu]", key, i)
                                : arena_printf(&sql->arena, "write.%s", key);
        int r = sql_statement_make(json_string_value(one), where, columns, width,
                                   sql->writer.io->params, pg, &sql->arena,
                                   &made.list[i], err);

        if (r < 0)
            return r;
    }
    *ret = made;
    return 0;
}

static void
prepare_copy(struct sql_writer *sql)
{
    sql->copy = true;
    sql->values = arena_array(&sql->arena, struct db_value, sql->width);
    sql->texts = arena_alloc_array(&sql->arena, sizeof(*sql->texts), sql->width);
    sql->names = arena_array(&sql->arena, const char *, sql->width);
    for (size_t i = 0; i < sql->width; i++)
        sql->names[i] = sql->columns[i].name;
}

static int
prepare_upsert(struct sql_writer *sql, struct db *db, struct err *err)
{
    int r = sql_upsert_make(db, io_option_text(sql->def, "table", ""),
                            json_object_get(sql->def, "key"), sql->columns, sql->width,
                            &sql->arena, &sql->upserting, err);

    sql->upsert = r == 0;
    return r;
}

static int
prepare(struct sql_writer *sql, struct db *db, const struct row_set *rows,
        struct err *err)
{
    const struct item_view *items = rows->items;
    bool pg = db_kind(db) == DB_PG;
    int r = make_statements(sql, "item", items ? items->columns : sql->columns,
                            items ? items->width : sql->width, pg, &sql->of_item, err);

    if (r == 0)
        r = make_statements(sql, "rows", sql->columns, sql->width, pg, &sql->of_row,
                            err);
    if (r == 0 && json_object_get(sql->def, "table")) {
        if (str_eq(io_option_text(sql->def, "mode", "insert"), "upsert"))
            r = prepare_upsert(sql, db, err);
        else
            prepare_copy(sql);
    }
    sql->prepared = r == 0;
    return r;
}

/* --- rows --- */

/* Puts the database's name before a failure, and the remedy where we know one. */
static int
failed(const struct sql_writer *sql, int r, struct err *err)
{
    if (r == -ERR_STORE_BUSY && !str_eq(sql->database, "main"))
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
            sql->values[k] = sql_value_of(&cells[k], sql->texts[k]);
        r = db_copy_row(&copy, sql->values, err);
        if (r < 0)
            return copy_failed(sql, err);
    }
    r = db_copy_end(&copy, &copied, err);
    return r < 0 ? copy_failed(sql, err) : 0;
}

static int
row_failed(const struct sql_writer *sql, size_t row, struct err *err)
{
    return err_prefix(err, "row %lld",
                      (long long)(sql->chunk_start + (int64_t)row + 1));
}

static int
upsert_rows(struct sql_writer *sql, struct db *db, const struct row_set *rows,
            struct err *err)
{
    size_t bad = 0;
    int r = sql_upsert_rows(&sql->upserting, db, rows, &bad, err);

    if (r >= 0)
        return 0;
    return bad < rows->count ? row_failed(sql, bad, err) : copy_failed(sql, err);
}

/* Each statement in its turn, for the cells of one row or item. */
static int
run_statements(struct statements *statements, struct db *db, const struct cell *cells,
               struct err *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < statements->count; i++) {
        r = sql_statement_run(&statements->list[i], db, cells, err);
        if (r < 0 && statements->count > 1)
            err_prefix(err, "statement %zu", i + 1);
    }
    return r;
}

static int
run_for_items(struct sql_writer *sql, struct db *db, const struct row_set *rows,
              struct err *err)
{
    const struct item_view *items = rows->items;
    size_t count = items ? items->count : rows->count;
    size_t width = items ? items->width : rows->width;
    const struct cell *cells = items ? items->cells : rows->cells;

    for (size_t i = 0; i < count; i++) {
        int r = run_statements(&sql->of_item, db, cells + i * width, err);

        if (r < 0)
            return err_prefix(err, "item %zu of the chunk", i + 1);
    }
    return 0;
}

static int
run_for_rows(struct sql_writer *sql, struct db *db, const struct row_set *rows,
             struct err *err)
{
    for (size_t i = 0; i < rows->count; i++) {
        int r = run_statements(&sql->of_row, db, row_set_row(rows, i), err);

        if (r < 0)
            return row_failed(sql, i, err);
    }
    return 0;
}

static int
sql_apply(struct writer *writer, struct db *db, const struct row_set *rows,
          struct err *err)
{
    struct sql_writer *sql = sql_of(writer);
    int r = 0;

    if (rows->count == 0 && (!rows->items || rows->items->count == 0))
        return 0;
    if (!sql->prepared)
        r = prepare(sql, db, rows, err);
    if (r == 0 && sql->of_item.count > 0)
        r = run_for_items(sql, db, rows, err);
    if (r == 0 && sql->of_row.count > 0)
        r = run_for_rows(sql, db, rows, err);
    if (r == 0 && rows->count > 0 && sql->upsert)
        r = upsert_rows(sql, db, rows, err);
    if (r == 0 && rows->count > 0 && sql->copy)
        r = copy_rows(sql, db, rows, err);
    if (writer->in_checkpoint) /* rows that were rolled back are not there to be counted
                                */
        sql->rows = sql->chunk_start + (r < 0 ? 0 : (int64_t)rows->count);
    return r < 0 ? failed(sql, r, err) : 0;
}

/* Roll back what our own transaction has, so that its rows can be written again, all or
 * one by one. */
static int
give_up(struct sql_writer *sql, int r)
{
    db_tx_end(&sql->tx);
    sql->rows = sql->committed;
    sql->writer.refused = r == -ERR_DB_CONSTRAINT ? ITEM_CONSTRAINT : 0;
    return r;
}

static int
write_own(struct sql_writer *sql, const struct row_set *rows, struct err *err)
{
    int r;

    if (!sql->tx.db) {
        r = db_begin(sql->db, DB_WRITE, &sql->tx, err);
        if (r < 0)
            return give_up(sql, failed(sql, r, err));
    }
    r = sql_apply(&sql->writer, sql->db, rows, err);
    return r < 0 ? give_up(sql, r) : 0;
}

static int
sql_write(struct writer *writer, const struct row_set *rows, struct err *err)
{
    struct sql_writer *sql = sql_of(writer);
    int r;

    sql->chunk_start = sql->rows;
    writer->refused = 0;
    if (!writer->in_checkpoint) {
        r = write_own(sql, rows, err);
        if (r < 0)
            return r;
    }
    sql->rows += (int64_t)rows->count;
    return 0;
}

static int
commit_own(struct sql_writer *sql, struct err *err)
{
    int r;

    sql->writer.refused = 0;
    r = sql->tx.db ? db_commit(&sql->tx, err) : 0;
    if (r < 0)
        return give_up(sql, failed(sql, r, err));
    sql->committed = sql->rows;
    return 0;
}

static int
sql_commit(struct writer *writer, struct buf *state, struct err *err)
{
    struct sql_writer *sql = sql_of(writer);
    int r = commit_own(sql, err);

    if (r < 0)
        return r;
    buf_addf(state, "{\"format\":\"sql\",\"rows\":%lld}", (long long)sql->rows);
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
    sql_upsert_release(&sql->upserting);
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
    sql->writer.in_checkpoint = format_effect(def) == IO_EFFECT_TRANSACTIONAL;
    *ret_writer = &sql->writer;
    return 0;
}
