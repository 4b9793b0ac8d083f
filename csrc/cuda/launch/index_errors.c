/* index_errors.c: indices out of range. A kernel that meets one cannot raise: it leaves the element alone (a read gives
 * zeros), and writes the index and the number of its launch to page-locked memory, which costs nothing while all is
 * well. The next wait looks there and fails. The device stays usable. */
#include "../../core/check/check.h"
#include "index_errors.h"
#include "../memory/memory.h"

/* What a launch was, for the sentence. */
typedef struct {
    uint64_t number, place;
    const char *op;
    int64_t size[DT_MAX_NDIM];
    int8_t dimension[DT_MAX_NDIM];
} launch_note;

/* Under the device's lock, but for the reports, which kernels write. */
struct cuda_late {
    k_reports *reports;
    uint64_t launches;
    launch_note notes[K_REPORTS];
};

static dt_status
late_new(cuda_device *device, cuda_late **out, dt_error *err)
{
    void *pages;
    cuda_late *late = dt_calloc(1, sizeof(*late));
    if (late == NULL) {
        return dt_fail_nomem(err, sizeof(*late));
    }
    dt_status rc = cuda_lock_pages(device, sizeof(k_reports), &pages, err);
    if (rc != DT_OK) {
        dt_free(late);
        return rc;
    }
    late->reports = pages;
    *late->reports = (k_reports){0};
    *out = late;
    return DT_OK;
}

/* The lock is held by whoever comes first; it stays as long as the device. */
static dt_status
late_of(cuda_device *device, cuda_late **out, dt_error *err)
{
    dt_status rc = DT_OK;
    *out = atomic_load_explicit(&device->late, memory_order_acquire);
    if (*out == NULL) {
        pthread_mutex_lock(&device->module_lock);
        *out = atomic_load(&device->late);
        if (*out == NULL && (rc = late_new(device, out, err)) == DT_OK) {
            atomic_store_explicit(&device->late, *out, memory_order_release);
        }
        pthread_mutex_unlock(&device->module_lock);
    }
    return rc;
}

dt_status
cuda_late_begin(cuda_device *device, const dt_index *index, k_selection *by, dt_error *err)
{
    cuda_late *late;
    DT_TRY(late_of(device, &late, err));
    pthread_mutex_lock(&device->lock);
    uint64_t number = ++late->launches;
    launch_note *note = &late->notes[number % K_REPORTS];
    *note = (launch_note){.number = number, .place = index->place, .op = index->op};
    for (int k = 0; k < index->n; k++) {
        note->size[k] = index->size[k];
        note->dimension[k] = index->dimension[k];
    }
    pthread_mutex_unlock(&device->lock);
    by->reports = (uint64_t)(uintptr_t)late->reports;
    by->launch = number;
    return DT_OK;
}

/* The earliest launch that went wrong: its entry, and the first of its arrays with a wrong index. */
typedef struct {
    uint64_t launch;
    int entry, selector;
} finding;

/* Takes all reports. */
static finding
take_earliest(k_reports *reports)
{
    finding found = {0, 0, 0};
    reports->any = 0;
    for (int i = 0; i < K_REPORTS; i++) {
        for (int k = 0; k < DT_MAX_NDIM; k++) {
            uint64_t launch = reports->entry[i].launch[k];
            if (launch != 0 && (found.launch == 0 || launch < found.launch)) {
                found = (finding){launch, i, k};
            }
            reports->entry[i].launch[k] = 0;
        }
    }
    return found;
}

static bool
has_reports(cuda_device *device)
{
    cuda_late *late = atomic_load_explicit(&device->late, memory_order_acquire);
    return late != NULL && __atomic_load_n(&late->reports->any, __ATOMIC_ACQUIRE) != 0;
}

/* Waits for all that device does. The caller may be on another device, and stays there. */
static dt_status
finish(cuda_device *device, dt_error *err)
{
    CUcontext before = NULL;
    CUDA_TRY(device, cuCtxGetCurrent, (&before));
    CUDA_TRY(device, cuCtxSetCurrent, (device->context));
    dt_status rc = CUDA_CALL(device, cuCtxSynchronize, ());
    (void)cu.cuCtxSetCurrent(before);
    return rc;
}

/* Fails with the earliest report of device, which has some. Whoever came here may have waited for less than all that
 * runs there: while kernels still write, reports would be half there, not the earliest, or told twice. */
static dt_status
tell(cuda_device *device, dt_error *err)
{
    cuda_late *late = atomic_load_explicit(&device->late, memory_order_acquire);
    dt_device where = {DT_CUDA, device->index};
    dt_status rc = finish(device, err);
    if (rc != DT_OK) {
        return rc;
    }
    pthread_mutex_lock(&device->lock);
    finding found = take_earliest(late->reports);
    if (found.launch != 0) {
        const launch_note *note = &late->notes[found.entry];
        int k = found.selector;
        int64_t index = late->reports->entry[found.entry].index[k];
        rc = note->number == found.launch
                 ? dt_fail_index_late(note->op, index, note->dimension[k], note->size[k], where, note->place, err)
                 : dt_fail_index_late(NULL, index, 0, -1, where, 0, err);
    }
    pthread_mutex_unlock(&device->lock);
    return rc;
}

dt_status
cuda_late_check(cuda_device *device, dt_error *err)
{
    uint64_t sources = atomic_load_explicit(&device->sources, memory_order_relaxed);
    if (has_reports(device)) {
        return tell(device, err);
    }
    for (; sources != 0; sources &= sources - 1) {
        cuda_device *source = cuda_find(__builtin_ctzll(sources));
        if (source != NULL && has_reports(source)) {
            return tell(source, err);
        }
    }
    return DT_OK;
}
