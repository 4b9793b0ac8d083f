/* packed_cache.c: a table with few places for each key, as a cache of a processor has them. One lock guards it: who
 * asks is about to compute for much longer, and who writes asks only where something is kept. */
#include "packed_cache.h"

#include <pthread.h>
#include <string.h>

#include "../environment.h"

#define SETS 64
#define WAYS 4
#define STALE 1024 /* questions: what nobody asked for in so many makes room */
#define LIMIT ((size_t)64 << 20)

struct dt_kept {
    atomic_size_t refs; /* the table's, and each user's */
    size_t nbytes;
    _Alignas(64) unsigned char bytes[];
};

typedef struct {
    const dt_storage *storage; /* NULL: free */
    dt_kept_key key;
    dt_kept *kept;        /* NULL: only noted */
    uint64_t noted, used; /* the first and the last question */
} place;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static place places[SETS][WAYS];
static uint64_t questions;
static size_t total;
static atomic_size_t limit = SIZE_MAX; /* not known yet */

static void
lock_table(void)
{
    pthread_mutex_lock(&lock);
}

static void
unlock_table(void)
{
    pthread_mutex_unlock(&lock);
}

static void
watch_forks_of_packed(void)
{
    (void)pthread_atfork(lock_table, unlock_table, unlock_table);
}

static size_t
packed_limit(void)
{
    size_t most = atomic_load_explicit(&limit, memory_order_relaxed);
    if (most == SIZE_MAX) {
        uint64_t wanted = dt_environment_number(DT_ENV_PACKED_LIMIT, LIMIT);
        most = wanted < SIZE_MAX ? (size_t)wanted : SIZE_MAX - 1;
        atomic_store(&limit, most);
    }
    return most;
}

static place *
set_of(const dt_storage *storage, const dt_kept_key *key)
{
    uint64_t hash = (uint64_t)(uintptr_t)storage >> 4;
    for (int i = 0; i < DT_KEPT_NUMBERS; i++) {
        hash = (hash ^ (uint64_t)key->numbers[i]) * UINT64_C(0x9e3779b97f4a7c15);
    }
    return places[hash >> 58];
}

_Static_assert(SETS == 64, "six bits of the hash");

static place *
find_packed(const dt_storage *storage, const dt_kept_key *key)
{
    place *set = set_of(storage, key);
    for (int i = 0; i < WAYS; i++) {
        if (set[i].storage == storage && memcmp(&set[i].key, key, sizeof(*key)) == 0) {
            return &set[i];
        }
    }
    return NULL;
}

static void
drop_packed(place *p)
{
    if (p->kept != NULL) {
        total -= p->kept->nbytes;
        dt_kept_release(p->kept);
    }
    *p = (place){0};
}

/* The first question. */
static void
note_packed(dt_storage *storage, const dt_kept_key *key)
{
    place *set = set_of(storage, key), *oldest = set;
    for (int i = 1; i < WAYS; i++) {
        oldest = set[i].used < oldest->used ? &set[i] : oldest;
    }
    if (oldest->kept != NULL && questions - oldest->used < STALE) {
        return;
    }
    drop_packed(oldest);
    *oldest = (place){storage, *key, NULL, questions, questions};
    atomic_store(&storage->kept, true);
}

/* Whether nbytes more may be kept, after what is stale has gone. */
static bool
make_room_for_packed(size_t nbytes)
{
    size_t most = packed_limit();
    place *all = &places[0][0];
    for (int i = 0; i < SETS * WAYS && total + nbytes > most; i++) {
        if (all[i].kept != NULL && questions - all[i].used >= STALE) {
            drop_packed(&all[i]);
        }
    }
    return total + nbytes <= most;
}

dt_kept *
dt_kept_get(dt_storage *from, const dt_kept_key *key, size_t nbytes, void (*make)(const void *ctx, void *to),
            const void *ctx)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (nbytes > packed_limit() || from->device.type != DT_CPU || !dt_storage_is_ours(from)) {
        return NULL;
    }
    pthread_once(&once, watch_forks_of_packed);
    lock_table();
    questions++;
    place *p = find_packed(from, key);
    dt_kept *kept = p != NULL ? p->kept : NULL;
    bool wanted = p != NULL && kept == NULL && make_room_for_packed(nbytes);
    uint64_t noted = p != NULL ? p->noted : 0;
    if (p == NULL) {
        note_packed(from, key);
    } else {
        p->used = questions;
    }
    if (kept != NULL) {
        atomic_fetch_add(&kept->refs, 1);
    }
    unlock_table();
    if (!wanted || (kept = dt_large_new(sizeof(*kept) + nbytes)) == NULL) {
        return kept;
    }
    atomic_init(&kept->refs, 1);
    kept->nbytes = nbytes;
    make(ctx, kept->bytes);
    lock_table();
    p = find_packed(from, key); /* gone, or noted anew, if there was a write meanwhile */
    if (p != NULL && p->noted == noted && p->kept == NULL && make_room_for_packed(nbytes)) {
        p->kept = kept;
        total += nbytes;
        atomic_fetch_add(&kept->refs, 1);
    }
    unlock_table();
    return kept;
}

const void *
dt_kept_data(const dt_kept *kept)
{
    return kept != NULL ? kept->bytes : NULL;
}

void
dt_kept_release(dt_kept *kept)
{
    if (kept != NULL && atomic_fetch_sub(&kept->refs, 1) == 1) {
        dt_large_free(kept);
    }
}

/* All of one storage, or of all. */
static void
drop_all(const dt_storage *storage)
{
    place *all = &places[0][0];
    for (int i = 0; i < SETS * WAYS; i++) {
        if (all[i].storage != NULL && (storage == NULL || all[i].storage == storage)) {
            drop_packed(&all[i]);
        }
    }
}

void
dt_kept_forget(dt_storage *storage)
{
    lock_table();
    atomic_store(&storage->kept, false);
    drop_all(storage);
    unlock_table();
}

void
dt_kept_clear(void)
{
    lock_table();
    drop_all(NULL);
    unlock_table();
}

void
dt_kept_set_limit(size_t nbytes)
{
    atomic_store(&limit, nbytes < SIZE_MAX ? nbytes : SIZE_MAX - 1);
    lock_table();
    if (total > nbytes) {
        drop_all(NULL);
    }
    unlock_table();
}

dt_kept_info
dt_kept_read(void)
{
    lock_table();
    dt_kept_info now = {.kept = total};
    unlock_table();
    now.limit = packed_limit();
    return now;
}
