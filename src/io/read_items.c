/*
 * A combination is a number in a mixed base: each axis takes one digit. So a
 * position is that number, and nothing needs to be counted through.
 */
#include "io/read_items.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/strs.h"
#include "io/io_ctx.h"
#include "io/items_axis.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define ITEMS_MAX INT64_C(1000000000000)
#define AXES_MAX  16

struct items_reader {
    struct reader reader;
    const json_t *def;
    struct arena arena;
    struct items_axis axes[AXES_MAX];
    size_t n_axes;
    struct column *columns;
    size_t width;
    int64_t total;
    int64_t next;
    int64_t end;  /* of the range that is read; else total */
    int64_t mark; /* checksum of all values */
};

static struct items_reader *
items_of(struct reader *reader)
{
    return container_of(reader, struct items_reader, reader);
}

int
read_items_check(const json_t *def, struct err *err)
{
    json_t *axes = json_object_get(def, "items");
    const char *name;
    json_t *axis;

    if (json_object_size(axes) > AXES_MAX)
        return err_set(err, ERR_CONFIG, "read.items: at most %d names", AXES_MAX);
    json_object_foreach(axes, name, axis)
    {
        int r = items_axis_check(name, axis, err);

        if (r < 0)
            return r;
    }
    return 0;
}

/* --- open --- */

static int
gather_columns(struct items_reader *items, struct err *err)
{
    size_t at = 0;

    for (size_t i = 0; i < items->n_axes; i++)
        items->width += items->axes[i].rows.width;
    items->columns = arena_array(&items->arena, struct column, items->width);
    for (size_t i = 0; i < items->n_axes; i++) {
        for (size_t k = 0; k < items->axes[i].rows.width; k++) {
            items->columns[at] = items->axes[i].columns[k];
            for (size_t before = 0; before < at; before++) {
                if (str_eq(items->columns[before].name, items->columns[at].name))
                    return err_set(
                        err, ERR_CONFIG,
                        "read.items: two columns named \"%s\"; rename one in "
                        "its SELECT (AS)",
                        items->columns[at].name);
            }
            at++;
        }
    }
    return 0;
}

static int
multiply(struct items_reader *items, struct err *err)
{
    items->total = 1;
    for (size_t i = 0; i < items->n_axes; i++) {
        items->total *= (int64_t)items->axes[i].rows.count;
        if (items->total > ITEMS_MAX)
            return err_set(err, ERR_TOO_LARGE,
                           "read.items: more than %lld combinations",
                           (long long)ITEMS_MAX);
    }
    return 0;
}

static void
checksum(struct items_reader *items)
{
    uLong crc = crc32(0, NULL, 0);

    for (size_t i = 0; i < items->n_axes; i++) {
        const struct row_set *rows = &items->axes[i].rows;

        for (size_t k = 0; k < rows->count * rows->width; k++) {
            const struct cell *cell = &rows->cells[k];
            bool text = cell->type == CELL_TEXT || cell->type == CELL_DECIMAL ||
                        cell->type == CELL_BYTES;

            crc = crc32(crc, &cell->type, 1);
            if (text)
                crc = crc32(crc, (const Bytef *)cell->text, cell->len);
            else
                crc = crc32(crc, (const Bytef *)&cell->i, sizeof(cell->i));
        }
    }
    items->mark = (int64_t)crc;
}

static int
go_to(struct items_reader *items, const char *position, struct err *err)
{
    scoped(json_drop) json_t *root = NULL;
    int64_t item = -1, of = -1, mark = -1;
    int r = json_parse(position, strlen(position), 4, &root, err);

    if (r == 0)
        r = json_get_i64(root, "item", &item, err);
    if (r == 0)
        r = json_get_i64(root, "of", &of, err);
    if (r == 0)
        r = json_get_i64(root, "mark", &mark, err);
    err_clear(err);
    if (r != 0 || item < 0 || item > of)
        return err_set(err, ERR_INVALID, "the checkpoint is no position among items");
    if (of != items->total || mark != items->mark)
        return err_set(err, ERR_INVALID,
                       "read.items: its values are others than before the stop (%lld "
                       "combinations then, %lld now); ask for a new run (restart: "
                       "false), or read what is left to do by a query (sql, restart: "
                       "requery)",
                       (long long)of, (long long)items->total);
    items->next = item;
    return 0;
}

