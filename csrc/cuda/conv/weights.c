/* weights.c: a cache of copies by their storage and layout. A copy is made without the lock, and put where its note
 * still stands. Each is a storage, so that streams meet at it, and its memory is counted and comes back, as that of
 * every array. */
#include "weights.h"

#include <string.h>

#include "../memory/memory.h"
#include "../ops/ops.h"
#include "../streams/stream.h"
#include "../memory/transfer.h"

#define PLACES 4096
#define SHARE 16   /* the part of a device's memory that may be kept: one of so many */
#define STALE 4096 /* questions: what nobody asked for in so many makes room */

/* All that a copy depends on. */
typedef struct {
    uint64_t storage;
    int64_t dtype, offset, shape[4], strides[4], copy_strides[4];
} weight_key;

typedef struct {
    cuda_weights *table;
    dt_storage *copy;     /* NULL: only noted */
    uint64_t noted, used; /* the first and the last question */
} weight;

static void
drop_weight(void *value)
{
    weight *w = value;
    if (w->copy != NULL) {
        w->table->nbytes -= w->copy->nbytes;
        dt_storage_release(w->copy);
    }
    dt_free(w);
}

void
cuda_weights_open(cuda_weights *table, size_t memory)
{
    pthread_mutex_init(&table->lock, NULL);
    table->cache = (cuda_cache){.key_size = sizeof(weight_key), .limit = PLACES, .destroy = drop_weight};
    table->limit = table->most = memory / SHARE;
}

static weight_key
key_of(const dt_array *x, const int64_t *strides)
{
    weight_key key = {.storage = (uintptr_t)x->storage, .dtype = x->dtype, .offset = x->offset};
    memcpy(key.shape, x->shape, sizeof(key.shape));
    memcpy(key.strides, x->strides, sizeof(key.strides));
    memcpy(key.copy_strides, strides, sizeof(key.copy_strides));
    return key;
}

/* ---------------------------------------------------------------- the table, with its lock held */

/* The first question. Without memory for the note there will be another first one. */
static void
note_question(cuda_weights *table, const weight_key *key, dt_storage *storage)
{
    dt_error ignored;
    weight *w = dt_malloc(sizeof(*w));
    if (w != NULL) {
        *w = (weight){table, NULL, table->questions, table->questions};
        atomic_store(&storage->kept, true);
        (void)!cuda_cache_put(&table->cache, key, w, &ignored);
    }
}

static bool
is_stale(const void *ctx, const void *key, const void *value)
{
    const cuda_weights *table = ctx;
    const weight *w = value;
    (void)key;
    return table->questions - w->used >= STALE;
}

/* Whether nbytes more may be kept, after what is stale has gone. */
static bool
has_room(cuda_weights *table, size_t nbytes)
{
    if (table->nbytes + nbytes > table->limit && table->questions - table->swept >= STALE) {
        table->swept = table->questions;
        cuda_cache_remove_if(&table->cache, is_stale, table);
    }
    return table->nbytes + nbytes <= table->limit;
}

/* The copy, or NULL; and then, whether it is time to make one for the note of this question. */
static dt_storage *
ask(cuda_weights *table, const weight_key *key, dt_storage *storage, size_t nbytes, uint64_t *noted)
{
    *noted = 0;
    table->questions++;
    weight *w = cuda_cache_find(&table->cache, key);
    if (w == NULL) {
        note_question(table, key, storage);
        return NULL;
    }
    w->used = table->questions;
    if (w->copy == NULL) {
        *noted = has_room(table, nbytes) ? w->noted : 0;
        return NULL;
    }
    return dt_storage_retain(w->copy);
}

/* The note is gone, or a new one, if there was a write meanwhile. */
static void
keep(cuda_weights *table, const weight_key *key, uint64_t noted, dt_storage *copy)
{
    weight *w = cuda_cache_find(&table->cache, key);
    if (w != NULL && w->noted == noted && w->copy == NULL && has_room(table, copy->nbytes)) {
        w->copy = dt_storage_retain(copy);
        table->nbytes += copy->nbytes;
    }
}

/* ---------------------------------------------------------------- copies */

