/* pinned.c: page-locked memory of the host. */
#include "cuda.h"

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
