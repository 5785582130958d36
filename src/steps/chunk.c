/*
 * The order inside a chunk is the promise of the whole engine:
 *
 *     read → write → commit of the writer → checkpoint → progress → asked to stop?
 *
 * The writer is durable up to a state before the checkpoint that names the state
 * is stored, so a checkpoint never covers what a crash can lose. A writer into a
 * database is the exception that needs no such order: its rows are written by the
 * checkpoint itself, in one transaction.
 *
 * The last chunk finishes the writer first and checkpoints then: the transaction
 * that marks the step COMPLETED must not be stored while the file lacks its end.
 */
#include "steps/chunk.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/strs.h"
#include "io/formats.h"
#include "io/io_ctx.h"
#include "io/row.h"
#include "io/template.h"
#include "steps/chunk_items.h"

#include <string.h>

#define CHUNK_ROWS_MAX 100000
#define PARTITIONS_MAX 64

struct chunk_run {
    struct step_ctx *ctx;
    const struct writer_kind *kind;
    struct reader *reader;
    struct writer *writer;
    struct row_set rows;
    struct chunk_items items;
    const struct row_set *writing; /* what the chunk's checkpoint writes */
    struct buf position;
    struct buf state;
    size_t chunk_rows;
    struct step_counters counters;
    struct writer_summary summary;
};

/* --- definition --- */

static int
check_keys(const json_t *def, struct err *err)
{
    static const char *const keys[] = {
        "name", "chunk",       "read",       "write",     "process",
        "skip", "concurrency", "partitions", "partition", "retry"};
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)def, key, value)
    {
        const char *near;
        bool known = false;

        for (size_t i = 0; i < array_len(keys); i++)
            known = known || str_eq(key, keys[i]);
        if (known)
            continue;
        near = str_nearest(key, keys, array_len(keys));
        return err_set(err, ERR_CONFIG, "unknown key \"%s\"%s%s%s", key,
                       near ? "; did you mean \""
                            : "; there are: name, chunk, concurrency, partition, "
                              "partitions, read, process, retry, skip, write",
                       near ? near : "", near ? "\"?" : "");
    }
    return 0;
}

static int
check_name_and_size(const json_t *def, struct err *err)
{
    const json_t *name = json_object_get(def, "name");
    const json_t *chunk = json_object_get(def, "chunk");

    if (str_empty(json_string_value(name)))
        return err_set(err, ERR_CONFIG, "name: a step needs a name");
    if (chunk && (!json_is_integer(chunk) || json_integer_value(chunk) < 1 ||
                  json_integer_value(chunk) > CHUNK_ROWS_MAX))
        return err_set(err, ERR_CONFIG, "chunk: must be a number of rows from 1 to %d",
                       CHUNK_ROWS_MAX);
    if (!json_object_get(def, "write"))
        return err_set(err, ERR_CONFIG, "\"write\" is missing: where do the rows go?");
    return 0;
}

/* A step in partitions: its reader can be cut, its writer makes no file. */
static int
check_partitions(const json_t *def, const struct reader_kind *reader,
                 const struct writer_kind *writer, struct err *err)
{
    const json_t *count = json_object_get(def, "partitions");
    const json_t *partition = json_object_get(def, "partition");
    const json_t *key = json_object_get(partition, "key");

    if (!count && !partition)
        return 0;
    if (!json_is_integer(count) || json_integer_value(count) < 2 ||
        json_integer_value(count) > PARTITIONS_MAX)
        return err_set(err, ERR_CONFIG, "partitions: must be a number from 2 to %d",
                       PARTITIONS_MAX);
    if (!reader->extent)
        return err_set(err, ERR_CONFIG,
                       "partitions: what is read by %s cannot be cut; rows of a "
                       "database (sql) and items can",
                       reader->name);
    if (reader->cut_by_key &&
        (!json_is_object(partition) || json_object_size(partition) != 1 ||
         str_empty(json_string_value(key))))
        return err_set(err, ERR_CONFIG,
                       "partition: write {key: COLUMN}, the column of whole numbers by "
                       "which the rows of read.%s are cut",
                       reader->name);
    if (!reader->cut_by_key && partition)
        return err_set(err, ERR_CONFIG,
                       "partition: %s are cut by their numbers; leave it out",
                       reader->name);
    if (!writer || writer->content_type)
        return err_set(err, ERR_CONFIG,
                       "partitions: a step that makes a file is carried out in one; "
                       "write into a database");
    return 0;
}

