/*
 * The items of a chunk between reading and writing: what the processors make of them,
 * which are left out by the step's `skip`, which stay pending because the work is to
 * stop, and what position that leaves the reader in. A part of the chunk step; its
 * thread.
 */
#ifndef STEPS_CHUNK_ITEMS_H
#define STEPS_CHUNK_ITEMS_H

#include "base/buf.h"
#include "io/item_retry.h"
#include "io/process.h"
#include "io/row.h"
#include "steps/step.h"

struct reader;

/* Rows from .. to - 1, counted from the one that is read next. */
struct item_span {
    size_t from;
    size_t to;
};

struct chunk_items {
    struct step_ctx *ctx;
    struct reader *reader;
    struct process *process; /* NULL: rows go through as they are */
    unsigned skip_on;        /* enum item_class */
    int64_t skip_limit;
    struct item_retry retry;
    const struct column *read_columns;
    size_t read_width;
    int64_t skipped_before; /* by earlier runs: no part of the limit */
    bool in_order;          /* the reader keeps a position */
    bool gapless;           /* only what stands before the first gap may be committed */
    struct item_span *spans; /* settled by an earlier run, ascending */
    size_t n_spans;

    /* Of the chunk under way. */
    const struct row_set *read;
    struct step_counters start; /* before the chunk */
    struct processed done;
    size_t settled; /* items that are settled, one way or the other */
    bool left_out;  /* a bad record behind them, which is left out */
    bool held_back; /* the reader stands behind a bad record that is not settled */
    bool *earlier;
    struct row_set out;
    struct buf before; /* the reader's position before the chunk */
    struct column *view_columns;
    struct cell *view_cells;
    size_t view_cap;
    struct item_view view;
};

int chunk_items_check(const json_t *def, struct err *err) must_check;

/* Open the reader where the checkpoint stands, which may be within a chunk of it. First
 * of all. position: what the checkpoint has, NULL = the start. */
int chunk_items_open_reader(struct chunk_items *items, struct reader *reader,
                            const char *position, struct err *err) must_check;

/* After the reader is open. skipped: what the counter stands at. */
int chunk_items_open(struct chunk_items *items, struct step_ctx *ctx,
                     struct reader *reader, bool into_file, int64_t skipped,
                     struct err *err) must_check;
void chunk_items_release(struct chunk_items *items);

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
const struct row_set *chunk_items_none(struct chunk_items *items);

/* Has the item at index anything to be written? */
bool chunk_items_writes(const struct chunk_items *items, size_t index);

/* Add what items from .. to - 1 count for, but for what is written of them. */
void chunk_items_tally(const struct chunk_items *items, size_t from, size_t to,
                       struct step_counters *counters);

/* Is an item that the writer's target refused to be left out? Notes it and counts:
 * LEFT_OUT. OVER_LIMIT: it was one too many and stays pending; chunk_items_end has the
 * error. Else the error, as it is. class: of the failure, 0 = it lies not in the item.
 */
enum { CHUNK_ITEMS_LEFT_OUT = 0, CHUNK_ITEMS_OVER_LIMIT = 1 };

int chunk_items_refused(struct chunk_items *items, size_t index, unsigned class,
                        int failure, struct step_counters *counters,
                        struct err *err) must_check;

/* Is the record that the reader could not read to be left out? */
bool chunk_items_skips_record(const struct chunk_items *items);

/* A record behind the chunk that cannot be read, after all else of it is settled: it
 * is left out, or (too many) the step fails after the commit. */
int chunk_items_bad_record(struct chunk_items *items, struct step_counters *counters,
                           const struct err *why, bool *ret_whole,
                           struct err *err) must_check;

/* Append the position for a checkpoint when the first `count` items have been tried. */
int chunk_items_position(const struct chunk_items *items, size_t count,
                         struct buf *position, struct err *err) must_check;

/* After the commit, when the next chunk is to be read. */
void chunk_items_next(struct chunk_items *items);

/* Is one of them too many, so that the step is to fail when the rest is committed? */
bool chunk_items_failed(const struct chunk_items *items);

/* After the commit: STEP_COMPLETED, go on; STEP_STOPPED; or why the step fails. */
int chunk_items_end(const struct chunk_items *items, struct err *err) must_check;

#endif
