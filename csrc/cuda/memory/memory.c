/* memory.c: the blocks of arrays and of temporaries. */
#include <string.h>

#include "memory.h"
#include "../ops/ops.h"
#include "../streams/stream.h"
#include "transfer.h"

/* With several streams a block is born with a note of the stream that it is for. */
static dt_status
note_birth(cuda_device *d, dt_storage *storage, dt_error *err)
{
    cuda_usage *usage = dt_block_new();
    if (usage == NULL) {
        return dt_fail_nomem(err, sizeof(*usage));
    }
    pthread_mutex_lock(&d->lock);
    *usage = (cuda_usage){.written = cuda_stamp(cuda_current(d))};
    pthread_mutex_unlock(&d->lock);
    storage->private = usage;
    return DT_OK;
}

dt_status
cuda_alloc(dt_storage *storage, dt_error *err)
{
    cuda_device *d;
    CUdeviceptr address = 0;
    DT_TRY(cuda_enter(storage->device.index, &d, err));
    if (storage->nbytes == 0) {
        return DT_OK;
    }
    DT_TRY(cuda_allocate(d, storage->nbytes, &address, err));
    dt_status rc = atomic_load_explicit(&d->many, memory_order_acquire) ? note_birth(d, storage, err) : DT_OK;
    if (rc != DT_OK) {
        cuda_release(d, address, storage->nbytes);
        return rc;
    }
    storage->data = (void *)(uintptr_t)address;
    return DT_OK;
}

void
cuda_free(dt_storage *storage)
{
    cuda_device *d = cuda_find(storage->device.index);
    if (d != NULL && DT_UNLIKELY(atomic_load_explicit(&storage->exported, memory_order_relaxed))) {
        cuda_follow_others(storage);
    }
    if (d != NULL) {
        cuda_release_used(d, (CUdeviceptr)(uintptr_t)storage->data, storage->nbytes, storage->private);
    }
    if (storage->private != NULL) {
        dt_block_free(storage->private);
    }
}

/* ---------------------------------------------------------------- temporaries */

typedef dt_status allocate_fn(cuda_device *device, size_t nbytes, CUdeviceptr *address, dt_error *err);

static dt_status
init_temporary(cuda_temporary *t, cuda_device *device, const dt_array *like, dt_dtype dtype, allocate_fn *allocate,
               dt_error *err)
{
    CUdeviceptr address;
    *t = CUDA_TEMPORARY_EMPTY;
    t->array.dtype = (uint8_t)dtype;
    t->array.ndim = like->ndim;
    memcpy(t->array.shape, like->shape, sizeof(like->shape));
    dt_array_set_contiguous(&t->array);
    size_t nbytes = dt_array_nbytes(&t->array);
    DT_TRY(allocate(device, nbytes, &address, err));
    atomic_init(&t->storage.refs, 1);
    t->storage.device = (dt_device){DT_CUDA, device->index};
    t->storage.nbytes = nbytes;
    t->storage.data = (void *)(uintptr_t)address;
    t->array.storage = &t->storage;
    return DT_OK;
}

dt_status
cuda_temporary_init(cuda_temporary *t, cuda_device *device, const dt_array *like, dt_dtype dtype, dt_error *err)
{
    return init_temporary(t, device, like, dtype, cuda_allocate, err);
}

dt_status
cuda_temporary_try(cuda_temporary *t, cuda_device *device, const dt_array *like, dt_dtype dtype, dt_error *err)
{
    return init_temporary(t, device, like, dtype, cuda_try_allocate, err);
}

void
cuda_temporary_clear(cuda_temporary *t)
{
    if (t->array.storage != NULL) {
        cuda_device *d = cuda_find(t->storage.device.index);
        if (d != NULL) {
            cuda_release(d, (CUdeviceptr)(uintptr_t)t->storage.data, t->storage.nbytes);
        }
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