int
chunk_step_validate(const json_t *def, struct err *err)
{
    const struct reader_kind *reader;
    const struct writer_kind *writer;
    int r = check_keys(def, err);

    if (r == 0)
        r = check_name_and_size(def, err);
    if (r == 0)
        r = format_choose_reader(json_object_get(def, "read"), &reader, err);
    if (r == 0)
        r = chunk_items_check(def, err);
    if (r == 0)
        r = format_choose_writer(json_object_get(def, "write"), NULL, &writer, err);
    if (r == 0)
        r = check_partitions(def, reader, writer, err);
    if (r == 0)
        return 0;
    if (json_is_string(json_object_get(def, "name")))
        return err_prefix(err, "step %s",
                          json_string_value(json_object_get(def, "name")));
    return r;
}

/* --- start --- */

static void
chunk_run_release(struct chunk_run *run)
{
    writer_freep(&run->writer);
    chunk_items_release(&run->items);
    reader_freep(&run->reader);
    row_set_release(&run->rows);
    buf_release(&run->position);
    buf_release(&run->state);
}

/* A state that cannot be used (part gone or short) means: the step from zero. */
static int
open_writer(struct chunk_run *run, bool *ret_resumed, struct err *err)
{
    /* All rows come again: a file would have them twice, and those sent again must
     * have the numbers they had. */
    bool anew = run->reader->restart == READER_RESTART_BEGINNING &&
                (run->kind->content_type || run->kind->sends) && run->ctx->writer_state;
    const char *state = anew ? NULL : run->ctx->writer_state;
    int r = writer_open(run->writer, state, err);

    if (anew)
        run->ctx->note(
            run->ctx->note_arg,
            run->kind->sends
                ? "all is read again (restart: beginning): all rows are sent again"
                : "all is read again (restart: beginning): the file is started over");
    *ret_resumed = state && r == WRITER_OPENED;
    if (r != WRITER_STATE_UNUSABLE)
        return r;
    run->ctx->note(run->ctx->note_arg,
                   "the file begun is gone or not whole: started over");
    return writer_open(run->writer, NULL, err);
}

static int
chunk_open(struct chunk_run *run, struct err *err)
{
    struct step_ctx *ctx = run->ctx;
    const json_t *read = json_object_get(ctx->def, "read");
    const json_t *write = json_object_get(ctx->def, "write");
    const json_t *chunk = json_object_get(ctx->def, "chunk");
    const struct reader_kind *reader_kind;
    const struct column *columns;
    bool resumed = false;
    size_t width;
    int r = format_choose_reader(read, &reader_kind, err);

    if (r == 0)
        r = format_choose_writer(write, ctx->io->params, &run->kind, err);
    if (r == 0)
        r = reader_kind->new_reader(ctx->io, read, &run->reader, err);
    if (r == 0)
        r = run->kind->new_writer(ctx->io, write, &run->writer, err);
    if (r == 0)
        r = open_writer(run, &resumed, err);
    if (r == 0)
        r = chunk_items_open_reader(&run->items, run->reader,
                                    resumed ? ctx->reader_position : NULL, err);
    if (r == 0 && run->reader->note)
        ctx->note(ctx->note_arg, run->reader->note);
    if (resumed)
        run->counters = ctx->counters;
    else /* what is started over counts its rows anew; its place goes on */
        run->counters.commits = ctx->counters.commits;
    if (r == 0)
        r = chunk_items_open(&run->items, ctx, run->reader,
                             run->kind->content_type != NULL, run->counters.skipped,
                             err);
    if (r < 0)
        return r;
    run->chunk_rows = chunk ? (size_t)json_integer_value(chunk) : run->kind->chunk;
    columns = chunk_items_columns(&run->items, &width);
    return writer_begin(run->writer, columns, width, err);
}

/* --- a chunk --- */

static int
apply_rows(void *arg, struct db *db, struct err *err)
{
    struct chunk_run *run = arg;

    return writer_apply(run->writer, db, run->writing, err);
}

/* The finished writer's state, for whoever looks at the checkpoint. */
static int
finish_writer(struct chunk_run *run, struct err *err)
{
    int r = writer_finish(run->writer, &run->summary, err);

    if (r != WRITER_COMMITTED)
        return r;
    buf_addf(&run->state, "{\"finished\":true,\"rows\":%lld,\"bytes\":%lld}",
             (long long)run->summary.rows, (long long)run->summary.bytes);
    return 0;
}

