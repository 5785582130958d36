/* What the tests of steps share: what a run would be above a step. */
#ifndef TESTS_UNIT_STEPS_STEP_TEST_H
#define TESTS_UNIT_STEPS_STEP_TEST_H

#include "../io/io_test.h"

#include "db/db.h"
#include "on_both.h"
#include "steps/step.h"
#include "testdb.h"

#define ROWS 25

/* What a run would be above the step: databases, a stored checkpoint, wishes. */
struct step_test {
    struct io_test t;
    struct testdb testdb;
    struct db *dbs[4]; /* shop read, shop write, main read, main write */
    struct step_ctx ctx;
    json_t *def;
    char position[256];
    char state[2048];
    struct step_counters counters;
    int checkpoints;
    int stop_after; /* checkpoints; 0 = never */
    enum io_stop stop_as;
    int lost_at;       /* the checkpoint that finds the token stale */
    int64_t reads[40]; /* what each checkpoint counted as read */
    int64_t progress_done;
    char message[128];
    bool last;
};

static inline struct step_test *
test_of(struct io_ctx *io)
{
    struct io_test *t = io->owner;

    return container_of(t, struct step_test, t);
}

static inline int
give_database(struct io_ctx *io, const char *name, enum io_db_use use,
              struct db **ret_db, struct err *err)
{
    struct step_test *s = test_of(io);

    *ret_db = s->dbs[(strcmp(name, "main") == 0 ? 2 : 0) + (use == IO_DB_WRITE)];
    return 0;
}

static inline enum io_stop
is_stopped(struct io_ctx *io)
{
    struct step_test *s = test_of(io);

    return s->stop_after && s->checkpoints >= s->stop_after ? s->stop_as : IO_GO_ON;
}

static inline void
take_progress(struct io_ctx *io, int64_t done, int64_t total, const char *message)
{
    struct step_test *s = test_of(io);

    assert_true(done >= s->progress_done || message);
    s->progress_done = done;
    if (message)
        (void)snprintf(s->message, sizeof(s->message), "%s", message);
}

static inline void
take_note(void *arg, const char *text)
{
    struct step_test *s = arg;

    (void)snprintf(s->message, sizeof(s->message), "%s", text);
}

/* As run does it: rows and checkpoint in one transaction. */
static inline int
take_checkpoint(void *arg, const struct step_checkpoint *cp, struct err *err)
{
    struct step_test *s = arg;
    scoped(db_tx_end) struct db_tx tx = {0};
    int r = 0;

    ok(&s->t, db_begin(s->dbs[3], DB_WRITE, &tx, err));
    if (cp->apply)
        r = cp->apply(cp->apply_arg, s->dbs[3], err);
    if (r < 0)
        return r;
    if (++s->checkpoints == s->lost_at)
        return STEP_LOST; /* rolled back */
    r = db_commit(&tx, err);
    if (r < 0) {
        s->checkpoints--;
        return r;
    }
    (void)snprintf(s->position, sizeof(s->position), "%s", cp->reader_position);
    (void)snprintf(s->state, sizeof(s->state), "%s", cp->writer_state);
    s->counters = cp->counters;
    s->last = cp->last;
    if (s->checkpoints <= (int)array_len(s->reads))
        s->reads[s->checkpoints - 1] = cp->counters.read;
    return 0;
}

static inline bool
begin(struct step_test *s, enum testdb_kind kind, const char *params)
{
    memset(s, 0, sizeof(*s));
    if (!testdb_init(&s->testdb, kind))
        return false;
    io_test_init(&s->t, params);
    s->t.io.database = give_database;
    s->t.io.stopped = is_stopped;
    s->t.io.progress = take_progress;
    for (size_t i = 0; i < array_len(s->dbs); i++)
        s->dbs[i] = testdb_open(&s->testdb);
    if (kind == TESTDB_SQLITE) /* as the store is: a reader blocks no writer */
        ok(&s->t, db_script(s->dbs[1], "PRAGMA journal_mode=WAL", &s->t.err));
    s->ctx.io = &s->t.io;
    s->ctx.total_rows = ROWS;
    s->ctx.checkpoint = take_checkpoint;
    s->ctx.checkpoint_arg = s;
    s->ctx.note = take_note;
    s->ctx.note_arg = s;
    ok(&s->t, db_script(s->dbs[1],
                        "CREATE TABLE city (id int PRIMARY KEY, name text);"
                        "CREATE TABLE copy (id int PRIMARY KEY, name text)",
                        &s->t.err));
    for (int i = 0; i < ROWS; i++) {
        char text[80];

        (void)snprintf(text, sizeof(text), "INSERT INTO city VALUES (%d, '도시 %d')", i,
                       i);
        ok(&s->t, db_script(s->dbs[1], text, &s->t.err));
    }
    return true;
}

static inline void
end(struct step_test *s)
{
    for (size_t i = 0; i < array_len(s->dbs); i++)
        db_close(s->dbs[i]);
    json_decref(s->def);
    testdb_release(&s->testdb);
    io_test_release(&s->t);
}

static inline void
set_def(struct step_test *s, const char *text)
{
    json_decref(s->def);
    s->def = json_of(text);
    s->ctx.def = s->def;
    ok(&s->t, step_validate(s->def, &s->t.err));
}

/* The next run of the same step: it gets what the last checkpoint stored. */
static inline void
resume(struct step_test *s)
{
    s->ctx.reader_position = s->position;
    s->ctx.writer_state = s->state;
    s->ctx.counters = s->counters;
    s->stop_after = 0;
    s->lost_at = 0;
}

static inline int64_t
count(struct step_test *s, const char *text)
{
    const struct db_sql sql = {.name = "count", .text = text};
    int64_t got = -1;

    ok(&s->t, db_query_i64(s->dbs[0], &sql, NULL, 0, &got, &s->t.err));
    return got;
}

#endif
