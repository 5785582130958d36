/*
 * Steps that write into a database other than the store: the checkpoint commits there,
 * with the rows (batch/foreign.h), and is copied into the store afterwards. Whatever
 * happens between the two, the row there tells where the step stands.
 */
#include "run/run_private.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/retry.h"
#include "batch/foreign.h"
#include "batch/partition.h"
#include "db/db.h"
#include "io/formats.h"
#include "store/store.h"

#define TRY_AGAIN_US (10 * US_PER_S)

static struct foreign_key
key_of(const struct run *run)
{
    return (struct foreign_key){
        .store_id = store_id(run->env->store),
        .instance_id = run->instance_id,
        .step = run->step_name,
        /* Whoever takes a partition draws a number for it. */
        .token = run->partition ? run->partition->hold : run->token.number,
    };
}

/* --- begin --- */

/* The store's copy is behind when a run ended between the two commits. */
static int
bring_up(struct run *run, const struct step_point *point, struct err *err)
{
    struct checkpoint checkpoint = {
        .request_id = run->request_id,
        .token = run->token,
        .execution_id = run->execution_id,
        .step_id = run->step_id,
        .point = *point,
        .share = run->share,
        .partition = run->partition,
    };
    struct run_patience patience = run_patience(run);
    int r = BATCH_OK;

    if (point->chunk == run->chunk)
        return BATCH_OK;
    do
        r = batch_checkpoint_place(run->env->store, &checkpoint, err);
    while (run_wait_after(run, &patience, r, err));
    return r;
}

static int
row_gone(const struct run *run, const char *database, struct err *err)
{
    return err_set(err, ERR_INVALID,
                   "%lld chunks of this step were committed, but pawl_checkpoint in "
                   "database %s knows of none: was it restored or emptied, or does the "
                   "step write elsewhere now? Look at its rows, then ask for a new run "
                   "(restart: false)",
                   (long long)run->chunk, database);
}

/* Numbers of instances come again when the store is restored from a backup. */
static int
row_of_another(const struct run *run, int64_t chunk, const char *database,
               struct err *err)
{
    return err_set(err, ERR_INVALID,
                   "the work begins only now, but pawl_checkpoint in database %s knows "
                   "%lld chunks of it: was the store restored from an older backup? "
                   "Look at what was written, delete there instance %lld of store_id "
                   "%.40s, then ask again (restart: false)",
                   database, (long long)chunk, (long long)run->instance_id,
                   store_id(run->env->store));
}

int
run_foreign_begin(struct run *run, struct step_point *point, const char *database,
                  struct err *err)
{
    struct foreign_key key = key_of(run);
    struct step_point there = {0};
    struct db *db = NULL;
    int r = run_database(run, database, IO_DB_WRITE, &db, err);

    if (r < 0)
        return r;
    r = foreign_open(db, &key, &run->arena, &there, err);
    if (r != BATCH_OK)
        return r < 0 ? err_prefix(err, "database %s", database) : r;
    if (there.chunk == 0 && run->chunk > 0)
        return row_gone(run, database, err);
    if (there.chunk > 0 && !run->goes_on && !run->partition)
        return row_of_another(run, there.chunk, database, err);
    r = bring_up(run, &there, err);
    if (r != BATCH_OK)
        return r;
    run->foreign = database;
    run->chunk = there.chunk;
    *point = there;
    return BATCH_OK;
}

/* --- a chunk --- */

/* BATCH_OK, BATCH_LOST, or < 0. */
static int
commit_once(struct run *run, struct db *db, const struct step_checkpoint *cp,
            const struct step_point *point, struct err *err)
{
    scoped(db_tx_end) struct db_tx tx = {0};
    struct foreign_key key = key_of(run);
    int r = db_begin(db, DB_WRITE, &tx, err);

    if (r == 0)
        r = cp->apply(cp->apply_arg, db, err);
    /* Last, so that the row is locked for a moment only and a run that goes on in our
     * place need not wait for us. */
    if (r == 0)
        r = foreign_commit_in(db, &key, point, err);
    if (r != BATCH_OK)
        return r;
    return db_commit(&tx, err);
}

/* The answer to the commit was lost: what stands there? BATCH_OK: our chunk. */
static int
look_again(struct run *run, const struct step_point *point, struct err *err)
{
    struct foreign_key key = key_of(run);
    struct step_point there = {0};
    struct err again = {0};
    struct db *db = NULL;
    int r = run_database_again(run, run->foreign, IO_DB_WRITE, &db, &again);

    if (r == 0)
        r = foreign_open(db, &key, &run->arena, &there, &again);
    if (r != 0)
        return r < 0 ? -(int)err->code : r; /* the first failure is the one to tell */
    if (there.chunk != point->chunk)
        return -(int)err->code;
    err_clear(err);
    return BATCH_OK;
}

/* A deadlock, a lock that somebody holds, a connection that broke before the commit was
 * sent: nothing was committed, and the calls behind the chunk were made. */
static bool
may_try_again(const struct run *run, int r)
{
    return (r == -ERR_DB_CONFLICT || r == -ERR_STORE_BUSY || r == -ERR_CONNECT) &&
           run_wish(run) < RUN_TIMEOUT && !atomic_load(&run->cut);
}

static void
count_rollback(const struct step_checkpoint *cp, struct step_point *point)
{
    point->counts.rollbacks++;
    if (cp->rolled_back)
        (*cp->rolled_back)++;
}

int
run_foreign_commit(struct run *run, const struct step_checkpoint *cp,
                   struct step_point *point, struct err *err)
{
    struct backoff backoff = {.base_ms = 100, .max_ms = 3000, .jitter = 0.5};
    int64_t until_us = clock_mono_us(run->env->clock) + TRY_AGAIN_US;
    bool tried = true;
    struct db *db = NULL;
    int r = run_database(run, run->foreign, IO_DB_WRITE, &db, err);

    if (r < 0)
        return r;
    r = commit_once(run, db, cp, point, err);
    while (may_try_again(run, r) && clock_mono_us(run->env->clock) < until_us) {
        bool broken = r == -ERR_CONNECT;

        if (tried)
            count_rollback(cp, point);
        clock_pause_ms(backoff_next_ms(&backoff));
        err_clear(err);
        r = broken ? run_database_again(run, run->foreign, IO_DB_WRITE, &db, err) : 0;
        tried = r == 0;
        if (tried)
            r = commit_once(run, db, cp, point, err);
    }
    if (r == -ERR_COMMIT_UNKNOWN)
        r = look_again(run, point, err);
    return r;
}