static bool
many_streams(void)
{
    return atomic_load_explicit(&cuda_many_streams, memory_order_acquire);
}

/* Another stream that finds the copy comes behind what this one has been sent. */
static void
note_use(const dt_array *copy, bool written)
{
    if (many_streams()) {
        const cuda_operands operands = {.array = {copy}, .written = {written}};
        cuda_note(&operands);
    }
}

static dt_status
order(const dt_array *copy, dt_error *err)
{
    const cuda_operands operands = {.array = {copy}};
    return many_streams() ? cuda_order(&operands, err) : DT_OK;
}

static dt_status
make_copy(cuda_device *d, const dt_array *x, dt_array *copy, dt_error *err)
{
    DT_TRY(dt_storage_new((dt_device){DT_CUDA, d->index}, dt_array_nbytes(x), &copy->storage, err));
    dt_status rc = cuda_copy_within(d, x, copy, err);
    if (rc == DT_OK) {
        note_use(copy, true);
    } else {
        dt_array_clear(copy);
    }
    return rc;
}

dt_status
cuda_weight_get(cuda_device *d, const dt_array *x, const int64_t *strides, dt_array *copy, dt_error *err)
{
    cuda_weights *table = &d->weights;
    uint64_t noted;
    *copy = *x;
    copy->storage = NULL;
    copy->node = NULL;
    copy->offset = 0;
    memcpy(copy->strides, strides, sizeof(copy->strides[0]) * x->ndim);
    if (!dt_storage_is_ours(x->storage)) {
        return DT_OK;
    }
    const weight_key key = key_of(x, strides);
    pthread_mutex_lock(&table->lock);
    copy->storage = ask(table, &key, x->storage, dt_array_nbytes(x), &noted);
    pthread_mutex_unlock(&table->lock);
    if (copy->storage != NULL) {
        dt_status rc = order(copy, err);
        if (rc != DT_OK) {
            dt_array_clear(copy);
        }
        return rc;
    }
    if (noted != 0) {
        DT_TRY(make_copy(d, x, copy, err));
        pthread_mutex_lock(&table->lock);
        keep(table, &key, noted, copy->storage);
        pthread_mutex_unlock(&table->lock);
    }
    return DT_OK;
}

void
cuda_weight_release(dt_array *copy)
{
    if (copy->storage != NULL) {
        note_use(copy, false);
        dt_array_clear(copy);
    }
}

/* ---------------------------------------------------------------- the end */

static bool
is_of(const void *storage, const void *key, const void *value)
{
    const weight_key *k = key;
    (void)value;
    return storage == NULL || k->storage == (uintptr_t)storage;
}

static void
forget(cuda_weights *table, const dt_storage *storage)
{
    pthread_mutex_lock(&table->lock);
    cuda_cache_remove_if(&table->cache, is_of, storage);
    pthread_mutex_unlock(&table->lock);
}

void
cuda_forget(dt_storage *storage)
{
    cuda_device *d = cuda_find(storage->device.index);
    atomic_store(&storage->kept, false);
    if (d != NULL) {
        forget(&d->weights, storage);
    }
}

/* By the user's word, who begins anew: so does what may be kept. */
void
cuda_weights_clear(cuda_device *d)
{
    cuda_weights *table = &d->weights;
    pthread_mutex_lock(&table->lock);
    table->limit = table->most;
    cuda_cache_remove_if(&table->cache, is_of, NULL);
    pthread_mutex_unlock(&table->lock);
}

/* Half of it may be too much as well, but a program near the limit must not meet it again and again. */
void
cuda_weights_yield(cuda_device *d)
{
    cuda_weights *table = &d->weights;
    pthread_mutex_lock(&table->lock);
    table->limit = table->nbytes > 0 ? table->nbytes / 2 : table->limit;
    cuda_cache_remove_if(&table->cache, is_of, NULL);
    pthread_mutex_unlock(&table->lock);
}

size_t
cuda_weights_kept(cuda_device *d)
{
    pthread_mutex_lock(&d->weights.lock);
    size_t nbytes = d->weights.nbytes;
    pthread_mutex_unlock(&d->weights.lock);
    return nbytes;
}
