/* cache.c: plans by key: a hash table whose entries stand in the order of their last use too. */
#include <string.h>

#include "cache.h"

#define DEFAULT_LIMIT 4096
#define FIRST_BUCKETS 64

struct cuda_cache_entry {
    cuda_cache_entry *next;          /* of its bucket */
    cuda_cache_entry *newer, *older; /* by last use */
    uint64_t hash;
    void *value;
    uint64_t key[];
};

static atomic_size_t plan_limit = DEFAULT_LIMIT;

void
cuda_set_plan_limit(size_t limit)
{
    atomic_store(&plan_limit, limit > 0 ? limit : DEFAULT_LIMIT);
}

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
    return h;
}

/* ---------------------------------------------------------------- the order of use */

static void
unlink_use(cuda_cache *cache, cuda_cache_entry *e)
{
    *(e->newer != NULL ? &e->newer->older : &cache->newest) = e->older;
    *(e->older != NULL ? &e->older->newer : &cache->oldest) = e->newer;
}

static void
link_use(cuda_cache *cache, cuda_cache_entry *e)
{
    e->newer = NULL;
    e->older = cache->newest;
    *(e->older != NULL ? &e->older->newer : &cache->oldest) = e;
    cache->newest = e;
}

/* ---------------------------------------------------------------- buckets */

/* Where the entry hangs, or would. */
static cuda_cache_entry **
find_link(const cuda_cache *cache, const void *key, uint64_t hash)
{
    cuda_cache_entry **link = &cache->buckets[hash % cache->nbuckets];
    while (*link != NULL && ((*link)->hash != hash || memcmp((*link)->key, key, cache->key_size) != 0)) {
        link = &(*link)->next;
    }
    return link;
}

/* Twice as many, where there is memory for them. */
static bool
grow_cache(cuda_cache *cache)
{
    size_t n = cache->nbuckets != 0 ? 2 * cache->nbuckets : FIRST_BUCKETS;
    cuda_cache_entry **buckets = dt_calloc(n, sizeof(cuda_cache_entry *));
    if (buckets == NULL) {
        return false;
    }
    for (cuda_cache_entry *e = cache->newest; e != NULL; e = e->older) {
        e->next = buckets[e->hash % n];
        buckets[e->hash % n] = e;
    }
    dt_free(cache->buckets);
    cache->buckets = buckets;
    cache->nbuckets = n;
    return true;
}

static void
remove_link(cuda_cache *cache, cuda_cache_entry **link)
{
    cuda_cache_entry *e = *link;
    *link = e->next;
    unlink_use(cache, e);
    cache->count--;
    cache->destroy(e->value);
    dt_free(e);
}

static void
make_room_in_cache(cuda_cache *cache)
{
    size_t limit = cache->limit != 0 ? cache->limit : atomic_load(&plan_limit);
    while (cache->count >= limit) {
        remove_link(cache, find_link(cache, cache->oldest->key, cache->oldest->hash));
    }
}

/* ---------------------------------------------------------------- the cache */

void *
cuda_cache_find(cuda_cache *cache, const void *key)
{
    if (cache->count == 0) {
        return NULL;
    }
    cuda_cache_entry *e = *find_link(cache, key, hash_key(key, cache->key_size));
    if (e == NULL) {
        return NULL;
    }
    if (e != cache->newest) {
        unlink_use(cache, e);
        link_use(cache, e);
    }
    return e->value;
}

void
cuda_cache_remove(cuda_cache *cache, const void *key)
{
    if (cache->count != 0) {
        cuda_cache_entry **link = find_link(cache, key, hash_key(key, cache->key_size));
        if (*link != NULL) {
            remove_link(cache, link);
        }
    }
}

void
cuda_cache_remove_if(cuda_cache *cache, bool (*chosen)(const void *ctx, const void *key, const void *value),
                     const void *ctx)
{
    for (cuda_cache_entry *e = cache->newest, *older; e != NULL; e = older) {
        older = e->older;
        if (chosen(ctx, e->key, e->value)) {
            remove_link(cache, find_link(cache, e->key, e->hash));
        }
    }
}

void
cuda_cache_visit(const cuda_cache *cache, void (*visit)(void *ctx, const void *key, const void *value), void *ctx)
{
    for (const cuda_cache_entry *e = cache->newest; e != NULL; e = e->older) {
        visit(ctx, e->key, e->value);
    }
}

dt_status
cuda_cache_put(cuda_cache *cache, const void *key, void *value, dt_error *err)
{
    cuda_cache_remove(cache, key);
    make_room_in_cache(cache);
    bool roomy = cache->count < cache->nbuckets || grow_cache(cache) || cache->nbuckets != 0;
    size_t nbytes = sizeof(cuda_cache_entry) + cache->key_size;
    cuda_cache_entry *e = roomy ? dt_malloc(nbytes) : NULL;
    if (e == NULL) {
        cache->destroy(value);
        return dt_fail_nomem(err, nbytes);
    }
    *e = (cuda_cache_entry){.hash = hash_key(key, cache->key_size), .value = value};
    memcpy(e->key, key, cache->key_size);
    cuda_cache_entry **bucket = &cache->buckets[e->hash % cache->nbuckets];
    e->next = *bucket;
    *bucket = e;
    link_use(cache, e);
    cache->count++;
    return DT_OK;
}
