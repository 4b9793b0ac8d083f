/* memory.c: allocation, pools, page-locked memory, copies and fills. */
#include "sim.h"

#include <string.h>

typedef struct pinned {
    struct pinned *next;
    unsigned char *bytes;
    size_t nbytes;
    sim_histories histories;
} pinned;

static pinned *all_pinned;

sim_histories *
sim_pinned_histories(const void *memory, size_t nbytes, size_t *into)
{
    for (pinned *p = all_pinned; p != NULL; p = p->next) {
        *into = (uintptr_t)memory - (uintptr_t)p->bytes;
        if (*into < p->nbytes && nbytes <= p->nbytes - *into) {
            return &p->histories;
        }
    }
    return NULL;
}

bool
sim_is_pinned(const void *memory, size_t nbytes)
{
    size_t into;
    return sim_pinned_histories(memory, nbytes, &into) != NULL;
}

void
sim_pinned_forget(void)
{
    for (pinned *p = all_pinned; p != NULL; p = p->next) {
        sim_histories_clear(&p->histories);
    }
}

/* ---------------------------------------------------------------- device memory */

/* When the device is full, what is queued may free enough. */
static CUresult
allocate(sim_device *device, size_t nbytes, bool pooled, sim_block **block)
{
    CUresult status = sim_block_new(device, nbytes, pooled, block);
    if (status == CUDA_ERROR_OUT_OF_MEMORY) {
        status = sim_drain_device(device);
        if (status == CUDA_SUCCESS) {
            status = sim_block_new(device, nbytes, pooled, block);
        }
    }
    return status;
}

CUresult
sim_cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    sim_device *device;
    SIM_CLEAR(free_bytes);
    SIM_CLEAR(total_bytes);
    CUresult status = sim_current(&device);
    if (status == CUDA_SUCCESS && (free_bytes == NULL || total_bytes == NULL)) {
        status = CUDA_ERROR_INVALID_VALUE;
    }
    if (status == CUDA_SUCCESS) {
        *free_bytes = device->memory - device->used - device->pool_reserved;
        *total_bytes = device->memory;
    }
    return status;
}

CUresult
sim_cuMemAlloc_v2(CUdeviceptr *pointer, size_t nbytes)
{
    sim_device *device;
    sim_block *block;
    SIM_CLEAR(pointer);
    CUresult status = sim_current(&device);
    if (status == CUDA_SUCCESS && (pointer == NULL || nbytes == 0)) {
        status = CUDA_ERROR_INVALID_VALUE;
    }
    if (status == CUDA_SUCCESS) {
        status = allocate(device, nbytes, false, &block);
    }
    if (status == CUDA_SUCCESS) {
        sim_block_start(block);
        *pointer = sim_block_address(block);
    }
    return status;
}

/* Waits for the device, as the driver does. */
CUresult
sim_cuMemFree_v2(CUdeviceptr pointer)
{
    sim_device *device;
    CUresult status = sim_context(&device);
    if (status != CUDA_SUCCESS || pointer == 0) {
        return status;
    }
    sim_device *owner = sim_owner(pointer);
    sim_block *block = owner ? sim_block_at(owner, pointer) : NULL;
    if (block == NULL) {
        return device->sticky != CUDA_SUCCESS ? device->sticky : CUDA_ERROR_INVALID_VALUE;
    }
    status = sim_drain_device(owner);
    if (status == CUDA_SUCCESS || status == owner->sticky) {
        sim_race_host_drained_all(owner);
        sim_block_free(block);
    }
    return device->sticky != CUDA_SUCCESS ? device->sticky : status;
}

static CUresult
run_start(sim_device *device, const sim_item *item)
{
    (void)device;
    sim_block_start(item->starts);
    return CUDA_SUCCESS;
}

/* The block goes when its item does. */
static CUresult
run_free(sim_device *device, const sim_item *item)
{
    (void)device;
    return item->block->live ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
}

