/* pinned_uses.c: copies that may still run on page-locked memory, since the host did not wait for them. Each leaves a
 * use: an event behind it in its stream. The host waits for it before it touches the memory (dt_settle), other streams
 * before they do, and the block is given to nobody else until it is over. Functions without a word on it want the
 * block's lock held. */
#include "../../cpu/cpu.h"
#include "pinned.h"
#include "../launch/index_errors.h"
#include "memory.h"
#include "../ops/ops.h"
#include "../streams/stream.h"

/* What cannot be asked is taken to run. No lock: the block is nobody's. */
bool
cuda_block_is_busy(cuda_pinned_block *b)
{
    bool busy = false;
    for (int i = 0; i < CUDA_NUSES; i++) {
        cuda_use *use = &b->uses[i];
        use->active = use->active && cu.cuEventQuery(use->event) != CUDA_SUCCESS;
        busy = busy || use->active;
    }
    return busy;
}

/* No lock: its last holder goes. */
bool
cuda_block_abandon(cuda_pinned_block *b)
{
    bool busy = false;
    while (b->deferred != NULL) {
        cuda_deferred *first = b->deferred;
        b->deferred = first->next;
        dt_array_clear(&first->from);
        dt_free(first);
    }
    for (int i = 0; i < CUDA_NUSES; i++) {
        busy = busy || b->uses[i].active;
    }
    return busy;
}

static void
tell_pending(dt_storage *storage, const cuda_pinned_block *b)
{
    unsigned pending = b->deferred != NULL ? DT_PENDING_WRITE : 0;
    for (int i = 0; i < CUDA_NUSES; i++) {
        if (b->uses[i].active) {
            pending |= b->uses[i].writes ? DT_PENDING_WRITE : DT_PENDING_READ;
        }
    }
    if (cuda_looks_for_races() && b->uses[0].event != NULL) {
        pending = DT_PENDING_WRITE | DT_PENDING_READ; /* so that cuda_settle is asked, and looks */
    }
    atomic_store_explicit(&storage->pending, pending, memory_order_release);
}

/* Any context will do, and the caller's stays; a thread that only reads may have none yet. */
static dt_status
wait_for_use(cuda_use *use, dt_error *err)
{
    cuda_device *device = use->device;
    CUcontext current = NULL;
    CUDA_TRY(device, cuCtxGetCurrent, (&current));
    if (current == NULL || atomic_load(&device->poison) != 0) {
        DT_TRY(cuda_enter(device->index, &device, err));
    }
    DT_COUNT(synchronizations, 1);
    CUDA_TRY(device, cuEventSynchronize, (use->event));
    use->active = false;
    return cuda_late_check(device, err);
}

static dt_status
wait_for_uses(cuda_pinned_block *b, bool readers, dt_error *err)
{
    for (int i = 0; i < CUDA_NUSES; i++) {
        if (b->uses[i].active && (b->uses[i].writes || readers)) {
            DT_TRY(wait_for_use(&b->uses[i], err));
        }
    }
    return DT_OK;
}

static dt_status
settle(cuda_pinned_block *b, bool readers, dt_error *err)
{
    DT_TRY(wait_for_uses(b, readers || b->deferred != NULL, err));
    while (b->deferred != NULL) {
        cuda_deferred *first = b->deferred;
        DT_TRY(dt_settle(&first->from, DT_READ, err));
        DT_TRY(cpu_copy(&first->from, &first->to, false, err));
        b->deferred = first->next;
        dt_array_clear(&first->from);
        dt_free(first);
    }
    return DT_OK;
}

dt_status
cuda_settle(dt_storage *storage, dt_access access, dt_error *err)
{
    cuda_pinned_block *b = storage->owner;
    if (!cuda_api_alive()) {
        DT_TRY(cuda_api_open(err)); /* says that the process was forked */
    }
    pthread_mutex_lock(&b->lock);
    cuda_imply(true);
    dt_status rc = settle(b, access == DT_WRITE, err);
    cuda_imply(false);
    tell_pending(storage, b);
    pthread_mutex_unlock(&b->lock);
    if (rc == DT_OK) {
        rc = cuda_host_use("the host", storage->data, storage->nbytes, access == DT_WRITE, err);
    }
    return rc;
}

