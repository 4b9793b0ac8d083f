/* storage.h: the making of storages, inline, since every op makes one (storage.c). */
#ifndef DT_STORAGE_H
#define DT_STORAGE_H

#include <stddef.h>
#include <string.h>

#include "heap.h"

/* A header, and behind it the elements of a small array on the host. */
typedef struct {
    dt_storage storage;
    _Alignas(16) unsigned char bytes[64];
} dt_small_storage;

_Static_assert(sizeof(dt_small_storage) <= DT_SMALL_BLOCK, "a storage fits a block");

/* The owner of those elements: they go with the header. */
void dt_storage_release_small(void *owner, void *data);
/* Asks the backend for the memory of s; s is gone if that fails. */
dt_status dt_storage_fill(dt_storage *s, dt_storage **out, dt_error *err) DT_MUST_CHECK;

/* A header with one reference and no memory yet. */
static inline dt_status
dt_storage_open(const dt_backend *backend, dt_device device, size_t nbytes, dt_storage **out, dt_error *err)
{
    dt_storage *s = dt_block_new();
    if (s == NULL) {
        return dt_fail_nomem(err, DT_SMALL_BLOCK);
    }
    atomic_init(&s->refs, 1);
    s->backend = backend;
    s->device = device;
    /* flags to version, data to history: nothing yet, by vectors */
    memset(&s->flags, 0, offsetof(dt_storage, nbytes) - offsetof(dt_storage, flags));
    s->nbytes = nbytes;
    memset(&s->data, 0, offsetof(dt_storage, born) - offsetof(dt_storage, data));
    atomic_init(&s->born, dt_transform_here.latest);
    *out = s;
    return DT_OK;
}

/* A block of nbytes on device, the backend's. *out stays as it is on failure. */
static inline dt_status
dt_storage_make(const dt_backend *backend, dt_device device, size_t nbytes, dt_storage **out, dt_error *err)
{
    dt_storage *s = NULL;
    DT_TRY(dt_storage_open(backend, device, nbytes, &s, err));
    atomic_init(&s->ours, true);
    if (DT_UNLIKELY(device.type != DT_CPU || nbytes > sizeof(((dt_small_storage *)0)->bytes))) {
        return dt_storage_fill(s, out, err);
    }
    s->data = ((dt_small_storage *)(void *)s)->bytes;
    s->release_owner = dt_storage_release_small;
    *out = s;
    return DT_OK;
}

/* The same beside other. */
static inline dt_status
dt_storage_new_beside(const dt_storage *other, size_t nbytes, dt_storage **out, dt_error *err)
{
    return dt_storage_make(other->backend, other->device, nbytes, out, err);
}

#endif
