/*
 * What a database must be able to do: for db.c, which calls it, and for drivers
 * (db_sqlite.c, db_pg.c, and the one for tests that fails on purpose). A driver
 * embeds struct db as its first part and fills the table below; the facade has
 * checked arguments before it calls. Threading as in db.h.
 */
#ifndef DB_DRIVER_H
#define DB_DRIVER_H

#include "base/err.h"
#include "db/db.h"

#include <stdatomic.h>

struct db_driver;

struct db {
    const struct db_driver *driver;
    enum db_kind kind;
    bool usable; /* cleared by the driver when the connection is lost */
    bool pooled;
    bool store;      /* our own: says which code a lost connection gets */
    int64_t changes; /* set by the driver */
    /* Kept by the facade: */
    bool in_tx;
    bool tx_failed; /* only a rollback is possible */
    enum db_mode mode;
    bool cancellable;      /* db_cancel is for the work as a whole, not for a call */
    atomic_bool cancelled; /* db_cancel was called; any thread */
};

/* Nothing more of this work may run: it was cancelled, be it between two calls. */
static inline bool
db_is_cancelled(const struct db *db)
{
    return db->cancellable && atomic_load(&db->cancelled);
}

/* One row more here is one row more in each driver; all are required. Functions
 * with a cursor or a copy state get it back until end; end is called once. */
struct db_driver {
    void (*close)(struct db *db);
    int (*ping)(struct db *db, struct err *err);
    void (*cancel)(struct db *db);

    int (*exec)(struct db *db, const struct db_sql *sql, const struct db_value *params,
                size_t count, struct err *err);
    int (*script)(struct db *db, const char *text, struct err *err);

    int (*query)(struct db *db, const struct db_sql *sql, const struct db_value *params,
                 size_t count, void **ret_cursor, struct err *err);
    int (*describe)(struct db *db, const struct db_sql *sql, void **ret_cursor,
                    struct err *err);
    int (*next)(struct db *db, void *cursor, struct err *err);
    void (*end)(struct db *db, void *cursor);
    int (*param_count)(struct db *db, void *cursor);
    int (*column_count)(struct db *db, void *cursor);
    const char *(*column_name)(struct db *db, void *cursor, int column);
    enum db_type (*column_type)(struct db *db, void *cursor, int column);
    struct db_value (*cell)(struct db *db, void *cursor, int column);
    const char *(*cell_text)(struct db *db, void *cursor, int column, size_t *ret_len);

    /* BEGIN, COMMIT, ROLLBACK; commit distinguishes "no" from "unknown". */
    int (*begin)(struct db *db, enum db_mode mode, struct err *err);
    int (*commit)(struct db *db, struct err *err);
    void (*rollback)(struct db *db);

    int (*copy_begin)(struct db *db, const char *table, const char *const *columns,
                      size_t n_columns, void **ret_state, struct err *err);
    int (*copy_row)(struct db *db, void *state, const struct db_value *values,
                    size_t n_columns, struct err *err);
    int (*copy_end)(struct db *db, void *state, struct err *err); /* frees state */
    void (*copy_abort)(struct db *db, void *state);               /* frees state */

    int (*listen)(struct db *db, const char *channel, struct err *err);
    int (*notify_fd)(const struct db *db);
    int (*notifications)(struct db *db, db_notify_fn notify, void *arg,
                         struct err *err);
    int (*set_clock)(struct db *db, db_clock_fn clock, void *arg, struct err *err);
};

int db_open_sqlite(const struct db_options *options, const char *path,
                   struct db **ret_db, struct err *err) must_check;
int db_open_pg(const struct db_options *options, struct db **ret_db,
               struct err *err) must_check;

/* The text of sql for this kind of database. */
const char *db_sql_text(const struct db_sql *sql, enum db_kind kind);

/* ERR_STORE for our store, ERR_CONNECT for a user's database. */
enum err_code db_lost_code(const struct db *db);

/* err_set with err->detail. */
int db_fail(struct err *err, enum err_code code, const char *detail, const char *fmt,
            ...) printf_like(4, 5);

/* " (line 2, column 7)" for a byte offset in text, "" for none (offset < 0). */
#define DB_PLACE_SIZE 48
void db_place(const char *text, long offset, char ret[DB_PLACE_SIZE]);

#endif
