/*
 * Memory that dies together: one arena per HTTP request, step execution or CLI
 * command. Allocation aborts when memory is gone (state is in the database and
 * a dead worker is a designed-for event), so sizes given by users must have
 * passed a ceiling before. One thread at a time.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/compiler.h"

#include <stdint.h>

struct arena_block;

struct arena {
    struct arena_block *head;
};

void arena_release(struct arena *arena);

/* Forget everything but keep the newest block for the next round. */
void arena_clear(struct arena *arena);

/* Zeroed, aligned for any type. */
void *arena_alloc(struct arena *arena, size_t size);
char *arena_strdup(struct arena *arena, const char *str);
char *arena_strndup(struct arena *arena, const char *str, size_t len);
char *arena_printf(struct arena *arena, const char *fmt, ...) printf_like(2, 3);

#define arena_new(arena, type) ((type *)arena_alloc((arena), sizeof(type)))
#define arena_array(arena, type, count)                                                \
    ((type *)arena_alloc_array((arena), sizeof(type), (count)))
void *arena_alloc_array(struct arena *arena, size_t size, size_t count);

/* malloc family that aborts instead of returning NULL; small sizes only. */
void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *ptr, size_t size);
char *xstrdup(const char *str);
void xfree_ptr(void *ptr_to_ptr); /* for scoped(): frees *(void **)ptr_to_ptr */

#endif
