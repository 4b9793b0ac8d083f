/* memory.c: memory of the device, from the driver's stream-ordered pool, and page-locked memory of the host. */
#include <string.h>

#include "cuda.h"

static dt_status
fail_out_of_memory(cuda_device *d, size_t nbytes, dt_error *err)
{
    size_t free_bytes = 0, total = 0;
    uint64_t reserved = 0;
    const double gib = 1.0 / (1 << 30);
    (void)cu.cuMemGetInfo_v2(&free_bytes, &total);
    (void)cu.cuMemPoolGetAttribute(d->pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved);
    size_t ours = d->allocated;
    dt_fail(
        err, DT_EOUTOFMEMORY, "out-of-memory", NULL,
        "CUDA out of memory. Tried to allocate %zu bytes (%.2f GiB) on cuda:%d, which has %.2f GiB in total, of which "
        "%.2f GiB are free; %.2f GiB are in use by devtensor and %.2f GiB are cached.",
        nbytes, (double)nbytes * gib, d->index, (double)total * gib, (double)free_bytes * gib, (double)ours * gib,
        reserved > ours ? (double)(reserved - ours) * gib : 0.0);
    err->symbol = cuda_api_names[DT_API_cuMemAllocAsync];
    err->library_status = CUDA_ERROR_OUT_OF_MEMORY;
    err->device = (dt_device){DT_CUDA, d->index};
    err->requested = nbytes;
    return DT_EOUTOFMEMORY;
}

dt_status
cuda_allocate(cuda_device *device, size_t nbytes, CUdeviceptr *address, dt_error *err)
{
    *address = 0;
    int status = cu.cuMemAllocAsync(address, nbytes, cuda_stream(device));
    if (status == CUDA_ERROR_OUT_OF_MEMORY) { /* give everything that is not in use back to the driver, once */
        DT_TRY(cuda_wait(device, err));
        CUDA_TRY(device, cuMemPoolTrimTo, (device->pool, 0));
        *address = 0;
        status = cu.cuMemAllocAsync(address, nbytes, cuda_stream(device));
        if (status == CUDA_ERROR_OUT_OF_MEMORY) {
            return fail_out_of_memory(device, nbytes, err);
        }
    }
    DT_TRY(cuda_check(device, DT_API_cuMemAllocAsync, status, err));
    size_t now = atomic_fetch_add(&device->allocated, nbytes) + nbytes, peak = device->peak;
    while (peak < now && !atomic_compare_exchange_weak(&device->peak, &peak, now)) {
    }
    return DT_OK;
}

void
cuda_release(cuda_device *device, CUdeviceptr address, size_t nbytes)
{
    if (address == 0) {
        return;
    }
    if (cu.cuMemFreeAsync(address, cuda_stream(device)) != 0 && cu.cuCtxSetCurrent(device->context) == 0) {
        (void)cu.cuMemFreeAsync(address, cuda_stream(device)); /* this thread may have had no context */
    }
    atomic_fetch_sub(&device->allocated, nbytes);
}

dt_status
cuda_alloc(dt_storage *storage, dt_error *err)
{
    cuda_device *d;
    CUdeviceptr address = 0;
    DT_TRY(cuda_enter(storage->device.index, &d, err));
    if (storage->nbytes > 0) {
        DT_TRY(cuda_allocate(d, storage->nbytes, &address, err));
    }
    storage->data = (void *)(uintptr_t)address;
    return DT_OK;
}

void
cuda_free(dt_storage *storage)
{
    cuda_device *d = cuda_find(storage->device.index);
    if (d != NULL) {
        cuda_release(d, (CUdeviceptr)(uintptr_t)storage->data, storage->nbytes);
    }
}

/* ---------------------------------------------------------------- temporaries */

dt_status
cuda_temporary_init(cuda_temporary *t, cuda_device *device, const dt_array *like, dt_dtype dtype, dt_error *err)
{
    CUdeviceptr address;
    *t = CUDA_TEMPORARY_EMPTY;
    t->array.dtype = (uint8_t)dtype;
    t->array.ndim = like->ndim;
    memcpy(t->array.shape, like->shape, sizeof(like->shape));
    dt_array_set_contiguous(&t->array);
    size_t nbytes = dt_array_nbytes(&t->array);
    DT_TRY(cuda_allocate(device, nbytes, &address, err));
    atomic_init(&t->storage.refs, 1);
    t->storage.device = (dt_device){DT_CUDA, device->index};
    t->storage.nbytes = nbytes;
    t->storage.data = (void *)(uintptr_t)address;
    t->array.storage = &t->storage;
    return DT_OK;
}

void
cuda_temporary_clear(cuda_temporary *t)
{
    if (t->array.storage != NULL) {
        cuda_free(&t->storage);
        t->array.storage = NULL;
    }
}

dt_status
cuda_contiguous(cuda_device *device, const dt_array *x, cuda_temporary *t, const dt_array **contiguous, dt_error *err)
{
    if (x->storage != NULL && dt_array_is_contiguous(x)) {
        *contiguous = x;
        return DT_OK;
    }
    DT_TRY(cuda_temporary_init(t, device, x, (dt_dtype)x->dtype, err));
    dt_status rc = cuda_copy_within(device, x, &t->array, err);
    if (rc != DT_OK) {
        cuda_temporary_clear(t);
        return rc;
    }
    *contiguous = &t->array;
    return DT_OK;
}

/* ---------------------------------------------------------------- page-locked memory */

#define ALL_DEVICES 31 /* the bit for every device from here on */

typedef struct {
    atomic_uint used_by; /* devices that may still be copying */
} pinned_owner;

static void
release_pinned(void *owner, void *data)
{
    pinned_owner *p = owner;
    unsigned used_by = p->used_by;
    int count = 0;
    if (cuda_api_alive()) {
        (void)cu.cuDeviceGetCount(&count);
        for (int i = 0; i < count; i++) {
            cuda_device *d = used_by >> (i < ALL_DEVICES ? i : ALL_DEVICES) & 1u ? cuda_find(i) : NULL;
            if (d != NULL && cu.cuCtxSetCurrent(d->context) == 0) {
                (void)cu.cuStreamSynchronize(cuda_stream(d));
            }
        }
        if (data != NULL) {
            (void)cu.cuMemFreeHost(data);
        }
    }
    dt_free(p);
}

dt_status
cuda_alloc_pinned(dt_storage *storage, dt_error *err)
{
    cuda_device *d;
    DT_TRY(cuda_enter(dt_current_device(), &d, err));
    pinned_owner *owner = dt_calloc(1, sizeof(*owner));
    if (owner == NULL) {
        return dt_fail_nomem(err, sizeof(*owner));
    }
    void *data = NULL;
    if (storage->nbytes > 0) {
        dt_status rc = CUDA_CALL(d, cuMemHostAlloc, (&data, storage->nbytes, CU_MEMHOSTALLOC_PORTABLE));
        if (rc != DT_OK) {
            dt_free(owner);
            return rc;
        }
    }
    storage->data = data;
    storage->owner = owner;
    storage->release_owner = release_pinned;
    return DT_OK;
}

bool
cuda_is_pinned(const dt_array *a)
{
    return a->storage != NULL && a->storage->release_owner == release_pinned;
}

void
cuda_pinned_in_use(const dt_array *a, const cuda_device *device)
{
    pinned_owner *owner = a->storage->owner;
    atomic_fetch_or(&owner->used_by, 1u << (device->index < ALL_DEVICES ? device->index : ALL_DEVICES));
}
