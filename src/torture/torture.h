/*
 * Is a job restart-safe? It is run in a scratch place: a store of its own, copies of
 * the databases it writes to. First without a kill, then again and again by a child
 * process that is killed (SIGKILL) at one place of its way; another child goes on with
 * it, and what is there in the end must be what was there without a kill: the rows of
 * every table, the bytes of the result, the counters. The user's own store and
 * databases are only read.
 *
 * The caller's process must have no other threads, because children are forked from
 * it. One call at a time.
 */
#ifndef TORTURE_TORTURE_H
#define TORTURE_TORTURE_H

#include "base/compiler.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct arena;
struct config;
struct err;

#define TORTURE_ROUNDS_MAX 100000

struct torture_order {
    const struct config *config;
    const char *job;
    const json_t *params;   /* as given: an object */
    const char *schema;     /* path of SQL that makes the tables of main, or NULL */
    const char **databases; /* NAME=URL: what to copy in place of the configured one */
    size_t n_databases;
    bool allow_calls; /* steps may call outside, again and again */
    int rounds;       /* at most so many kills, 1 to TORTURE_ROUNDS_MAX */

    /* May be NULL: one more round is over; should it end now? */
    void (*told)(void *arg, int done, int rounds, const char *step);
    bool (*interrupted)(void *arg);
    void *arg;
};

struct torture_step {
    const char *name;   /* NULL: before the first step and after the last */
    const char *effect; /* the promise of its writer; "" = none */
    int kills;
    int bad; /* how many of them ended otherwise than without a kill */
    bool safe;
    const char *seen;   /* what was otherwise, and after which kill; NULL */
    const char *reason; /* why, as far as can be told; NULL */
    const char *remedy; /* NULL */
    const char *note;   /* what else should be known; NULL */
};

struct torture_table {
    const char *database;
    const char *name;
    int64_t rows;
    bool changed;         /* by the job */
    const char *left_out; /* columns that differ without a kill too; "" = none */
};

struct torture_report {
    bool safe;
    int places; /* at which it can be killed */
    int rounds; /* kills carried out; fewer than places: sampled evenly */
    struct torture_step *steps;
    size_t n_steps;
    struct torture_table *tables; /* compared */
    size_t n_tables;
    const char *result; /* name of the file; "" = none */
    const char *sha256;
    bool result_compared; /* false: other bytes at each run, without a kill too */
    bool idle; /* the job changed no table and made no file: no test at all */
};

/* 0: the report tells. -ERR_USAGE: refused, with what to give. -ERR_INVALID: nothing
 * can be said, because the job fails or differs without a kill. -ERR_CANCELLED: it was
 * interrupted. All strings are in the arena or the configuration. */
int torture(const struct torture_order *order, struct arena *arena,
            struct torture_report *ret_report, struct err *err) must_check;

#endif
