/* cache.c: plans by key, bounded: a few ways in each of a fixed number of sets. */
#include <string.h>

#include "cuda.h"

static uint64_t
hash_key(const unsigned char *key, size_t size)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i + 8 <= size; i += 8) { /* keys are made of 64-bit words */
        uint64_t word;
        memcpy(&word, key + i, 8);
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return h | 1; /* 0 marks a free entry */
}

static cuda_cache_entry *
find_entry(cuda_cache *cache, const void *key, uint64_t hash)
{
    if (cache->entries == NULL) {
        return NULL;
    }
    cuda_cache_entry *set = cache->entries + (size_t)(hash >> 8) % cache->nsets * CUDA_CACHE_WAYS;
    for (int i = 0; i < CUDA_CACHE_WAYS; i++) {
        if (set[i].hash == hash && memcmp(set[i].key, key, cache->key_size) == 0) {
            return &set[i];
        }
    }
    return NULL;
}

void *
cuda_cache_find(cuda_cache *cache, const void *key)
{
    cuda_cache_entry *entry = find_entry(cache, key, hash_key(key, cache->key_size));
    if (entry == NULL) {
        return NULL;
    }
    entry->used = ++cache->clock;
    return entry->value;
}

static void
clear_entry(cuda_cache *cache, cuda_cache_entry *entry)
{
    if (entry->hash != 0) {
        cache->destroy(entry->value);
        dt_free(entry->key);
        *entry = (cuda_cache_entry){0};
    }
}

void
cuda_cache_remove(cuda_cache *cache, const void *key)
{
    cuda_cache_entry *entry = find_entry(cache, key, hash_key(key, cache->key_size));
    if (entry != NULL) {
        clear_entry(cache, entry);
    }
}

void
cuda_cache_visit(const cuda_cache *cache, void (*visit)(void *ctx, const void *key, const void *value), void *ctx)
{
    size_t n = cache->entries ? (size_t)cache->nsets * CUDA_CACHE_WAYS : 0;
    for (size_t i = 0; i < n; i++) {
        if (cache->entries[i].hash != 0) {
            visit(ctx, cache->entries[i].key, cache->entries[i].value);
        }
    }
}

dt_status
cuda_cache_put(cuda_cache *cache, const void *key, void *value, dt_error *err)
{
    if (cache->entries == NULL) {
        cache->entries = dt_calloc((size_t)cache->nsets * CUDA_CACHE_WAYS, sizeof(cuda_cache_entry));
    }
    void *own_key = cache->entries ? dt_malloc(cache->key_size) : NULL;
    if (own_key == NULL) {
        cache->destroy(value);
        return dt_fail_nomem(err, cache->key_size);
    }
    memcpy(own_key, key, cache->key_size);
    uint64_t hash = hash_key(key, cache->key_size);
    cuda_cache_entry *set = cache->entries + (size_t)(hash >> 8) % cache->nsets * CUDA_CACHE_WAYS, *entry = set;
    for (int i = 1; i < CUDA_CACHE_WAYS && entry->hash != 0; i++) {
        if (set[i].hash == 0 || set[i].used < entry->used) {
            entry = &set[i];
        }
    }
    clear_entry(cache, entry);
    *entry = (cuda_cache_entry){hash, ++cache->clock, own_key, value};
    return DT_OK;
}
