/* What only SQLite has: files, their settings, functions, a full disk. */
#include "contract.h"

#include "base/buf.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void
open_store(struct fixture *f, struct db **ret_db)
{
    struct db_options options = {.url = f->testdb.url, .store = true};

    ok(f, db_open(&options, ret_db, &f->err));
}

static void
assert_pragma(struct fixture *f, const char *name, const char *want)
{
    char text[64];
    struct db_sql sql = {.name = "pragma", .text = text};
    scoped(db_rows_end) struct db_rows rows = {0};

    snprintf(text, sizeof(text), "PRAGMA %s", name);
    ok(f, db_ask(f->db, &sql, &rows, &f->err));
    assert_int_equal(db_next(&rows, &f->err), 1);
    assert_string_equal(db_text(&rows, 0), want);
}

static void
test_a_store_commits_durably_and_its_file_is_private(struct fixture *f)
{
    struct stat st;
    char path[128];

    db_close(f->db);
    snprintf(path, sizeof(path), "%s/store.db", f->testdb.folder);
    snprintf(f->testdb.url, sizeof(f->testdb.url), "sqlite:%s", path);
    open_store(f, &f->db);
    assert_pragma(f, "journal_mode", "wal");
    assert_pragma(f, "synchronous", "2");
    assert_pragma(f, "foreign_keys", "1");
    assert_pragma(f, "trusted_schema", "0");
    assert_pragma(f, "mmap_size", "0");
    script(f, "CREATE TABLE t (a); INSERT INTO t VALUES (1)");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    snprintf(path, sizeof(path), "%s/store.db-wal", f->testdb.folder);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

/* SQLite's shared lock on the main file, as another process sees it: who closes the
 * file and finds none takes himself for the last one, and puts the WAL away. */
static bool
is_locked(const char *path)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        struct flock lock = {.l_type = F_WRLCK,
                             .l_whence = SEEK_SET,
                             .l_start = 0x40000000 + 2,
                             .l_len = 510};
        int fd = open(path, O_RDWR | O_CLOEXEC);

        _exit(fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status) == 1;
}

static void
test_another_connection_of_ours_leaves_the_locks_of_the_first(struct fixture *f)
{
    struct db_options reading = {.store = true, .read_only = true};
    struct db *second = NULL;
    char path[128];

    db_close(f->db);
    snprintf(path, sizeof(path), "%s/store.db", f->testdb.folder);
    snprintf(f->testdb.url, sizeof(f->testdb.url), "sqlite:%s", path);
    open_store(f, &f->db);
    script(f, "CREATE TABLE t (a); INSERT INTO t VALUES (1)");
    assert_true(is_locked(path));
    reading.url = f->testdb.url;
    ok(f, db_open(&reading, &second, &f->err));
    assert_true(is_locked(path));
    db_close(second);
    assert_true(is_locked(path));
    open_store(f, &second);
    assert_true(is_locked(path));
    db_close(second);
    assert_true(is_locked(path));
}

static void
test_a_store_that_may_not_be_written_is_told(struct fixture *f)
{
    struct db_options options = {.url = f->testdb.url, .store = true};
    struct db *db = NULL;
    const char *path;

    snprintf(f->testdb.url, sizeof(f->testdb.url), "sqlite:/proc/self/none.db");
    fails(f, ERR_STORE, db_open(&options, &db, &f->err));
    snprintf(f->testdb.url, sizeof(f->testdb.url), "sqlite:%s/store.db",
             f->testdb.folder);
    path = f->testdb.url + strlen("sqlite:");
    if (geteuid() == 0)
        return; /* he may write all */
    open_store(f, &db);
    db_close(db);
    db = NULL;
    assert_int_equal(chmod(path, 0400), 0);
    fails(f, ERR_CONFIG, db_open(&options, &db, &f->err));
}

static void
test_a_users_database_keeps_its_own_settings(struct fixture *f)
{
    assert_pragma(f, "journal_mode", "delete");
    assert_pragma(f, "foreign_keys", "0");
}

static void
test_a_missing_file_is_told_and_not_made(struct fixture *f)
{
    char url[160];
    struct db_options options = {.url = url};
    struct db *db = NULL;

    snprintf(url, sizeof(url), "sqlite:%s/none.db", f->testdb.folder);
    fails(f, ERR_CONNECT, db_open(&options, &db, &f->err));
    assert_null(db);
    assert_non_null(strstr(f->err.text, "none.db"));
    assert_int_equal(access(url + strlen("sqlite:"), F_OK), -1);
}

static void
test_a_file_that_is_no_database_is_told(struct fixture *f)
{
    char url[160];
    struct db_options options = {.url = url};
    struct db *db = NULL;
    int fd;

    snprintf(url, sizeof(url), "sqlite:%s/text.db", f->testdb.folder);
    fd = open(url + strlen("sqlite:"), O_WRONLY | O_CREAT, 0600);
    for (int i = 0; i < 200; i++)
        assert_int_equal(write(fd, "this is text and no database ", 29), 29);
    close(fd);
    fails(f, ERR_DB, db_open(&options, &db, &f->err));
    assert_string_equal(f->err.detail, "SQLITE_NOTADB");
}

