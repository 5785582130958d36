/*
 * A chunk may be committed in part: what is done is kept when the budget is used up or
 * an item fails for good, so that no call is made twice. A reader that finds what is
 * left by its own query (requery) may leave gaps; any other goes on where it stopped,
 * so only the items before the first unsettled one are committed. Its position within a
 * chunk is {"before": position before the chunk, "items": how many of it are settled}.
 */
#include "steps/chunk_items.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/strs.h"
#include "io/call_text.h"
#include "io/cell_text.h"
#include "io/io_ctx.h"
#include "io/reader.h"

#include <stdlib.h>
#include <string.h>

#define VALUES_MAX_BYTES 2000
#define VIEW_EXTRA       3 /* outcome, code, row_count */

/* --- definition --- */

static int
check_classes(const json_t *on, unsigned *ret_mask, struct err *err)
{
    unsigned mask = 0;

    for (size_t i = 0; i < json_array_size(on); i++) {
        enum item_class class =
            item_class_parse(json_string_value(json_array_get(on, i)));

        if (!class || class == ITEM_QUOTA)
            return err_set(err, ERR_CONFIG,
                           "skip.on: must be a list of parse, format, upstream, "
                           "rejected, constraint");
        mask |= (unsigned)class;
    }
    if (mask == 0)
        return err_set(err, ERR_CONFIG,
                       "skip.on: must be a list of parse, format, upstream, "
                       "rejected, constraint");
    *ret_mask = mask;
    return 0;
}

static int
read_skip(const json_t *def, unsigned *ret_mask, int64_t *ret_limit, struct err *err)
{
    const json_t *skip = json_object_get(def, "skip");
    const json_t *limit = json_object_get(skip, "limit");
    const char *key;
    json_t *value;

    *ret_mask = 0;
    *ret_limit = 0;
    if (!skip)
        return 0;
    if (!json_is_object(skip))
        return err_set(err, ERR_CONFIG, "skip: must be {limit: N, on: [classes]}");
    json_object_foreach((json_t *)(uintptr_t)skip, key, value)
    {
        if (!str_eq(key, "limit") && !str_eq(key, "on"))
            return err_set(err, ERR_CONFIG,
                           "skip: unknown key \"%s\"; there are: limit, on", key);
    }
    if (!json_is_integer(limit) || json_integer_value(limit) < 1)
        return err_set(err, ERR_CONFIG, "skip.limit: must be a number from 1");
    *ret_limit = json_integer_value(limit);
    return check_classes(json_object_get(skip, "on"), ret_mask, err);
}

int
chunk_items_check(const json_t *def, struct err *err)
{
    const json_t *process = json_object_get(def, "process");
    const json_t *concurrency = json_object_get(def, "concurrency");
    unsigned mask;
    int64_t limit;
    int r = read_skip(def, &mask, &limit, err);

    if (r == 0 && concurrency &&
        (!json_is_integer(concurrency) || json_integer_value(concurrency) < 1 ||
         json_integer_value(concurrency) > PROCESS_LANES_MAX))
        r = err_set(err, ERR_CONFIG, "concurrency: must be a number from 1 to %d",
                    PROCESS_LANES_MAX);
    if (r == 0 && process)
        r = process_check(process, err);
    return r;
}

/* --- open --- */

/* The reader's own position and how many items of the chunk behind it are settled. */
static int
unwrap(const char *position, char **ret_before, int64_t *ret_items, struct err *err)
{
    scoped(json_drop) json_t *root = NULL;
    int r = json_parse(position, strlen(position), JSON_DEPTH_MAX, &root, err);

    *ret_items = -1;
    *ret_before = NULL;
    if (r < 0)
        return r;
    if (!json_is_object(root) || !json_is_integer(json_object_get(root, "items")) ||
        !json_object_get(root, "before"))
        return 0;
    *ret_items = json_integer_value(json_object_get(root, "items"));
    if (!json_is_null(json_object_get(root, "before")))
        *ret_before =
            json_dumps(json_object_get(root, "before"), JSON_COMPACT | JSON_ENCODE_ANY);
    return 0;
}

