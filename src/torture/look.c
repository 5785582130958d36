/*
 * What is in the tables: a hash of each row, sorted, so that tables are compared as
 * bags of rows. Columns whose values differ between two runs without a kill (times,
 * random numbers), and those filled from a sequence, tell nothing and are left out.
 */
#include "torture/private.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"
#include "base/strs.h"

#include <stdlib.h>
#include <string.h>

static const struct db_sql sqlite_tables = {
    .name = "tables",
    .text =
        "SELECT name, '*' FROM sqlite_master WHERE type = 'table' AND name NOT LIKE "
        "'sqlite\\_%' ESCAPE '\\' AND name <> 'pawl_checkpoint' ORDER BY name",
    .flags = DB_ONCE,
};

/* What a sequence gives depends on how often it was asked, not on what was kept. */
static const struct db_sql pg_tables = {
    .name = "tables",
    .text = "SELECT table_schema || '.' || table_name, string_agg(quote_ident("
            "column_name), ', ' ORDER BY ordinal_position) FILTER (WHERE is_identity = "
            "'NO' AND coalesce(column_default, '') NOT LIKE 'nextval(%') FROM "
            "information_schema.columns JOIN information_schema.tables USING "
            "(table_schema, table_name) WHERE table_type = 'BASE TABLE' AND "
            "table_schema NOT IN ('pg_catalog', 'information_schema', 'pawl') AND "
            "table_name <> 'pawl_checkpoint' GROUP BY table_schema, table_name ORDER "
            "BY 1",
    .flags = DB_ONCE,
};

void
look_release(struct look *look)
{
    for (size_t i = 0; i < look->n_tables; i++)
        free(look->tables[i].rows);
    *look = (struct look){0};
}

/* --- a row --- */

static uint64_t
mix(uint64_t sum, const void *data, size_t len)
{
    const unsigned char *bytes = data;

    for (size_t i = 0; i < len; i++)
        sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
    return sum ^ (sum >> 29);
}

static uint64_t
add_cell(struct sha256 *sha, const struct db_value *cell, bool counts)
{
    unsigned char type = (unsigned char)cell->type;
    bool number =
        cell->type == DB_INT || cell->type == DB_BOOL || cell->type == DB_REAL;
    const void *data = number ? (const void *)&cell->i : (const void *)cell->s.p;
    size_t len = number ? sizeof(cell->i) : cell->s.n;

    if (cell->type == DB_NULL)
        len = 0;
    if (counts) {
        sha256_update(sha, &type, 1);
        sha256_update(sha, &len, sizeof(len));
        if (len > 0)
            sha256_update(sha, data, len);
    }
    return mix(mix(UINT64_C(0xcbf29ce484222325), &type, 1), data, len);
}

static void
add_row(struct look_table *table, const struct look_table *noise, struct sha256 *sha,
        const struct db_rows *rows)
{
    uint8_t digest[SHA256_BYTES];

    if (table->n_rows == table->cap) {
        table->cap = table->cap ? table->cap * 2 : 256;
        table->rows = xrealloc(table->rows, table->cap * sizeof(*table->rows));
    }
    for (size_t i = 0; i < table->width; i++) {
        struct db_value cell = db_cell(rows, (int)i);
        bool counts = !noise || i >= noise->width || !noise->noise[i];

        table->sums[i] += add_cell(sha, &cell, counts);
    }
    sha256_final(sha, digest);
    memcpy(table->rows[table->n_rows++].hash, digest, sizeof(table->rows[0].hash));
}

static int
compare_rows(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct look_row));
}

/* --- a table --- */

static const struct look_table *
find_table(const struct look *look, const char *database, const char *name)
{
    for (size_t i = 0; look && i < look->n_tables; i++)
        if (str_eq(look->tables[i].database, database) &&
            str_eq(look->tables[i].name, name))
            return &look->tables[i];
    return NULL;
}

static void
take_columns(struct look_table *table, const struct db_rows *rows, struct arena *arena)
{
    table->width = (size_t)db_column_count(rows);
    table->columns = arena_array(arena, const char *, table->width);
    table->sums = arena_array(arena, uint64_t, table->width);
    table->noise = arena_array(arena, bool, table->width);
    for (size_t i = 0; i < table->width; i++)
        table->columns[i] = arena_strdup(arena, db_column_name(rows, (int)i));
}

static int
read_table(struct db *db, struct look *look, struct look_table *table,
           const struct look_table *noise, const char *select, struct arena *arena,
           struct err *err)
{
    struct db_sql sql = {
        .name = table->name, .text = select, .flags = DB_ONCE | DB_STREAM};
    scoped(db_rows_end) struct db_rows rows = {0};
    scoped(sha256_release) struct sha256 sha = {0};
    int r = db_query(db, &sql, NULL, 0, &rows, err);

    if (r < 0)
        return r;
    sha256_init(&sha);
    take_columns(table, &rows, arena);
    while ((r = db_next(&rows, err)) == 1) {
        if (look->n_rows++ == LOOK_ROWS_MAX)
            return err_set(err, ERR_TOO_LARGE,
                           "the databases hold more than %d rows; give the torture "
                           "smaller ones",
                           LOOK_ROWS_MAX);
        add_row(table, noise, &sha, &rows);
    }
    if (table->n_rows > 0)
        qsort(table->rows, table->n_rows, sizeof(*table->rows), compare_rows);
    return r < 0 ? r : 0;
}

static const char *
select_of(const char *columns, const char *name, struct arena *arena)
{
    scoped(buf_release) struct buf sql = {0};

    buf_init(&sql, 0);
    buf_addf(&sql, "SELECT %s FROM ", columns);
    db_quote_table(&sql, name);
    return arena_strdup(arena, buf_str(&sql));
}