/* A range is one of numbers of combinations. */
static void
take_range(struct items_reader *items)
{
    const struct io_range *range = items->reader.io->range;

    items->end = items->total;
    if (range && range->has_upper && range->upper < items->total)
        items->end = range->upper;
    if (range && range->has_lower)
        items->next = range->lower < items->end ? range->lower : items->end;
}

static int
items_open(struct reader *reader, const char *position, struct err *err)
{
    struct items_reader *items = items_of(reader);
    json_t *axes = json_object_get(items->def, "items");
    const char *name;
    json_t *axis;
    int r;

    json_object_foreach(axes, name, axis)
    {
        r = items_axis_fill(&items->axes[items->n_axes++], name, axis, reader->io,
                            &items->arena, err);
        if (r < 0)
            return r;
    }
    r = gather_columns(items, err);
    if (r == 0)
        r = multiply(items, err);
    if (r < 0)
        return r;
    checksum(items);
    take_range(items);
    if (!position || reader->restart == READER_RESTART_BEGINNING)
        return 0;
    return go_to(items, position, err);
}

static const struct column *
items_columns(struct reader *reader, size_t *ret_count)
{
    struct items_reader *items = items_of(reader);

    *ret_count = items->width;
    return items->columns;
}

/* --- rows --- */

/* Texts are borrowed from the axes, which live as long as the reader. */
static void
put_item(const struct items_reader *items, struct row_set *rows)
{
    struct cell *cells = row_set_add(rows);
    size_t at = items->width;
    int64_t rest = items->next;

    for (size_t i = items->n_axes; i > 0; i--) {
        const struct row_set *values = &items->axes[i - 1].rows;

        at -= values->width;
        memcpy(cells + at, row_set_row(values, (size_t)rest % values->count),
               values->width * sizeof(*cells));
        rest /= (int64_t)values->count;
    }
}

static int
items_read_chunk(struct reader *reader, size_t max_rows, struct row_set *rows,
                 struct err *err)
{
    struct items_reader *items = items_of(reader);

    row_set_clear(rows, items->width);
    for (; items->next < items->end; items->next++) {
        if (rows->count == max_rows || row_set_full(rows))
            return READER_MORE;
        put_item(items, rows);
    }
    return READER_END;
}

static int
items_position(struct reader *reader, struct buf *position, struct err *err)
{
    struct items_reader *items = items_of(reader);
    struct json_out out;

    json_out_init(&out, position);
    json_begin_object(&out);
    if (reader->restart != READER_RESTART_BEGINNING) {
        json_kv_i64(&out, "item", items->next);
        json_kv_i64(&out, "of", items->total);
        json_kv_i64(&out, "mark", items->mark);
    }
    json_end_object(&out);
    return 0;
}

static void
items_free(struct reader *reader)
{
    struct items_reader *items = items_of(reader);

    for (size_t i = 0; i < items->n_axes; i++)
        items_axis_release(&items->axes[i]);
    arena_release(&items->arena);
    free(items);
}

static const struct reader_ops items_ops = {
    .open = items_open,
    .columns = items_columns,
    .read_chunk = items_read_chunk,
    .position = items_position,
    .free = items_free,
};

int
read_items_new(struct io_ctx *io, const json_t *def, struct reader **ret_reader,
               struct err *err)
{
    struct items_reader *items = xcalloc(1, sizeof(*items));

    items->reader.ops = &items_ops;
    items->reader.io = io;
    items->reader.restart = reader_restart_of(def);
    items->def = def;
    *ret_reader = &items->reader;
    return 0;
}

int
read_items_extent(struct io_ctx *io, const json_t *def, const char *key,
                  int64_t *ret_least, int64_t *ret_greatest, struct err *err)
{
    scoped(reader_freep) struct reader *reader = NULL;
    int r = read_items_new(io, def, &reader, err);

    (void)key;
    if (r == 0)
        r = reader_open(reader, NULL, err);
    if (r < 0 || items_of(reader)->total == 0)
        return r < 0 ? r : 0;
    *ret_least = 0;
    *ret_greatest = items_of(reader)->total - 1;
    return 1;
}
