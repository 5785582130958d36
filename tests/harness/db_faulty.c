#include "db_faulty.h"

#include "base/arena.h"
#include "base/err.h"
#include "db/driver.h"

#include <stdatomic.h>
#include <stdlib.h>

static atomic_int hits;

struct faulty {
    struct db base;
    struct db *real;
    int calls, fail_at;
    enum faulty_how how;
    bool hit;
};

static struct faulty *
faulty_of(struct db *db)
{
    return container_of(db, struct faulty, base);
}

/* What the facade keeps in our struct db, the real driver looks for in its own. */
static struct db *
to_real(struct db *db)
{
    struct db *real = faulty_of(db)->real;

    real->in_tx = db->in_tx;
    real->tx_failed = db->tx_failed;
    real->mode = db->mode;
    return real;
}

static int
from_real(struct db *db, int r)
{
    const struct db *real = faulty_of(db)->real;

    db->changes = real->changes;
    db->tx_failed = real->tx_failed;
    if (!real->usable)
        db->usable = false;
    return r;
}

/* Is it this call's turn? */
static int
trip(struct db *db, const char *what, struct err *err)
{
    struct faulty *faulty = faulty_of(db);

    faulty->calls++;
    if (faulty->fail_at == 0 || faulty->calls < faulty->fail_at ||
        (faulty->how == FAULTY_ONCE && faulty->calls > faulty->fail_at))
        return 0;
    faulty->hit = true;
    atomic_fetch_add(&hits, 1);
    if (faulty->how != FAULTY_ONCE)
        db->usable = false;
    return db_fail(err, ERR_STORE, "FAULT", "%s: failed on purpose, call %d", what,
                   faulty->calls);
}

#define TRY(what)                                                                      \
    do {                                                                               \
        int trip_r = trip(db, what, err);                                              \
        if (trip_r < 0)                                                                \
            return trip_r;                                                             \
    } while (0)

static void
faulty_close(struct db *db)
{
    db_close(faulty_of(db)->real);
    free(faulty_of(db));
}

static int
faulty_ping(struct db *db, struct err *err)
{
    TRY("ping");
    return from_real(db, faulty_of(db)->real->driver->ping(to_real(db), err));
}

static void
faulty_cancel(struct db *db)
{
    faulty_of(db)->real->driver->cancel(faulty_of(db)->real);
}

static int
faulty_exec(struct db *db, const struct db_sql *sql, const struct db_value *params,
            size_t count, struct err *err)
{
    TRY(sql->name);
    return from_real(
        db, faulty_of(db)->real->driver->exec(to_real(db), sql, params, count, err));
}

static int
faulty_script(struct db *db, const char *text, struct err *err)
{
    TRY("script");
    return from_real(db, faulty_of(db)->real->driver->script(to_real(db), text, err));
}

static int
faulty_query(struct db *db, const struct db_sql *sql, const struct db_value *params,
             size_t count, void **ret_cursor, struct err *err)
{
    TRY(sql->name);
    return from_real(db, faulty_of(db)->real->driver->query(to_real(db), sql, params,
                                                            count, ret_cursor, err));
}

static int
faulty_describe(struct db *db, const struct db_sql *sql, void **ret_cursor,
                struct err *err)
{
    TRY(sql->name);
    return from_real(
        db, faulty_of(db)->real->driver->describe(to_real(db), sql, ret_cursor, err));
}

static int
faulty_next(struct db *db, void *cursor, struct err *err)
{
    TRY("next");
    return from_real(db, faulty_of(db)->real->driver->next(to_real(db), cursor, err));
}

static void
faulty_end(struct db *db, void *cursor)
{
    faulty_of(db)->real->driver->end(to_real(db), cursor);
    from_real(db, 0);
}

static int
faulty_param_count(struct db *db, void *cursor)
{
    return faulty_of(db)->real->driver->param_count(faulty_of(db)->real, cursor);
}

static int
faulty_column_count(struct db *db, void *cursor)
{
    return faulty_of(db)->real->driver->column_count(faulty_of(db)->real, cursor);
}

static const char *
faulty_column_name(struct db *db, void *cursor, int column)
{
    return faulty_of(db)->real->driver->column_name(faulty_of(db)->real, cursor,
                                                    column);
}

static enum db_type
faulty_column_type(struct db *db, void *cursor, int column)
{
    return faulty_of(db)->real->driver->column_type(faulty_of(db)->real, cursor,
                                                    column);
}

static struct db_value
faulty_cell(struct db *db, void *cursor, int column)
{
    return faulty_of(db)->real->driver->cell(faulty_of(db)->real, cursor, column);
}

static const char *
faulty_cell_text(struct db *db, void *cursor, int column, size_t *ret_len)
{
    return faulty_of(db)->real->driver->cell_text(faulty_of(db)->real, cursor, column,
                                                  ret_len);
}