CUresult
sim_cuMemAllocAsync(CUdeviceptr *pointer, size_t nbytes, CUstream handle)
{
    sim_device *device;
    sim_stream *stream;
    sim_block *block;
    SIM_CLEAR(pointer);
    CUresult status = sim_current(&device);
    if (status == CUDA_SUCCESS && pointer == NULL) {
        status = CUDA_ERROR_INVALID_VALUE;
    }
    if (status == CUDA_SUCCESS) {
        status = sim_stream_find(device, handle, &stream);
    }
    if (status == CUDA_SUCCESS && nbytes > 0) {
        status = allocate(device, nbytes, true, &block);
    }
    if (status != CUDA_SUCCESS || nbytes == 0) {
        return status;
    }
    sim_item item = {.run = run_start, .starts = block};
    const sim_touch touch = {sim_block_address(block), nbytes, true};
    status = sim_enqueue_work(stream, &item, "allocation", &touch, 1);
    if (status == CUDA_SUCCESS) {
        *pointer = sim_block_address(block);
    } else {
        sim_block_free(block);
    }
    return status;
}

CUresult
sim_cuMemFreeAsync(CUdeviceptr pointer, CUstream handle)
{
    sim_device *device;
    sim_stream *stream;
    CUresult status = sim_context(&device);
    if (status == CUDA_SUCCESS) {
        status = sim_stream_find(device, handle, &stream);
    }
    if (status != CUDA_SUCCESS) {
        return status;
    }
    sim_block *block = sim_block_at(device, pointer);
    if (device->sticky != CUDA_SUCCESS) {
        if (block != NULL) {
            sim_block_free(block);
        }
        return device->sticky;
    }
    if (block == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_item item = {.run = run_free, .block = block};
    const sim_touch touch = {pointer, block->nbytes, true};
    status = sim_enqueue_work(stream, &item, "release", &touch, 1);
    block->freeing = status == CUDA_SUCCESS;
    return status;
}

/* ---------------------------------------------------------------- the pool */

CUresult
sim_cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
    CUresult status = sim_ready();
    if (status != CUDA_SUCCESS) {
        return status;
    }
    if (pool == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (device < 0 || device >= sim_ndevices) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *pool = sim_devices[device].pool;
    return CUDA_SUCCESS;
}

static CUresult
find_pool(CUmemoryPool pool, const void *argument, sim_device **device)
{
    CUresult status = sim_ready();
    if (status != CUDA_SUCCESS) {
        return status;
    }
    *device = sim_handle_get(SIM_POOL, pool);
    return *device == NULL || argument == NULL ? CUDA_ERROR_INVALID_VALUE : (*device)->sticky;
}

CUresult
sim_cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    sim_device *device;
    CUresult status = find_pool(pool, value, &device);
    if (status != CUDA_SUCCESS) {
        return status;
    }
    uint64_t number;
    memcpy(&number, value, sizeof(number));
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
        device->release_threshold = number;
    } else if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH && number == 0) {
        device->pool_reserved_high = device->pool_reserved;
    } else if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH && number == 0) {
        device->pool_used_high = device->pool_used;
    } else {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult
sim_cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    sim_device *device;
    CUresult status = find_pool(pool, value, &device);
    if (status != CUDA_SUCCESS) {
        return status;
    }
    uint64_t number;
    switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        number = device->release_threshold;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        number = device->pool_reserved;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        number = device->pool_reserved_high;
        break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        number = device->pool_used;
        break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        number = device->pool_used_high;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(value, &number, sizeof(number));
    return CUDA_SUCCESS;
}

CUresult
sim_cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
    sim_device *device;
    CUresult status = find_pool(pool, pool, &device);
    if (status == CUDA_SUCCESS) {
        sim_pool_trim(device, keep);
    }
    return status;
}

/* ---------------------------------------------------------------- page-locked memory */

