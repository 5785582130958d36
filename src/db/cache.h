/*
 * Prepared statements of one connection, found by their text. A driver's statement
 * starts with a struct cache_entry. The text is the key, not the struct db_sql: that
 * may be on a caller's stack and look different next time. Not for two threads.
 */
#ifndef DB_CACHE_H
#define DB_CACHE_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

#define STMT_CACHE_MAX 256

struct cache_entry {
    uint64_t hash;
    char *text;
    uint64_t used; /* tick of the last use */
    bool busy;     /* rows are being read from it */
    bool cached;
};

struct stmt_cache {
    struct cache_entry *entries[STMT_CACHE_MAX];
    size_t count;
    uint64_t tick;
};

/* Set text (copied) and hash; release frees the text only. */
void cache_entry_init(struct cache_entry *entry, const char *text);
void cache_entry_release(struct cache_entry *entry);

/* NULL: not there. */
struct cache_entry *cache_find(struct stmt_cache *cache, const char *text);

/* Keep entry. Returns what had to leave, for the caller to free, or NULL. When all
 * are busy the entry itself is not kept (entry->cached stays false). */
struct cache_entry *cache_add(struct stmt_cache *cache, struct cache_entry *entry);
void cache_remove(struct stmt_cache *cache, struct cache_entry *entry);

#endif