static int
pass_over(struct reader *reader, int64_t items, struct err *err)
{
    struct row_set rows;
    int r = 0;

    row_set_init(&rows, 0);
    while (r >= 0 && items > 0) {
        r = reader_read_chunk(reader, (size_t)items, &rows, err);
        if (r < 0)
            break;
        items -= (int64_t)rows.count;
        if (r == READER_BAD) {
            err_clear(err);
        } else if (r == READER_END && items > 0) {
            r = err_set(err, ERR_INVALID,
                        "the input ends before the place where the checkpoint stands: "
                        "it changed; ask for a new run (restart: false)");
        }
    }
    row_set_release(&rows);
    return r < 0 ? r : 0;
}

int
chunk_items_open_reader(struct reader *reader, const char *position, struct err *err)
{
    scoped(xfree_ptr) char *before = NULL;
    int64_t items = -1;
    int r = 0;

    if (position)
        r = unwrap(position, &before, &items, err);
    if (r == 0)
        r = reader_open(reader, items >= 0 ? before : position, err);
    if (r == 0 && items > 0)
        r = pass_over(reader, items, err);
    return r;
}

static int
make_view_columns(struct chunk_items *items, struct err *err)
{
    static const char *const extra[VIEW_EXTRA] = {"outcome", "code", "row_count"};
    size_t width = items->read_width;

    items->view_columns = xcalloc(width + VIEW_EXTRA, sizeof(*items->view_columns));
    memcpy(items->view_columns, items->read_columns,
           width * sizeof(*items->view_columns));
    for (size_t i = 0; i < VIEW_EXTRA; i++)
        items->view_columns[width + i] =
            (struct column){.name = extra[i], .type = i == 2 ? CELL_INT : CELL_TEXT};
    items->view.columns = items->view_columns;
    items->view.width = width + VIEW_EXTRA;
    return 0;
}

int
chunk_items_open(struct chunk_items *items, struct step_ctx *ctx, struct reader *reader,
                 struct err *err)
{
    const json_t *process = json_object_get(ctx->def, "process");
    const json_t *concurrency = json_object_get(ctx->def, "concurrency");
    int r = read_skip(ctx->def, &items->skip_on, &items->skip_limit, err);

    items->ctx = ctx;
    items->reader = reader;
    items->in_order = reader->restart != READER_RESTART_REQUERY &&
                      reader->restart != READER_RESTART_BEGINNING;
    items->read_columns = reader_columns(reader, &items->read_width);
    row_set_init(&items->out, 0);
    buf_init(&items->before, READER_POSITION_MAX_BYTES * 2);
    if (r == 0)
        r = make_view_columns(items, err);
    if (r == 0 && process)
        r = process_new(ctx->io, process,
                        concurrency ? (size_t)json_integer_value(concurrency) : 1,
                        items->skip_on, &items->process, err);
    if (r == 0 && process)
        r = process_open(items->process, items->read_columns, items->read_width, err);
    return r;
}

void
chunk_items_release(struct chunk_items *items)
{
    process_free(items->process);
    row_set_release(&items->out);
    buf_release(&items->before);
    free(items->view_columns);
    free(items->view_cells);
}

const struct column *
chunk_items_columns(const struct chunk_items *items, size_t *ret_width)
{
    if (items->process)
        return process_columns(items->process, ret_width);
    *ret_width = items->read_width;
    return items->read_columns;
}

int
chunk_items_mark(struct chunk_items *items, struct err *err)
{
    buf_clear(&items->before);
    return reader_position(items->reader, &items->before, err);
}

/* --- notes --- */

static void
put_values(const struct chunk_items *items, const struct cell *cells, struct buf *out)
{
    struct json_out json;

    json_out_init(&json, out);
    json_begin_object(&json);
    for (size_t i = 0; i < items->read_width; i++) {
        char room[CELL_TEXT_MAX];
        const char *text;
        size_t len;

        cell_as_text(&cells[i], room, &text, &len);
        if (out->len + len > VALUES_MAX_BYTES)
            break;
        if (cells[i].type == CELL_NULL)
            json_kv_null(&json, items->read_columns[i].name);
        else
            json_kv_strn(&json, items->read_columns[i].name, text, len);
    }
    json_end_object(&json);
}

