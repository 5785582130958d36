#include "batch/done.h"

#include "base/err.h"
#include "store/store.h"

struct ask {
    const char *job;
    batch_done_fn done;
    void *arg;
};

static int
ask_fn(struct db *db, void *arg, struct err *err)
{
    const struct ask *ask = arg;
    scoped(db_rows_end) struct db_rows rows = {0};
    int r = db_ask(db, store_sql(db, STMT_BATCH_DONE_IDENTITIES), &rows, err,
                   p_text(ask->job));

    while (r >= 0 && (r = db_next(&rows, err)) > 0)
        ask->done(ask->arg, db_text(&rows, 0));
    return r;
}

int
batch_done_identities(struct store *store, const char *job, batch_done_fn done,
                      void *arg, struct err *err)
{
    struct ask ask = {.job = job, .done = done, .arg = arg};

    return store_read(store, ask_fn, &ask, err);
}
