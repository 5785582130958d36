/*
 * The face of readers: calls through, and the checks that hold for all.
 */
#include "io/reader.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/strs.h"
#include "io/option.h"

int
reader_open(struct reader *reader, const char *position, struct err *err)
{
    return reader->ops->open(reader, position, err);
}

const struct column *
reader_columns(struct reader *reader, size_t *ret_count)
{
    return reader->ops->columns(reader, ret_count);
}

int
reader_read_chunk(struct reader *reader, size_t max_rows, struct row_set *rows,
                  struct err *err)
{
    return reader->ops->read_chunk(reader, max_rows, rows, err);
}

int
reader_position(struct reader *reader, struct buf *position, struct err *err)
{
    int r = reader->ops->position(reader, position, err);

    if (r < 0)
        return r;
    if (position->len > READER_POSITION_MAX_BYTES)
        return err_set(err, ERR_TOO_LARGE,
                       "the reader's position has %zu bytes; a checkpoint holds %d",
                       position->len, READER_POSITION_MAX_BYTES);
    return buf_check(position, "the reader's position", err);
}

enum reader_restart
reader_restart_of(const json_t *def)
{
    return str_eq(io_option_text(def, "restart", NULL), "beginning")
               ? READER_RESTART_BEGINNING
               : READER_RESTART_POSITION;
}

int
reader_bad_record(struct reader *reader, const char *error_class, const char *place)
{
    reader->bad.error_class = error_class;
    (void)str_copy(reader->bad.place, sizeof(reader->bad.place), place);
    return READER_BAD;
}

void
reader_free(struct reader *reader)
{
    if (reader)
        reader->ops->free(reader);
}

void
reader_freep(struct reader **reader)
{
    reader_free(*reader);
    *reader = NULL;
}
