/*
 * A chunk may be committed in part: what is done is kept when the budget is used up or
 * an item fails for good, so that no call is made twice. A reader that finds what is
 * left by its own query (requery) needs nothing more for it; any other goes on where it
 * stopped, so its position within a chunk is
 * {"before": position before the chunk, "items": how many are settled without a gap,
 * "done": [[from, to), ...] those settled behind the first gap}.
 * A file has its rows in the order of items: nothing behind a gap is kept there.
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
#define SPANS_MAX        1000

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

/* The spans of "done", from the first row on that is read next. */
static int
take_spans(struct chunk_items *items, const json_t *done, int64_t before,
           struct err *err)
{
    size_t count = json_array_size(done);
    int64_t last = before;

    items->spans = xcalloc(count + 1, sizeof(*items->spans));
    for (size_t i = 0; i < count; i++) {
        const json_t *span = json_array_get(done, i);
        int64_t from = json_integer_value(json_array_get(span, 0));
        int64_t to = json_integer_value(json_array_get(span, 1));

        if (from < last || to <= from)
            return err_set(err, ERR_INVALID,
                           "the position of the checkpoint is damaged; ask for a new "
                           "run (restart: false)");
        items->spans[items->n_spans++] =
            (struct item_span){(size_t)(from - before), (size_t)(to - before)};
        last = to;
    }
    return 0;
}

/* The reader's own position and how many items of the chunk behind it are settled. */
static int
unwrap(struct chunk_items *items, const char *position, char **ret_before,
       int64_t *ret_items, struct err *err)
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
    return take_spans(items, json_object_get(root, "done"), *ret_items, err);
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
chunk_items_open_reader(struct chunk_items *items, struct reader *reader,
                        const char *position, struct err *err)
{
    scoped(xfree_ptr) char *before = NULL;
    int64_t settled = -1;
    int r = 0;

    if (position)
        r = unwrap(items, position, &before, &settled, err);
    if (r == 0)
        r = reader_open(reader, settled >= 0 ? before : position, err);
    if (r == 0 && settled > 0)
        r = pass_over(reader, settled, err);
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
    int r = read_skip(ctx->def, &items->skip_on, &items->skip_limit, err);

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
    if (counters->skipped - items->skipped_before <= items->skip_limit)
        return 0;
    return err_set(err, ERR_INVALID,
                   "more than %lld items could not be done (skip.limit); the last: %s",
                   (long long)items->skip_limit, message);
}

/* --- a chunk --- */

static bool
is_pending(const struct chunk_items *items, size_t index)
{
    return items->process && items->done.items[index].state == ITEM_PENDING;
}

static bool
is_earlier(const struct chunk_items *items, size_t index)
{
    return items->process && items->done.items[index].state == ITEM_EARLIER;
}

/* Rows that an earlier run has settled, of all that are still to be read. */
static int64_t
earlier_rows(const struct chunk_items *items)
{
    int64_t count = 0;

    for (size_t i = 0; i < items->n_spans; i++)
        count += (int64_t)(items->spans[i].to - items->spans[i].from);
    return count;
}

/* An item's number for people. With a position it is its place in the input; where what
 * is left is asked for anew, those settled are counted. */
static int64_t
number_of(const struct chunk_items *items, size_t index)
{
    int64_t number = items->start.read + 1;

    if (items->in_order)
        return number - earlier_rows(items) + (int64_t)index;
    for (size_t i = 0; i < index; i++)
        number += !is_pending(items, i);
    return number;
}

void
chunk_items_tally(const struct chunk_items *items, size_t from, size_t to,
                  struct step_counters *counters)
{
    for (size_t i = from; i < to; i++) {
        const struct item *item = items->process ? &items->done.items[i] : NULL;

        if (is_pending(items, i) || is_earlier(items, i))
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

/* The first one too many, and those behind it, stay pending: what is done is kept. */
static void
over_limit(struct chunk_items *items, size_t index, const struct err *why)
{
    for (size_t i = index; i < items->done.count; i++)
        if (items->done.items[i].state == ITEM_FAILED)
            items->done.items[i].state = ITEM_PENDING;
    if (items->done.failure < 0)
        return;
    items->done.failure = -(int)why->code;
    items->done.err = *why;
}

static int
note_failures(struct chunk_items *items, struct err *err)
{
    struct step_counters counters = items->start;

    for (size_t i = 0; i < items->done.count; i++) {
        const struct item *item = &items->done.items[i];
        struct err why = {0};
        int r;

        if (item->state != ITEM_FAILED)
            continue;
        if (count_skip(items, &counters, item->message, &why) < 0) {
            over_limit(items, i, &why);
            return 0;
        }
        r = note(items, item->class, i, number_of(items, i), item->message, err);
        if (r < 0)
            return r;
    }
    return 0;
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
        else if (items->in_order && i > 0 && is_pending(items, i - 1))
            drop = drop || ++spans > SPANS_MAX;
        if (drop && item->state != ITEM_EARLIER)
            item->state = ITEM_PENDING;
    }
}

/* Why no more items are begun, for the run to say; a limit is noted. */
static int
note_stop(struct chunk_items *items, struct err *err)
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
    return note(items, ITEM_QUOTA, i, number_of(items, i), done->why, err);
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
        r = note_failures(items, err);
        drop_behind_gaps(items); /* one more may be pending by now */
        if (r == 0)
            r = note_stop(items, err);
        if (r < 0)
            return r;
        items->settled = 0;
        for (size_t i = 0; i < read->count; i++)
            items->settled += !is_pending(items, i);
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
    r = note(items, ITEM_CONSTRAINT, index, number_of(items, index), why.text, err);
    return r < 0 ? r : count_skip(items, counters, why.text, err);
}

