#include "testdb.h"

#include "base/err.h"
#include "db/db.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const words[] = {
    [TESTDB_SQLITE] = "sqlite",
    [TESTDB_PG] = "pg",
    [TESTDB_PGBOUNCER] = "pgbouncer",
};
static_assert_count(words, TESTDB_KIND_COUNT);

const char *
testdb_word(enum testdb_kind kind)
{
    return words[kind];
}

static void
give_up(const char *what, const char *why)
{
    fprintf(stderr, "testdb: %s: %s\n", what, why);
    abort();
}

/* base is …/postgres; put name in place of its last part. */
static void
with_name(const char *base, const char *name, char *ret, size_t size)
{
    const char *slash = strrchr(base, '/');

    if (!slash || slash - base < 13)
        give_up(base, "is not postgresql://user@host:port/name");
    snprintf(ret, size, "%.*s/%s", (int)(slash - base), base, name);
}

static void
admin(const char *url, const char *text)
{
    struct db_options options = {.url = url, .lock_timeout_ms = 10000};
    scoped(db_closep) struct db *db = NULL;
    struct err err = {0};

    if (db_open(&options, &db, &err) < 0 || db_script(db, text, &err) < 0)
        give_up(text, err.text);
}

/* This process's database, by name; made when first asked for. */
static char process_db[64];

static void
drop_process_db(void)
{
    char text[128];

    snprintf(text, sizeof(text), "DROP DATABASE IF EXISTS %s WITH (FORCE)", process_db);
    admin(getenv("PAWL_TEST_PG"), text);
}

static void
make_process_db(void)
{
    char text[128];

    if (process_db[0])
        return;
    snprintf(process_db, sizeof(process_db), "pawl_test_%ld", (long)getpid());
    snprintf(text, sizeof(text), "CREATE DATABASE %s", process_db);
    admin(getenv("PAWL_TEST_PG"), text);
    atexit(drop_process_db);
}

static void
init_sqlite(struct testdb *testdb)
{
    snprintf(testdb->folder, sizeof(testdb->folder), "/tmp/pawl-testdb-XXXXXX");
    if (!mkdtemp(testdb->folder))
        give_up(testdb->folder, "cannot be made");
    snprintf(testdb->url, sizeof(testdb->url), "sqlite:%s/test.db", testdb->folder);
    snprintf(testdb->direct_url, sizeof(testdb->direct_url), "%s", testdb->url);
}

bool
testdb_init(struct testdb *testdb, enum testdb_kind kind)
{
    const char *direct = getenv("PAWL_TEST_PG");
    const char *through =
        kind == TESTDB_PGBOUNCER ? getenv("PAWL_TEST_PGBOUNCER") : direct;

    memset(testdb, 0, sizeof(*testdb));
    testdb->kind = kind;
    if (kind == TESTDB_SQLITE) {
        init_sqlite(testdb);
        return true;
    }
    if (!direct || !through)
        return false;
    make_process_db();
    with_name(direct, process_db, testdb->direct_url, sizeof(testdb->direct_url));
    with_name(through, process_db, testdb->url, sizeof(testdb->url));
    admin(testdb->direct_url, "DROP SCHEMA public CASCADE; CREATE SCHEMA public");
    return true;
}

static void
remove_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        char path[400];

        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink(path);
    }
    if (dir)
        closedir(dir);
    rmdir(folder);
}

void
testdb_release(struct testdb *testdb)
{
    if (testdb->folder[0])
        remove_folder(testdb->folder);
    memset(testdb, 0, sizeof(*testdb));
}

struct db *
testdb_open(const struct testdb *testdb)
{
    static const struct db_setting quick = {"synchronous_commit", "off"};
    struct db_options options = {.url = testdb->url,
                                 .create = true,
                                 .session_settings = &quick,
                                 .n_session_settings = 1};
    struct db *db = NULL;
    struct err err = {0};

    if (db_open(&options, &db, &err) < 0 ||
        (testdb->kind == TESTDB_SQLITE &&
         db_script(db, "PRAGMA synchronous = OFF", &err) < 0))
        give_up(testdb->url, err.text);
    return db;
}
