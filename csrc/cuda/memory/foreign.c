/* foreign.c: memory and streams shared with other libraries of the process. What they do there is not in our books
 * (order.c): streams meet when memory changes hands, and where shared memory comes back to us, behind all work that the
 * device has been sent by then. */
#include "../streams/stream.h"

static dt_status
follow_event(cuda_device *device, CUevent event, CUstream before, CUstream after, dt_error *err)
{
    CUDA_TRY(device, cuEventRecord, (event, before));
    CUDA_TRY(device, cuStreamWaitEvent, (after, event, 0));
    return DT_OK;
}

/* What is sent to after from now on runs behind what before has been sent so far. */
static dt_status
follow(cuda_device *device, CUstream before, CUstream after, dt_error *err)
{
    CUevent event;
    if (before == after) {
        return DT_OK;
    }
    CUDA_TRY(device, cuEventCreate, (&event, CU_EVENT_DISABLE_TIMING));
    dt_status rc = follow_event(device, event, before, after, err);
    (void)cu.cuEventDestroy_v2(event); /* the driver keeps it until it is over */
    return rc;
}

/* Memory may end in a thread of another library, which counts on its current context. */
static bool
visit(const cuda_device *device, CUcontext *before)
{
    cuda_device *same;
    dt_error ignored;
    *before = NULL;
    (void)cu.cuCtxGetCurrent(before);
    return cuda_enter(device->index, &same, &ignored) == DT_OK;
}

static void
leave_context(CUcontext before)
{
    (void)cu.cuCtxSetCurrent(before);
}

/* ---------------------------------------------------------------- ours, given to others */

dt_status
cuda_lend(const dt_array *a, CUstream consumer, dt_error *err)
{
    cuda_device *d;
    const cuda_operands operands = {.array = {a}, .written = {true}};
    DT_TRY(cuda_enter(a->storage->device.index, &d, err));
    DT_TRY(cuda_order(&operands, err));
    cuda_note(&operands);
    atomic_store(&a->storage->ours, false);
    return consumer == NULL ? DT_OK : follow(d, cuda_stream(d), consumer, err);
}

/* The stream that last wrote the block goes on behind event, which counts as a write of its own. */
static dt_status
follow_context_locked(cuda_device *d, CUevent event, cuda_usage *usage, dt_error *err)
{
    cuda_queue *queue = d->queues[usage != NULL ? usage->written.queue : 0];
    CUDA_TRY(d, cuCtxRecordEvent, (d->context, event));
    CUDA_TRY(d, cuStreamWaitEvent, (queue->stream, event, 0));
    if (usage != NULL) {
        *usage = (cuda_usage){.written = cuda_stamp(queue)};
    }
    return DT_OK;
}

static dt_status
follow_context(cuda_device *d, cuda_usage *usage, dt_error *err)
{
    CUevent event;
    CUDA_TRY(d, cuEventCreate, (&event, CU_EVENT_DISABLE_TIMING));
    pthread_mutex_lock(&d->lock);
    dt_status rc = follow_context_locked(d, event, usage, err);
    pthread_mutex_unlock(&d->lock);
    (void)cu.cuEventDestroy_v2(event);
    return rc;
}

/* Their streams are not known, and may be gone: the event is one of the whole context. Where there is none the host
 * waits. */
void
cuda_follow_others(dt_storage *storage)
{
    CUcontext before;
    dt_error ignored;
    cuda_device *d = cuda_find(storage->device.index);
    if (d == NULL || storage->nbytes == 0) {
        return;
    }
    if (visit(d, &before) && follow_context(d, storage->private, &ignored) != DT_OK) {
        (void)!cuda_wait_all(d, &ignored);
    }
    leave_context(before);
}

/* ---------------------------------------------------------------- theirs, used by us */

typedef struct {
    dt_storage *storage; /* whose end this is */
    void *owner;
    void (*release)(void *owner, void *data);
} loan;