static bool
is_own(const struct place *place, const char *name)
{
    for (size_t i = 0; i < place->n_own; i++)
        if (str_eq(place->own[i], name))
            return true;
    return false;
}

struct listed {
    const char *name;
    const char *columns;
};

#define TABLES_MAX 512

static int
list_tables(struct db *db, const struct place *skip_own, struct arena *arena,
            struct listed *listed, size_t *ret_count, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    size_t count = 0;
    int r = db_query(db, db_kind(db) == DB_PG ? &pg_tables : &sqlite_tables, NULL, 0,
                     &rows, err);

    while (r >= 0 && (r = db_next(&rows, err)) == 1) {
        const char *name = db_text(&rows, 0);

        if (db_is_null(&rows, 1) || (skip_own && is_own(skip_own, name)))
            continue;
        if (count == TABLES_MAX)
            return err_set(err, ERR_TOO_LARGE, "there are more than %d tables",
                           TABLES_MAX);
        listed[count++] = (struct listed){arena_strdup(arena, name),
                                          arena_strdup(arena, db_text(&rows, 1))};
    }
    *ret_count = count;
    return r < 0 ? r : 0;
}

/* --- a database --- */

static int
read_database(const struct place *place, const char *database, const char *url,
              const struct look *noise, struct arena *arena, struct look *look,
              struct err *err)
{
    const struct place *skip_own = str_eq(database, "main") ? place : NULL;
    struct listed *listed = arena_array(arena, struct listed, TABLES_MAX);
    struct db_options options = {.url = url, .read_only = true};
    scoped(db_closep) struct db *db = NULL;
    size_t count = 0;
    int r = db_open(&options, &db, err);

    if (r == 0)
        r = list_tables(db, skip_own, arena, listed, &count, err);
    for (size_t i = 0; r == 0 && i < count; i++) {
        struct look_table *table;

        if (look->n_tables == TABLES_MAX)
            return err_set(err, ERR_TOO_LARGE, "there are more than %d tables",
                           TABLES_MAX);
        table = &look->tables[look->n_tables++];
        *table = (struct look_table){.database = database, .name = listed[i].name};
        r = read_table(db, look, table, find_table(noise, database, table->name),
                       select_of(listed[i].columns, table->name, arena), arena, err);
    }
    return r < 0 ? err_prefix(err, "looking at database %s", database) : 0;
}

int
look_take(const struct place *place, const struct look *noise, struct arena *arena,
          struct look *ret_look, struct err *err)
{
    struct look look = {.tables = arena_array(arena, struct look_table, TABLES_MAX)};
    int r = 0;

    if (place->uses_main)
        r = read_database(place, "main", place->config.store.url, noise, arena, &look,
                          err);
    for (size_t i = 0; r == 0 && i < place->n_databases; i++) {
        const struct place_database *database = &place->databases[i];

        if (database->work || database->copy_name)
            r = read_database(place, database->plan->name, database->url, noise, arena,
                              &look, err);
    }
    if (r < 0) {
        look_release(&look);
        return r;
    }
    *ret_look = look;
    return 0;
}

/* --- comparing --- */

int
look_find_noise(const struct look *a, struct look *b, struct err *err)
{
    for (size_t i = 0; i < b->n_tables; i++) {
        struct look_table *table = &b->tables[i];
        const struct look_table *first = find_table(a, table->database, table->name);

        if (!first || first->n_rows != table->n_rows || first->width != table->width)
            return err_set(err, ERR_INVALID,
                           "two runs without any kill leave different rows in table "
                           "%.60s of database %.60s: nothing can be said of a third. "
                           "Does the job depend on the time, or on data that changes?",
                           table->name, table->database);
        for (size_t k = 0; k < table->width; k++)
            table->noise[k] = first->sums[k] != table->sums[k];
    }
    return 0;
}

static bool
has_row(const struct look_table *table, const struct look_row *row)
{
    return table->n_rows > 0 && bsearch(row, table->rows, table->n_rows,
                                        sizeof(*table->rows), compare_rows) != NULL;
}

static void
compare_tables(const struct look_table *wanted, const struct look_table *got,
               struct look_diff *diff)
{
    size_t i = 0;
    size_t k = 0;
    size_t n_got = got ? got->n_rows : 0;

    while (i < wanted->n_rows || k < n_got) {
        int order = i == wanted->n_rows ? 1
                    : k == n_got        ? -1
                                        : compare_rows(&wanted->rows[i], &got->rows[k]);

        if (order > 0) {
            if (has_row(wanted, &got->rows[k]))
                diff->repeated++;
            else
                diff->other++;
        }
        diff->missing += order < 0;
        i += order <= 0;
        k += order >= 0;
    }
}

bool
look_changed(const struct look *before, const struct look_table *table)
{
    const struct look_table *was = find_table(before, table->database, table->name);

    if (!was || was->n_rows != table->n_rows || was->width != table->width)
        return true;
    for (size_t i = 0; i < table->width; i++)
        if (was->sums[i] != table->sums[i])
            return true;
    return false;
}

void
look_compare(const struct look *wanted, const struct look *got,
             struct look_diff *ret_diff)
{
    *ret_diff = (struct look_diff){0};
    for (size_t i = 0; i < wanted->n_tables; i++) {
        const struct look_table *table = &wanted->tables[i];

        compare_tables(table, find_table(got, table->database, table->name), ret_diff);
        if (ret_diff->missing || ret_diff->repeated || ret_diff->other) {
            ret_diff->table = table;
            return;
        }
    }
}
