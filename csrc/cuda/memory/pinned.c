/* pinned.c: page-locked memory of the host, cached: the driver takes milliseconds to lock pages, and stops every device
 * to unlock them. A block that is given back while copies run on it is used again when they are over. */
#define _POSIX_C_SOURCE 200809L
#include <time.h>

#include "pinned.h"
#include "memory.h"
#include "../ops/ops.h"

#define SMALLEST ((size_t)4096)
#define CLASSES_PER_DOUBLING 4
#define NCLASSES ((48 - 12) * CLASSES_PER_DOUBLING)
#define FREE_TO_KEEP ((size_t)256 << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cuda_pinned_block *free_blocks[NCLASSES], *busy_blocks; /* busy: given back while copies were running */
static cuda_host_stats stats;

/* ---------------------------------------------------------------- counters; the lock is held */

static void
add(cuda_host_count *c, size_t n)
{
    c->current += n;
    c->allocated += n;
    c->peak = c->current > c->peak ? c->current : c->peak;
}

static void
subtract(cuda_host_count *c, size_t n)
{
    c->current -= n;
    c->freed += n;
}

static double
microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static void
add_time(cuda_host_time *t, double elapsed)
{
    t->total += elapsed;
    t->max = elapsed > t->max ? elapsed : t->max;
    t->min = t->count == 0 || elapsed < t->min ? elapsed : t->min;
    t->count++;
}

void
cuda_host_memory(cuda_host_stats *out)
{
    *out = (cuda_host_stats){0};
    if (cuda_api_alive()) {
        pthread_mutex_lock(&lock);
        *out = stats;
        pthread_mutex_unlock(&lock);
    }
}

/* ---------------------------------------------------------------- from and to the driver; the lock is held */

/* Rounds up to one of four sizes between powers of two; returns the class, or -1 for what no machine has. */
static int
class_of(size_t nbytes, size_t *rounded)
{
    size_t power = SMALLEST;
    int class = 0;
    nbytes = nbytes > SMALLEST ? nbytes : SMALLEST;
    while (power <= nbytes / 2) {
        power *= 2;
        class += CLASSES_PER_DOUBLING;
    }
    size_t step = power / CLASSES_PER_DOUBLING, steps = (nbytes - power + step - 1) / step;
    *rounded = power + steps * step;
    class += (int)steps;
    return class < NCLASSES ? class : -1;
}

static dt_status
fail_out_of_pages(cuda_device *device, size_t nbytes, dt_error *err)
{
    const double gib = 1.0 / (1 << 30);
    size_t held = stats.allocated_bytes.current, used = stats.active_bytes.current;
    dt_fail(err, DT_EOUTOFMEMORY, "out-of-memory", NULL,
            "CUDA out of page-locked host memory. Tried to allocate %zu bytes (%.2f GiB); devtensor has %.2f GiB "
            "locked, of which %.2f GiB are in use and %.2f GiB are cached.",
            nbytes, (double)nbytes * gib, (double)held * gib, (double)used * gib, (double)(held - used) * gib);
    err->symbol = cuda_api_names[DT_API_cuMemHostAlloc];
    err->library_status = CUDA_ERROR_OUT_OF_MEMORY;
    err->device = (dt_device){DT_CUDA, device->index};
    err->requested = nbytes;
    return DT_EOUTOFMEMORY;
}

static dt_status
unlock_pages(cuda_device *device, int class, dt_error *err)
{
    cuda_pinned_block *b = free_blocks[class];
    double start = microseconds();
    CUDA_TRY(device, cuMemFreeHost, (b->data));
    add_time(&stats.free_time, microseconds() - start);
    free_blocks[class] = b->next;
    subtract(&stats.allocations, 1);
    subtract(&stats.allocated_bytes, b->nbytes);
    for (int i = 0; i < CUDA_NUSES; i++) {
        if (b->uses[i].event != NULL) {
            (void)cu.cuEventDestroy_v2(b->uses[i].event);
        }
    }
    pthread_mutex_destroy(&b->lock);
    dt_free(b);
    return DT_OK;
}

/* Gives free blocks back to the driver, the largest first, until at most `keep` bytes are locked. */
static dt_status
trim(cuda_device *device, size_t keep, dt_error *err)
{
    for (int class = NCLASSES - 1; class >= 0; class --) {
        while (free_blocks[class] != NULL && stats.allocated_bytes.current > keep) {
            DT_TRY(unlock_pages(device, class, err));
        }
    }
    return DT_OK;
}

/* More than a little above the most that was ever in use at once is not kept. */
static size_t
bytes_to_keep(size_t wanted)
{
    size_t used = stats.active_bytes.current + wanted;
    used = used > stats.active_bytes.peak ? used : stats.active_bytes.peak;
    return used + used / 8 > FREE_TO_KEEP ? used + used / 8 : FREE_TO_KEEP;
}