CUresult
sim_cuMemHostAlloc(void **pointer, size_t nbytes, unsigned flags)
{
    sim_device *device;
    SIM_CLEAR(pointer);
    CUresult status = sim_current(&device);
    if (status != CUDA_SUCCESS) {
        return status;
    }
    if (pointer == NULL || flags > 7) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (nbytes == 0) {
        return CUDA_SUCCESS;
    }
    pinned *p = dt_malloc(sizeof(*p));
    unsigned char *bytes = p ? dt_malloc_aligned(nbytes) : NULL;
    if (bytes == NULL) {
        dt_free(p);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memset(bytes, 0xff, nbytes);
    *p = (pinned){.next = all_pinned, .bytes = bytes, .nbytes = nbytes};
    sim_histories_init(&p->histories, nbytes);
    all_pinned = p;
    *pointer = bytes;
    return CUDA_SUCCESS;
}

/* Waits for all devices: any may have a copy of these bytes in its queues. */
CUresult
sim_cuMemFreeHost(void *pointer)
{
    sim_device *device;
    CUresult status = sim_context(&device);
    if (status != CUDA_SUCCESS || pointer == NULL) {
        return status;
    }
    pinned **link = &all_pinned;
    while (*link != NULL && (*link)->bytes != pointer) {
        link = &(*link)->next;
    }
    if (*link == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (int i = 0; i < sim_ndevices; i++) {
        if (sim_devices[i].context != NULL && sim_drain_device(&sim_devices[i]) == CUDA_ERROR_OUT_OF_MEMORY) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        if (sim_devices[i].context != NULL) {
            sim_race_host_drained_all(&sim_devices[i]);
        }
    }
    pinned *p = *link;
    *link = p->next;
    sim_histories_clear(&p->histories);
    dt_free(p->bytes);
    dt_free(p);
    return device->sticky;
}

/* ---------------------------------------------------------------- copies and fills */

static CUresult
run_to_device(sim_device *device, const sim_item *item)
{
    void *target;
    CUresult status = sim_resolve(device, item->target, item->nbytes, &target);
    if (status == CUDA_SUCCESS) {
        memcpy(target, item->what, item->nbytes);
    }
    return status;
}

static CUresult
run_to_host(sim_device *device, const sim_item *item)
{
    void *source;
    CUresult status = sim_resolve(device, item->source, item->nbytes, &source);
    if (status == CUDA_SUCCESS) {
        memcpy((void *)(uintptr_t)item->target, source, item->nbytes);
    }
    return status;
}

static CUresult
run_between(sim_device *device, const sim_item *item)
{
    void *source, *target;
    (void)device;
    CUresult status = sim_resolve(sim_owner(item->source), item->source, item->nbytes, &source);
    if (status == CUDA_SUCCESS) {
        status = sim_resolve(sim_owner(item->target), item->target, item->nbytes, &target);
    }
    if (status == CUDA_SUCCESS) {
        memmove(target, source, item->nbytes);
    }
    return status;
}

static CUresult
run_fill(sim_device *device, const sim_item *item)
{
    void *target;
    CUresult status = sim_resolve(device, item->target, item->nbytes, &target);
    if (status == CUDA_SUCCESS) {
        memset(target, (int)item->source, item->nbytes);
    }
    return status;
}

CUresult
sim_enqueue_fill(sim_stream *stream, uint64_t address, unsigned char value, size_t nbytes)
{
    const sim_item item = {.run = run_fill, .target = address, .source = value, .nbytes = nbytes};
    const sim_touch touch = {address, nbytes, true};
    return sim_enqueue_work(stream, &item, "fill", &touch, 1);
}

static CUresult
find_stream(CUstream handle, sim_device **device, sim_stream **stream)
{
    CUresult status = sim_current(device);
    return status == CUDA_SUCCESS ? sim_stream_find(*device, handle, stream) : status;
}

/* From page-locked memory the bytes are read when the copy runs, from other memory now. */
CUresult
sim_cuMemcpyHtoDAsync_v2(CUdeviceptr target, const void *source, size_t nbytes, CUstream handle)
{
    sim_device *device;
    sim_stream *stream;
    CUresult status = find_stream(handle, &device, &stream);
    if (status != CUDA_SUCCESS || nbytes == 0) {
        return status;
    }
    if (source == NULL || sim_owner((uint64_t)(uintptr_t)source) != NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    status = sim_check_range(device, target, nbytes);
    if (status != CUDA_SUCCESS) {
        return status;
    }
    sim_item item = {.run = run_to_device, .target = target, .what = source, .nbytes = nbytes};
    if (!sim_is_pinned(source, nbytes)) {
        item.what = item.held = dt_malloc(nbytes);
        if (item.held == NULL) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        memcpy(item.held, source, nbytes);
    } else if (sim_race_host_is_behind_writes(source, nbytes)) {
        item.digest = sim_race_digest(source, nbytes);
        item.place = sim_race_place();
    }
    const sim_touch touches[] = {{target, nbytes, true}, {(uint64_t)(uintptr_t)source, nbytes, false}};
    status = sim_enqueue_work(stream, &item, "copy to the device", touches, item.held == NULL ? 2 : 1);
    if (status != CUDA_SUCCESS) {
        dt_free(item.held);
    }
    return status;
}

/* To memory that is not page-locked the copy is complete on return. */
CUresult
sim_cuMemcpyDtoHAsync_v2(void *target, CUdeviceptr source, size_t nbytes, CUstream handle)
{
    sim_device *device;
    sim_stream *stream;
    CUresult status = find_stream(handle, &device, &stream);
    if (status != CUDA_SUCCESS || nbytes == 0) {
        return status;
    }
    if (target == NULL || sim_owner((uint64_t)(uintptr_t)target) != NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    status = sim_check_range(device, source, nbytes);
    if (status != CUDA_SUCCESS) {
        return status;
    }
    sim_item item = {.run = run_to_host, .target = (uint64_t)(uintptr_t)target, .source = source, .nbytes = nbytes};
    const sim_touch touches[] = {{source, nbytes, false}, {item.target, nbytes, true}};
    if (sim_is_pinned(target, nbytes)) {
        return sim_enqueue_work(stream, &item, "copy to the host", touches, 2);
    }
    status = sim_race_check(stream, "copy to the host", touches, 1);
    if (status == CUDA_SUCCESS) {
        status = sim_settle(stream);
    }
    if (status == CUDA_SUCCESS) {
        sim_race_note(stream, "copy to the host", touches, 1);
        sim_race_host_drained(stream);
        status = run_to_host(device, &item);
        sim_check_touched();
        if (status != CUDA_SUCCESS) {
            sim_poison(device, status);
        }
    }
    return status;
}

/* A copy whose ends overlap is undefined on a real device, and refused here; onto itself it does nothing. */
static CUresult
enqueue_between(sim_stream *stream, CUdeviceptr target, CUdeviceptr source, size_t nbytes)
{
    uint64_t apart = source > target ? source - target : target - source;
    if (apart > 0 && apart < nbytes) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const sim_item item = {.run = run_between, .target = target, .source = source, .nbytes = nbytes};
    const sim_touch touches[] = {{target, nbytes, true}, {source, nbytes, false}};
    return sim_enqueue_work(stream, &item, "copy on the device", touches, 2);
}

CUresult
sim_cuMemcpyDtoDAsync_v2(CUdeviceptr target, CUdeviceptr source, size_t nbytes, CUstream handle)
{
    sim_device *device;
    sim_stream *stream;
    CUresult status = find_stream(handle, &device, &stream);
    if (status == CUDA_SUCCESS) {
        status = sim_check_range(device, target, nbytes);
    }
    if (status == CUDA_SUCCESS) {
        status = sim_check_range(device, source, nbytes);
    }
    if (status != CUDA_SUCCESS || nbytes == 0) {
        return status;
    }
    return enqueue_between(stream, target, source, nbytes);
}

CUresult
sim_cuMemcpyPeerAsync(CUdeviceptr target, CUcontext target_context, CUdeviceptr source, CUcontext source_context,
                      size_t nbytes, CUstream handle)
{
    sim_device *device;
    sim_stream *stream;
    CUresult status = find_stream(handle, &device, &stream);
    if (status != CUDA_SUCCESS) {
        return status;
    }
    sim_device *to = sim_handle_get(SIM_CONTEXT, target_context), *from = sim_handle_get(SIM_CONTEXT, source_context);
    if (to == NULL || from == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (to->sticky != CUDA_SUCCESS || from->sticky != CUDA_SUCCESS) {
        return to->sticky != CUDA_SUCCESS ? to->sticky : from->sticky;
    }
    if (sim_check_range(to, target, nbytes) != CUDA_SUCCESS || sim_check_range(from, source, nbytes) != CUDA_SUCCESS) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return nbytes == 0 ? CUDA_SUCCESS : enqueue_between(stream, target, source, nbytes);
}

CUresult
sim_cuMemsetD8Async(CUdeviceptr pointer, unsigned char value, size_t nbytes, CUstream handle)
{
    sim_device *device;
    sim_stream *stream;
    CUresult status = find_stream(handle, &device, &stream);
    if (status == CUDA_SUCCESS) {
        status = sim_check_range(device, pointer, nbytes);
    }
    if (status != CUDA_SUCCESS || nbytes == 0) {
        return status;
    }
    return sim_enqueue_fill(stream, pointer, value, nbytes);
}
