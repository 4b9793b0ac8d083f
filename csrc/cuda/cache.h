/* cache.h: a bounded cache of what took long to make: plans, users' kernels (cache.c). */
#ifndef DT_CUDA_CACHE_H
#define DT_CUDA_CACHE_H

#include "front.h"

typedef struct cuda_cache_entry cuda_cache_entry;

/* At most limit entries (0: as many as a cache of plans has); the least recently used makes room. All keys have one
 * size. */
typedef struct {
    size_t key_size, limit;
    void (*destroy)(void *value);
    size_t count, nbuckets;
    cuda_cache_entry **buckets, *newest, *oldest;
} cuda_cache;

void *cuda_cache_find(cuda_cache *cache, const void *key);
/* Takes value over, also on failure; what had the key goes. */
dt_status cuda_cache_put(cuda_cache *cache, const void *key, void *value, dt_error *err) DT_MUST_CHECK;
void cuda_cache_remove(cuda_cache *cache, const void *key);
/* Removes all entries that are chosen. */
void cuda_cache_remove_if(cuda_cache *cache, bool (*chosen)(const void *ctx, const void *key, const void *value),
                          const void *ctx);
/* Calls visit for each entry, the latest first; the cache stays as it is. */
void cuda_cache_visit(const cuda_cache *cache, void (*visit)(void *ctx, const void *key, const void *value), void *ctx);

#endif