static dt_status
lock_pages(cuda_device *device, size_t nbytes, void **out, dt_error *err)
{
    size_t limit = bytes_to_keep(nbytes);
    void *data = NULL;
    DT_TRY(trim(device, limit > nbytes ? limit - nbytes : 0, err));
    double start = microseconds();
    int status = cu.cuMemHostAlloc(&data, nbytes, CU_MEMHOSTALLOC_PORTABLE);
    if (status == CUDA_ERROR_OUT_OF_MEMORY) {
        DT_TRY(trim(device, 0, err));
        status = cu.cuMemHostAlloc(&data, nbytes, CU_MEMHOSTALLOC_PORTABLE);
        if (status == CUDA_ERROR_OUT_OF_MEMORY) {
            return fail_out_of_pages(device, nbytes, err);
        }
    }
    DT_TRY(cuda_check(device, DT_API_cuMemHostAlloc, status, err));
    add_time(&stats.alloc_time, microseconds() - start);
    add(&stats.allocations, 1);
    add(&stats.allocated_bytes, nbytes);
    *out = data;
    return DT_OK;
}

dt_status
cuda_lock_pages(cuda_device *device, size_t nbytes, void **out, dt_error *err)
{
    pthread_mutex_lock(&lock);
    dt_status rc = lock_pages(device, nbytes, out, err);
    if (rc == DT_OK) {
        add(&stats.active_requests, 1);
        add(&stats.active_bytes, nbytes);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

/* ---------------------------------------------------------------- blocks */

static void
put_free(cuda_pinned_block *b)
{
    size_t rounded;
    int class = class_of(b->nbytes, &rounded);
    b->next = free_blocks[class];
    free_blocks[class] = b;
}

/* Blocks whose copies have ended become free. */
static void
reap(void)
{
    for (cuda_pinned_block **at = &busy_blocks; *at != NULL;) {
        cuda_pinned_block *b = *at;
        if (cuda_block_is_busy(b)) {
            at = &b->next;
        } else {
            *at = b->next;
            put_free(b);
        }
    }
}

/* Never waits: what still runs on the block goes on. */
static void
release_pinned(void *owner, void *data)
{
    cuda_pinned_block *b = owner;
    (void)data;
    if (b == NULL || !cuda_api_alive()) { /* in a child of fork it is not ours to use */
        return;
    }
    bool busy = cuda_block_abandon(b);
    pthread_mutex_lock(&lock);
    subtract(&stats.active_requests, 1);
    subtract(&stats.active_bytes, b->nbytes);
    if (b->lost) {
        /* nobody can tell when its memory may be used again */
    } else if (busy) {
        b->next = busy_blocks;
        busy_blocks = b;
    } else {
        put_free(b);
    }
    pthread_mutex_unlock(&lock);
}

static dt_status
block_new(cuda_device *device, size_t nbytes, cuda_pinned_block **out, dt_error *err)
{
    cuda_pinned_block *b = dt_calloc(1, sizeof(*b));
    if (b == NULL) {
        return dt_fail_nomem(err, sizeof(*b));
    }
    dt_status rc = lock_pages(device, nbytes, &b->data, err);
    if (rc != DT_OK) {
        dt_free(b);
        return rc;
    }
    b->nbytes = nbytes;
    pthread_mutex_init(&b->lock, NULL);
    *out = b;
    return DT_OK;
}

/* The lock is held. */
static dt_status
take_block(cuda_device *device, size_t nbytes, cuda_pinned_block **out, dt_error *err)
{
    size_t rounded;
    int class = class_of(nbytes, &rounded);
    if (class < 0) {
        return fail_out_of_pages(device, nbytes, err);
    }
    if (free_blocks[class] == NULL) {
        reap();
    }
    *out = free_blocks[class];
    if (*out != NULL) {
        free_blocks[class] = (*out)->next;
    } else {
        DT_TRY(block_new(device, rounded, out, err));
    }
    add(&stats.active_requests, 1);
    add(&stats.active_bytes, rounded);
    return DT_OK;
}

dt_status
cuda_alloc_pinned(dt_storage *storage, dt_error *err)
{
    cuda_device *device;
    cuda_pinned_block *b = NULL;
    DT_TRY(cuda_enter(dt_current_device(), &device, err));
    if (storage->nbytes > 0) {
        pthread_mutex_lock(&lock);
        dt_status rc = take_block(device, storage->nbytes, &b, err);
        pthread_mutex_unlock(&lock);
        DT_TRY(rc);
        storage->data = b->data;
    }
    storage->owner = b;
    storage->release_owner = release_pinned;
    return DT_OK;
}

dt_status
cuda_pinned_trim(cuda_device *device, dt_error *err)
{
    pthread_mutex_lock(&lock);
    reap();
    dt_status rc = trim(device, 0, err);
    pthread_mutex_unlock(&lock);
    return rc;
}

bool
cuda_is_pinned(const dt_array *a)
{
    return a->storage != NULL && a->storage->release_owner == release_pinned && a->storage->owner != NULL;
}