/* What is sent to stream from now on runs after the uses that it must not meet. */
static dt_status
order_after_uses(cuda_device *device, const cuda_pinned_block *b, bool writes, dt_error *err)
{
    CUstream stream = cuda_stream(device);
    for (int i = 0; i < CUDA_NUSES; i++) {
        const cuda_use *use = &b->uses[i];
        if (use->active && (use->writes || writes) && (use->stream != stream || use->device != device)) {
            CUDA_TRY(device, cuStreamWaitEvent, (stream, use->event, 0));
        }
    }
    return DT_OK;
}

/* A use for a copy in the current stream: that of an earlier one there, or one that is over. */
static dt_status
find_use(cuda_device *device, cuda_pinned_block *b, bool writes, cuda_use **out, dt_error *err)
{
    cuda_use *found = NULL;
    CUstream stream = cuda_stream(device);
    for (int i = 0; i < CUDA_NUSES; i++) {
        cuda_use *use = &b->uses[i];
        if (use->active && use->device == device && use->stream == stream && use->writes == writes) {
            /* the name may have belonged to a stream that is gone, whose copy is not to be forgotten */
            CUDA_TRY(device, cuStreamWaitEvent, (stream, use->event, 0));
            *out = use;
            return DT_OK;
        }
        if (!use->active && (found == NULL || use->device == device)) {
            found = use;
        }
    }
    if (found == NULL) {
        found = &b->uses[0];
        DT_TRY(wait_for_use(found, err));
    }
    if (found->device != device && found->event != NULL) {
        (void)cu.cuEventDestroy_v2(found->event);
        found->event = NULL;
    }
    if (found->event == NULL) {
        CUDA_TRY(device, cuEventCreate, (&found->event, CU_EVENT_DISABLE_TIMING));
        found->device = device;
    }
    *out = found;
    return DT_OK;
}

dt_status
cuda_pinned_begin(cuda_device *device, const dt_array *a, bool writes, cuda_use **use, dt_error *err)
{
    cuda_pinned_block *b = a->storage->owner;
    pthread_mutex_lock(&b->lock);
    dt_status rc = DT_OK;
    cuda_imply(true);
    if (b->deferred != NULL) {
        rc = settle(b, writes, err);
    }
    if (rc == DT_OK) {
        rc = order_after_uses(device, b, writes, err);
    }
    if (rc == DT_OK) {
        rc = find_use(device, b, writes, use, err);
    }
    cuda_imply(false);
    if (rc != DT_OK) {
        pthread_mutex_unlock(&b->lock);
    }
    return rc;
}

dt_status
cuda_pinned_end(cuda_device *device, const dt_array *a, bool writes, cuda_use *use, dt_status sent, dt_error *err)
{
    cuda_pinned_block *b = a->storage->owner;
    CUstream stream = cuda_stream(device);
    dt_status rc = sent;
    if (sent == DT_OK) {
        rc = CUDA_CALL(device, cuEventRecord, (use->event, stream));
        if (rc == DT_OK) {
            use->stream = stream;
            use->writes = writes;
            use->active = true;
        } else if (cu.cuStreamSynchronize(stream) != CUDA_SUCCESS) {
            b->lost = true;
        }
    }
    tell_pending(a->storage, b);
    pthread_mutex_unlock(&b->lock);
    return rc;
}

dt_status
cuda_pinned_defer(dt_array *from, const dt_array *to, dt_error *err)
{
    cuda_pinned_block *b = to->storage->owner;
    cuda_deferred *d = dt_malloc(sizeof(*d));
    if (d == NULL) {
        return dt_fail_nomem(err, sizeof(*d));
    }
    *d = (cuda_deferred){.from = *from, .to = *to};
    from->storage = NULL;
    pthread_mutex_lock(&b->lock);
    cuda_deferred **last = &b->deferred;
    while (*last != NULL) {
        last = &(*last)->next;
    }
    *last = d;
    tell_pending(to->storage, b);
    pthread_mutex_unlock(&b->lock);
    return DT_OK;
}
