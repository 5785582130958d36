/*
 * Each test has a store of its own: a folder, or a database made in the cluster given.
 * Making a database takes half a second, so one that a test leaves behind unchanged but
 * for its rows is emptied and handed on: to the next test of this process, and at its
 * end, by the table spare of the cluster's database postgres, to another process.
 */
#include "tests/store/harness.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/embed.h"
#include "base/fsio.h"
#include "base/rand.h"
#include "base/sha256.h"

#include <stdio.h>
#include <stdlib.h>

/* A table of one row stands for the clock on PostgreSQL. */
static const char pg_clock[] =
    "CREATE TABLE public.test_clock (now bigint NOT NULL);"
    "INSERT INTO public.test_clock VALUES (0);"
    "CREATE OR REPLACE FUNCTION pawl.pawl_now() RETURNS bigint LANGUAGE sql STABLE"
    " AS 'SELECT now FROM public.test_clock';";

/* All that a test might have changed besides rows. */
static const char pg_fingerprint[] =
    "SELECT md5(string_agg(x, ',' ORDER BY x)) FROM ("
    " SELECT concat('c', oid, relname, relkind, relacl) AS x FROM pg_class"
    "  WHERE relnamespace NOT IN (11, 99)"
    " UNION ALL SELECT concat('p', oid, prosrc, proacl) FROM pg_proc"
    "  WHERE pronamespace <> 11"
    " UNION ALL SELECT concat('t', oid) FROM pg_trigger"
    " UNION ALL SELECT concat('n', oid) FROM pg_namespace WHERE nspname !~ '^pg_'"
    " UNION ALL SELECT concat('m', number) FROM pawl.migration) all_of_it";

static const char pg_empty[] =
    "DO $$ DECLARE t record; BEGIN"
    " FOR t IN SELECT oid::regclass AS name, relkind FROM pg_class"
    "  WHERE relnamespace = 'pawl'::regnamespace AND NOT relispartition"
    "  AND relkind IN ('r', 'p', 'S') AND relname NOT IN ('migration', 'store')"
    "  ORDER BY relname = 'instance', relname = 'execution'"
    " LOOP"
    "  IF t.relkind = 'S' THEN PERFORM setval(t.name, 1, false);"
    "  ELSE EXECUTE 'DELETE FROM ' || t.name; END IF;"
    " END LOOP; END $$";

/* Made for one schema only. */
static const char pg_spare_once[] =
    "BEGIN; SELECT pg_advisory_xact_lock(7368);"
    " CREATE TABLE IF NOT EXISTS spare"
    " (schema text, database text, fingerprint text); COMMIT";

/* Left behind by an earlier test; "" = none. */
static struct spare {
    char database[64];
    char fingerprint[64];
} spare;

/* src/store's, built into the binary */
size_t schema_pg(const struct embed_file **ret_files);

static int64_t
clock_now(void *arg)
{
    struct harness *h = (struct harness *)arg;

    return __atomic_load_n(&h->now_us, __ATOMIC_SEQ_CST);
}

static const char *
server_url(enum harness_kind kind)
{
    switch (kind) {
    case HARNESS_SQLITE:
        return NULL;
    case HARNESS_PG:
        return getenv("PAWL_TEST_PG");
    case HARNESS_PGBOUNCER:
        return getenv("PAWL_TEST_PG") ? getenv("PAWL_TEST_PGBOUNCER") : NULL;
    }
    return NULL;
}

/* PAWL_TEST_STORES names those to test on, such as "sqlite,pg"; without it, all. */
static bool
is_wanted(enum harness_kind kind)
{
    static const char *const names[] = {"sqlite", "pg", "pooler"};
    const char *wanted = getenv("PAWL_TEST_STORES");

    return !wanted || strstr(wanted, names[kind]);
}

static void
admin(const char *sql)
{
    struct db_options options = {.url = getenv("PAWL_TEST_PG")};
    scoped(db_closep) struct db *db = NULL;
    struct err err = {0};

    assert_ok(db_open(&options, &db, &err), &err);
    assert_ok(db_script(db, sql, &err), &err);
}

/* url with another database name in place of its last part. */
static void
url_for(char *ret, size_t size, const char *url, const char *database)
{
    const char *slash = strrchr(url, '/');

    assert_non_null(slash);
    snprintf(ret, size, "%.*s/%s", (int)(slash - url), url, database);
}

static void
drop_database(const char *database)
{
    char sql[512];

    snprintf(sql, sizeof(sql), "DROP DATABASE IF EXISTS %s WITH (FORCE)", database);
    admin(sql);
}

