/*
 * SQLite: opening, settings, transactions. Our own store is opened so that what is
 * committed survives a power cut (WAL with synchronous=FULL, read back, because a
 * setting that was silently ignored is worse than none), and so that a doctored file
 * cannot run code (defensive, no trusted schema). A user's database is opened as it
 * is; only the guards against hostile files are added.
 */
#include "db/sqlite.h"

#include "base/arena.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define BUSY_TIMEOUT_MS 5000

static void
sqlite_close_db(struct db *db)
{
    struct sqlite_db *sl = sqlite_of(db);

    for (size_t i = 0; i < sl->cache.count; i++)
        sqlite_stmt_free(container_of(sl->cache.entries[i], struct sqlite_stmt, entry));
    sqlite3_close_v2(sl->conn);
    free(sl);
}

static int
sqlite_ping(struct db *db, struct err *err)
{
    return sqlite_script(db, "SELECT 1", err);
}

static void
sqlite_cancel(struct db *db)
{
    sqlite3_interrupt(sqlite_of(db)->conn);
}

static int
sqlite_begin(struct db *db, enum db_mode mode, struct err *err)
{
    static const struct db_sql write = {.name = "begin", .text = "BEGIN IMMEDIATE"};
    static const struct db_sql read = {.name = "begin", .text = "BEGIN"};

    return sqlite_exec(db, mode == DB_WRITE ? &write : &read, NULL, 0, err);
}

/*
 * An I/O error here (a failed fsync above all) is no clear no: the commit may be in
 * the file and come back with the next recovery. The connection is not used again.
 */
static int
sqlite_commit(struct db *db, struct err *err)
{
    static const struct db_sql commit = {.name = "commit", .text = "COMMIT"};
    struct sqlite_db *sl = sqlite_of(db);
    int r;

    r = sqlite_exec(db, &commit, NULL, 0, err);
    if (r < 0 && (sqlite3_extended_errcode(sl->conn) & 0xff) == SQLITE_IOERR) {
        char detail[sizeof(err->detail)];
        char text[sizeof(err->text)];

        snprintf(detail, sizeof(detail), "%s", err->detail);
        snprintf(text, sizeof(text), "%s", err->text);
        db->usable = false;
        err_clear(err);
        return db_fail(err, ERR_COMMIT_UNKNOWN, detail, "%s", text);
    }
    return r;
}

static void
sqlite_rollback(struct db *db)
{
    struct sqlite_db *sl = sqlite_of(db);

    if (!sqlite3_get_autocommit(sl->conn) &&
        sqlite3_exec(sl->conn, "ROLLBACK", NULL, NULL, NULL) != SQLITE_OK)
        db->usable = false;
}

static int
sqlite_listen(struct db *db, const char *channel, struct err *err)
{
    return db_fail(err, ERR_CONFIG, "",
                   "listen %s: SQLite has no notifications; one process owns the "
                   "store and wakes its own threads",
                   channel);
}

static int
sqlite_notify_fd(const struct db *db)
{
    return -1;
}

static int
sqlite_notifications(struct db *db, db_notify_fn notify, void *arg, struct err *err)
{
    return 0;
}

static int
sqlite_set_clock(struct db *db, db_clock_fn clock, void *arg, struct err *err)
{
    struct sqlite_db *sl = sqlite_of(db);

    sl->clock = clock;
    sl->clock_arg = arg;
    return 0;
}

static const struct db_driver sqlite_driver = {
    .close = sqlite_close_db,
    .ping = sqlite_ping,
    .cancel = sqlite_cancel,
    .exec = sqlite_exec,
    .script = sqlite_script,
    .query = sqlite_query,
    .describe = sqlite_describe,
    .next = sqlite_next,
    .end = sqlite_end,
    .param_count = sqlite_param_count,
    .column_count = sqlite_column_count_of,
    .column_name = sqlite_column_name_of,
    .column_type = sqlite_column_type_of,
    .cell = sqlite_cell,
    .cell_text = sqlite_cell_text,
    .begin = sqlite_begin,
    .commit = sqlite_commit,
    .rollback = sqlite_rollback,
    .copy_begin = sqlite_copy_begin,
    .copy_row = sqlite_copy_row,
    .copy_end = sqlite_copy_end,
    .copy_abort = sqlite_copy_abort,
    .listen = sqlite_listen,
    .notify_fd = sqlite_notify_fd,
    .notifications = sqlite_notifications,
    .set_clock = sqlite_set_clock,
};

/* Set a pragma, read it back, and refuse to go on with another value. */
static int
set_pragma(struct sqlite_db *sl, const char *name, const char *value, const char *want,
           struct err *err)
{
    char text[96];
    sqlite3_stmt *stmt = NULL;
    char got[32] = "";
    int rc;

    snprintf(text, sizeof(text), "PRAGMA %s=%s", name, value);
    rc = sqlite3_exec(sl->conn, text, NULL, NULL, NULL);
    if (rc != SQLITE_OK)
        return sqlite_fail(sl, text, NULL, rc, err);
    snprintf(text, sizeof(text), "PRAGMA %s", name);
    rc = sqlite3_prepare_v2(sl->conn, text, -1, &stmt, NULL);
    if (rc == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW)
        snprintf(got, sizeof(got), "%s", (const char *)sqlite3_column_text(stmt, 0));
    rc = sqlite3_finalize(stmt);
    if (rc != SQLITE_OK)
        return sqlite_fail(sl, text, NULL, rc, err);
    if (strcmp(got, want) == 0)
        return 0;
    return db_fail(err, ERR_CONFIG, name,
                   "store %s: PRAGMA %s is \"%s\" after setting it to %s, and without "
                   "it commits would not be safe; put the store on a local disk",
                   sqlite3_db_filename(sl->conn, "main"), name, got, value);
}