static int
faulty_begin(struct db *db, enum db_mode mode, struct err *err)
{
    TRY("begin");
    return from_real(db, faulty_of(db)->real->driver->begin(to_real(db), mode, err));
}

static int
faulty_commit(struct db *db, struct err *err)
{
    struct faulty *faulty = faulty_of(db);
    int r = trip(db, "commit", err);

    if (r < 0 && faulty->how == FAULTY_COMMIT_LOST) {
        struct err ignored = {0};

        (void)!faulty->real->driver->commit(to_real(db), &ignored);
        err_clear(err);
        return db_fail(err, ERR_COMMIT_UNKNOWN, "FAULT", "commit: its answer was lost");
    }
    if (r < 0)
        return r;
    return from_real(db, faulty->real->driver->commit(to_real(db), err));
}

static void
faulty_rollback(struct db *db)
{
    faulty_of(db)->real->driver->rollback(to_real(db));
    from_real(db, 0);
}

static int
faulty_copy_begin(struct db *db, const char *table, const char *const *columns,
                  size_t n_columns, void **ret_state, struct err *err)
{
    TRY(table);
    return from_real(db, faulty_of(db)->real->driver->copy_begin(
                             to_real(db), table, columns, n_columns, ret_state, err));
}

static int
faulty_copy_row(struct db *db, void *state, const struct db_value *values,
                size_t n_columns, struct err *err)
{
    TRY("copy row");
    return from_real(db, faulty_of(db)->real->driver->copy_row(to_real(db), state,
                                                               values, n_columns, err));
}

static int
faulty_copy_end(struct db *db, void *state, struct err *err)
{
    struct db *real = to_real(db);
    int r = trip(db, "copy end", err);

    if (r < 0) { /* the state ends with this call, whatever comes of it */
        real->driver->copy_abort(real, state);
        return r;
    }
    return from_real(db, real->driver->copy_end(real, state, err));
}

static void
faulty_copy_abort(struct db *db, void *state)
{
    faulty_of(db)->real->driver->copy_abort(to_real(db), state);
    from_real(db, 0);
}

static int
faulty_listen(struct db *db, const char *channel, struct err *err)
{
    TRY("listen");
    return from_real(db,
                     faulty_of(db)->real->driver->listen(to_real(db), channel, err));
}

static int
faulty_notify_fd(const struct db *db)
{
    const struct faulty *faulty = (const void *)db; /* base is the first member */

    return faulty->real->driver->notify_fd(faulty->real);
}

static int
faulty_notifications(struct db *db, db_notify_fn notify, void *arg, struct err *err)
{
    TRY("notifications");
    return from_real(
        db, faulty_of(db)->real->driver->notifications(to_real(db), notify, arg, err));
}

static int
faulty_set_clock(struct db *db, db_clock_fn clock, void *arg, struct err *err)
{
    struct db *real = faulty_of(db)->real;

    return real->driver->set_clock(real, clock, arg, err);
}

static const struct db_driver faulty_driver = {
    .close = faulty_close,
    .ping = faulty_ping,
    .cancel = faulty_cancel,
    .exec = faulty_exec,
    .script = faulty_script,
    .query = faulty_query,
    .describe = faulty_describe,
    .next = faulty_next,
    .end = faulty_end,
    .param_count = faulty_param_count,
    .column_count = faulty_column_count,
    .column_name = faulty_column_name,
    .column_type = faulty_column_type,
    .cell = faulty_cell,
    .cell_text = faulty_cell_text,
    .begin = faulty_begin,
    .commit = faulty_commit,
    .rollback = faulty_rollback,
    .copy_begin = faulty_copy_begin,
    .copy_row = faulty_copy_row,
    .copy_end = faulty_copy_end,
    .copy_abort = faulty_copy_abort,
    .listen = faulty_listen,
    .notify_fd = faulty_notify_fd,
    .notifications = faulty_notifications,
    .set_clock = faulty_set_clock,
};

struct db *
db_faulty_new(struct db *real, int fail_at, enum faulty_how how)
{
    struct faulty *faulty = xcalloc(1, sizeof(*faulty));

    faulty->base = *real;
    faulty->base.driver = &faulty_driver;
    faulty->real = real;
    db_faulty_arm(&faulty->base, fail_at, how);
    return &faulty->base;
}

void
db_faulty_arm(struct db *db, int fail_at, enum faulty_how how)
{
    struct faulty *faulty = faulty_of(db);

    faulty->calls = 0;
    faulty->hit = false;
    faulty->fail_at = fail_at;
    faulty->how = how;
}

int
db_faulty_calls(const struct db *db)
{
    return ((const struct faulty *)(const void *)db)->calls;
}

bool
db_faulty_hit(const struct db *db)
{
    return ((const struct faulty *)(const void *)db)->hit;
}

int
db_faulty_hits(void)
{
    return atomic_load(&hits);
}
