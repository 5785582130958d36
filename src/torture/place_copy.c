/* Copies of databases. */
#include "torture/private.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fsio.h"
#include "base/strs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define PIECE_BYTES 65536

int
place_copy_file(const char *from, const char *to, struct err *err)
{
    scoped(xfree_ptr) char *piece = xmalloc(PIECE_BYTES);
    scoped(fd_close) int in = open(from, O_RDONLY | O_CLOEXEC);
    scoped(fd_close) int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ssize_t n;

    if (in < 0 || out < 0)
        return err_errno(err, ERR_IO, errno, "copying %s to %s", from, to);
    while ((n = read(in, piece, PIECE_BYTES)) > 0) {
        int r = fs_write_all(out, piece, (size_t)n, to, err);

        if (r < 0)
            return r;
    }
    return n < 0 ? err_errno(err, ERR_IO, errno, "reading %s", from) : 0;
}

/* --- SQLite --- */

static int
is_wal(struct db *db, bool *ret_wal, struct err *err)
{
    static const struct db_sql sql = {
        .name = "journal mode", .text = "PRAGMA journal_mode", .flags = DB_ONCE};
    scoped(db_rows_end) struct db_rows rows = {0};
    int r = db_query(db, &sql, NULL, 0, &rows, err);

    if (r >= 0)
        r = db_next(&rows, err);
    *ret_wal = r == 1 && str_eq(db_text(&rows, 0), "wal");
    return r < 0 ? r : 0;
}

int
place_copy_sqlite(const char *url, const char *to, struct err *err)
{
    scoped(buf_release) struct buf vacuum = {0};
    scoped(buf_release) struct buf made = {0};
    struct db_options from = {.url = url, .read_only = true};
    scoped(db_closep) struct db *db = NULL;
    scoped(db_closep) struct db *copy = NULL;
    struct db_options there = {0};
    bool wal = false;
    int r = db_open(&from, &db, err);

    buf_init(&vacuum, 0);
    buf_add_str(&vacuum, "VACUUM INTO '");
    for (const char *at = to; *at; at++) {
        if (*at == '\'')
            buf_add_char(&vacuum, '\'');
        buf_add_char(&vacuum, *at);
    }
    buf_add_str(&vacuum, "'");
    if (r == 0)
        r = is_wal(db, &wal, err);
    if (r == 0)
        r = db_script(db, buf_str(&vacuum), err);
    if (r < 0 || !wal)
        return r;
    buf_init(&made, 0);
    buf_addf(&made, "sqlite:%s", to);
    there.url = buf_str(&made);
    r = db_open(&there, &copy, err);
    return r < 0 ? r : db_script(copy, "PRAGMA journal_mode = WAL", err);
}

/* --- PostgreSQL --- */

const char *
place_pg_url(const char *url, const char *name, struct arena *arena)
{
    const char *host = strstr(url, "://") + 3;
    size_t host_len = strcspn(host, "/?");
    const char *rest = host + host_len;

    rest += strcspn(rest, "?");
    return arena_printf(arena, "%.*s/%s%s", (int)(host - url + (ptrdiff_t)host_len),
                        url, name, rest);
}

int
place_pg_name(const char *url, struct arena *arena, const char **ret_name,
              struct err *err)
{
    static const struct db_sql sql = {.name = "name of the database",
                                      .text = "SELECT CAST(current_database() AS text)",
                                      .flags = DB_ONCE};
    scoped(db_closep) struct db *db = NULL;
    scoped(db_rows_end) struct db_rows rows = {0};
    struct db_options options = {.url = url};
    int r = db_open(&options, &db, err);

    if (r == 0)
        r = db_query(db, &sql, NULL, 0, &rows, err);
    if (r >= 0)
        r = db_next(&rows, err);
    if (r == 1)
        *ret_name = arena_strdup(arena, db_text(&rows, 0));
    db_rows_end(&rows);
    return r < 0 ? r : 0;
}

/* verb: with a blank behind. */
static int
say(const char *url, const char *verb, const char *name, const char *more,
    const char *other, struct err *err)
{
    scoped(db_closep) struct db *db = NULL;
    scoped(buf_release) struct buf sql = {0};
    struct db_options options = {.url = url};
    int r = db_open(&options, &db, err);

    buf_init(&sql, 0);
    buf_add_str(&sql, verb);
    db_quote_name(&sql, name);
    buf_add_str(&sql, more);
    if (other)
        db_quote_name(&sql, other);
    return r < 0 ? r : db_script(db, buf_str(&sql), err);
}

int
place_pg_copy(const struct place_database *database, struct err *err)
{
    const char *url = database->plan->url;
    int r = say(url, "DROP DATABASE IF EXISTS ", database->copy_name, " WITH (FORCE)",
                NULL, err);

    if (r == 0)
        r = say(url, "CREATE DATABASE ", database->copy_name, " TEMPLATE ",
                database->template_name, err);
    if (r < 0)
        return err_prefix(err,
                          "copying the scratch database %s (its user needs CREATEDB, "
                          "and nobody else may be connected to it)",
                          database->plan->name);
    return 0;
}

void
place_pg_drop(const struct place_database *database)
{
    struct err ignored = {0}; /* it may never have been made */

    (void)!say(database->plan->url, "DROP DATABASE IF EXISTS ", database->copy_name,
               " WITH (FORCE)", NULL, &ignored);
}
