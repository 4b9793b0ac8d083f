/* device.c: what is kept for each device, opened on its first use; the backend's table. */
#include "../core/numbers/sha256.h"
#include "memory/memory.h"
#include "ops/ops.h"
#include "plans.h"
#include "streams/stream.h"
#include "memory/transfer.h"
#include "conv/weights.h"

#define MAX_DEVICES 256
#define RAW_MODULES 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cuda_device *_Atomic devices[MAX_DEVICES];

/* ---------------------------------------------------------------- opening */

static dt_status
read_properties(cuda_device *d, dt_error *err)
{
    int pools = 0;
    CUDA_TRY(d, cuDeviceGetName, (d->name, sizeof(d->name), d->handle));
    d->name[sizeof(d->name) - 1] = '\0';
    CUDA_TRY(d, cuDeviceGetAttribute, (&d->major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, d->handle));
    CUDA_TRY(d, cuDeviceGetAttribute, (&d->minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, d->handle));
    CUDA_TRY(d, cuDeviceGetAttribute, (&d->multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, d->handle));
    CUDA_TRY(d, cuDeviceGetAttribute,
             (&d->threads_per_multiprocessor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, d->handle));
    CUDA_TRY(d, cuDeviceTotalMem_v2, (&d->total_memory, d->handle));
    CUDA_TRY(d, cuDeviceGetAttribute, (&pools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, d->handle));
    if (!pools) {
        return dt_fail(err, DT_ENODEVICE, "device-not-available", NULL,
                       "cuda:%d (%s) cannot be used: its driver has no stream-ordered memory pools.", d->index,
                       d->name);
    }
    return DT_OK;
}

/* The context is current. */
static dt_status
open_stream(cuda_device *d, dt_error *err)
{
    uint64_t keep_all = UINT64_MAX;
    DT_TRY(read_properties(d, err));
    CUDA_TRY(d, cuDeviceGetDefaultMemPool, (&d->pool, d->handle));
    CUDA_TRY(d, cuMemPoolSetAttribute, (d->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep_all));
    return cuda_queues_open(d, err);
}

static dt_status
open_context(cuda_device *d, dt_error *err)
{
    CUDA_TRY(d, cuDeviceGet, (&d->handle, d->index));
    CUDA_TRY(d, cuDevicePrimaryCtxRetain, (&d->context, d->handle));
    dt_status rc = CUDA_CALL(d, cuCtxSetCurrent, (d->context));
    if (rc == DT_OK) {
        rc = open_stream(d, err);
    }
    if (rc != DT_OK) {
        (void)cu.cuDevicePrimaryCtxRelease_v2(d->handle);
    }
    return rc;
}

static dt_status
open_device(int index, cuda_device **out, dt_error *err)
{
    cuda_device *d = dt_calloc(1, sizeof(*d));
    if (d == NULL) {
        return dt_fail_nomem(err, sizeof(*d));
    }
    d->index = index;
    d->matmuls = (cuda_cache){.key_size = cuda_matmul_key_size(), .destroy = cuda_matmul_destroy};
    d->convolutions = (cuda_cache){.key_size = cuda_conv2d_key_size(), .destroy = cuda_conv2d_retire};
    d->attentions = (cuda_cache){.key_size = cuda_attention_key_size(), .destroy = cuda_conv2d_retire};
    d->tuned = (cuda_cache){.key_size = cuda_conv2d_key_size(), .destroy = dt_free};
    d->raws = (cuda_cache){.key_size = DT_SHA256_BYTES, .limit = RAW_MODULES, .destroy = cuda_raw_module_drop};
    cuda_memory_open(d);
    pthread_mutex_init(&d->lock, NULL);
    cuda_ring_init(&d->ring);
    pthread_mutex_init(&d->module_lock, NULL);
    pthread_mutex_init(&d->library_lock, NULL);
    dt_status rc = open_context(d, err);
    if (rc != DT_OK) {
        pthread_mutex_destroy(&d->lock);
        cuda_ring_destroy(&d->ring);
        pthread_mutex_destroy(&d->module_lock);
        pthread_mutex_destroy(&d->library_lock);
        dt_free(d);
        return rc;
    }
    cuda_weights_open(&d->weights, d->total_memory);
    *out = d;
    return DT_OK;
}

