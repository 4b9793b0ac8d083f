/* memory.c: the backend's table, its blocks of memory, and the one device there is. */
#include <unistd.h>

#include "../core/operands.h"
#include "../core/memory/packed_cache.h"
#include "../core/memory/sized.h"
#include "cpu.h"

#define DT_SLOT(ret, name, args)
#define DT_OP(name, args, names)                                                                                       \
    static dt_status op_##name args                                                                                    \
    {                                                                                                                  \
        dt_status rc = cpu_##name names;                                                                               \
        DT_ALL_WRITTEN names;                                                                                          \
        return rc;                                                                                                     \
    }
#include "../core/slots.def"
#undef DT_SLOT

const dt_backend cpu_backend = {
    .name = "cpu",
#define DT_SLOT(ret, name, args) .name = cpu_##name,
#define DT_OP(name, args, names) .name = op_##name,
#include "../core/slots.def"
#undef DT_SLOT
};

dt_status
cpu_open(const dt_backend **backend, dt_error *err)
{
    (void)err;
    *backend = &cpu_backend;
    return DT_OK;
}

dt_status
cpu_alloc(dt_storage *storage, dt_error *err)
{
    storage->data = NULL;
    if (storage->nbytes == 0) {
        return DT_OK;
    }
    storage->data = storage->nbytes >= DT_LARGE_BLOCK ? dt_large_new(storage->nbytes)
                    : storage->nbytes > 64            ? dt_sized_new(storage->nbytes)
                                                      : dt_malloc_aligned(storage->nbytes);
    return storage->data != NULL ? DT_OK : dt_fail_nomem(err, storage->nbytes);
}

void
cpu_forget(dt_storage *storage)
{
    dt_kept_forget(storage);
}

void
cpu_free(dt_storage *storage)
{
    if (storage->nbytes >= DT_LARGE_BLOCK) {
        dt_large_free(storage->data);
    } else if (storage->nbytes > 64) {
        dt_sized_free(storage->data, storage->nbytes);
    } else {
        dt_free(storage->data);
    }
}

dt_status
cpu_alloc_pinned(dt_storage *storage, dt_error *err)
{
    (void)storage;
    return dt_fail(err, DT_ENODEVICE, "device-not-available", NULL, "page-locked memory belongs to CUDA, not to cpu");
}

dt_status
cpu_settle(dt_storage *storage, dt_access access, dt_error *err)
{
    (void)storage;
    (void)access;
    (void)err;
    return DT_OK;
}

dt_status
cpu_device_count(int *count, dt_error *err)
{
    (void)err;
    *count = 1;
    return DT_OK;
}

dt_status
cpu_device_info(int index, dt_device_info *info, dt_error *err)
{
    (void)index;
    (void)err;
    long page = sysconf(_SC_PAGESIZE), pages = sysconf(_SC_PHYS_PAGES);
    memset(info, 0, sizeof(*info));
    memcpy(info->name, "cpu", sizeof("cpu"));
    info->total_memory = page > 0 && pages > 0 ? (size_t)page * (size_t)pages : 0;
    return DT_OK;
}

dt_status
cpu_synchronize(int index, dt_error *err)
{
    (void)index;
    (void)err;
    return DT_OK;
}

dt_status
cpu_empty_cache(dt_error *err)
{
    (void)err;
    dt_kept_clear();
    dt_large_trim(0);
    return DT_OK;
}