static void
schema_hash(char ret[SHA256_HEX_SIZE])
{
    const struct embed_file *files;
    size_t count = schema_pg(&files);
    scoped(sha256_release) struct sha256 sha = {0};

    sha256_init(&sha);
    for (size_t i = 0; i < count; i++)
        sha256_update(&sha, files[i].data, files[i].bytes);
    sha256_final_hex(&sha, ret);
}

static void
hand_on_spare(void)
{
    char schema[SHA256_HEX_SIZE], sql[512];

    if (!spare.database[0])
        return;
    schema_hash(schema);
    snprintf(sql, sizeof(sql), "INSERT INTO spare VALUES ('%s', '%s', '%s')", schema,
             spare.database, spare.fingerprint);
    admin(sql);
}

static void
take_spare(void)
{
    struct db_options options = {.url = getenv("PAWL_TEST_PG")};
    struct db_sql sql = {
        .name = "spare",
        .text =
            "DELETE FROM spare WHERE ctid = (SELECT ctid FROM spare WHERE schema = $1"
            " LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING database, fingerprint",
        .n_params = 1,
    };
    scoped(db_closep) struct db *db = NULL;
    scoped(db_rows_end) struct db_rows rows = {0};
    char schema[SHA256_HEX_SIZE];
    struct err err = {0};

    schema_hash(schema);
    assert_ok(db_open(&options, &db, &err), &err);
    assert_ok(db_script(db, pg_spare_once, &err), &err);
    assert_ok(db_ask(db, &sql, &rows, &err, p_text(schema)), &err);
    if (db_next(&rows, &err) <= 0)
        return;
    snprintf(spare.database, sizeof(spare.database), "%s", db_text(&rows, 0));
    snprintf(spare.fingerprint, sizeof(spare.fingerprint), "%s", db_text(&rows, 1));
}

static void
make_database(struct harness *h)
{
    static bool asked;
    char sql[512];

    if (!asked) {
        asked = true;
        take_spare();
        assert_int_equal(0, atexit(hand_on_spare));
    }
    if (spare.database[0]) {
        snprintf(h->database, sizeof(h->database), "%s", spare.database);
        snprintf(h->fingerprint, sizeof(h->fingerprint), "%s", spare.fingerprint);
        spare.database[0] = '\0'; /* in use */
        h->used = true;
    } else {
        snprintf(h->database, sizeof(h->database), "t_%016llx",
                 (unsigned long long)rand_u64());
        snprintf(sql, sizeof(sql), "CREATE DATABASE %s TEMPLATE template0",
                 h->database);
        admin(sql);
    }
    url_for(h->url, sizeof(h->url), server_url(h->kind), h->database);
    url_for(h->direct_url, sizeof(h->direct_url), getenv("PAWL_TEST_PG"), h->database);
}

/* false: the query does not work (any more). */
static bool
fingerprint(struct db *db, char *ret, size_t size)
{
    struct db_sql sql = {
        .name = "fingerprint", .text = pg_fingerprint, .flags = DB_ONCE};
    scoped(db_rows_end) struct db_rows rows = {0};
    struct err err = {0};

    if (db_query(db, &sql, NULL, 0, &rows, &err) < 0 || db_next(&rows, &err) <= 0)
        return false;
    snprintf(ret, size, "%s", db_text(&rows, 0));
    return true;
}

/* For the next test if it has only rows too many, else away with it. */
static void
leave_database(struct harness *h)
{
    struct err err = {0};
    char now[64];

    if (h->db && db_usable(h->db) && !db_in_tx(h->db) &&
        fingerprint(h->db, now, sizeof(now)) && strcmp(now, h->fingerprint) == 0 &&
        !spare.database[0] && db_script(h->db, pg_empty, &err) == 0) {
        snprintf(spare.database, sizeof(spare.database), "%s", h->database);
        snprintf(spare.fingerprint, sizeof(spare.fingerprint), "%s", now);
        return;
    }
    drop_database(h->database);
}

static void
make_folder(struct harness *h)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(h->folder, sizeof(h->folder), "%.40s/pawl-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(h->folder));
    snprintf(h->url, sizeof(h->url), "sqlite:%s/store.db", h->folder);
    snprintf(h->direct_url, sizeof(h->direct_url), "%s", h->url);
}

static void
open_beside(struct harness *h)
{
    struct db_options options = {.url = h->direct_url, .store = true};
    struct err err = {0};

    assert_ok(db_open(&options, &h->db, &err), &err);
    if (h->kind == HARNESS_SQLITE)
        assert_ok(db_sqlite_set_clock(h->db, clock_now, h, &err), &err);
    else if (!h->used) {
        assert_ok(db_script(h->db, pg_clock, &err), &err);
        assert_true(fingerprint(h->db, h->fingerprint, sizeof(h->fingerprint)));
    }
}

