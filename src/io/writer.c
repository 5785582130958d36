/*
 * The face of writers: calls through, and the checks that hold for all.
 */
#include "io/writer.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/strs.h"

#include <assert.h>
#include <string.h>

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

    if (r != WRITER_COMMITTED)
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

bool
writer_state_rows(const char *state, const char *format, int64_t *ret_rows)
{
    scoped(json_drop) json_t *root = NULL;
    const char *name = "";
    bool finished = false;
    int64_t bytes = 0;
    struct err ignored = {0};

    return json_parse(state, strlen(state), 4, &root, &ignored) == 0 &&
           json_get_str(root, "format", &name, &ignored) >= 0 &&
           json_get_bool(root, "finished", &finished, &ignored) >= 0 &&
           json_get_i64(root, "bytes", &bytes, &ignored) >= 0 &&
           (str_eq(name, format) || (finished && bytes == 0)) &&
           json_get_i64(root, "rows", ret_rows, &ignored) == JSON_FOUND;
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
