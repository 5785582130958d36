/* PostgreSQL: notifications, which need a session, so a direct connection; and the
 * one thing another thread may do. */
#include "db/pg.h"

#include "base/err.h"

int
pg_listen(struct db *db, const char *channel, struct err *err)
{
    scoped(buf_release) struct buf text = {0};

    if (db->pooled)
        return db_fail(err, ERR_CONFIG, "",
                       "listen %s: a pooler keeps notifications to itself; give a URL "
                       "that leads straight to the server",
                       channel);
    buf_init(&text, 0);
    buf_add_str(&text, "LISTEN ");
    db_quote_name(&text, channel);
    return pg_script(db, buf_str(&text), err);
}

int
pg_notify_fd(const struct db *db)
{
    const struct pg_db *pg = (const void *)db; /* base is the first member */

    return PQsocket(pg->conn);
}

int
pg_notifications(struct db *db, db_notify_fn notify, void *arg, struct err *err)
{
    struct pg_db *pg = pg_of(db);
    PGnotify *note;
    int count = 0;

    if (PQconsumeInput(pg->conn) != 1)
        return pg_fail(pg, "notifications", NULL, NULL, err);
    while ((note = PQnotifies(pg->conn))) {
        notify(arg, note->relname, note->extra);
        PQfreemem(note);
        count++;
    }
    return count;
}