static dt_status
find_or_open(int index, cuda_device **out, dt_error *err)
{
    if (index < 0 || index >= MAX_DEVICES) {
        return dt_fail(err, DT_ENODEVICE, "device-not-available", NULL, "Device cuda:%d does not exist.", index);
    }
    *out = atomic_load_explicit(&devices[index], memory_order_acquire);
    if (*out != NULL) {
        return DT_OK;
    }
    pthread_mutex_lock(&lock);
    dt_status rc = DT_OK;
    *out = atomic_load(&devices[index]);
    if (*out == NULL && (rc = open_device(index, out, err)) == DT_OK) {
        atomic_store_explicit(&devices[index], *out, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

dt_status
cuda_enter(int index, cuda_device **device, dt_error *err)
{
    if (DT_UNLIKELY(!cuda_api_alive())) {
        DT_TRY(cuda_api_open(err)); /* says that the process was forked */
    }
    DT_TRY(find_or_open(index, device, err));
    cuda_device *d = *device;
    if (DT_UNLIKELY(atomic_load_explicit(&d->poison, memory_order_relaxed) != 0)) {
        return cuda_fail_lost(d, err);
    }
    CUcontext current = NULL; /* other users of CUDA in the process may have changed it */
    CUDA_TRY(d, cuCtxGetCurrent, (&current));
    if (current != d->context) {
        CUDA_TRY(d, cuCtxSetCurrent, (d->context));
    }
    return DT_OK;
}

cuda_device *
cuda_find(int index)
{
    cuda_device *d = cuda_api_alive() ? atomic_load_explicit(&devices[index], memory_order_acquire) : NULL;
    return d != NULL && atomic_load(&d->poison) == 0 ? d : NULL;
}

cuda_device *
cuda_lost(int index)
{
    bool there = cuda_api_alive() && index >= 0 && index < MAX_DEVICES;
    cuda_device *d = there ? atomic_load_explicit(&devices[index], memory_order_acquire) : NULL;
    return d != NULL && atomic_load(&d->poison) != 0 ? d : NULL;
}

void
cuda_devices_found(void)
{
    for (int i = 0; i < MAX_DEVICES; i++) {
        cuda_device *d = atomic_load_explicit(&devices[i], memory_order_acquire);
        if (d != NULL) {
            atomic_store(&d->poison, 0);
        }
    }
}

int
cuda_device_index(const cuda_device *device)
{
    return device->index;
}

/* ---------------------------------------------------------------- slots */

dt_status
cuda_open(const dt_backend **backend, dt_error *err)
{
    DT_TRY(cuda_api_open(err));
    *backend = &cuda_backend;
    return DT_OK;
}

dt_status
cuda_device_count(int *count, dt_error *err)
{
    *count = 0;
    DT_TRY(cuda_api_open(err));
    CUDA_TRY(NULL, cuDeviceGetCount, (count));
    return DT_OK;
}

dt_status
cuda_device_info(int index, dt_device_info *info, dt_error *err)
{
    cuda_device *d;
    cuda_memory_stats memory;
    *info = (dt_device_info){0};
    DT_TRY(cuda_enter(index, &d, err));
    CUDA_TRY(d, cuMemGetInfo_v2, (&info->free_memory, &info->total_memory));
    cuda_memory_read(d, &memory);
    for (size_t i = 0; i < sizeof(info->name); i++) {
        info->name[i] = d->name[i];
    }
    info->major = d->major;
    info->minor = d->minor;
    info->multiprocessors = d->multiprocessors;
    info->total_memory = d->total_memory;
    info->allocated_memory = memory.allocated;
    info->peak_memory = memory.allocated_peak;
    info->reserved_memory = memory.reserved;
    info->simulated = cuda_is_simulated();
    return DT_OK;
}

dt_status
cuda_synchronize(int index, dt_error *err)
{
    cuda_device *d;
    DT_TRY(cuda_enter(index, &d, err));
    return cuda_wait_all(d, err);
}

dt_status
cuda_empty_cache(dt_error *err)
{
    for (int i = 0; i < MAX_DEVICES; i++) {
        cuda_device *d;
        if (atomic_load(&devices[i]) == NULL) {
            continue;
        }
        DT_TRY(cuda_enter(i, &d, err));
        cuda_weights_clear(d);
        DT_TRY(cuda_give_back(d, err));
        cuda_conv2d_reap(d);
        DT_TRY(cuda_pinned_trim(d, err));
    }
    return DT_OK;
}