static void
test_a_read_only_database_is_not_written(struct fixture *f)
{
    struct db_options options = {.url = f->testdb.url, .read_only = true};
    scoped(db_closep) struct db *db = NULL;

    script(f, "CREATE TABLE t (a)");
    ok(f, db_open(&options, &db, &f->err));
    fails(f, ERR_DB, db_script(db, "INSERT INTO t VALUES (1)", &f->err));
    assert_string_equal(f->err.detail, "SQLITE_READONLY");
}

static void
test_a_full_disk_ends_the_transaction_and_nothing_runs_outside_of_it(struct fixture *f)
{
    static const struct db_sql insert = {
        .name = "insert", .text = "INSERT INTO t VALUES ($1)", .n_params = 1};
    char block[8192];
    struct db_tx tx = {0};
    int r = 0;

    memset(block, 'x', sizeof(block));
    script(f, "CREATE TABLE t (a); PRAGMA max_page_count = 20");
    ok(f, db_begin(f->db, DB_WRITE, &tx, &f->err));
    for (int i = 0; i < 50 && r == 0; i++)
        r = db_run(f->db, &insert, &f->err, p_text_n(block, sizeof(block)));
    fails(f, ERR_DISK_FULL, r);
    err_clear(&f->err);
    fails(f, ERR_DB, db_run(f->db, &insert, &f->err, p_text("y")));
    err_clear(&f->err);
    db_tx_end(&tx);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 0);
}

static void
test_a_cast_in_the_other_dialect_is_refused_with_the_remedy(struct fixture *f)
{
    static const struct db_sql bad = {
        .name = "bad", .text = "SELECT $1::bigint", .n_params = 1};

    fails(f, ERR_INVALID, db_run(f->db, &bad, &f->err, p_i64(1)));
    assert_non_null(strstr(f->err.text, "CAST"));
}

static int64_t
stopped_clock(void *arg)
{
    return *(const int64_t *)arg;
}

static void
test_the_clock_of_the_store_can_be_set(struct fixture *f)
{
    int64_t now = INT64_C(1767225600000000);

    assert_true(number(f, "SELECT pawl_now()") > now);
    ok(f, db_sqlite_set_clock(f->db, stopped_clock, &now, &f->err));
    assert_int_equal(number(f, "SELECT pawl_now()"), now);
    script(f, "CREATE TABLE t (a INTEGER DEFAULT (pawl_now()), b)");
    now += 5;
    script(f, "INSERT INTO t (b) VALUES (1)");
    assert_int_equal(number(f, "SELECT a FROM t"), now);
}

static void
test_sha256_in_sql_is_the_known_one(struct fixture *f)
{
    assert_int_equal(
        number(f, "SELECT pawl_sha256('abc') = 'ba7816bf8f01cfea414140de5dae2223"
                  "b00361a396177a9cb410ff61f20015ad' AND pawl_sha256(x'616263') = "
                  "pawl_sha256('abc') AND pawl_sha256(NULL) IS NULL"),
        1);
}

static void
test_cells_are_what_was_stored_whatever_the_column_declares(struct fixture *f)
{
    static const struct db_sql sql = {.name = "s", .text = "SELECT * FROM t"};
    static const enum db_type want[] = {DB_DECIMAL, DB_DECIMAL,   DB_TEXT, DB_DATE,
                                        DB_TEXT,    DB_TIMESTAMP, DB_INT,  DB_BOOL,
                                        DB_INT,     DB_REAL,      DB_NULL, DB_BLOB};
    scoped(db_rows_end) struct db_rows rows = {0};

    script(f, "CREATE TABLE t (a DECIMAL(10,2), b NUMERIC, c DECIMAL, d DATE, e DATE, "
              "f DATETIME, g DATE, h BOOLEAN, i BOOLEAN, j, k TEXT, l)");
    script(f, "INSERT INTO t VALUES (12.5, 7, 'many', '2031-12-24', 'soon', "
              "'2031-12-24 10:00:00', 5, 1, 7, 1.5, NULL, x'00')");
    ok(f, db_ask(f->db, &sql, &rows, &f->err));
    assert_int_equal(db_next(&rows, &f->err), 1);
    for (int c = 0; c < (int)array_len(want); c++)
        assert_int_equal(db_cell(&rows, c).type, want[c]);
    assert_string_equal(db_text(&rows, 0), "12.5");
    assert_string_equal(db_text(&rows, 1), "7");
}

#define sqlite_case(name) db_case_on(name, TESTDB_SQLITE, "sqlite")

int
main(void)
{
    const struct CMUnitTest tests[] = {
        sqlite_case(test_a_store_commits_durably_and_its_file_is_private),
        sqlite_case(test_another_connection_of_ours_leaves_the_locks_of_the_first),
        sqlite_case(test_a_store_that_may_not_be_written_is_told),
        sqlite_case(test_a_users_database_keeps_its_own_settings),
        sqlite_case(test_a_missing_file_is_told_and_not_made),
        sqlite_case(test_a_file_that_is_no_database_is_told),
        sqlite_case(test_a_read_only_database_is_not_written),
        sqlite_case(
            test_a_full_disk_ends_the_transaction_and_nothing_runs_outside_of_it),
        sqlite_case(test_a_cast_in_the_other_dialect_is_refused_with_the_remedy),
        sqlite_case(test_the_clock_of_the_store_can_be_set),
        sqlite_case(test_sha256_in_sql_is_the_known_one),
        sqlite_case(test_cells_are_what_was_stored_whatever_the_column_declares),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
