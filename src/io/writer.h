/*
 * Where rows go. To add a writer: a file write_NAME.c that embeds a struct
 * writer as its first member, and a row in formats.c.
 *
 * Order of calls: new, open, begin, then for each chunk write* and commit, at
 * the end finish; free at any time. What was written after the last commit is
 * undone by free or, after a crash, by the next open with that commit's state.
 *
 * A writer into a database (in_checkpoint) has its rows written inside the transaction
 * of the checkpoint: write only counts them, and the checkpoint's holder calls apply,
 * perhaps more than once for the same rows when a transaction has to be repeated.
 */
#ifndef IO_WRITER_H
#define IO_WRITER_H

#include "base/compiler.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct column;
struct db;
struct err;
struct io_ctx;
struct row_set;
struct writer;

/* A state is opaque JSON text of at most this many bytes. */
#define WRITER_STATE_MAX_BYTES 65536

/* commit and finish: outcome > 0. */
enum writer_commit_outcome {
    WRITER_COMMITTED,
    WRITER_STOPPED, /* the rows cannot be written for now: io->why tells */
};

/* open: outcome > 0. */
enum writer_open_outcome {
    WRITER_OPENED,         /* from the start, or going on behind the state */
    WRITER_STATE_UNUSABLE, /* part gone, short, or of another kind: start the step over
                            */
};

struct writer_summary {
    int64_t rows;  /* data rows written since the very start */
    int64_t bytes; /* size of the finished file; 0 for a database */
    int sheets;    /* of a workbook, else 0 */
};

struct writer_ops {
    /* state: what commit() gave for the last committed chunk, NULL = start. */
    int (*open)(struct writer *writer, const char *state, struct err *err);
    /* columns must live until free. Called once, also after a resume. */
    int (*begin)(struct writer *writer, const struct column *columns, size_t count,
                 struct err *err);
    int (*write)(struct writer *writer, const struct row_set *rows, struct err *err);
    /* All that was written is durable up to here; append the state (JSON). */
    int (*commit)(struct writer *writer, struct buf *state, struct err *err);
    /* Nothing follows: complete the file, make it durable. */
    int (*finish)(struct writer *writer, struct writer_summary *ret_summary,
                  struct err *err);
    /* Write rows inside a transaction that the caller holds on db; NULL: a file. */
    int (*apply)(struct writer *writer, struct db *db, const struct row_set *rows,
                 struct err *err);
    void (*free)(struct writer *writer);
};

struct writer {
    const struct writer_ops *ops;
    struct io_ctx *io;
    unsigned
        refused; /* enum item_class of a failure that lies in the rows; 0 = other */
    bool in_checkpoint; /* rows go through apply inside the checkpoint */
};

/* def: the step's `write` object, already checked; it must outlive the writer. */
typedef int (*writer_new_fn)(struct io_ctx *io, const json_t *def,
                             struct writer **ret_writer, struct err *err);

int writer_open(struct writer *writer, const char *state, struct err *err) must_check;
int writer_begin(struct writer *writer, const struct column *columns, size_t count,
                 struct err *err) must_check;
int writer_write(struct writer *writer, const struct row_set *rows,
                 struct err *err) must_check;
int writer_commit(struct writer *writer, struct buf *state, struct err *err) must_check;
int writer_finish(struct writer *writer, struct writer_summary *ret_summary,
                  struct err *err) must_check;
int writer_apply(struct writer *writer, struct db *db, const struct row_set *rows,
                 struct err *err) must_check;
/* Rows told by the state of a writer that makes no file and that names this format, or
 * by that of a step which came to its end; false: another state. */
bool writer_state_rows(const char *state, const char *format, int64_t *ret_rows);
void writer_free(struct writer *writer);
void writer_freep(struct writer **writer); /* for scoped() */

#endif
