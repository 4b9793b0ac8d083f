/* storage.c: one counted block of memory, and the one path on which it is released. */
#include "devtensor.h"

#include <string.h>

/* Blocks of the host this small live behind the header, in one allocation. */
#define INLINE_BYTES 256

typedef struct {
    dt_storage storage;
    _Alignas(16) unsigned char bytes[];
} inline_storage;

static void
release_inline(void *owner, void *data)
{
    (void)owner;
    (void)data;
}

static void
storage_init(dt_storage *s, const dt_backend *backend, dt_device device, size_t nbytes)
{
    atomic_init(&s->refs, 1);
    s->backend = backend;
    s->device = device;
    s->flags = 0;
    s->nbytes = nbytes;
    s->data = NULL;
    s->owner = NULL;
    s->release_owner = NULL;
    s->private = NULL;
}

dt_status
dt_storage_new(dt_device device, size_t nbytes, dt_storage **out, dt_error *err)
{
    const dt_backend *backend;
    DT_TRY(dt_backend_for(device, &backend, err));
    bool small = device.type == DT_CPU && nbytes <= INLINE_BYTES;
    size_t size = small ? sizeof(inline_storage) + nbytes : sizeof(dt_storage);
    dt_storage *s = dt_malloc(size);
    if (s == NULL) {
        return dt_fail_nomem(err, size);
    }
    storage_init(s, backend, device, nbytes);
    if (small) {
        s->data = ((inline_storage *)(void *)s)->bytes;
        s->release_owner = release_inline;
    } else {
        dt_status rc = backend->alloc(s, err);
        if (rc != DT_OK) {
            dt_free(s);
            return rc;
        }
        DT_COUNT(allocations, 1);
    }
    *out = s;
    return DT_OK;
}

dt_status
dt_storage_wrap(dt_device device, void *data, size_t nbytes, unsigned flags, void *owner,
                void (*release_owner)(void *, void *), dt_storage **out, dt_error *err)
{
    const dt_backend *backend;
    DT_TRY(dt_backend_for(device, &backend, err));
    dt_storage *s = dt_malloc(sizeof(*s));
    if (s == NULL) {
        return dt_fail_nomem(err, sizeof(*s));
    }
    storage_init(s, backend, device, nbytes);
    s->data = data;
    s->flags = flags;
    s->owner = owner;
    s->release_owner = release_owner;
    *out = s;
    return DT_OK;
}

/* Page-locked memory of the host belongs to the cpu; the CUDA backend allocates and frees it. */
dt_status
dt_storage_new_pinned(size_t nbytes, dt_storage **out, dt_error *err)
{
    const dt_backend *cpu, *cuda;
    DT_TRY(dt_backend_for((dt_device){DT_CPU, 0}, &cpu, err));
    DT_TRY(dt_backend_for((dt_device){DT_CUDA, dt_current_device()}, &cuda, err));
    dt_storage *s = dt_malloc(sizeof(*s));
    if (s == NULL) {
        return dt_fail_nomem(err, sizeof(*s));
    }
    storage_init(s, cpu, (dt_device){DT_CPU, 0}, nbytes);
    s->flags = DT_STORAGE_PINNED;
    dt_status rc = cuda->alloc_pinned(s, err);
    if (rc != DT_OK) {
        dt_free(s);
        return rc;
    }
    DT_COUNT(allocations, 1);
    *out = s;
    return DT_OK;
}

void
dt_storage_release(dt_storage *storage)
{
    if (storage == NULL || atomic_fetch_sub_explicit(&storage->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (storage->release_owner != NULL) {
        storage->release_owner(storage->owner, storage->data);
    } else {
        storage->backend->free(storage);
    }
    dt_free(storage);
}