static void
harness_open(struct harness *h)
{
    struct err err = {0};

    if (h->kind == HARNESS_SQLITE)
        make_folder(h);
    else
        make_database(h);
    h->options = (struct store_options){
        .url = h->url,
        .migrate = true,
        .role = "test",
        .clock = clock_now,
        .clock_arg = h,
    };
    h->now_us = HARNESS_NOW;
    assert_ok(store_open(&h->options, &h->store, &err), &err);
    open_beside(h);
    harness_clock_set(h, HARNESS_NOW);
}

void
harness_reopen(struct harness *h)
{
    struct err err = {0};

    store_close(h->store);
    h->store = NULL;
    assert_ok(store_open(&h->options, &h->store, &err), &err);
}

int
harness_setup(void **state)
{
    const struct harness_case *test = (const struct harness_case *)*state;
    struct harness *h = xcalloc(1, sizeof(*h));

    h->test = test;
    h->kind = test->kind;
    *state = h;
    return 0;
}

void
harness_run(void **state)
{
    struct harness *h = (struct harness *)*state;

    if (!is_wanted(h->kind) || (h->kind != HARNESS_SQLITE && !server_url(h->kind)))
        skip();
    harness_open(h);
    h->test->fn(h);
}

int
harness_teardown(void **state)
{
    struct harness *h = (struct harness *)*state;

    store_close(h->store);
    if (h->database[0])
        leave_database(h);
    db_close(h->db);
    if (h->folder[0])
        fs_remove_tree_quietly(h->folder);
    free(h);
    return 0;
}

void
harness_clock_set(struct harness *h, int64_t now_us)
{
    __atomic_store_n(&h->now_us, now_us, __ATOMIC_SEQ_CST);
    if (h->kind != HARNESS_SQLITE)
        harness_sql(h, "UPDATE public.test_clock SET now = %lld", (long long)now_us);
}

void
harness_clock_advance(struct harness *h, int64_t us)
{
    harness_clock_set(h, clock_now(h) + us);
}

/* --- looking and meddling --- */

static void format(struct buf *buf, const char *fmt, va_list args) printf_like(2, 0);

static void
format(struct buf *buf, const char *fmt, va_list args)
{
    buf_init(buf, 0);
    buf_vaddf(buf, fmt, args);
}

void
harness_sql(struct harness *h, const char *fmt, ...)
{
    scoped(buf_release) struct buf text = {0};
    struct err err = {0};
    va_list args;

    va_start(args, fmt);
    format(&text, fmt, args);
    va_end(args);
    assert_ok(db_script(h->db, buf_str(&text), &err), &err);
}

/* The first row of the query; the caller ends rows. Returns whether there is one. */
static bool
first_row(struct harness *h, const char *text, struct db_rows *ret_rows)
{
    struct db_sql sql = {.name = "test", .text = text, .flags = DB_ONCE};
    struct err err = {0};
    int r;

    assert_ok(db_query(h->db, &sql, NULL, 0, ret_rows, &err), &err);
    r = db_next(ret_rows, &err);
    assert_ok(r, &err);
    return r > 0;
}

int64_t
harness_i64(struct harness *h, const char *fmt, ...)
{
    scoped(buf_release) struct buf text = {0};
    scoped(db_rows_end) struct db_rows rows = {0};
    va_list args;

    va_start(args, fmt);
    format(&text, fmt, args);
    va_end(args);
    if (!first_row(h, buf_str(&text), &rows))
        fail_msg("no row: %s", buf_str(&text));
    return db_i64(&rows, 0);
}

char *
harness_text(struct harness *h, const char *fmt, ...)
{
    scoped(buf_release) struct buf text = {0};
    scoped(db_rows_end) struct db_rows rows = {0};
    va_list args;

    va_start(args, fmt);
    format(&text, fmt, args);
    va_end(args);
    if (!first_row(h, buf_str(&text), &rows) || db_is_null(&rows, 0))
        return NULL;
    return xstrdup(db_text(&rows, 0));
}

int
harness_write(struct harness *h, store_fn fn, void *arg)
{
    struct err err = {0};
    int r = store_write(h->store, STORE_NORMAL, fn, arg, &err);

    assert_ok(r, &err);
    return r;
}

int
harness_read(struct harness *h, store_fn fn, void *arg)
{
    struct err err = {0};
    int r = store_read(h->store, fn, arg, &err);

    assert_ok(r, &err);
    return r;
}
