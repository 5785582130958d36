/*
 * Doubly linked list whose links live in the members. The head is a struct list
 * too and must be initialised by list_init. A member is in at most one list per
 * link; list_remove leaves it linked to itself, so removing twice is harmless.
 *
 *     list_each(at, &slots)
 *         slot_stop(list_entry(at, struct slot, link));
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include "base/compiler.h"

#include <stdbool.h>

struct list {
    struct list *prev;
    struct list *next;
};

static inline void
list_init(struct list *list)
{
    list->prev = list->next = list;
}

static inline bool
list_empty(const struct list *list)
{
    return list->next == list;
}

static inline void
list_insert_before(struct list *at, struct list *item)
{
    item->prev = at->prev;
    item->next = at;
    at->prev->next = item;
    at->prev = item;
}

static inline void
list_push_back(struct list *head, struct list *item)
{
    list_insert_before(head, item);
}

static inline void
list_push_front(struct list *head, struct list *item)
{
    list_insert_before(head->next, item);
}

static inline void
list_remove(struct list *item)
{
    item->prev->next = item->next;
    item->next->prev = item->prev;
    list_init(item);
}

/* The first, taken out; NULL when empty. */
static inline struct list *
list_pop_front(struct list *head)
{
    struct list *item = head->next;

    if (item == head)
        return NULL;
    list_remove(item);
    return item;
}

#define list_entry(item, type, member) container_of(item, type, member)

#define list_each(at, head)                                                            \
    for (struct list *at = (head)->next; at != (head); at = at->next)

/* As list_each; the body may remove at (and only at). */
#define list_each_safe(at, head)                                                       \
    for (struct list *at = (head)->next, *at##_next = at->next; at != (head);          \
         at = at##_next, at##_next = at->next)

#endif
