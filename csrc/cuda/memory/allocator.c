/* allocator.c: memory of the device. Blocks come from the driver's stream-ordered pool and are kept when they are
 * released, by size class, so that a program that repeats itself makes no call to the driver.
 *
 * A kept block remembers where it was used last. On the stream that used it, it is ready at once; another stream waits
 * for those uses before it touches the block, by the same notes that order arrays (order.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../core/environment.h"
#include "memory.h"
#include "../streams/stream.h"
#include "../conv/weights.h"

#define GRANULE 512              /* every size is a multiple */
#define FINE 3                   /* 1 << FINE classes for each power of two, the smallest of them GRANULE apart */
#define LARGE ((size_t)64 << 20) /* blocks from here on are only rounded to the driver's pages, and share a class */
#define PAGE ((size_t)2 << 20)
#define LOOK 32 /* blocks that are looked at for one that needs no waiting */

/* ---------------------------------------------------------------- size classes */

/* The class of nbytes > 0, and the size of a block for it: at most an eighth more, or GRANULE. */
static unsigned
class_of(size_t nbytes, size_t *size)
{
    if (nbytes > LARGE) {
        *size = nbytes + (PAGE - nbytes % PAGE) % PAGE;
        return CUDA_SIZE_CLASSES - 1;
    }
    size_t last = (nbytes - 1) / GRANULE; /* of the granules, from 0 */
    if (last < (size_t)1 << FINE) {
        *size = (last + 1) * GRANULE;
        return (unsigned)last;
    }
    unsigned shift = 63u - (unsigned)__builtin_clzll(last) - FINE;
    size_t step = last >> shift; /* 1 << FINE to (2 << FINE) - 1 */
    *size = ((step + 1) << shift) * GRANULE;
    return (shift << FINE) + (unsigned)step;
}

/* ---------------------------------------------------------------- counting, with the lock held */

static void
raise_to(size_t *peak, size_t now)
{
    *peak = *peak < now ? now : *peak;
}

static void
count_use(cuda_memory *m, size_t nbytes, size_t size)
{
    m->stats.requested += nbytes;
    m->stats.allocated += size;
    m->stats.in_use++;
    m->stats.allocations++;
    raise_to(&m->stats.requested_peak, m->stats.requested);
    raise_to(&m->stats.allocated_peak, m->stats.allocated);
}

/* ---------------------------------------------------------------- out of memory */

static dt_status
fail_out_of_memory(cuda_device *d, size_t nbytes, dt_error *err)
{
    size_t free_bytes = 0, total = 0;
    char limit[96] = "";
    const double gib = 1.0 / (1 << 30);
    cuda_memory_stats m;
    (void)cu.cuMemGetInfo_v2(&free_bytes, &total);
    pthread_mutex_lock(&d->lock);
    d->memory.stats.failures++;
    m = d->memory.stats;
    pthread_mutex_unlock(&d->lock);
    if (m.limit != SIZE_MAX) {
        snprintf(limit, sizeof(limit), " set_per_process_memory_fraction() allows %.2f GiB.", (double)m.limit * gib);
    }
    dt_fail(
        err, DT_EOUTOFMEMORY, "out-of-memory", NULL,
        "CUDA out of memory. Tried to allocate %zu bytes (%.2f GiB) on cuda:%d, which has %.2f GiB in total, of which "
        "%.2f GiB are free; %.2f GiB are in use by devtensor and %.2f GiB are cached.%s",
        nbytes, (double)nbytes * gib, d->index, (double)total * gib, (double)free_bytes * gib,
        (double)m.allocated * gib, (double)(m.reserved - m.allocated) * gib, limit);
    err->symbol = cuda_api_names[DT_API_cuMemAllocAsync];
    err->library_status = CUDA_ERROR_OUT_OF_MEMORY;
    err->device = (dt_device){DT_CUDA, d->index};
    err->requested = nbytes;
    return DT_EOUTOFMEMORY;
}

/* ---------------------------------------------------------------- the driver */

/* Gives one block back after all that was sent to queue; *status: the driver's answer. */
static int
free_to_driver(cuda_device *d, CUdeviceptr address, CUstream stream)
{
    int status = cu.cuMemFreeAsync(address, stream);
    if (status != 0 && cu.cuCtxSetCurrent(d->context) == 0) { /* this thread may have had no context */
        status = cu.cuMemFreeAsync(address, stream);
    }
    return status;
}