/* 0, STEP_STOPPED, STEP_LOST, < 0. */
static int
checkpoint(struct chunk_run *run, size_t items, bool last, struct err *err)
{
    int64_t rolled_back = 0;
    struct step_checkpoint cp = {.last = last, .rolled_back = &rolled_back};
    int r;

    buf_clear(&run->position);
    buf_clear(&run->state);
    r = last ? finish_writer(run, err) : writer_commit(run->writer, &run->state, err);
    if (r == WRITER_STOPPED)
        return STEP_STOPPED;
    if (r == WRITER_COMMITTED)
        r = chunk_items_position(&run->items, items, &run->position, err);
    if (r < 0)
        return r;
    cp.counters = run->counters;
    cp.counters.commits++;
    cp.reader_position = buf_str(&run->position);
    cp.writer_state = buf_str(&run->state);
    if (run->writer->in_checkpoint) {
        cp.apply = apply_rows;
        cp.apply_arg = run;
    }
    r = run->ctx->checkpoint(run->ctx->checkpoint_arg, &cp, err);
    run->counters.rollbacks += rolled_back;
    return r;
}

/* Write the rows and commit them; the counters count them if that goes well. items: how
 * many of the chunk are settled then. */
static int
write_and_commit(struct chunk_run *run, const struct row_set *rows, size_t items,
                 bool last, struct err *err)
{
    struct step_counters before = run->counters;
    int r = 0;

    run->writing = rows;
    if (rows->count > 0 || (rows->items && !run->kind->content_type))
        r = writer_write(run->writer, rows, err);
    if (r < 0)
        return r;
    run->counters.written += (int64_t)rows->count;
    r = checkpoint(run, items, last, err);
    if (r == 0)
        run->counters.commits++;
    else
        run->counters = before;
    return r;
}

/* What makes a failure to write one of an item: an enum item_class, 0 = nothing. */
static unsigned
refusal(const struct chunk_run *run, int failure)
{
    if (run->writer->in_checkpoint)
        return failure == -ERR_DB_CONSTRAINT ? ITEM_CONSTRAINT : 0;
    return failure < 0 ? run->writer->refused : 0;
}

/* An item of a chunk that was rolled back, alone. One that is too many to be left out
 * stays pending, and what stands behind it is committed nonetheless. */
static int
write_alone(struct chunk_run *run, size_t i, bool last, struct err *err)
{
    struct step_counters before = run->counters;
    size_t count = run->items.read->count;
    bool at_end = i + 1 == count;
    int r;

    chunk_items_tally(&run->items, i, i + 1, &run->counters);
    if (at_end && run->items.left_out && !chunk_items_failed(&run->items)) {
        run->counters.read++;
        run->counters.skipped++;
    }
    if (!chunk_items_writes(&run->items, i) && !at_end)
        return 0;
    last = last && at_end && !chunk_items_failed(&run->items);
    r = write_and_commit(run, chunk_items_only(&run->items, i), i + 1, last, err);
    if (r >= 0)
        return r;
    r = chunk_items_refused(&run->items, i, refusal(run, r), r, &run->counters, err);
    if (r < 0)
        return r;
    if (r == CHUNK_ITEMS_OVER_LIMIT) {
        run->counters = before;
        run->counters.rollbacks++;
        last = false;
    }
    /* Even if it was the last: what is settled stays so, and the step's end is a commit
     * of its own. */
    if (!at_end)
        return 0;
    return write_and_commit(run, chunk_items_none(&run->items), count, last, err);
}

/* The chunk was rolled back for a row in it: each item alone, so that only the bad one
 * is left out. A checkpoint between two of them counts those before it only. */
static int
search_bad_item(struct chunk_run *run, bool last, struct err *err)
{
    int64_t rollbacks = run->counters.rollbacks;
    int r = 0;

    run->counters = run->items.start;
    run->counters.rollbacks = rollbacks;
    for (size_t i = 0; i < run->items.read->count && r == 0; i++)
        r = write_alone(run, i, last, err);
    return r;
}

/* The chunk as a whole, again as the step's `retry` says; what is rolled back counts.
 * As write_and_commit. */
static int
commit_whole(struct chunk_run *run, const struct row_set *rows, bool last,
             struct err *err)
{
    const struct item_retry *retry = &run->items.retry;

