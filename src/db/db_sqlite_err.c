/* What SQLite's result codes mean to callers, and where a store may not lie. */
#include "db/sqlite.h"

#include "base/err.h"

#include <stdio.h>
#include <sys/vfs.h>

#define CODE(name)                                                                     \
    case name:                                                                         \
        return #name

const char *
sqlite_code_name(int rc)
{
    switch (rc) {
        CODE(SQLITE_BUSY_RECOVERY);
        CODE(SQLITE_BUSY_SNAPSHOT);
        CODE(SQLITE_BUSY_TIMEOUT);
        CODE(SQLITE_CANTOPEN_FULLPATH);
        CODE(SQLITE_CANTOPEN_ISDIR);
        CODE(SQLITE_CONSTRAINT_CHECK);
        CODE(SQLITE_CONSTRAINT_DATATYPE);
        CODE(SQLITE_CONSTRAINT_FOREIGNKEY);
        CODE(SQLITE_CONSTRAINT_NOTNULL);
        CODE(SQLITE_CONSTRAINT_PRIMARYKEY);
        CODE(SQLITE_CONSTRAINT_ROWID);
        CODE(SQLITE_CONSTRAINT_TRIGGER);
        CODE(SQLITE_CONSTRAINT_UNIQUE);
        CODE(SQLITE_IOERR_FSYNC);
        CODE(SQLITE_IOERR_READ);
        CODE(SQLITE_IOERR_SHMMAP);
        CODE(SQLITE_IOERR_SHMOPEN);
        CODE(SQLITE_IOERR_SHORT_READ);
        CODE(SQLITE_IOERR_WRITE);
        CODE(SQLITE_READONLY_DBMOVED);
        CODE(SQLITE_READONLY_DIRECTORY);
    }
    switch (rc & 0xff) {
        CODE(SQLITE_ERROR);
        CODE(SQLITE_INTERNAL);
        CODE(SQLITE_PERM);
        CODE(SQLITE_ABORT);
        CODE(SQLITE_BUSY);
        CODE(SQLITE_LOCKED);
        CODE(SQLITE_NOMEM);
        CODE(SQLITE_READONLY);
        CODE(SQLITE_INTERRUPT);
        CODE(SQLITE_IOERR);
        CODE(SQLITE_CORRUPT);
        CODE(SQLITE_FULL);
        CODE(SQLITE_CANTOPEN);
        CODE(SQLITE_PROTOCOL);
        CODE(SQLITE_SCHEMA);
        CODE(SQLITE_TOOBIG);
        CODE(SQLITE_CONSTRAINT);
        CODE(SQLITE_MISMATCH);
        CODE(SQLITE_MISUSE);
        CODE(SQLITE_AUTH);
        CODE(SQLITE_RANGE);
        CODE(SQLITE_NOTADB);
    }
    return "SQLITE_UNKNOWN";
}

static enum err_code
code_of(const struct sqlite_db *sl, int rc)
{
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
        return ERR_STORE_BUSY;
    case SQLITE_NOMEM:
        return ERR_NOMEM;
    case SQLITE_INTERRUPT:
        return ERR_TIMEOUT;
    case SQLITE_FULL:
        return ERR_DISK_FULL;
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
        return ERR_DB_CONSTRAINT;
    case SQLITE_TOOBIG:
        return ERR_TOO_LARGE;
    case SQLITE_CANTOPEN:
        return db_lost_code(&sl->base);
    case SQLITE_IOERR:
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return sl->base.store ? ERR_STORE : ERR_DB;
    default:
        return ERR_DB;
    }
}

static const char *
remedy_of(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_BUSY:
        return "; another connection holds the lock: end its transaction, or allow "
               "more time. If it is a step that reads and writes this database at "
               "once, run `PRAGMA journal_mode=WAL` on it";
    case SQLITE_FULL:
        return "; free some disk space";
    case SQLITE_CANTOPEN:
        return "; look whether the file exists and may be read";
    case SQLITE_READONLY:
        return "; the file, its folder or this connection may only be read";
    case SQLITE_NOTADB:
        return "; this file is no SQLite database, or is encrypted";
    case SQLITE_CORRUPT:
        return "; restore it from a backup, or recover it with sqlite3 .recover";
    default:
        return "";
    }
}

int
sqlite_fail_at(struct sqlite_db *sl, const char *what, const char *text, const char *at,
               int rc, struct err *err)
{
    char place[DB_PLACE_SIZE] = "";
    int full = sl->conn ? sqlite3_extended_errcode(sl->conn) : rc;
    long offset = sl->conn ? sqlite3_error_offset(sl->conn) : -1;

    if ((full & 0xff) != (rc & 0xff))
        full = rc;
    /* Without an offset the start of the statement must do. */
    if (text && offset < 0 && at > text)
        offset = (long)strspn(at, " \t\r\n");
    if (text && offset >= 0)
        db_place(text, (at - text) + offset, place);
    return db_fail(err, code_of(sl, full), sqlite_code_name(full), "%s: %s%s%s", what,
                   sl->conn ? sqlite3_errmsg(sl->conn) : sqlite3_errstr(rc), place,
                   remedy_of(full));
}

int
sqlite_fail(struct sqlite_db *sl, const char *what, const char *text, int rc,
            struct err *err)
{
    return sqlite_fail_at(sl, what, text, text, rc, err);
}

struct fs_row {
    long type;
    const char *name;
};

/* Where locks or shared memory are not what SQLite needs (statfs(2) numbers). */
static const struct fs_row network_fs[] = {
    {0x6969, "NFS"},       {0x517b, "SMB"},        {0xff534d42, "CIFS"},
    {0xfe534d42, "SMB 2"}, {0x65735546, "FUSE"},   {0x5346414f, "AFS"},
    {0x73757245, "Coda"},  {0x00c36400, "CephFS"}, {0x564c, "NCP"},
};

int
sqlite_check_fs(const char *path, struct err *err)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');
    struct statfs fs;
    size_t len = slash ? (size_t)(slash - path) : 1;

    if (len >= sizeof(folder))
        return err_set(err, ERR_CONFIG, "store %.60s…: the path is too long", path);
    memcpy(folder, slash ? path : ".", len);
    folder[len] = '\0';
    if (statfs(len ? folder : "/", &fs) < 0)
        return 0; /* opening will say it better */
    for (size_t i = 0; i < array_len(network_fs); i++) {
        if ((uint32_t)fs.f_type == (uint32_t)network_fs[i].type)
            return db_fail(err, ERR_CONFIG, network_fs[i].name,
                           "store %s lies on a %s file system, where SQLite's locks do "
                           "not hold; put it on a local disk, or use PostgreSQL",
                           path, network_fs[i].name);
    }
    return 0;
}