/* Takes all blocks out of the cache, as one list. */
static cuda_block *
take_all(cuda_device *d)
{
    cuda_block *all = NULL;
    for (unsigned i = 0; i < CUDA_SIZE_CLASSES; i++) {
        while (d->memory.blocks[i] != NULL) {
            cuda_block *block = d->memory.blocks[i];
            d->memory.blocks[i] = block->next;
            block->next = all;
            all = block;
        }
    }
    return all;
}

/* No work uses the blocks any more. Stops at the first that the driver refuses. */
static dt_status
free_all(cuda_device *d, cuda_block **all, dt_error *err)
{
    while (*all != NULL) {
        cuda_block *block = *all;
        CUDA_TRY(d, cuMemFreeAsync, (block->address, d->stream));
        *all = block->next;
        pthread_mutex_lock(&d->lock);
        d->memory.stats.reserved -= block->size;
        d->memory.stats.driver_frees++;
        pthread_mutex_unlock(&d->lock);
        dt_block_free(block);
    }
    CUDA_TRY(d, cuStreamSynchronize, (d->stream));
    CUDA_TRY(d, cuMemPoolTrimTo, (d->pool, 0));
    return DT_OK;
}

dt_status
cuda_give_back(cuda_device *device, dt_error *err)
{
    cuda_weights_yield(device);
    pthread_mutex_lock(&device->lock);
    cuda_block *all = take_all(device);
    pthread_mutex_unlock(&device->lock);
    dt_status rc = cuda_wait_all(device, err);
    if (rc == DT_OK) {
        rc = free_all(device, &all, err);
    }
    pthread_mutex_lock(&device->lock);
    while (all != NULL) { /* what could not go stays */
        cuda_block *block = all;
        size_t size;
        all = block->next;
        cuda_block **list = &device->memory.blocks[class_of(block->size, &size)];
        block->next = *list;
        *list = block;
    }
    pthread_mutex_unlock(&device->lock);
    return rc;
}

/* Whether the process may take so much more. The driver is not asked for more than the device has: before it refuses it
 * may take all that is free, and other processes find none meanwhile. */
static bool
reserve(cuda_device *d, size_t size)
{
    cuda_memory *m = &d->memory;
    pthread_mutex_lock(&d->lock);
    size_t most = m->stats.limit < d->total_memory ? m->stats.limit : d->total_memory;
    bool fits = m->stats.reserved <= most && size <= most - m->stats.reserved;
    m->stats.reserved += fits ? size : 0;
    pthread_mutex_unlock(&d->lock);
    return fits;
}

