/* Inside of the room torture, for its own files only. */
#ifndef TORTURE_PRIVATE_H
#define TORTURE_PRIVATE_H

#include "base/arena.h"
#include "config/config.h"
#include "db/db.h"
#include "queue/job.h"
#include "torture/torture.h"

#define TORTURE_STEPS_MAX     64
#define TORTURE_DATABASES_MAX 16
#define TORTURE_NAME_MAX      128

/* --- plan.c: what the job does, and whether it may be done --- */

enum plan_use { PLAN_READ = 1, PLAN_WRITE = 2 };

struct plan_database {
    const char *name;
    const char *url; /* what it is copied from, or read at */
    unsigned use;    /* enum plan_use bits */
};

struct plan {
    const struct config_job *job;
    struct queue_job *rules;                               /* owned */
    json_t *effective;                                     /* owned */
    const char *given;                                     /* canonical JSON */
    const char *canonical;                                 /* of effective */
    struct plan_database databases[TORTURE_DATABASES_MAX]; /* without main */
    size_t n_databases;
    bool uses_main;
};

int plan_make(const struct torture_order *order, struct arena *arena,
              struct plan *ret_plan, struct err *err) must_check;
void plan_release(struct plan *plan);
const json_t *plan_step(const struct plan *plan, size_t i);
const char *plan_step_name(const struct plan *plan, size_t i);

/* Does the query end, outside of all brackets, in an order? */
bool plan_has_order(const char *sql);

/* --- place.c, place_copy.c: the scratch place --- */

struct place_database {
    const struct plan_database *plan;
    enum db_kind kind;
    const char *url; /* what the job sees */
    const char
        *base; /* SQLite: what is copied for each round; NULL: read where it is */
    const char *work;
    const char *template_name; /* PostgreSQL: of the database that is copied */
    const char *copy_name;
};

struct place {
    struct arena *arena;
    const char *folder;
    const char *base;
    const char *work;
    struct config config; /* the user's, with everything led here */
    struct place_database databases[TORTURE_DATABASES_MAX];
    size_t n_databases;
    bool uses_main;   /* the job has tables of its own in the store */
    const char **own; /* pawl's */
    size_t n_own;
};

/* Also to be closed when it failed. */
int place_open(struct place *place, const struct torture_order *order,
               const struct plan *plan, struct arena *arena,
               struct err *err) must_check;
/* As it was before the job ever ran. */
int place_reset(struct place *place, struct err *err) must_check;
void place_close(struct place *place); /* takes everything away again */

/* Copy a database of SQLite as it stands, while others may be writing to it. */
int place_copy_sqlite(const char *url, const char *to, struct err *err) must_check;
int place_copy_file(const char *from, const char *to, struct err *err) must_check;
int place_pg_name(const char *url, struct arena *arena, const char **ret_name,
                  struct err *err) must_check;
int place_pg_copy(const struct place_database *database, struct err *err) must_check;
void place_pg_drop(const struct place_database *database);
/* The URL with another database in it. */
const char *place_pg_url(const char *url, const char *name, struct arena *arena);

/* --- child.c, wait.c: one process of the job --- */

/* Where on its way a process stands. */
struct spot {
    int step; /* index; -1: before the first, or behind the last */
    char stage[16];
    int chunk; /* of the step, in this process */
};

struct counted {
    char name[TORTURE_NAME_MAX];
    char note[200];
    int64_t read;
    int64_t written;
    int64_t filtered;
    int64_t skipped;
    int64_t commits;
};

struct child_order {
    const struct place *place;
    const struct plan *plan;
    int die_at;      /* the place, counted from 1; 0 = never */
    int die_commits; /* before the commit that follows so many; 0 = never */
    bool follow;     /* go on with what the one before held */
};

struct child_end {
    bool killed;
    struct spot spot; /* where */
    bool completed;   /* else detail says why not */
    char detail[400];
    int places; /* it came by so many */
    struct counted steps[TORTURE_STEPS_MAX];
    size_t n_steps;
    char result[256]; /* "" = no file */
    char sha256[65];
};

/* What a child tells: fixed in size, smaller than what a pipe takes in one piece. */
enum said_kind { SAID_SPOT, SAID_STEP, SAID_END };

struct said {
    enum said_kind kind;
    bool completed;
    int places;
    struct spot spot;
    struct counted step;
    char detail[400];
    char result[256];
    char sha256[65];
};

_Noreturn void child_main(const struct child_order *order, int fd);

/* Fork it and wait for its end. */
int child_run(const struct torture_order *torture, const struct child_order *order,
              struct child_end *ret_end, struct err *err) must_check;

/* --- look.c: what is in the tables --- */

#define LOOK_ROWS_MAX 4000000

struct look_row {
    unsigned char hash[16];
};

struct look_table {
    const char *database;
    const char *name; /* as SQL has it */
    struct look_row *rows;
    size_t n_rows;
    size_t cap;
    const char **columns;
    uint64_t *sums; /* by column, whatever the order */
    bool *noise;    /* by column: left out */
    size_t width;
};

struct look {
    struct look_table *tables;
    size_t n_tables;
    size_t n_rows;
};

struct look_diff {
    const struct look_table *table; /* NULL: none differs */
    int64_t missing;
    int64_t repeated;
    int64_t other; /* rows that were not there without a kill */
};

/* noise: one whose columns of noise are left out here too, or NULL. */
int look_take(const struct place *place, const struct look *noise, struct arena *arena,
              struct look *ret_look, struct err *err) must_check;
void look_release(struct look *look);
/* Mark the columns of b whose values differ. -ERR_INVALID: so do the rows' numbers. */
int look_find_noise(const struct look *a, struct look *b, struct err *err) must_check;
bool look_changed(const struct look *before, const struct look_table *table);
/* The first table that differs. Both are sorted. */
void look_compare(const struct look *wanted, const struct look *got,
                  struct look_diff *ret_diff);

/* --- judge.c --- */

struct reference {
    struct look look;
    bool *changed; /* by table of look: the job changed it */
    struct child_end end;
    bool result_same; /* two runs without a kill gave the same file */
};

/* Compare how a round ended; what is otherwise is noted at the step. */
void judge_round(const struct reference *reference, const struct plan *plan,
                 const struct spot *killed, const struct child_end *end,
                 const struct look *look, struct arena *arena,
                 struct torture_step *step);
/* What can be told from the definition alone. */
void judge_definition(const struct reference *reference, const struct plan *plan,
                      size_t i, struct torture_step *step);

#endif
