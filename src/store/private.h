/* What the files of this room share: the store itself, and the parts it is made of. */
#ifndef STORE_PRIVATE_H
#define STORE_PRIVATE_H

#include "base/fsio.h"
#include "base/rand.h"
#include "db/pool.h"
#include "store/group.h"
#include "store/migrate.h"
#include "store/store.h"
#include "store/wake.h"

struct wake;

struct store {
    enum db_kind kind;
    char id[RAND_HEX128_SIZE];
    struct migrate_report schema;
    struct lockfile lock; /* SQLite */
    struct db_pool *pool; /* PostgreSQL: all connections; SQLite: readers */
    struct group *group;  /* SQLite: the one writer */
    struct wake *wake;
    int wait_ms;
    struct store_counts counts; /* PostgreSQL; atomic */

    /* How connections are opened; the strings are ours. */
    struct db_options db;
    char *url;
    char *app_name;
    int (*open)(const struct db_options *options, struct db **ret_db, struct err *err);
    db_clock_fn clock;
    void *clock_arg;
};

/* Opens connections as the store's, for listening where listen is not NULL. */
struct wake_options {
    enum db_kind kind;
    const char *listen_url; /* copied; NULL: nothing to listen on */
    struct db_options db;   /* for the listening connection; strings outlive it */
    int (*open)(const struct db_options *options, struct db **ret_db, struct err *err);
    struct db_pool *pool; /* says to others what happened while nothing listens */
};

int wake_new(const struct wake_options *options, struct wake **ret_wake,
             struct err *err) must_check;
/* What was told before goes out first. Accepts NULL. */
void wake_free(struct wake *wake);

#endif