struct pragma_row {
    const char *name, *value, *want;
    bool writable; /* only when the file may be written */
};

static const struct pragma_row store_pragmas[] = {
    {"journal_mode", "WAL", "wal", true},
    {"synchronous", "FULL", "2", true},
    {"foreign_keys", "ON", "1", false},
    {"temp_store", "MEMORY", "2", false},
    {"mmap_size", "0", "0", false},
    {"journal_size_limit", "67108864", "67108864", true},
};

static int
set_store(struct sqlite_db *sl, bool read_only, bool in_memory, struct err *err)
{
    for (size_t i = 0; i < array_len(store_pragmas); i++) {
        const struct pragma_row *row = &store_pragmas[i];
        const char *want = row->want;
        int r;

        if (row->writable && read_only)
            continue;
        if (in_memory && i == 0)
            want = "memory";
        if (in_memory && strcmp(row->name, "mmap_size") == 0)
            continue;
        r = set_pragma(sl, row->name, row->value, want, err);
        if (r < 0)
            return r;
    }
    /* Statements say pawl.request on both databases. */
    sqlite3_db_config(sl->conn, SQLITE_DBCONFIG_MAINDBNAME, "pawl");
    sqlite3_limit(sl->conn, SQLITE_LIMIT_LENGTH, 256 << 20);
    sqlite3_limit(sl->conn, SQLITE_LIMIT_SQL_LENGTH, 1 << 20);
    sqlite3_limit(sl->conn, SQLITE_LIMIT_ATTACHED, 1); /* VACUUM takes one */
    sqlite3_limit(sl->conn, SQLITE_LIMIT_WORKER_THREADS, 0);
    return 0;
}

/* Guards against a hostile file, and how long to wait for a lock. */
static int
set_common(struct sqlite_db *sl, const struct db_options *options, struct err *err)
{
    static const struct {
        int op, value;
    } rows[] = {
        {SQLITE_DBCONFIG_DEFENSIVE, 1},
        {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
        {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
        {SQLITE_DBCONFIG_DQS_DML, 0},
        {SQLITE_DBCONFIG_DQS_DDL, 0},
    };
    int timeout_ms =
        options->lock_timeout_ms > 0 ? options->lock_timeout_ms : BUSY_TIMEOUT_MS;

    for (size_t i = 0; i < array_len(rows); i++) {
        int now = -1;

        /* Old schemas of users may quote text with "": let those be. */
        if (i >= 3 && !options->store)
            break;
        if (sqlite3_db_config(sl->conn, rows[i].op, rows[i].value, &now) != SQLITE_OK ||
            now != rows[i].value)
            return db_fail(err, ERR_CONFIG, "",
                           "SQLite %s does not take setting %d, which guards against "
                           "doctored files; use SQLite 3.40 or newer",
                           sqlite3_libversion(), rows[i].op);
    }
    sqlite3_busy_timeout(sl->conn, timeout_ms);
    sqlite_limit_statements(sl, options->statement_timeout_ms);
    return sqlite_add_functions(sl, err);
}

/* A store holds what people submit: only its owner may read it. SQLite gives the WAL
 * the mode of the main file, so making that first is enough. A file that is there is
 * not opened: to close it would drop the locks of all our connections to it, and
 * another process that closes the file would take itself for the last one and put the
 * WAL away while we write. */
static int
make_private(const char *path, struct err *err)
{
    int fd = -1;

    if (faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) == 0)
        return 0;
    if (errno == ENOENT)
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(err, errno == EACCES ? ERR_CONFIG : ERR_STORE, errno,
                         "store %s: cannot be opened or made", path);
    close(fd);
    return 0;
}

static int
open_file(struct sqlite_db *sl, const struct db_options *options, const char *path,
          struct err *err)
{
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    bool in_memory = strcmp(path, ":memory:") == 0;
    bool create = options->create || options->store || in_memory;
    int rc, r = 0;

    if (options->read_only)
        flags |= SQLITE_OPEN_READONLY;
    else
        flags |= SQLITE_OPEN_READWRITE | (create ? SQLITE_OPEN_CREATE : 0);
    if (options->store && !in_memory && !options->allow_network_fs)
        r = sqlite_check_fs(path, err);
    if (r == 0 && options->store && !in_memory && !options->read_only)
        r = make_private(path, err);
    if (r < 0)
        return r;
    rc = sqlite3_open_v2(path, &sl->conn, flags, NULL);
    if (rc != SQLITE_OK) {
        char what[256];

        snprintf(what, sizeof(what), "opening %s", path);
        return sqlite_fail(sl, what, NULL, rc, err);
    }
    r = set_common(sl, options, err);
    if (r == 0 && options->store)
        r = set_store(sl, options->read_only, in_memory, err);
    if (r < 0)
        return r;
    /* Opening is lazy: look now, so that a file which is none is told here. */
    rc =
        sqlite3_exec(sl->conn, "SELECT 1 FROM sqlite_schema LIMIT 1", NULL, NULL, NULL);
    if (rc != SQLITE_OK) {
        char what[256];

        snprintf(what, sizeof(what), "opening %s", path);
        return sqlite_fail(sl, what, NULL, rc, err);
    }
    return 0;
}

int
db_open_sqlite(const struct db_options *options, const char *path, struct db **ret_db,
               struct err *err)
{
    struct sqlite_db *sl = xcalloc(1, sizeof(*sl));
    int r;

    sl->base = (struct db){.driver = &sqlite_driver,
                           .kind = DB_SQLITE,
                           .usable = true,
                           .store = options->store};
    r = open_file(sl, options, path, err);
    if (r < 0) {
        sqlite_close_db(&sl->base);
        return r;
    }
    *ret_db = &sl->base;
    return 0;
}
