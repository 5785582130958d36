#include "db/cache.h"

#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

/* FNV-1a: statements are short and there are few, so a linear search over hashes
 * costs less than the call it saves. */
static uint64_t
hash_of(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        hash = (hash ^ *p) * UINT64_C(0x100000001b3);
    return hash;
}

void
cache_entry_init(struct cache_entry *entry, const char *text)
{
    entry->hash = hash_of(text);
    entry->text = xstrdup(text);
}

void
cache_entry_release(struct cache_entry *entry)
{
    free(entry->text);
    entry->text = NULL;
}

struct cache_entry *
cache_find(struct stmt_cache *cache, const char *text)
{
    uint64_t hash = hash_of(text);

    for (size_t i = 0; i < cache->count; i++) {
        struct cache_entry *entry = cache->entries[i];

        if (entry->hash == hash && strcmp(entry->text, text) == 0) {
            entry->used = ++cache->tick;
            return entry;
        }
    }
    return NULL;
}

static size_t
oldest_idle(const struct stmt_cache *cache)
{
    size_t best = cache->count;

    for (size_t i = 0; i < cache->count; i++) {
        const struct cache_entry *entry = cache->entries[i];

        if (entry->busy)
            continue;
        if (best == cache->count || entry->used < cache->entries[best]->used)
            best = i;
    }
    return best;
}

struct cache_entry *
cache_add(struct stmt_cache *cache, struct cache_entry *entry)
{
    struct cache_entry *left = NULL;
    size_t at = cache->count;

    if (cache->count == STMT_CACHE_MAX) {
        at = oldest_idle(cache);
        if (at == cache->count)
            return NULL;
        left = cache->entries[at];
        left->cached = false;
    } else {
        cache->count++;
    }
    entry->used = ++cache->tick;
    entry->cached = true;
    cache->entries[at] = entry;
    return left;
}

void
cache_remove(struct stmt_cache *cache, struct cache_entry *entry)
{
    for (size_t i = 0; i < cache->count; i++) {
        if (cache->entries[i] == entry) {
            cache->entries[i] = cache->entries[--cache->count];
            entry->cached = false;
            return;
        }
    }
}