static int
note(struct chunk_items *items, enum item_class class, size_t index, int64_t number,
     const char *message, struct err *err)
{
    scoped(buf_release) struct buf values = {0};
    struct io_skip skip = {
        .item = number, .class = item_class_name(class), .message = message};

    buf_init(&values, VALUES_MAX_BYTES * 8);
    if (items->read && index < items->read->count)
        put_values(items, row_set_row(items->read, index), &values);
    skip.values = values.len ? buf_str(&values) : "{}";
    return items->ctx->io->skip(items->ctx->io, &skip, err);
}

static int
count_skip(struct chunk_items *items, struct step_counters *counters,
           const char *message, struct err *err)
{
    counters->skipped++;
    if (counters->skipped <= items->skip_limit)
        return 0;
    return err_set(err, ERR_INVALID,
                   "more than %lld items could not be done (skip.limit); the last: %s",
                   (long long)items->skip_limit, message);
}

/* --- a chunk --- */

/* Items that the commit covers, from the first on. */
static size_t
settled(const struct chunk_items *items)
{
    size_t i = 0;

    if (!items->process || !items->in_order)
        return items->read->count;
    while (i < items->done.count && items->done.items[i].state != ITEM_PENDING)
        i++;
    return i;
}

static size_t
pending_before(const struct chunk_items *items, size_t limit)
{
    size_t count = 0;

    for (size_t i = 0; items->process && i < limit; i++)
        count += items->done.items[i].state == ITEM_PENDING;
    return count;
}

static void
view_item(struct chunk_items *items, size_t index)
{
    size_t width = items->view.width;
    struct cell *cells;
    const struct item *item = &items->done.items[index];
    static const char done[] = "ok";
    static const char none[] = "no-data";

    if ((items->view.count + 1) * width > items->view_cap) {
        items->view_cap = (items->view.count + 1) * width * 2;
        items->view_cells =
            xrealloc(items->view_cells, items->view_cap * sizeof(*items->view_cells));
    }
    cells = items->view_cells + items->view.count++ * width;
    memcpy(cells, row_set_row(items->read, index), items->read_width * sizeof(*cells));
    cells += items->read_width;
    memset(cells, 0, VIEW_EXTRA * sizeof(*cells));
    cells[0] =
        (struct cell){.type = CELL_TEXT,
                      .text = item->no_data ? none : done,
                      .len = item->no_data ? sizeof(none) - 1 : sizeof(done) - 1};
    if (item->code[0])
        cells[1] = (struct cell){
            .type = CELL_TEXT, .text = item->code, .len = (uint32_t)strlen(item->code)};
    cell_set_i64(&cells[2], CELL_INT, (int64_t)item->count);
}

/* Put items [from, to) together for the writer. */
static const struct row_set *
gather(struct chunk_items *items, size_t from, size_t to)
{
    items->view.count = 0;
    for (size_t i = from; items->process && i < to; i++)
        if (items->done.items[i].state == ITEM_DONE)
            view_item(items, i);
    items->view.cells = items->view_cells;
    if (items->process) {
        process_gather(items->process, &items->done, from, to, &items->out);
    } else {
        row_set_clear(&items->out, items->read_width);
        for (size_t i = from; i < to; i++)
            memcpy(row_set_add(&items->out), row_set_row(items->read, i),
                   items->read_width * sizeof(struct cell));
    }
    items->out.items = items->process ? &items->view : NULL;
    return &items->out;
}

static int
note_failures(struct chunk_items *items, struct step_counters *counters,
              struct err *err)
{
    int64_t base = counters->read - (int64_t)items->read->count;

