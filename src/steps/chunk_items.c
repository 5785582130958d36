/* The items of a chunk: processed, put together for the writer, counted. */
#include "steps/chunk_items_private.h"

#include "base/arena.h"
#include "base/err.h"
#include "io/reader.h"

#include <stdlib.h>
#include <string.h>

#define VIEW_EXTRA 3 /* outcome, code, row_count */
#define SPANS_MAX  1000

int
chunk_items_check(const json_t *def, struct err *err)
{
    const json_t *process = json_object_get(def, "process");
    const json_t *concurrency = json_object_get(def, "concurrency");
    struct item_retry retry;
    unsigned mask;
    int64_t limit;
    int r = chunk_items_read_skip(def, &mask, &limit, err);

    if (r == 0)
        r = item_retry_read(def, &retry, err);
    if (r == 0 && concurrency &&
        (!json_is_integer(concurrency) || json_integer_value(concurrency) < 1 ||
         json_integer_value(concurrency) > PROCESS_LANES_MAX))
        r = err_set(err, ERR_CONFIG, "concurrency: must be a number from 1 to %d",
                    PROCESS_LANES_MAX);
    if (r == 0 && process)
        r = process_check(process, err);
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
                 bool into_file, int64_t skipped, struct err *err)
{
    const json_t *process = json_object_get(ctx->def, "process");
    const json_t *concurrency = json_object_get(ctx->def, "concurrency");
    int r = chunk_items_read_skip(ctx->def, &items->skip_on, &items->skip_limit, err);

    if (r == 0)
        r = item_retry_read(ctx->def, &items->retry, err);
    items->ctx = ctx;
    items->reader = reader;
    items->in_order = reader->restart != READER_RESTART_REQUERY &&
                      reader->restart != READER_RESTART_BEGINNING;
    items->gapless = items->in_order && into_file;
    items->skipped_before = skipped;
    items->read_columns = reader_columns(reader, &items->read_width);
    row_set_init(&items->out, 0);
    buf_init(&items->before, READER_POSITION_MAX_BYTES * 2);
    if (r == 0)
        r = make_view_columns(items, err);
    if (r == 0 && process)
        r = process_new(ctx->io, process,
                        concurrency ? (size_t)json_integer_value(concurrency) : 1,
                        items->skip_on, &items->retry, &items->process, err);
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
    free(items->earlier);
    free(items->spans);
}

const struct column *
chunk_items_columns(const struct chunk_items *items, size_t *ret_width)
{
    if (items->process)
        return process_columns(items->process, ret_width);
    *ret_width = items->read_width;
    return items->read_columns;
}

/* --- a chunk --- */

void
chunk_items_tally(const struct chunk_items *items, size_t from, size_t to,
                  struct step_counters *counters)
{
    for (size_t i = from; i < to; i++) {
        const struct item *item = items->process ? &items->done.items[i] : NULL;

        if (chunk_items_is_pending(items, i) || chunk_items_is_earlier(items, i))
            continue;
        counters->read++;
        if (item && item->state == ITEM_FAILED)
            counters->skipped++;
        else if (item)
            counters->filtered += (int64_t)item->filtered;
    }
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

/* What may not be kept behind a gap becomes pending again: all that goes into a file,
 * and what a position of bounded length cannot tell. */
static void
drop_behind_gaps(struct chunk_items *items)
{
    size_t spans = 0;
    bool drop = false;

    for (size_t i = 0; i < items->done.count; i++) {
        struct item *item = &items->done.items[i];

        if (item->state == ITEM_PENDING)
            drop = drop || (items->gapless && items->in_order);
        else if (items->in_order && i > 0 && chunk_items_is_pending(items, i - 1))
            drop = drop || ++spans > SPANS_MAX;
        if (drop && item->state != ITEM_EARLIER)
            item->state = ITEM_PENDING;
    }
}

static const bool *
mark_earlier(struct chunk_items *items, size_t count)
{
    if (items->n_spans == 0)
        return NULL;
    items->earlier = xrealloc(items->earlier, count + 1);
    memset(items->earlier, 0, count + 1);
    for (size_t i = 0; i < items->n_spans; i++)
        for (size_t k = items->spans[i].from; k < items->spans[i].to && k < count; k++)
            items->earlier[k] = true;
    return items->earlier;
}

int
chunk_items_work(struct chunk_items *items, const struct row_set *read,
                 struct step_counters *counters, const struct row_set **ret_rows,
                 bool *ret_whole, struct err *err)
{
    int r = 0;

    items->read = read;
    items->start = *counters;
    items->left_out = false;
    items->held_back = false;
    items->settled = read->count;
    *ret_whole = true;
    *ret_rows = read;
    if (items->process) {
        process_rows(items->process, read, mark_earlier(items, read->count),
                     &items->done);
        drop_behind_gaps(items);
        r = chunk_items_note_failures(items, err);
        drop_behind_gaps(items); /* one more may be pending by now */
        if (r == 0)
            r = chunk_items_note_stop(items, err);
        if (r < 0)
            return r;
        items->settled = 0;
        for (size_t i = 0; i < read->count; i++)
            items->settled += !chunk_items_is_pending(items, i);
        *ret_whole = items->settled == read->count && items->done.failure == 0 &&
                     items->done.end == PROCESS_DONE;
        *ret_rows = gather(items, 0, read->count);
    }
    chunk_items_tally(items, 0, read->count, counters);
    return 0;
}

const struct row_set *
chunk_items_only(struct chunk_items *items, size_t index)
{
    return gather(items, index, index + 1);
}

const struct row_set *
chunk_items_none(struct chunk_items *items)
{
    return gather(items, 0, 0);
}

bool
chunk_items_writes(const struct chunk_items *items, size_t index)
{
    return !items->process || items->done.items[index].state == ITEM_DONE;
}

bool
chunk_items_failed(const struct chunk_items *items)
{
    return items->done.failure < 0;
}

int
chunk_items_end(const struct chunk_items *items, struct err *err)
{
    if (items->done.failure < 0) {
        *err = items->done.err;
        return items->done.failure;
    }
    switch (items->done.end) { /* without processors it is DONE */
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
