/*
 * A chunk may be committed in part: what is done is kept when the budget is used up or
 * an item fails for good, so that no call is made twice. A reader that finds what is
 * left by its own query (requery) needs nothing more for it; any other goes on where it
 * stopped, so its position within a chunk is
 * {"before": position before the chunk, "items": how many are settled without a gap,
 * "done": [[from, to), ...] those settled behind the first gap}.
 * A file has its rows in the order of items: nothing behind a gap is kept there.
 */
#include "steps/chunk_items_private.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "io/reader.h"

#include <stdlib.h>
#include <string.h>

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

int
chunk_items_mark(struct chunk_items *items, struct err *err)
{
    buf_clear(&items->before);
    return reader_position(items->reader, &items->before, err);
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
        bool settled = i < read && (i < count ? !chunk_items_is_pending(items, i)
                                              : chunk_items_is_earlier(items, i));

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

    while (gap < count && !chunk_items_is_pending(items, gap))
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
