/*
 * The processors of a step in their order, and the threads that work on the items of
 * a chunk side by side. What comes out, and in which order, does not hang on how many
 * there are. Owned by the step; process_rows from its thread.
 */
#ifndef IO_PROCESS_H
#define IO_PROCESS_H

#include "io/processor.h"

struct item_retry;
struct process;

/* A `process` object or list, checked: -ERR_CONFIG. */
int process_check(const json_t *def, struct err *err) must_check;

/* skippable: classes of errors (enum item_class) that do not end the work. retry: what
 * is tried again before; it must outlive the process. */
int process_new(struct io_ctx *io, const json_t *def, size_t concurrency,
                unsigned skippable, const struct item_retry *retry,
                struct process **ret_process, struct err *err) must_check;
void process_free(struct process *process); /* accepts NULL */

int process_open(struct process *process, const struct column *columns, size_t width,
                 struct err *err) must_check;
const struct column *process_columns(const struct process *process, size_t *ret_width);

/* What became of a chunk. */
struct processed {
    struct item *items; /* as many as rows of `in`; owned by the process */
    size_t count;
    enum process_outcome end; /* DONE; STOP, LIMIT, CUT: some items are PENDING */
    int failure;              /* < 0: the run fails, after what is done is kept */
    struct err err;           /* of failure */
    size_t failed_item;       /* that it happened with */
    char why[IO_WHY_MAX];
};

/* earlier: for each row, whether it is passed over; NULL: none. */
void process_rows(struct process *process, const struct row_set *in,
                  const bool *earlier, struct processed *ret);

/* Put the rows of the DONE items from .. to - 1 into out, in the order of items. The
 * cells point into the process's sets. */
void process_gather(const struct process *process, const struct processed *processed,
                    size_t from, size_t to, struct row_set *out);

#endif
