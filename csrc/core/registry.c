/* registry.c: which backend owns which device. Entries are written once and never taken back. */
#include "registry.h"

#include <stdlib.h>

static dt_backend_entry entries[DT_NDEVICE_TYPES];
static const dt_backend *_Atomic opened[DT_NDEVICE_TYPES];
static atomic_int counts[DT_NDEVICE_TYPES];

void
dt_register_backend(dt_device_type type, const dt_backend_entry *entry)
{
    entries[type] = *entry;
}

/* open is idempotent, so that two threads that meet here may both call it. */
static dt_status
open_backend(int type, dt_error *err)
{
    const dt_backend *backend = NULL;
    if (entries[type].open == NULL) {
        return dt_fail(err, DT_ENODEVICE, "device-not-available", "device", "No backend is built in for this device.");
    }
    DT_TRY(entries[type].open(&backend, err));
    int count = 0;
    DT_TRY(backend->device_count(&count, err));
    counts[type] = count;
    atomic_store_explicit(&opened[type], backend, memory_order_release);
    return DT_OK;
}

static dt_status
fail_index(dt_device device, int count, dt_error *err)
{
    const dt_backend_entry *entry = &entries[device.type];
    const char *visible = entry->visible != NULL ? getenv(entry->visible) : NULL;
    char text[DT_DEVICE_TEXT];
    return dt_fail(err, DT_ENODEVICE, "device-not-available", "device",
                   "Device %s does not exist: %d %s device%s visible%s%s%s%s.", dt_device_text(device, text), count,
                   entry->label, count == 1 ? " is" : "s are", visible ? " with " : "", visible ? entry->visible : "",
                   visible ? "=" : "", visible ? visible : "");
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
