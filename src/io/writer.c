/*
 * The face of writers: calls through, and the checks that hold for all.
 */
#include "io/writer.h"

#include "base/buf.h"
#include "base/err.h"

#include <assert.h>

int
writer_open(struct writer *writer, const char *state, struct err *err)
{
    return writer->ops->open(writer, state, err);
}

int
writer_begin(struct writer *writer, const struct column *columns, size_t count,
             struct err *err)
{
    return writer->ops->begin(writer, columns, count, err);
}

int
writer_write(struct writer *writer, const struct row_set *rows, struct err *err)
{
    return writer->ops->write(writer, rows, err);
}

int
writer_commit(struct writer *writer, struct buf *state, struct err *err)
{
    int r = writer->ops->commit(writer, state, err);

    if (r < 0)
        return r;
    if (state->len > WRITER_STATE_MAX_BYTES)
        return err_set(err, ERR_TOO_LARGE,
                       "the writer's state has %zu bytes; a checkpoint holds %d",
                       state->len, WRITER_STATE_MAX_BYTES);
    return 0;
}

int
writer_finish(struct writer *writer, struct writer_summary *ret_summary,
              struct err *err)
{
    return writer->ops->finish(writer, ret_summary, err);
}

int
writer_apply(struct writer *writer, struct db *db, const struct row_set *rows,
             struct err *err)
{
    assert(writer->ops->apply);
    return writer->ops->apply(writer, db, rows, err);
}

void
writer_free(struct writer *writer)
{
    if (writer)
        writer->ops->free(writer);
}

void
writer_freep(struct writer **writer)
{
    writer_free(*writer);
    *writer = NULL;
}
