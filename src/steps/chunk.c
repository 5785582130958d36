/*
 * The order inside a chunk is the promise of the whole engine:
 *
 *     read → write → commit of the writer → checkpoint → progress → asked to stop?
 *
 * The writer is durable up to a state before the checkpoint that names the state
 * is stored, so a checkpoint never covers what a crash can lose. A writer into
 * the store's own database is the exception that needs no such order: its rows
 * are written by the checkpoint itself, in one transaction.
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

#include <string.h>

#define CHUNK_ROWS_MAX 100000

struct chunk_run {
    struct step_ctx *ctx;
    const struct writer_kind *kind;
    struct reader *reader;
    struct writer *writer;
    struct row_set rows;
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
    static const char *const keys[] = {"name", "chunk", "read", "write"};
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
                            : "; there are: name, chunk, read, write",
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
        r = format_choose_writer(json_object_get(def, "write"), NULL, &writer, err);
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
    reader_freep(&run->reader);
    row_set_release(&run->rows);
    buf_release(&run->position);
    buf_release(&run->state);
}

/* A state that cannot be used (part gone or short) means: the step from zero. */
static int
open_writer(struct chunk_run *run, bool *ret_resumed, struct err *err)
{
    const char *state = run->ctx->writer_state;
    int r = writer_open(run->writer, state, err);

    *ret_resumed = state && r == WRITER_OPENED;
    if (r != WRITER_STATE_UNUSABLE)
        return r;
    run->ctx->io->progress(run->ctx->io, 0, run->ctx->total_rows,
                           "the file begun is gone or not whole: starting over");
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
        r = reader_open(run->reader, resumed ? ctx->reader_position : NULL, err);
    if (r < 0)
        return r;
    if (resumed)
        run->counters = ctx->counters;
    run->chunk_rows = chunk ? (size_t)json_integer_value(chunk) : run->kind->chunk;
    columns = reader_columns(run->reader, &width);
    return writer_begin(run->writer, columns, width, err);
}

/* --- a chunk --- */

static int
apply_rows(void *arg, struct db *db, struct err *err)
{
    struct chunk_run *run = arg;

    return writer_apply(run->writer, db, &run->rows, err);
}

/* The finished writer's state, for whoever looks at the checkpoint. */
static int
finish_writer(struct chunk_run *run, struct err *err)
{
    int r = writer_finish(run->writer, &run->summary, err);

    if (r < 0)
        return r;
    buf_addf(&run->state, "{\"finished\":true,\"rows\":%lld,\"bytes\":%lld}",
             (long long)run->summary.rows, (long long)run->summary.bytes);
    return 0;
}

static int
checkpoint(struct chunk_run *run, bool last, struct err *err)
{
    struct step_checkpoint cp = {.last = last};
    int r;

    buf_clear(&run->position);
    buf_clear(&run->state);
    r = last ? finish_writer(run, err) : writer_commit(run->writer, &run->state, err);
    if (r == 0)
        r = reader_position(run->reader, &run->position, err);
    if (r < 0)
        return r;
    run->counters.commits++;
    cp.counters = run->counters;
    cp.reader_position = buf_str(&run->position);
    cp.writer_state = buf_str(&run->state);
    if (run->writer->in_checkpoint) {
        cp.apply = apply_rows;
        cp.apply_arg = run;
    }
    return run->ctx->checkpoint(run->ctx->checkpoint_arg, &cp, err);
}

/* One chunk from reading to checkpoint; *ret_last: it was the last. */
static int
chunk_do(struct chunk_run *run, bool *ret_last, struct err *err)
{
    int r = reader_read_chunk(run->reader, run->chunk_rows, &run->rows, err);

    if (r < 0)
        return r;
    if (r == READER_BAD)
        return -(int)err->code;
    *ret_last = r == READER_END;
    run->counters.read += (int64_t)run->rows.count;
    if (run->rows.count > 0) {
        r = writer_write(run->writer, &run->rows, err);
        if (r < 0)
            return r;
        run->counters.written += (int64_t)run->rows.count;
    }
    return checkpoint(run, *ret_last, err);
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