static int
take_from_driver(cuda_device *d, size_t size, CUdeviceptr *address)
{
    *address = 0;
    if (!reserve(d, size)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    int status = cu.cuMemAllocAsync(address, size, cuda_stream(d));
    pthread_mutex_lock(&d->lock);
    if (status != 0) {
        d->memory.stats.reserved -= size;
    } else {
        d->memory.stats.driver_allocations++;
        raise_to(&d->memory.stats.reserved_peak, d->memory.stats.reserved);
    }
    pthread_mutex_unlock(&d->lock);
    return status;
}

/* Before a second and last try at an allocation that failed. */
static dt_status
make_room(cuda_device *d, dt_error *err)
{
    pthread_mutex_lock(&d->lock);
    d->memory.stats.retries++;
    pthread_mutex_unlock(&d->lock);
    return cuda_give_back(d, err);
}

static dt_status
allocate_from_driver(cuda_device *d, size_t nbytes, size_t size, bool free_alone, CUdeviceptr *address, dt_error *err)
{
    int status = take_from_driver(d, size, address);
    if (status == CUDA_ERROR_OUT_OF_MEMORY && free_alone) {
        return DT_EOUTOFMEMORY;
    }
    if (status == CUDA_ERROR_OUT_OF_MEMORY) {
        DT_TRY(make_room(d, err));
        status = take_from_driver(d, size, address);
        if (status == CUDA_ERROR_OUT_OF_MEMORY) {
            return fail_out_of_memory(d, nbytes, err);
        }
    }
    return cuda_check(d, DT_API_cuMemAllocAsync, status, err);
}

dt_status
cuda_allocate_uncounted(cuda_device *device, size_t nbytes, CUdeviceptr *address, dt_error *err)
{
    int status = cu.cuMemAllocAsync(address, nbytes, cuda_stream(device));
    if (status == CUDA_ERROR_OUT_OF_MEMORY) {
        DT_TRY(make_room(device, err));
        status = cu.cuMemAllocAsync(address, nbytes, cuda_stream(device));
        if (status == CUDA_ERROR_OUT_OF_MEMORY) {
            return fail_out_of_memory(device, nbytes, err);
        }
    }
    return cuda_check(device, DT_API_cuMemAllocAsync, status, err);
}

/* ---------------------------------------------------------------- the cache, with the lock held */

static bool
is_ready(const cuda_queue *queue, const cuda_usage *usage)
{
    bool ready = cuda_passed(queue, usage->written);
    for (unsigned i = 0; i < usage->nread && ready; i++) {
        ready = cuda_passed(queue, usage->read[i]);
    }
    return ready;
}

/* A block of this size for the current stream: the latest that needs no waiting. Where all need it, the oldest of those
 * looked at, if it is better to wait than to have more memory: each stream in use may have two small blocks. */
static dt_status
find_block(cuda_device *d, unsigned class, size_t size, cuda_block ***found, dt_error *err)
{
    bool many = atomic_load_explicit(&d->many, memory_order_relaxed);
    const cuda_queue *queue = many ? cuda_current(d) : NULL;
    int n = 0;
    *found = NULL;
    for (cuda_block **link = &d->memory.blocks[class]; *link != NULL && n < LOOK; link = &(*link)->next) {
        if ((*link)->size != size) {
            continue;
        }
        *found = link;
        n++;
        if (!many || is_ready(queue, &(*link)->usage)) {
            return DT_OK;
        }
    }
    int enough = 2 * (d->nused + 1);
    if (n < (enough < LOOK ? enough : LOOK) && (size_t)n * size < LARGE) {
        *found = NULL;
    }
    return *found == NULL ? DT_OK : cuda_wait_for_usage(cuda_current(d), &(**found)->usage, err);
}

/* *address stays 0 when there is none. */
static dt_status
take_from_cache(cuda_device *d, size_t nbytes, unsigned class, size_t size, CUdeviceptr *address, dt_error *err)
{
    cuda_block **link;
    pthread_mutex_lock(&d->lock);
    dt_status rc = find_block(d, class, size, &link, err);
    if (rc == DT_OK && link != NULL) {
        cuda_block *block = *link;
        *link = block->next;
        *address = block->address;
        block->next = d->memory.spare;
        d->memory.spare = block;
        d->memory.stats.hits++;
        count_use(&d->memory, nbytes, size);
    }
    pthread_mutex_unlock(&d->lock);
    return rc;
}

static void
put_into_cache(cuda_device *d, CUdeviceptr address, size_t nbytes, const cuda_usage *usage)
{
    size_t size;
    unsigned class = class_of(nbytes, &size);
    cuda_block *block = d->memory.spare;
    d->memory.spare = block->next;
    block->address = address;
    block->size = size;
    block->usage = *usage;
    block->next = d->memory.blocks[class];
    d->memory.blocks[class] = block;
}

void
cuda_memory_mark(cuda_device *device)
{
    cuda_mark now = cuda_stamp(device->queues[0]);
    for (unsigned i = 0; i < CUDA_SIZE_CLASSES; i++) {
        for (cuda_block *block = device->memory.blocks[i]; block != NULL; block = block->next) {
            block->usage = (cuda_usage){.written = now};
        }
    }
}

/* ---------------------------------------------------------------- allocation and release */

static dt_status
allocate(cuda_device *device, size_t nbytes, bool free_alone, CUdeviceptr *address, dt_error *err)
{
    size_t size = nbytes;
    cuda_block *spare = NULL;
    *address = 0;
    if (nbytes == 0) { /* no block: address 0, which cuda_release passes over */
        return DT_OK;
    }
    if (device->memory.cached) {
        unsigned class = class_of(nbytes, &size);
        DT_TRY(take_from_cache(device, nbytes, class, size, address, err));
        if (*address != 0) {
            cuda_fill_again(device, *address, nbytes);
            return DT_OK;
        }
        spare = dt_block_new();
        if (spare == NULL) {
            return dt_fail_nomem(err, sizeof(*spare));
        }
    }
    dt_status rc = allocate_from_driver(device, nbytes, size, free_alone, address, err);
    if (rc != DT_OK) {
        if (spare != NULL) {
            dt_block_free(spare);
        }
        return rc;
    }
    pthread_mutex_lock(&device->lock);
    if (spare != NULL) {
        spare->next = device->memory.spare;
        device->memory.spare = spare;
    }
    count_use(&device->memory, nbytes, size);
    pthread_mutex_unlock(&device->lock);
    return DT_OK;
}

dt_status
cuda_allocate(cuda_device *device, size_t nbytes, CUdeviceptr *address, dt_error *err)
{
    dt_status rc = allocate(device, nbytes, false, address, err);
    cuda_use_afresh(*address, rc == DT_OK ? nbytes : 0);
    return rc;
}

dt_status
cuda_try_allocate(cuda_device *device, size_t nbytes, CUdeviceptr *address, dt_error *err)
{
    return allocate(device, nbytes, true, address, err);
}

/* Without the cache: after everyone who used the block. Where that cannot be said to the driver, the host waits. */
static void
free_in_order(cuda_device *d, CUdeviceptr address, const cuda_usage *usage)
{
    dt_error ignored;
    if (usage->written.seq != 0) {
        cuda_device *same;
        dt_status rc = cuda_enter(d->index, &same, &ignored);
        pthread_mutex_lock(&d->lock);
        rc = rc == DT_OK ? cuda_wait_for_usage(cuda_current(d), usage, &ignored) : rc;
        pthread_mutex_unlock(&d->lock);
        if (rc != DT_OK) {
            (void)cu.cuCtxSynchronize();
        }
    }
    if (free_to_driver(d, address, cuda_stream(d)) == 0) {
        pthread_mutex_lock(&d->lock);
        d->memory.stats.driver_frees++;
        pthread_mutex_unlock(&d->lock);
    }
}

/* usage is complete. */
static void
release(cuda_device *d, CUdeviceptr address, size_t nbytes, const cuda_usage *usage)
{
    cuda_memory *m = &d->memory;
    size_t size = nbytes;
    if (m->cached) {
        (void)class_of(nbytes, &size);
        put_into_cache(d, address, nbytes, usage);
    } else {
        m->stats.reserved -= size;
    }
    m->stats.requested -= nbytes;
    m->stats.allocated -= size;
    m->stats.in_use--;
}

/* What a block without notes was used by: what the default stream, or this thread's, was sent so far. */
static cuda_usage
used_by(cuda_device *d, const cuda_usage *usage, bool by_this_thread)
{
    if (!atomic_load_explicit(&d->many, memory_order_relaxed)) {
        return (cuda_usage){0};
    }
    return usage != NULL ? *usage
                         : (cuda_usage){.written = cuda_stamp(by_this_thread ? cuda_current(d) : d->queues[0])};
}

static void
release_block(cuda_device *d, CUdeviceptr address, size_t nbytes, const cuda_usage *known, bool by_this_thread)
{
    if (address == 0) {
        return;
    }
    pthread_mutex_lock(&d->lock);
    cuda_usage usage = used_by(d, known, by_this_thread);
    release(d, address, nbytes, &usage);
    pthread_mutex_unlock(&d->lock);
    if (!d->memory.cached) {
        free_in_order(d, address, &usage);
    }
}

void
cuda_release(cuda_device *device, CUdeviceptr address, size_t nbytes)
{
    release_block(device, address, nbytes, NULL, true);
}

void
cuda_release_used(cuda_device *device, CUdeviceptr address, size_t nbytes, const cuda_usage *usage)
{
    release_block(device, address, nbytes, usage, false);
}

/* ---------------------------------------------------------------- settings and statistics */

void
cuda_memory_open(cuda_device *device)
{
    device->memory.cached = dt_environment_word(DT_ENV_CUDA_CACHE, 1) != 0;
    device->memory.stats.limit = SIZE_MAX;
}

void
cuda_memory_read(cuda_device *device, cuda_memory_stats *out)
{
    pthread_mutex_lock(&device->lock);
    *out = device->memory.stats;
    pthread_mutex_unlock(&device->lock);
}

void
cuda_memory_reset_peak(cuda_device *device)
{
    cuda_memory *m = &device->memory;
    pthread_mutex_lock(&device->lock);
    m->stats.requested_peak = m->stats.requested;
    m->stats.allocated_peak = m->stats.allocated;
    m->stats.reserved_peak = m->stats.reserved;
    pthread_mutex_unlock(&device->lock);
}

dt_status
cuda_memory_limit(cuda_device *device, double fraction, dt_error *err)
{
    if (!(fraction >= 0 && fraction <= 1)) {
        return dt_fail(err, DT_EVALUE, "invalid-argument", "set_per_process_memory_fraction",
                       "set_per_process_memory_fraction(): the fraction must be from 0 to 1, got %g", fraction);
    }
    pthread_mutex_lock(&device->lock);
    device->memory.stats.limit = fraction == 1 ? SIZE_MAX : (size_t)((double)device->total_memory * fraction);
    pthread_mutex_unlock(&device->lock);
    return DT_OK;
}
