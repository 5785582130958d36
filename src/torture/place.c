/*
 *      <folder>/base/store.db      the store before the job ever ran
 *      <folder>/base/N.db          copies of the SQLite databases that it uses
 *      <folder>/work/              what a round works on, copied from base each time
 *
 * SQLite databases that are only read stay in base. PostgreSQL copies a database itself
 * (CREATE DATABASE … TEMPLATE), which asks for no knowledge of its tables, sequences
 * and triggers; those that are only read are read where they are.
 */
#include "torture/private.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fsio.h"
#include "base/strs.h"
#include "store/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SCHEMA_MAX ((size_t)64 << 20)

/* --- the databases --- */

/* Two names of one database stay one. */
static const struct place_database *
same_database(const struct place *place, const char *url)
{
    for (size_t i = 0; i < place->n_databases; i++)
        if (str_eq(place->databases[i].plan->url, url))
            return &place->databases[i];
    return NULL;
}

static bool
is_written(const struct plan *plan, const char *url)
{
    for (size_t i = 0; i < plan->n_databases; i++)
        if (str_eq(plan->databases[i].url, url) &&
            (plan->databases[i].use & PLAN_WRITE))
            return true;
    return false;
}

static int
add_sqlite(struct place *place, struct place_database *database, bool written,
           struct err *err)
{
    size_t n = place->n_databases;

    database->base = arena_printf(place->arena, "%s/%zu.db", place->base, n);
    database->work = arena_printf(place->arena, "%s/%zu.db", place->work, n);
    database->url = arena_printf(place->arena, "sqlite:%s",
                                 written ? database->work : database->base);
    if (place_copy_sqlite(database->plan->url, database->base, err) < 0)
        return err_prefix(err, "copying database %s", database->plan->name);
    if (!written)
        database->base = database->work = NULL;
    return 0;
}

static int
add_pg(struct place *place, struct place_database *database, bool written,
       struct err *err)
{
    database->url = database->plan->url;
    if (!written)
        return 0;
    database->copy_name = arena_printf(place->arena, "pawl_torture_%d_%zu",
                                       (int)getpid(), place->n_databases);
    database->url =
        place_pg_url(database->plan->url, database->copy_name, place->arena);
    if (place_pg_name(database->plan->url, place->arena, &database->template_name,
                      err) < 0)
        return err_prefix(err, "database %s", database->plan->name);
    return 0;
}

static int
add_database(struct place *place, const struct plan *plan,
             const struct plan_database *planned, struct err *err)
{
    const struct place_database *same = same_database(place, planned->url);
    struct place_database database = {.plan = planned};
    bool written = is_written(plan, planned->url);
    int r = db_url_kind(planned->url, &database.kind, err);

    if (r == 0 && same)
        database.url = same->url;
    else if (r == 0 && database.kind == DB_SQLITE)
        r = add_sqlite(place, &database, written, err);
    else if (r == 0)
        r = add_pg(place, &database, written, err);
    if (r == 0)
        place->databases[place->n_databases++] = database;
    return r;
}

/* --- the store --- */

static const struct db_sql list_tables = {
    .name = "tables",
    .text = "SELECT name FROM sqlite_master WHERE type = 'table'",
    .flags = DB_ONCE,
};

static int
note_own_tables(struct place *place, struct db *db, struct err *err)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    size_t cap = 256;
    int r = db_query(db, &list_tables, NULL, 0, &rows, err);

    place->own = arena_array(place->arena, const char *, cap);
    while (r >= 0 && (r = db_next(&rows, err)) == 1)
        if (place->n_own < cap)
            place->own[place->n_own++] = arena_strdup(place->arena, db_text(&rows, 0));
    return r < 0 ? r : 0;
}

static int
run_schema(const char *path, struct db *db, struct err *err)
{
    scoped(buf_release) struct buf sql = {0};
    int r;

    buf_init(&sql, SCHEMA_MAX);
    r = fs_read_file(path, SCHEMA_MAX, &sql, err);
    if (r == 0)
        r = db_script(db, buf_str(&sql), err);
    return r < 0 ? err_prefix(err, "--schema %s", path) : 0;
}

static int
make_store(struct place *place, const char *schema, struct err *err)
{
    const char *url = arena_printf(place->arena, "sqlite:%s/store.db", place->base);
    struct store_options options = {
        .url = url, .role = "torture", .migrate = true, .connections = 1};
    struct db_options plain = {.url = url};
    scoped(db_closep) struct db *db = NULL;
    struct store *store = NULL;
    int r = store_open(&options, &store, err);

    store_close(store);
    if (r == 0)
        r = db_open(&plain, &db, err);
    if (r == 0)
        r = note_own_tables(place, db, err);
    if (r == 0 && schema)
        r = run_schema(schema, db, err);
    return r;
}

/* --- the configuration --- */

static void
lead_here(struct place *place, const struct torture_order *order)
{
    struct config *config = &place->config;
    struct config_database *databases =
        arena_array(place->arena, struct config_database, place->n_databases + 1);

    *config = *order->config;
    config->store.url = arena_printf(place->arena, "sqlite:%s/store.db", place->work);
    config->store.api = config->store.worker = config->store.url;
    config->store.listen = NULL;
    config->results = arena_printf(place->arena, "%s/results", place->work);
    config->state = arena_printf(place->arena, "%s/state", place->work);
    for (size_t i = 0; i < place->n_databases; i++)
        databases[i] = (struct config_database){.name = place->databases[i].plan->name,
                                                .url = place->databases[i].url};
    config->databases = databases;
    config->database_count = place->n_databases;
}

int
place_open(struct place *place, const struct torture_order *order,
           const struct plan *plan, struct arena *arena, struct err *err)
{
    const char *temp = getenv("TMPDIR");
    char *folder =
        arena_printf(arena, "%s/pawl-torture-XXXXXX", str_empty(temp) ? "/tmp" : temp);
    int r = 0;

    *place = (struct place){.arena = arena, .uses_main = plan->uses_main};
    if (!mkdtemp(folder))
        return err_errno(err, ERR_IO, errno, "cannot make %s; set TMPDIR", folder);
    place->folder = folder;
    place->base = arena_printf(arena, "%s/base", folder);
    place->work = arena_printf(arena, "%s/work", folder);
    r = fs_mkdir_private(place->base, err);
    if (r == 0)
        r = make_store(place, order->schema, err);
    for (size_t i = 0; r == 0 && i < plan->n_databases; i++)
        r = add_database(place, plan, &plan->databases[i], err);
    lead_here(place, order);
    return r;
}

int
place_reset(struct place *place, struct err *err)
{
    const char *from = arena_printf(place->arena, "%s/store.db", place->base);
    const char *to = arena_printf(place->arena, "%s/store.db", place->work);
    int r;

    fs_remove_tree_quietly(place->work);
    r = fs_mkdir_private(place->work, err);
    if (r == 0)
        r = fs_mkdir_private(place->config.state, err);
    if (r == 0)
        r = place_copy_file(from, to, err);
    for (size_t i = 0; r == 0 && i < place->n_databases; i++) {
        const struct place_database *database = &place->databases[i];

        if (database->base)
            r = place_copy_file(database->base, database->work, err);
        else if (database->copy_name)
            r = place_pg_copy(database, err);
    }
    return r;
}

void
place_close(struct place *place)
{
    for (size_t i = 0; i < place->n_databases; i++)
        if (place->databases[i].copy_name)
            place_pg_drop(&place->databases[i]);
    if (place->folder)
        fs_remove_tree_quietly(place->folder);
}