bool
chunk_items_writes(const struct chunk_items *items, size_t index)
{
    return !items->process || items->done.items[index].state == ITEM_DONE;
}

bool
chunk_items_skips_record(const struct chunk_items *items)
{
    return items->skip_on & (unsigned)item_class_parse(items->reader->bad.error_class);
}

int
chunk_items_bad_record(struct chunk_items *items, struct step_counters *counters,
                       const struct err *why, bool *ret_whole, struct err *err)
{
    enum item_class class = item_class_parse(items->reader->bad.error_class);
    struct step_counters after = *counters;
    struct err over = {0};
    int r;

    if (count_skip(items, &after, why->text, &over) < 0) {
        items->done.failure = -(int)over.code;
        items->done.err = over;
        items->held_back = true;
        *ret_whole = false;
        return 0;
    }
    r = note(items, class, items->read->count, number_of(items, items->read->count),
             why->text, err);
    if (r < 0)
        return r;
    after.read++;
    items->left_out = true;
    *counters = after;
    return 0;
}

static void
add_span(struct buf *position, size_t from, size_t to, bool *first)
{
    buf_addf(position, "%s[%zu,%zu]", *first ? "" : ",", from, to);
    *first = false;
}

/* Those of the chunk behind the first gap, and what is left of the spans behind it. */
static void
add_spans(const struct chunk_items *items, size_t gap, size_t count, size_t origin,
          struct buf *position)
{
    size_t read = items->read->count;
    size_t from = gap;
    bool first = true;

    for (size_t i = gap; i <= read; i++) {
        bool settled =
            i < read && (i < count ? !is_pending(items, i) : is_earlier(items, i));

        if (settled)
            continue;
        if (i > from)
            add_span(position, from - origin, i - origin, &first);
        from = i + 1;
    }
    for (size_t i = 0; i < items->n_spans; i++) {
        from = items->spans[i].from > read ? items->spans[i].from : read;
        if (items->spans[i].to > from)
            add_span(position, from - origin, items->spans[i].to - origin, &first);
    }
}

int
chunk_items_position(const struct chunk_items *items, size_t count,
                     struct buf *position, struct err *err)
{
    size_t read = items->read->count;
    size_t gap = 0;
    bool more = items->n_spans > 0 && items->spans[items->n_spans - 1].to > read;
    int r = 0;

    while (gap < count && !is_pending(items, gap))
        gap++;
    if (!items->in_order || (gap >= read && !more && !items->held_back))
        return reader_position(items->reader, position, err);
    buf_add_str(position, "{\"before\":");
    if (gap >= read && !items->held_back)
        r = reader_position(items->reader, position, err);
    else
        buf_add_str(position, items->before.len ? buf_str(&items->before) : "null");
    if (r < 0)
        return r;
    buf_addf(position, ",\"items\":%zu,\"done\":[",
             gap >= read && !items->held_back ? 0 : gap);
    add_spans(items, gap, count, gap >= read && !items->held_back ? read : 0, position);
    buf_add_str(position, "]}");
    return buf_check(position, "the position within the chunk", err);
}

void
chunk_items_next(struct chunk_items *items)
{
    size_t read = items->read->count;
    size_t kept = 0;

    for (size_t i = 0; i < items->n_spans; i++) {
        struct item_span span = items->spans[i];

        if (span.to <= read)
            continue;
        items->spans[kept++] =
            (struct item_span){span.from > read ? span.from - read : 0, span.to - read};
    }
    items->n_spans = kept;
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
