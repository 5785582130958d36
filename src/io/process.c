/*
 * Each lane has a row set for every processor; the last one collects what its items
 * gave, and process_gather puts it together in the order of items. Lanes take the next
 * item from a counter, so a slow one holds nobody up; the first failure that may not
 * be skipped, and the first "no call is left", keep further items from being begun.
 */
#include "io/process.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/strs.h"
#include "io/formats.h"
#include "io/item_retry.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STAGES_MAX     16
#define LANE_MAX_BYTES ((size_t)256 << 20)

struct lane {
    struct row_set *sets; /* one for each stage */
};

struct process {
    struct io_ctx *io;
    struct processor *stages[STAGES_MAX];
    size_t n_stages;
    size_t concurrency;
    unsigned skippable;
    const struct item_retry *retry;
    struct lane lanes[PROCESS_LANES_MAX];
    const struct column *columns;
    size_t width;
    struct item *items;
    size_t items_cap;
};

/* A chunk under way, shared by the lanes. */
struct shift {
    struct process *process;
    const struct row_set *in;
    struct processed *ret;
    atomic_size_t next;
    atomic_bool closed;
    pthread_mutex_t lock; /* of ret's end, failure and why */
};

struct hand {
    struct shift *shift;
    size_t lane;
    pthread_t thread;
};

static const struct {
    enum item_class class;
    const char *name;
} classes[] = {
    {ITEM_PARSE, "parse"},       {ITEM_UPSTREAM, "upstream"},
    {ITEM_REJECTED, "rejected"}, {ITEM_CONSTRAINT, "constraint"},
    {ITEM_QUOTA, "quota"},       {ITEM_FORMAT, "format"},
};

const char *item_class_name(enum item_class class)
{
    for (size_t i = 0; i < array_len(classes); i++)
        if (classes[i].class == class)
            return classes[i].name;
    return "parse";
}

enum item_class
item_class_parse(const char *word)
{
    for (size_t i = 0; i < array_len(classes); i++)
        if (str_eq(classes[i].name, word))
            return classes[i].class;
    return (enum item_class)0;
}

static int
no_classes(const char *where, unsigned allowed, struct err *err)
{
    scoped(buf_release) struct buf words = {0};

    buf_init(&words, 200);
    for (size_t i = 0; i < array_len(classes); i++)
        if (allowed & (unsigned)classes[i].class)
            buf_addf(&words, "%s%s", words.len ? ", " : "", classes[i].name);
    return err_set(err, ERR_CONFIG, "%s: must be a list of %s", where, buf_str(&words));
}

int
item_classes_read(const json_t *list, const char *where, unsigned allowed,
                  unsigned *ret_mask, struct err *err)
{
    unsigned mask = 0;

    for (size_t i = 0; i < json_array_size(list); i++) {
        unsigned class =
            (unsigned)item_class_parse(json_string_value(json_array_get(list, i)));

        if (!(class & allowed))
            return no_classes(where, allowed, err);
        mask |= class;
    }
    if (mask == 0)
        return no_classes(where, allowed, err);
    *ret_mask = mask;
    return 0;
}

long
column_find(const struct column *columns, size_t width, const char *name)
{
    for (size_t i = 0; i < width; i++)
        if (str_eq(columns[i].name, name))
            return (long)i;
    return -1;
}

/* --- definition --- */

static size_t
stage_count(const json_t *def)
{
    return json_is_array(def) ? json_array_size(def) : 1;
}

static const json_t *
stage_at(const json_t *def, size_t i)
{
    return json_is_array(def) ? json_array_get(def, i) : def;
}

static int
choose(const json_t *stage, const struct processor_kind **ret_kind,
       const json_t **ret_def, struct err *err)
{
    const char *key;
    void *first;

    if (!json_is_object(stage) || json_object_size(stage) != 1)
        return err_set(err, ERR_CONFIG,
                       "process: each processor is a map with one key (http, map, "
                       "filter); several stand in a list");
    first = json_object_iter((json_t *)(uintptr_t)stage);
    key = json_object_iter_key(first);
    *ret_kind = format_processor(key);
    *ret_def = json_object_iter_value(first);
    if (!*ret_kind)
        return err_set(err, ERR_CONFIG,
                       "process: \"%s\" is no processor; there are: http, map, filter",
                       key);
    return 0;
}

