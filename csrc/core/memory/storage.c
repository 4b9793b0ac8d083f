/* storage.c: one counted block of memory, and the one path on which it is released. */
#include "../grad/grad.h"
#include "storage.h"

#include <string.h>

void
dt_storage_release_small(void *owner, void *data)
{
    (void)owner;
    (void)data;
}

/* rc: how the backend's allocation ended. */
static dt_status
storage_close(dt_status rc, dt_storage *s, dt_storage **out)
{
    if (rc != DT_OK) {
        dt_block_free(s);
        return rc;
    }
    DT_COUNT(allocations, 1);
    *out = s;
    return DT_OK;
}

dt_status
dt_storage_fill(dt_storage *s, dt_storage **out, dt_error *err)
{
    return storage_close(s->backend->alloc(s, err), s, out);
}

dt_status
dt_storage_new(dt_device device, size_t nbytes, dt_storage **out, dt_error *err)
{
    const dt_backend *backend;
    DT_TRY(dt_backend_for(device, &backend, err));
    return dt_storage_make(backend, device, nbytes, out, err);
}

dt_status
dt_storage_wrap(dt_device device, void *data, size_t nbytes, unsigned flags, void *owner,
                void (*release_owner)(void *, void *), dt_storage **out, dt_error *err)
{
    const dt_backend *backend;
    DT_TRY(dt_backend_for(device, &backend, err));
    dt_storage *s = NULL;
    DT_TRY(dt_storage_open(backend, device, nbytes, &s, err));
    s->data = data;
    s->flags = (uint16_t)flags;
    s->owner = owner;
    s->release_owner = release_owner;
    *out = s;
    return DT_OK;
}

/* Page-locked memory belongs to the host; the backend whose transfers it is for allocates and frees it. */
dt_status
dt_storage_new_pinned(size_t nbytes, dt_storage **out, dt_error *err)
{
    const dt_backend *host, *accelerator;
    DT_TRY(dt_backend_for(DT_HOST, &host, err));
    DT_TRY(dt_backend_for(dt_current_accelerator(), &accelerator, err));
    dt_storage *s = NULL;
    DT_TRY(dt_storage_open(host, DT_HOST, nbytes, &s, err));
    s->flags = DT_STORAGE_PINNED;
    return storage_close(accelerator->alloc_pinned(s, err), s, out);
}

/* ---------------------------------------------------------------- transforms of functions */

_Thread_local dt_transform dt_transform_here __attribute__((tls_model("initial-exec")));

dt_transform
dt_transform_enter(bool maps)
{
    static atomic_uint_fast64_t begun;
    const dt_transform before = dt_transform_here;
    const uint64_t number = atomic_fetch_add_explicit(&begun, 1, memory_order_relaxed) + 1;
    dt_transform_here = (dt_transform){number, number, maps};
    return before;
}

void
dt_transform_admit(const dt_transform *before, dt_storage *storage)
{
    if (atomic_load_explicit(&storage->born, memory_order_relaxed) >= before->began) {
        atomic_store_explicit(&storage->born, dt_transform_here.began, memory_order_relaxed);
    }
}

/* ---------------------------------------------------------------- waiting */

static void *(*wait_enter)(void);
static void (*wait_leave)(void *);

void
dt_set_wait_hooks(void *(*enter)(void), void (*leave)(void *))
{
    wait_enter = enter;
    wait_leave = leave;
}

dt_status
dt_storage_settle(dt_storage *storage, dt_access access, dt_error *err)
{
    const dt_backend *accelerator;
    DT_TRY(dt_backend_for(dt_current_accelerator(), &accelerator, err));
    void *state = wait_enter != NULL ? wait_enter() : NULL;
    dt_status rc = accelerator->settle(storage, access, err);
    if (wait_leave != NULL) {
        wait_leave(state);
    }
    return rc;
}

/* ---------------------------------------------------------------- the end */

void
dt_storage_changed(dt_storage *storage, const dt_node *by)
{
    if (by != NULL && (by->flags & DT_NODE_QUIET)) {
        atomic_fetch_add_explicit(&storage->quiet_writes, 1, memory_order_relaxed);
    } else {
        const uint32_t before = atomic_fetch_add_explicit(&storage->version, 1, memory_order_relaxed);
        if (dt_front.wrote != NULL && atomic_load_explicit(&storage->refs, memory_order_relaxed) >> 32) {
            dt_front.wrote(storage, before + 1);
        }
    }
    if (atomic_load_explicit(&storage->kept, memory_order_relaxed)) {
        storage->backend->forget(storage);
    }
}

void
dt_storage_release(dt_storage *storage)
{
    if (storage == NULL) {
        return;
    }
    if (DT_UNLIKELY(atomic_load_explicit(&storage->history, memory_order_relaxed) != NULL)) {
        if (!dt_history_leave(storage)) {
            return;
        }
    } else if (atomic_load_explicit(&storage->refs, memory_order_acquire) != 1 &&
               atomic_fetch_sub_explicit(&storage->refs, 1, memory_order_acq_rel) != 1) {
        return; /* the only holder needs no locked instruction */
    }
    if (DT_UNLIKELY(atomic_load_explicit(&storage->kept, memory_order_relaxed))) {
        storage->backend->forget(storage);
    }
    if (DT_UNLIKELY(atomic_load_explicit(&storage->version, memory_order_relaxed) != 0) && dt_front.ended != NULL) {
        dt_front.ended(storage);
    }
    if (storage->release_owner != NULL) {
        storage->release_owner(storage->owner, storage->data);
    } else {
        storage->backend->free(storage);
    }
    dt_block_free(storage);
}