    for (size_t i = 0; i < items->handled; i++) {
        const struct item *item = &items->done.items[i];
        int r = 0;

        counters->filtered += item->state == ITEM_DONE ? (int64_t)item->filtered : 0;
        if (item->state != ITEM_FAILED)
            continue;
        r = note(items, item->class, i, base + (int64_t)i + 1, item->message, err);
        if (r == 0)
            r = count_skip(items, counters, item->message, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Why no more items are begun, for the run to say; a limit is noted. */
static int
note_stop(struct chunk_items *items, struct step_counters *counters, struct err *err)
{
    const struct processed *done = &items->done;
    size_t i = 0;

    if (done->end != PROCESS_STOP && done->end != PROCESS_LIMIT)
        return 0;
    (void)str_copy(items->ctx->io->why, IO_WHY_MAX, done->why);
    if (done->end != PROCESS_LIMIT)
        return 0;
    while (i < done->count && done->items[i].state != ITEM_PENDING)
        i++;
    return note(items, ITEM_QUOTA, i,
                counters->read - (int64_t)items->read->count + (int64_t)i + 1,
                done->why, err);
}

int
chunk_items_work(struct chunk_items *items, const struct row_set *read,
                 struct step_counters *counters, const struct row_set **ret_rows,
                 bool *ret_whole, struct err *err)
{
    int r = 0;

    items->read = read;
    counters->read += (int64_t)read->count;
    if (!items->process) {
        items->handled = read->count;
        *ret_whole = true;
        *ret_rows = read;
        return 0;
    }
    process_rows(items->process, read, &items->done);
    items->handled = settled(items);
    r = note_failures(items, counters, err);
    if (r == 0)
        r = note_stop(items, counters, err);
    if (r < 0)
        return r;
    counters->read -= (int64_t)(read->count - items->handled) +
                      (int64_t)pending_before(items, items->handled);
    *ret_whole = items->handled == read->count && items->done.failure == 0 &&
                 items->done.end == PROCESS_DONE;
    *ret_rows = gather(items, 0, items->handled);
    return 0;
}

const struct row_set *
chunk_items_only(struct chunk_items *items, size_t index)
{
    return gather(items, index, index + 1);
}

int
chunk_items_refused(struct chunk_items *items, size_t index, int failure,
                    struct step_counters *counters, struct err *err)
{
    struct err why = *err;
    int r;

    if (!(items->skip_on & ITEM_CONSTRAINT) || failure != -ERR_DB_CONSTRAINT)
        return failure;
    err_clear(err);
    counters->rollbacks++;
    r = note(items, ITEM_CONSTRAINT, index,
             counters->read - (int64_t)items->handled + (int64_t)index + 1, why.text,
             err);
    return r < 0 ? r : count_skip(items, counters, why.text, err);
}

int
chunk_items_bad_record(struct chunk_items *items, struct step_counters *counters,
                       struct err *err)
{
    enum item_class class = item_class_parse(items->reader->bad.error_class);
    struct err why = *err;
    int r;

    if (!(items->skip_on & (unsigned)class))
        return -(int)err->code;
    err_clear(err);
    items->read = NULL;
    counters->read++;
    r = note(items, class, 0, counters->read, why.text, err);
    return r < 0 ? r : count_skip(items, counters, why.text, err);
}

int
chunk_items_position(const struct chunk_items *items, size_t count,
                     struct buf *position, struct err *err)
{
    if (!items->in_order || count >= items->read->count)
        return reader_position(items->reader, position, err);
    buf_addf(position, "{\"before\":%s,\"items\":%zu}",
             items->before.len ? buf_str(&items->before) : "null", count);
    return buf_check(position, "the position within the chunk", err);
}

int
chunk_items_end(const struct chunk_items *items, struct err *err)
{
    if (!items->process)
        return STEP_COMPLETED;
    if (items->done.failure < 0) {
        *err = items->done.err;
        return items->done.failure;
    }
    switch (items->done.end) {
    case PROCESS_DONE:
    case PROCESS_FAILED:
        return STEP_COMPLETED;
    case PROCESS_STOP:
    case PROCESS_LIMIT:
        return STEP_STOPPED;
    case PROCESS_CUT:
        break;
    }
    return err_set(err, ERR_TIMEOUT, "the calls under way were cut off");
}
