/*
 * Map from text to a pointer. Keys are copied and owned; values are the
 * caller's, or freed by free_value when the map was given one. Hashing is keyed
 * by a secret, so outsiders who choose keys cannot make it slow. All-zero is an
 * empty map without free_value. One thread at a time.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

struct map_entry {
    char *key; /* NULL: free place */
    void *value;
    uint64_t hash;
};

struct map {
    struct map_entry *entries;
    size_t cap; /* a power of two, or 0 */
    size_t count;
    void (*free_value)(void *value);
    uint64_t seed[2];
};

void map_init(struct map *map, void (*free_value)(void *value));
void map_release(struct map *map);

void *map_get(const struct map *map, const char *key);
bool map_has(const struct map *map, const char *key);
/* Put or replace; a replaced value is freed by free_value. True if it was new. */
bool map_put(struct map *map, const char *key, void *value);
/* Take out without freeing; NULL if absent. */
void *map_take(struct map *map, const char *key);
/* Take out and free; true if it was there. */
bool map_remove(struct map *map, const char *key);

/*
 * In no order: for (at = 0; map_next(&map, &at, &key, &value);) ...
 * The map must not change meanwhile. key and value may be NULL.
 */
bool map_next(const struct map *map, size_t *at, const char **key, void **value);

#endif
