/*
 * A file is named NUMBER_word.sql. The number of the newest applied one is a row of
 * pawl.migration, which the first file makes itself; where that table is missing
 * nothing has been applied yet.
 */
#include "store/migrate.h"

#include "base/embed.h"
#include "base/err.h"
#include "base/rand.h"
#include "store/roles.h"
#include "store/store.h"

#include <stdlib.h>

/* Generated from the folders of src/sql/schema/. */
size_t schema_pg(const struct embed_file **ret_files);
size_t schema_sqlite(const struct embed_file **ret_files);

struct schema {
    const struct embed_file *files;
    size_t count;
};

static struct schema
schema_of(const struct db *db)
{
    struct schema schema = {0};

    switch (db_kind(db)) {
    case DB_SQLITE:
        schema.count = schema_sqlite(&schema.files);
        break;
    case DB_PG:
        schema.count = schema_pg(&schema.files);
        break;
    }
    return schema;
}

static int
file_number(const struct embed_file *file)
{
    return (int)strtol(file->name, NULL, 10);
}

int
migrate_newest(const struct db *db)
{
    struct schema schema = schema_of(db);

    return file_number(&schema.files[schema.count - 1]);
}

/* 0 when nothing has been applied. */
static int
applied(struct db *db, int *ret_number, struct err *err)
{
    int64_t value = 0;
    int r;

    r = db_query_i64(db, store_sql(db, STMT_STORE_HAS_MIGRATIONS), NULL, 0, &value,
                     err);
    if (r < 0)
        return r;
    if (value) {
        value = 0;
        r = db_query_i64(db, store_sql(db, STMT_STORE_MIGRATION_NEWEST), NULL, 0,
                         &value, err);
        if (r < 0)
            return r;
    }
    *ret_number = (int)value;
    return 0;
}

static int
refuse_newer(int there, int known, struct err *err)
{
    return err_set(err, ERR_SCHEMA,
                   "the store has schema %d, this pawl knows only up to %d: a newer "
                   "pawl has migrated it; use that version",
                   there, known);
}

static int
apply(struct db *db, const struct embed_file *file, struct err *err)
{
    int r;

    r = db_script(db, (const char *)file->data, err);
    if (r < 0) {
        err_prefix(err, "schema %s", file->name);
        return r;
    }
    return db_run(db, store_sql(db, STMT_STORE_MIGRATION_DONE), err,
                  p_i64(file_number(file)), p_text(file->name));
}

static int
make_identity(struct db *db, struct err *err)
{
    char id[RAND_HEX128_SIZE];

    rand_hex128(id);
    return db_run(db, store_sql(db, STMT_STORE_IDENTITY_MAKE), err, p_text(id));
}

/* Row of a statement that has one number. */
static int
ask_number(struct db *db, enum stmt stmt, int64_t *ret, struct err *err)
{
    *ret = 0;
    return db_query_i64(db, store_sql(db, stmt), NULL, 0, ret, err);
}

/* PostgreSQL: one migrates at a time, as the role that is to own what is made. ret_may:
 * it is empty or ours; who owns nothing has nothing to do here. */
static int
enter(struct db *db, bool *ret_may, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    int64_t may = 1;
    int r = 0;

    if (db_kind(db) == DB_PG) {
        r = db_run(db, store_sql(db, STMT_STORE_MIGRATION_LOCK), err);
        if (r == 0)
            r = db_ask(db, store_sql(db, STMT_STORE_ACT_AS_OWNER), &rows, err);
        if (r == 0)
            r = db_next(&rows, err);
        db_rows_end(&rows);
        if (r >= 0)
            r = ask_number(db, STMT_STORE_MAY_MIGRATE, &may, err);
    }
    *ret_may = may != 0;
    return r < 0 ? r : 0;
}

static int
apply_missing(struct db *db, int before, struct err *err)
{
    struct schema schema = schema_of(db);
    int r = 0;

    for (size_t i = 0; r == 0 && i < schema.count; i++)
        if (file_number(&schema.files[i]) > before)
            r = apply(db, &schema.files[i], err);
    if (r == 0)
        r = make_identity(db, err);
    if (r < 0 || db_kind(db) != DB_PG)
        return r;
    r = db_run(db, store_sql(db, STMT_STORE_OPEN_RANGES), err);
    if (r == 0 && before < migrate_newest(db))
        r = roles_grant_in(db, err);
    return r;
}

int
migrate_up(struct db *db, struct migrate_report *ret, struct err *err)
{
    scoped(db_tx_end) struct db_tx tx = {0};
    int newest = migrate_newest(db);
    int before;
    bool may;
    int r;

    r = db_begin(db, DB_WRITE, &tx, err);
    if (r == 0)
        r = enter(db, &may, err);
    if (r == 0)
        r = applied(db, &before, err);
    if (r < 0)
        return r;
    if (before > newest)
        return refuse_newer(before, newest, err);
    if (!may && before < newest)
        return err_set(err, ERR_SCHEMA,
                       "the store has schema %d, this pawl needs %d, and the role of "
                       "the URL does not own it: run `pawl migrate` as a member of the "
                       "owner (PAWL_STORE=postgresql://… pawl migrate)",
                       before, newest);
    r = may ? apply_missing(db, before, err) : 0;
    if (r == 0)
        r = db_commit(&tx, err);
    if (r < 0)
        return r;
    *ret = (struct migrate_report){.before = before, .now = newest};
    return 0;
}

int
migrate_check(struct db *db, struct migrate_report *ret, struct err *err)
{
    int newest = migrate_newest(db);
    int there;
    int r;

    r = applied(db, &there, err);
    if (r < 0)
        return r;
    if (there > newest)
        return refuse_newer(there, newest, err);
    if (there == 0)
        return err_set(err, ERR_SCHEMA,
                       "the database has no pawl store yet: run `pawl migrate`");
    if (there < newest)
        return err_set(err, ERR_SCHEMA,
                       "the store has schema %d, this pawl needs %d: run `pawl "
                       "migrate`",
                       there, newest);
    *ret = (struct migrate_report){.before = there, .now = there};
    return 0;
}