static void
wait_for_usage(cuda_device *d, const cuda_usage *usage)
{
    dt_error ignored; /* what cannot be asked is over */
    (void)!cuda_queue_synchronize(d->queues[usage != NULL ? usage->written.queue : 0], &ignored);
    for (unsigned i = 0; usage != NULL && i < usage->nread; i++) {
        if (usage->read[i].queue != usage->written.queue) {
            (void)!cuda_queue_synchronize(d->queues[usage->read[i].queue], &ignored);
        }
    }
}

/* Our work on it is over before its owner has it back. */
static void
wait_for_work(const dt_storage *storage)
{
    CUcontext before;
    cuda_device *d = cuda_find(storage->device.index);
    if (d != NULL && storage->nbytes > 0) {
        if (visit(d, &before)) {
            wait_for_usage(d, storage->private);
        }
        leave_context(before);
    }
}

static void
end_loan(void *owner, void *data)
{
    loan *l = owner;
    if (atomic_load_explicit(&l->storage->exported, memory_order_relaxed)) {
        cuda_follow_others(l->storage);
    }
    wait_for_work(l->storage);
    if (l->storage->private != NULL) {
        dt_block_free(l->storage->private);
    }
    l->release(l->owner, data);
    dt_free(l);
}

/* status: CUDA_SUCCESS for an address of another device or of the host, CUDA_ERROR_INVALID_VALUE for one of nobody. */
static dt_status
fail_address(const cuda_device *d, CUdeviceptr address, CUresult status, dt_error *err)
{
    bool known = status == CUDA_SUCCESS;
    dt_fail(err, known ? DT_EVALUE : DT_ECUDA, known ? "invalid-argument" : "cuda-error", NULL,
            "0x%llx is not an address in the memory of cuda:%d (%s)%s", (unsigned long long)address, d->index, d->name,
            known ? "" : "; cuPointerGetAttribute: CUDA_ERROR_INVALID_VALUE (1)");
    err->symbol = cuda_api_names[DT_API_cuPointerGetAttribute];
    err->library_status = status;
    err->device = (dt_device){DT_CUDA, d->index};
    return err->status;
}

static dt_status
check_address(cuda_device *d, CUdeviceptr address, dt_error *err)
{
    int type = 0, ordinal = -1;
    CUresult status = cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
    if (status == CUDA_SUCCESS && type == CU_MEMORYTYPE_DEVICE) {
        status = cu.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
    }
    if (status == CUDA_ERROR_INVALID_VALUE || (status == CUDA_SUCCESS && ordinal != d->index)) {
        return fail_address(d, address, status, err);
    }
    return cuda_check(d, DT_API_cuPointerGetAttribute, status, err);
}

dt_status
cuda_find_address(CUdeviceptr address, int *index, dt_error *err)
{
    cuda_device *d;
    DT_TRY(cuda_enter(*index, &d, err));
    int ordinal = 0;
    CUresult status = cu.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
    if (status == CUDA_SUCCESS) {
        *index = ordinal;
    }
    return status == CUDA_ERROR_INVALID_VALUE ? DT_OK : cuda_check(d, DT_API_cuPointerGetAttribute, status, err);
}

/* The default stream follows the producer's: what has no note is taken as used there. */
dt_status
cuda_borrow(int index, CUdeviceptr address, size_t nbytes, unsigned flags, CUstream producer, void *owner,
            void (*release)(void *owner, void *data), dt_storage **out, dt_error *err)
{
    cuda_device *d;
    DT_TRY(cuda_enter(index, &d, err));
    if (nbytes > 0) {
        DT_TRY(check_address(d, address, err));
    }
    if (producer != NULL && nbytes > 0) {
        DT_TRY(follow(d, producer, d->stream, err));
    }
    loan *l = dt_malloc(sizeof(*l));
    if (l == NULL) {
        return dt_fail_nomem(err, sizeof(*l));
    }
    *l = (loan){NULL, owner, release};
    dt_status rc = dt_storage_wrap((dt_device){DT_CUDA, index}, (void *)(uintptr_t)address, nbytes, flags, l, end_loan,
                                   &l->storage, err);
    if (rc != DT_OK) {
        dt_free(l);
        return rc;
    }
    *out = l->storage;
    return DT_OK;
}