int
process_check(const json_t *def, struct err *err)
{
    if (stage_count(def) == 0 || stage_count(def) > STAGES_MAX)
        return err_set(err, ERR_CONFIG, "process: must have 1 to %d processors",
                       STAGES_MAX);
    for (size_t i = 0; i < stage_count(def); i++) {
        const struct processor_kind *kind = NULL;
        const json_t *inner = NULL;
        int r = choose(stage_at(def, i), &kind, &inner, err);

        if (r == 0)
            r = kind->check(inner, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static void
process_freep(struct process **process)
{
    process_free(*process);
}

int
process_new(struct io_ctx *io, const json_t *def, size_t concurrency,
            unsigned skippable, const struct item_retry *retry,
            struct process **ret_process, struct err *err)
{
    scoped(process_freep) struct process *process = xcalloc(1, sizeof(*process));

    process->io = io;
    process->concurrency = concurrency;
    process->skippable = skippable;
    process->retry = retry;
    for (size_t i = 0; i < stage_count(def); i++) {
        const struct processor_kind *kind = NULL;
        const json_t *inner = NULL;
        int r = choose(stage_at(def, i), &kind, &inner, err);

        if (r == 0)
            r = kind->new_processor(io, inner, &process->stages[i], err);
        if (r < 0)
            return r;
        process->n_stages++;
    }
    *ret_process = process;
    process = NULL;
    return 0;
}

void
process_free(struct process *process)
{
    if (!process)
        return;
    for (size_t i = 0; i < process->n_stages; i++)
        process->stages[i]->ops->free(process->stages[i]);
    for (size_t lane = 0; lane < PROCESS_LANES_MAX; lane++) {
        for (size_t i = 0; process->lanes[lane].sets && i < process->n_stages; i++)
            row_set_release(&process->lanes[lane].sets[i]);
        free(process->lanes[lane].sets);
    }
    free(process->items);
    free(process);
}

int
process_open(struct process *process, const struct column *columns, size_t width,
             struct err *err)
{
    for (size_t i = 0; i < process->n_stages; i++) {
        struct processor *stage = process->stages[i];
        int r = stage->ops->open(stage, columns, width, process->concurrency, err);

        if (r < 0)
            return err_prefix(err, "process");
        columns = stage->columns;
        width = stage->width;
    }
    process->columns = columns;
    process->width = width;
    for (size_t lane = 0; lane < process->concurrency; lane++) {
        process->lanes[lane].sets =
            xcalloc(process->n_stages, sizeof(*process->lanes[lane].sets));
        for (size_t i = 0; i < process->n_stages; i++)
            row_set_init(&process->lanes[lane].sets[i], LANE_MAX_BYTES);
    }
    return 0;
}

const struct column *
process_columns(const struct process *process, size_t *ret_width)
{
    *ret_width = process->width;
    return process->columns;
}

/* --- an item --- */

static void
drop_rows(struct row_set *set, size_t count)
{
    while (set->count > count)
        row_set_drop_last(set);
}

static int
run_stages(struct process *process, size_t lane_index, struct item *item,
           const struct item_rows *read, char *why, struct err *err)
{
    struct lane *lane = &process->lanes[lane_index];
    struct item_rows in = *read;

    for (size_t i = 0; i < process->n_stages; i++) {
        struct processor *stage = process->stages[i];
        struct row_set *out = &lane->sets[i];
        size_t first = out->count;
        int r = stage->ops->run(stage, lane_index, item, &in, out, why, err);

        if (r == PROCESS_DONE && row_set_full(out))
            r = err_set(err, ERR_TOO_LARGE,
                        "the rows of one chunk need more than %zu MiB: give the step a "
                        "smaller `chunk`",
                        LANE_MAX_BYTES >> 20);
        if (r != PROCESS_DONE) {
            drop_rows(out, first);
            return r;
        }
        in = (struct item_rows){out, first, out->count - first};
    }
    item->lane = lane_index;
    item->first = in.first;
    item->count = in.count;
    return PROCESS_DONE;
}

static void
close_shift(struct shift *shift, int outcome, size_t index, const char *why,
            const struct err *err)
{
    pthread_mutex_lock(&shift->lock);
    atomic_store(&shift->closed, true);
    if (outcome < 0 && shift->ret->failure == 0) {
        shift->ret->failure = outcome;
        shift->ret->err = *err;
        shift->ret->failed_item = index;
    } else if (outcome > (int)shift->ret->end) {
        shift->ret->end = (enum process_outcome)outcome;
        if (why)
            snprintf(shift->ret->why, sizeof(shift->ret->why), "%s", why);
    }
    pthread_mutex_unlock(&shift->lock);
}

/* Once, and again as `retry` says: all processors, from the item as it was read. */
static int
try_item(const struct shift *shift, size_t lane, size_t index, char *why,
         struct err *err)
{
    struct process *process = shift->process;
    struct item *item = &shift->ret->items[index];
    struct item_rows read = {shift->in, index, 1};

    for (int tried = 1;; tried++) {
        int r = run_stages(process, lane, item, &read, why, err);

        if (r != PROCESS_FAILED || !(process->retry->on & (unsigned)item->class))
            return r;
        if (tried >= process->retry->attempts) {
            (void)err_prefix(err, "tried %d times", tried);
            return r;
        }
        switch (item_retry_wait(process->retry, process->io, tried)) {
        case ITEM_RETRY_AGAIN:
            break;
        case ITEM_RETRY_STOP:
            return PROCESS_STOP;
        case ITEM_RETRY_CUT:
            return PROCESS_CUT;
        }
        err_clear(err);
        *item = (struct item){0};
    }
}

static void
work_on(struct shift *shift, size_t lane, size_t index)
{
    struct process *process = shift->process;
    struct item *item = &shift->ret->items[index];
    char why[IO_WHY_MAX] = "";
    struct err err = {0};
    int r = try_item(shift, lane, index, why, &err);

    if (r == PROCESS_DONE) {
        item->state = ITEM_DONE;
        return;
    }
    if (r == PROCESS_FAILED) {
        item->state = ITEM_FAILED;
        (void)str_copy(item->message, sizeof(item->message), err.text);
        if (process->skippable & (unsigned)item->class)
            return;
        item->state = ITEM_PENDING;
        if (err.code == ERR_NONE)
            err.code = ERR_INVALID;
        r = -(int)err.code;
    }
    close_shift(shift, r, index, why, &err);
}

static void *
work(void *arg)
{
    struct hand *hand = arg;
    struct shift *shift = hand->shift;
    struct io_ctx *io = shift->process->io;

    while (!atomic_load(&shift->closed)) {
        size_t index = atomic_fetch_add(&shift->next, 1);

        if (index >= shift->ret->count)
            break;
        if (shift->ret->items[index].state == ITEM_EARLIER)
            continue;
        if (io->cut(io)) {
            close_shift(shift, PROCESS_CUT, index, NULL, NULL);
            break;
        }
        work_on(shift, hand->lane, index);
    }
    return NULL;
}

static void
clear(struct process *process, size_t count)
{
    if (count > process->items_cap) {
        process->items = xrealloc(process->items, count * sizeof(*process->items));
        process->items_cap = count;
    }
    if (count > 0)
        memset(process->items, 0, count * sizeof(*process->items));
    for (size_t lane = 0; lane < process->concurrency; lane++)
        for (size_t i = 0; i < process->n_stages; i++)
            row_set_clear(&process->lanes[lane].sets[i], process->stages[i]->width);
}

void
process_rows(struct process *process, const struct row_set *in, const bool *earlier,
             struct processed *ret)
{
    struct hand hands[PROCESS_LANES_MAX];
    struct shift shift = {.process = process, .in = in, .ret = ret};
    size_t lanes = process->concurrency < in->count ? process->concurrency : in->count;
    size_t begun = 0;

    clear(process, in->count);
    *ret = (struct processed){.items = process->items, .count = in->count};
    for (size_t i = 0; earlier && i < in->count; i++)
        if (earlier[i])
            ret->items[i].state = ITEM_EARLIER;
    pthread_mutex_init(&shift.lock, NULL);
    for (size_t i = 0; i < lanes; i++)
        hands[i] = (struct hand){.shift = &shift, .lane = i};
    /* The step's own thread is the first lane; without more threads it does it all. */
    for (size_t i = 1; i < lanes; i++, begun++)
        if (pthread_create(&hands[i].thread, NULL, work, &hands[i]) != 0)
            break;
    if (lanes > 0)
        (void)work(&hands[0]);
    for (size_t i = 1; i <= begun; i++)
        pthread_join(hands[i].thread, NULL);
    pthread_mutex_destroy(&shift.lock);
}

void
process_gather(const struct process *process, const struct processed *processed,
               size_t from, size_t to, struct row_set *out)
{
    row_set_clear(out, process->width);
    for (size_t i = from; i < processed->count && i < to; i++) {
        const struct item *item = &processed->items[i];
        const struct row_set *set;

        if (item->state != ITEM_DONE)
            continue;
        set = &process->lanes[item->lane].sets[process->n_stages - 1];
        for (size_t k = 0; k < item->count; k++)
            memcpy(row_set_add(out), row_set_row(set, item->first + k),
                   process->width * sizeof(struct cell));
    }
}
