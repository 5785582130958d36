/*
 * One step of a job: read its definition, do it, report upward through
 * callbacks only. run fills a step_ctx and calls step_run from the thread of
 * the slot; everything here belongs to that thread.
 */
#ifndef STEPS_STEP_H
#define STEPS_STEP_H

#include "base/compiler.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct db;
struct err;
struct io_ctx;

struct step_counters {
    int64_t read;
    int64_t written;
    int64_t filtered;
    int64_t skipped;
    int64_t commits;
    int64_t rollbacks;
};

/* Outcomes of step_run; failures are < 0. */
enum step_outcome {
    STEP_COMPLETED,
    STEP_STOPPED, /* ended at a chunk border because it was asked to */
    STEP_CANCELLED,
    STEP_LOST, /* the claim is somebody else's by now: drop everything */
};

/* Inside the checkpoint's transaction: write the chunk's rows. Only statements. */
typedef int (*step_apply_fn)(void *arg, struct db *db, struct err *err);

struct step_checkpoint {
    struct step_counters
        counters;                /* totals since the very start, this chunk included */
    const char *reader_position; /* JSON text ≤ 64 kB, never NULL */
    const char *writer_state;    /* JSON text ≤ 64 kB, never NULL */
    bool last; /* nothing follows: the same transaction marks the step COMPLETED */
    /* Grows by the times that the rows were rolled back and written again before it
     * went well; they stand in the counters that are stored. NULL: nobody counts. */
    int64_t *rolled_back;
    step_apply_fn apply; /* for a writer into a database, else NULL */
    void *apply_arg;
};

/* What a step leaves: the finished part of a file, to be published by the run. */
struct step_result {
    char name[256]; /* file name for people, "" = no file was made */
    char part_path[4096];
    const char *content_type; /* static */
    int64_t rows;
    int64_t bytes;
    struct step_counters counters;
};

struct step_ctx {
    struct io_ctx *io; /* also: progress and stopped */
    const json_t *def; /* the step's definition, checked by step_validate */

    /* From the last committed checkpoint; NULL and zero: from the start. */
    const char *reader_position;
    const char *writer_state;
    struct step_counters counters;
    int64_t total_rows; /* estimate for progress; -1 = not known */

    /* Commit the chunk: run apply (if any), store cp, all in one transaction under
     * the token. 0, or STEP_LOST (the token is stale: nothing was written), or < 0. */
    int (*checkpoint)(void *arg, const struct step_checkpoint *cp, struct err *err);
    void *checkpoint_arg;

    /* Something that people should know when they look at the step: told with its end.
     */
    void (*note)(void *arg, const char *text);
    void *note_arg;
};

/* A row of the table in steps.c. */
struct step_type {
    const char *name;
    const char *key; /* the key that makes a step one of this type */
    const char *help;
    int (*validate)(const json_t *def, struct err *err);
    int (*run)(struct step_ctx *ctx, struct step_result *ret_result, struct err *err);
    /* What a crash can do to it, a word of format_effect_name. */
    const char *(*effect)(const json_t *def);
    bool again; /* carried out also when an earlier execution has completed it */
};

const struct step_type *step_types(size_t *ret_count);

/* Is this a step that can run? ERR_CONFIG naming the wrong key and what is right. */
int step_validate(const json_t *def, struct err *err) must_check;

/* An enum step_outcome, or < 0. ret_result is written for STEP_COMPLETED. */
int step_run(struct step_ctx *ctx, struct step_result *ret_result,
             struct err *err) must_check;

/* Effect class of the step for people: "transactional", "file", "at-least-once". */
const char *step_effect(const json_t *def);

/* What kind of step it is, for comparing and for people: "sql", "chunk from csv into
 * main". A step that goes on must be what it was. */
#define STEP_KIND_MAX 80

void step_kind(const json_t *def, char ret_kind[STEP_KIND_MAX]);

/* Is it carried out again when the instance goes on, though it was completed (A37)? */
bool step_again(const json_t *def);

#endif
