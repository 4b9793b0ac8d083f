/* registry.c: which backend owns which device. Entries are written once and never taken back. */
#include "devtensor.h"

#include <stdlib.h>

#define NTYPES (DT_CUDA + 1)

static dt_backend_open openers[NTYPES];
static const dt_backend *_Atomic opened[NTYPES];
static atomic_int counts[NTYPES];

void
dt_register_backend(dt_device_type type, dt_backend_open open)
{
    openers[type] = open;
}

/* open is idempotent, so that two threads that meet here may both call it. */
static dt_status
open_backend(int type, dt_error *err)
{
    const dt_backend *backend = NULL;
    if (openers[type] == NULL) {
        return dt_fail(err, DT_ENODEVICE, "device-not-available", "device", "No backend is built in for this device.");
    }
    DT_TRY(openers[type](&backend, err));
    int count = 0;
    DT_TRY(backend->device_count(&count, err));
    counts[type] = count;
    atomic_store_explicit(&opened[type], backend, memory_order_release);
    return DT_OK;
}

static dt_status
fail_index(dt_device device, int count, dt_error *err)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    return dt_fail(err, DT_ENODEVICE, "device-not-available", "device",
                   "Device cuda:%d does not exist: %d CUDA device%s visible%s%s.", device.index, count,
                   count == 1 ? " is" : "s are", visible ? " with CUDA_VISIBLE_DEVICES=" : "", visible ? visible : "");
}

dt_status
dt_backend_for(dt_device device, const dt_backend **backend, dt_error *err)
{
    *backend = atomic_load_explicit(&opened[device.type], memory_order_acquire);
    if (*backend == NULL) {
        DT_TRY(open_backend(device.type, err));
        *backend = opened[device.type];
    }
    int count = counts[device.type];
    return device.index < count ? DT_OK : fail_index(device, count, err);
}

dt_status
dt_device_count(dt_device_type type, int *count, dt_error *err)
{
    *count = 0;
    if (atomic_load_explicit(&opened[type], memory_order_acquire) == NULL) {
        DT_TRY(open_backend((int)type, err));
    }
    *count = counts[type];
    return DT_OK;
}
