/*
 * Open addressing with linear probing, at most three quarters full; removal
 * moves later entries back, so there are no grave stones. The hash is SipHash-1-3
 * keyed by the map's own random seed.
 */
#include "base/map.h"

#include "base/arena.h"
#include "base/rand.h"

#define MAP_CAP_FIRST 16

static uint64_t
rotate_left(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

static void
sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotate_left(v[1], 13) ^ v[0];
    v[0] = rotate_left(v[0], 32);
    v[2] += v[3];
    v[3] = rotate_left(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate_left(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate_left(v[1], 17) ^ v[2];
    v[2] = rotate_left(v[2], 32);
}

static uint64_t
sip_hash(const uint64_t seed[2], const char *data, size_t len)
{
    uint64_t v[4] = {
        seed[0] ^ UINT64_C(0x736f6d6570736575),
        seed[1] ^ UINT64_C(0x646f72616e646f6d),
        seed[0] ^ UINT64_C(0x6c7967656e657261),
        seed[1] ^ UINT64_C(0x7465646279746573),
    };
    uint64_t last = (uint64_t)len << 56;
    uint64_t word = 0;
    size_t at = 0;

    for (; at + 8 <= len; at += 8) {
        memcpy(&word, data + at, sizeof(word));
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    for (size_t i = at; i < len; i++)
        last |= (uint64_t)(unsigned char)data[i] << (8 * (i - at));
    v[3] ^= last;
    sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void
map_init(struct map *map, void (*free_value)(void *value))
{
    memset(map, 0, sizeof(*map));
    map->free_value = free_value;
}

static void
free_value(const struct map *map, void *value)
{
    if (map->free_value && value)
        map->free_value(value);
}

void
map_release(struct map *map)
{
    if (!map)
        return;
    for (size_t i = 0; i < map->cap; i++) {
        if (!map->entries[i].key)
            continue;
        free_value(map, map->entries[i].value);
        free(map->entries[i].key);
    }
    free(map->entries);
    map_init(map, map->free_value);
}

/* The place of the key, or the free place where it would go. cap > 0. */
static struct map_entry *
find(const struct map *map, const char *key, uint64_t hash)
{
    size_t at = hash & (map->cap - 1);

    while (map->entries[at].key) {
        if (map->entries[at].hash == hash && strcmp(map->entries[at].key, key) == 0)
            break;
        at = (at + 1) & (map->cap - 1);
    }
    return &map->entries[at];
}

static struct map_entry *
lookup(const struct map *map, const char *key)
{
    struct map_entry *entry;

    if (map->count == 0)
        return NULL;
    entry = find(map, key, sip_hash(map->seed, key, strlen(key)));
    return entry->key ? entry : NULL;
}

void *
map_get(const struct map *map, const char *key)
{
    const struct map_entry *entry = lookup(map, key);

    return entry ? entry->value : NULL;
}

bool
map_has(const struct map *map, const char *key)
{
    return lookup(map, key) != NULL;
}

static void
grow(struct map *map)
{
    struct map_entry *old = map->entries;
    size_t old_cap = map->cap;

    if (old_cap == 0)
        rand_bytes(map->seed, sizeof(map->seed));
    map->cap = old_cap ? old_cap * 2 : MAP_CAP_FIRST;
    map->entries = xcalloc(map->cap, sizeof(*map->entries));
    for (size_t i = 0; i < old_cap; i++)
        if (old[i].key)
            *find(map, old[i].key, old[i].hash) = old[i];
    free(old);
}

bool
map_put(struct map *map, const char *key, void *value)
{
    struct map_entry *entry;
    uint64_t hash;

    if (map->count + 1 > map->cap - map->cap / 4)
        grow(map);
    hash = sip_hash(map->seed, key, strlen(key));
    entry = find(map, key, hash);
    if (entry->key) {
        if (entry->value != value)
            free_value(map, entry->value);
        entry->value = value;
        return false;
    }
    *entry = (struct map_entry){.key = xstrdup(key), .value = value, .hash = hash};
    map->count++;
    return true;
}

/* Close the gap: an entry may move into it unless its own place lies behind it. */
static void
remove_entry(struct map *map, struct map_entry *entry)
{
    size_t mask = map->cap - 1;
    size_t gap = (size_t)(entry - map->entries);

    free(entry->key);
    for (size_t at = (gap + 1) & mask; map->entries[at].key; at = (at + 1) & mask) {
        size_t home = map->entries[at].hash & mask;

        if (((at - home) & mask) < ((at - gap) & mask))
            continue;
        map->entries[gap] = map->entries[at];
        gap = at;
    }
    map->entries[gap] = (struct map_entry){0};
    map->count--;
}

void *
map_take(struct map *map, const char *key)
{
    struct map_entry *entry = lookup(map, key);
    void *value;

    if (!entry)
        return NULL;
    value = entry->value;
    remove_entry(map, entry);
    return value;
}

bool
map_remove(struct map *map, const char *key)
{
    struct map_entry *entry = lookup(map, key);
    void *value;

    if (!entry)
        return false;
    value = entry->value;
    remove_entry(map, entry);
    free_value(map, value);
    return true;
}

bool
map_next(const struct map *map, size_t *at, const char **key, void **value)
{
    for (; *at < map->cap; (*at)++) {
        const struct map_entry *entry = &map->entries[*at];

        if (!entry->key)
            continue;
        if (key)
            *key = entry->key;
        if (value)
            *value = entry->value;
        (*at)++;
        return true;
    }
    return false;
}
