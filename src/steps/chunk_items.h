/*
 * The items of a chunk between reading and writing: what the processors make of them,
 * which are left out by the step's `skip`, which stay pending because the work is to
 * stop, and what position that leaves the reader in. A part of the chunk step; its
 * thread.
 */
#ifndef STEPS_CHUNK_ITEMS_H
#define STEPS_CHUNK_ITEMS_H

#include "base/buf.h"
#include "io/process.h"
#include "io/row.h"
#include "steps/step.h"

struct reader;

struct chunk_items {
    struct step_ctx *ctx;
    struct reader *reader;
    struct process *process; /* NULL: rows go through as they are */
    unsigned skip_on;        /* enum item_class */
    int64_t skip_limit;
    const struct column *read_columns;
    size_t read_width;
    bool in_order; /* the reader keeps a position: only a first part may be committed */

    /* Of the chunk under way. */
    const struct row_set *read;
    struct processed done;
    size_t first;   /* item of the chunk that comes next to be written */
    size_t handled; /* items from first on that are settled, one way or the other */
    struct row_set out;
    struct buf before; /* the reader's position before the chunk */
    bool has_before;
    struct column *view_columns;
    struct cell *view_cells;
    size_t view_cap;
    struct item_view view;
};

int chunk_items_check(const json_t *def, struct err *err) must_check;

/* After the reader is open. position: what the checkpoint has, NULL = the start. */
int chunk_items_open(struct chunk_items *items, struct step_ctx *ctx,
                     struct reader *reader, struct err *err) must_check;
void chunk_items_release(struct chunk_items *items);

/* Open the reader where the checkpoint stands, which may be within a chunk of it. */
int chunk_items_open_reader(struct reader *reader, const char *position,
                            struct err *err) must_check;

/* What the writer gets. */
const struct column *chunk_items_columns(const struct chunk_items *items,
                                         size_t *ret_width);

/* Before each chunk is read. */
int chunk_items_mark(struct chunk_items *items, struct err *err) must_check;

/*
 * Process what was read, note what is left out, count. *ret_rows: what is to be
 * written, good until the next chunk. *ret_whole: all items of it are settled.
 */
int chunk_items_work(struct chunk_items *items, const struct row_set *read,
                     struct step_counters *counters, const struct row_set **ret_rows,
                     bool *ret_whole, struct err *err) must_check;

/* Only the item at index: for the search for a bad one. */
const struct row_set *chunk_items_only(struct chunk_items *items, size_t index);

/* Is an item that the database refused to be left out? Notes it and counts: 0. Else the
 * error, as it is. */
int chunk_items_refused(struct chunk_items *items, size_t index, int failure,
                        struct step_counters *counters, struct err *err) must_check;

/* A record that cannot be read: 0, left out; or the error. */
int chunk_items_bad_record(struct chunk_items *items, struct step_counters *counters,
                           struct err *err) must_check;

/* Append the position for a checkpoint behind `count` items of the chunk. */
int chunk_items_position(const struct chunk_items *items, size_t count,
                         struct buf *position, struct err *err) must_check;

/* After the commit: STEP_COMPLETED, go on; STEP_STOPPED; or why the step fails. */
int chunk_items_end(const struct chunk_items *items, struct err *err) must_check;

#endif
