/*
 * Blocks in a chain, the newest first; a request is cut from the newest. Blocks
 * double up to BLOCK_MAX. What is larger than a block gets one of its own,
 * put behind the newest so that the room left there is still used.
 */
#include "base/arena.h"

#include <assert.h>
#include <stdalign.h>
#include <stdarg.h>

#define BLOCK_FIRST ((size_t)4096)
#define BLOCK_MAX   ((size_t)1 << 20)

struct arena_block {
    struct arena_block *next;
    size_t size; /* of data */
    size_t used;
    alignas(max_align_t) char data[];
};

static void
out_of_memory(size_t size)
{
    fprintf(stderr, "pawl: out of memory (%zu bytes asked)\n", size);
    abort();
}

void *
xmalloc(size_t size)
{
    void *ptr = malloc(size ? size : 1);

    if (!ptr)
        out_of_memory(size);
    return ptr;
}

void *
xcalloc(size_t count, size_t size)
{
    void *ptr = calloc(count ? count : 1, size ? size : 1);

    if (!ptr)
        out_of_memory(size);
    return ptr;
}

void *
xrealloc(void *ptr, size_t size)
{
    ptr = realloc(ptr, size ? size : 1);
    if (!ptr)
        out_of_memory(size);
    return ptr;
}

char *
xstrdup(const char *str)
{
    size_t size = strlen(str) + 1;

    return memcpy(xmalloc(size), str, size);
}

void
xfree_ptr(void *ptr_to_ptr)
{
    void *ptr;

    memcpy(&ptr, ptr_to_ptr, sizeof(ptr));
    free(ptr);
    memset(ptr_to_ptr, 0, sizeof(ptr));
}

static struct arena_block *
block_new(size_t size)
{
    struct arena_block *block;

    if (size > SIZE_MAX - sizeof(*block))
        out_of_memory(size);
    block = xmalloc(sizeof(*block) + size);
    block->next = NULL;
    block->size = size;
    block->used = 0;
    return block;
}

static void
blocks_free(struct arena_block *block)
{
    while (block) {
        struct arena_block *next = block->next;

        free(block);
        block = next;
    }
}

void
arena_release(struct arena *arena)
{
    if (!arena)
        return;
    blocks_free(arena->head);
    arena->head = NULL;
}

void
arena_clear(struct arena *arena)
{
    if (!arena->head)
        return;
    blocks_free(arena->head->next);
    arena->head->next = NULL;
    arena->head->used = 0;
}

/* The block to cut size bytes from. */
static struct arena_block *
arena_block_for(struct arena *arena, size_t size)
{
    struct arena_block *head = arena->head;
    struct arena_block *block;
    size_t next_size;

    if (head && head->size - head->used >= size)
        return head;
    next_size = head ? head->size * 2 : BLOCK_FIRST;
    if (next_size > BLOCK_MAX)
        next_size = BLOCK_MAX;
    if (size <= next_size) {
        block = block_new(next_size);
        block->next = head;
        arena->head = block;
        return block;
    }
    block = block_new(size);
    if (!head) {
        arena->head = block;
        return block;
    }
    block->next = head->next;
    head->next = block;
    return block;
}

void *
arena_alloc(struct arena *arena, size_t size)
{
    const size_t align = alignof(max_align_t);
    struct arena_block *block;
    void *ptr;

    if (size > SIZE_MAX - align)
        out_of_memory(size);
    size = (size + align - 1) & ~(align - 1);
    if (size == 0)
        size = align;
    block = arena_block_for(arena, size);
    ptr = block->data + block->used;
    block->used += size;
    return memset(ptr, 0, size);
}

void *
arena_alloc_array(struct arena *arena, size_t size, size_t count)
{
    size_t total;

    if (__builtin_mul_overflow(size, count, &total))
        out_of_memory(SIZE_MAX);
    return arena_alloc(arena, total);
}

char *
arena_strndup(struct arena *arena, const char *str, size_t len)
{
    char *copy = arena_alloc(arena, len + 1);

    if (len > 0)
        memcpy(copy, str, len);
    return copy;
}

char *
arena_strdup(struct arena *arena, const char *str)
{
    return arena_strndup(arena, str, strlen(str));
}

char *
arena_printf(struct arena *arena, const char *fmt, ...)
{
    va_list args;
    char *text;
    int len;

    assert(fmt); /* gcc 12 under sanitizers fears a NULL here */
    va_start(args, fmt);
    len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    assert(len >= 0);
    text = arena_alloc(arena, (size_t)len + 1);
    va_start(args, fmt);
    vsnprintf(text, (size_t)len + 1, fmt, args);
    va_end(args);
    return text;
}
