/* What `skip` leaves out of a chunk: which classes, how many, and a note of each. */
#include "steps/chunk_items_private.h"

#include "base/err.h"
#include "base/json.h"
#include "base/strs.h"
#include "io/call_text.h"
#include "io/cell_text.h"
#include "io/io_ctx.h"
#include "io/reader.h"

#define VALUES_MAX_BYTES 2000

int
chunk_items_read_skip(const json_t *def, unsigned *ret_mask, int64_t *ret_limit,
                      struct err *err)
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
    return item_classes_read(json_object_get(skip, "on"), "skip.on",
                             ITEM_PARSE | ITEM_FORMAT | ITEM_UPSTREAM | ITEM_REJECTED |
                                 ITEM_CONSTRAINT,
                             ret_mask, err);
}

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
        number += !chunk_items_is_pending(items, i);
    return number;
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

int
chunk_items_note_failures(struct chunk_items *items, struct err *err)
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

int
chunk_items_note_stop(struct chunk_items *items, struct err *err)
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

/* With processors it stays pending, like the first one too many of them. */
static int
refused_too_many(struct chunk_items *items, size_t index, const struct err *why,
                 struct err *err)
{
    if (!items->process) {
        *err = *why;
        return -(int)why->code;
    }
    items->done.items[index].state = ITEM_PENDING;
    if (items->done.failure == 0) {
        items->done.failure = -(int)why->code;
        items->done.err = *why;
    }
    return CHUNK_ITEMS_OVER_LIMIT;
}

int
chunk_items_refused(struct chunk_items *items, size_t index, unsigned class,
                    int failure, struct step_counters *counters, struct err *err)
{
    struct step_counters after = *counters;
    struct err why = *err;
    struct err over = {0};
    int r;

    if (!(items->skip_on & class))
        return failure;
    err_clear(err);
    if (count_skip(items, &after, why.text, &over) < 0)
        return refused_too_many(items, index, &over, err);
    r = note(items, (enum item_class) class, index, number_of(items, index), why.text,
             err);
    if (r < 0)
        return r;
    after.rollbacks++;
    *counters = after;
    return CHUNK_ITEMS_LEFT_OUT;
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
