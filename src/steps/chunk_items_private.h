/*
 * Inside of struct chunk_items, for its own files only: chunk_items.c, chunk_skip.c
 * (what is left out) and chunk_position.c (where to go on).
 */
#ifndef STEPS_CHUNK_ITEMS_PRIVATE_H
#define STEPS_CHUNK_ITEMS_PRIVATE_H

#include "steps/chunk_items.h"

static inline bool
chunk_items_is_pending(const struct chunk_items *items, size_t index)
{
    return items->process && items->done.items[index].state == ITEM_PENDING;
}

static inline bool
chunk_items_is_earlier(const struct chunk_items *items, size_t index)
{
    return items->process && items->done.items[index].state == ITEM_EARLIER;
}

/* `skip` of the definition: enum item_class in *ret_mask, 0 = there is none. */
int chunk_items_read_skip(const json_t *def, unsigned *ret_mask, int64_t *ret_limit,
                          struct err *err) must_check;

/* Note the items that failed, up to the limit; those too many become pending. */
int chunk_items_note_failures(struct chunk_items *items, struct err *err) must_check;

/* Why no more items are begun, for the run to say; a limit is noted. */
int chunk_items_note_stop(struct chunk_items *items, struct err *err) must_check;

#endif