    for (int tried = 1;; tried++) {
        int r = write_and_commit(run, rows, run->items.read->count, last, err);

        if (!refusal(run, r))
            return r;
        run->counters.rollbacks++;
        if (!(retry->on & refusal(run, r)))
            return r;
        if (tried >= retry->attempts)
            return err_prefix(err, "tried %d times", tried);
        switch (item_retry_wait(retry, run->ctx->io, tried)) {
        case ITEM_RETRY_AGAIN:
            break;
        case ITEM_RETRY_STOP:
            err_clear(err);
            return STEP_STOPPED;
        case ITEM_RETRY_CUT:
            err_clear(err);
            return err_set(err, ERR_TIMEOUT, "the wait for another try was cut off");
        }
        err_clear(err);
    }
}

static int
commit_chunk(struct chunk_run *run, const struct row_set *rows, bool last,
             struct err *err)
{
    int r = commit_whole(run, rows, last, err);

    if (!(run->items.skip_on & refusal(run, r)))
        return r;
    err_clear(err);
    return search_bad_item(run, last, err);
}

/* One chunk from reading to checkpoint; *ret_last: it was the last. */
static int
chunk_do(struct chunk_run *run, bool *ret_last, struct err *err)
{
    const struct row_set *rows = NULL;
    struct err bad = {0};
    bool whole = true;
    int read;
    int r = chunk_items_mark(&run->items, err);

    if (r < 0)
        return r;
    read = reader_read_chunk(run->reader, run->chunk_rows, &run->rows, err);
    if (read < 0)
        return read;
    if (read == READER_BAD) {
        if (!chunk_items_skips_record(&run->items))
            return -(int)err->code;
        bad = *err;
        err_clear(err);
    }
    r = chunk_items_work(&run->items, &run->rows, &run->counters, &rows, &whole, err);
    if (r == 0 && read == READER_BAD && whole)
        r = chunk_items_bad_record(&run->items, &run->counters, &bad, &whole, err);
    if (r < 0)
        return r;
    *ret_last = read == READER_END && whole;
    if (whole || run->items.settled > 0)
        r = commit_chunk(run, rows, *ret_last, err);
    if (r == 0)
        r = chunk_items_end(&run->items, err);
    if (r == 0)
        chunk_items_next(&run->items);
    return r;
}

static int
asked_to_end(struct io_ctx *io)
{
    switch (io->stopped(io)) {
    case IO_GO_ON:
        return STEP_COMPLETED;
    case IO_STOP:
        return STEP_STOPPED;
    case IO_CANCEL:
        return STEP_CANCELLED;
    }
    return STEP_COMPLETED;
}

static int
fill_result(struct chunk_run *run, struct step_result *ret_result, struct err *err)
{
    const json_t *write = json_object_get(run->ctx->def, "write");
    const char *file = json_string_value(json_object_get(write, "file"));
    struct step_result made = {
        .content_type = run->kind->content_type,
        .rows = run->summary.rows,
        .bytes = run->summary.bytes,
        .counters = run->counters,
    };
    scoped(buf_release) struct buf name = {0};
    int r;

    buf_init(&name, sizeof(made.name) - 1);
    if (file) {
        r = template_file_name(file, run->ctx->io->params, &name, err);
        if (r < 0)
            return r;
        (void)str_copy(made.name, sizeof(made.name), buf_str(&name));
        (void)str_copy(made.part_path, sizeof(made.part_path), run->ctx->io->part_path);
    }
    *ret_result = made;
    return 0;
}

int
chunk_step_run(struct step_ctx *ctx, struct step_result *ret_result, struct err *err)
{
    scoped(chunk_run_release) struct chunk_run run = {.ctx = ctx};
    bool last = false;
    int r;

    row_set_init(&run.rows, 0);
    buf_init(&run.position, READER_POSITION_MAX_BYTES * 2);
    buf_init(&run.state, WRITER_STATE_MAX_BYTES * 2);
    r = asked_to_end(ctx->io);
    if (r != STEP_COMPLETED)
        return r;
    r = chunk_open(&run, err);
    if (r < 0)
        return r;
    while (!last) {
        r = chunk_do(&run, &last, err);
        if (r != 0)
            return r;
        ctx->io->progress(ctx->io, run.counters.read, ctx->total_rows, NULL);
        r = last ? STEP_COMPLETED : asked_to_end(ctx->io);
        if (r != STEP_COMPLETED)
            return r;
    }
    return fill_result(&run, ret_result, err);
}
