/* peer.c: copies between devices. The narrower of the two dtypes goes over the bus, contiguous; a cast or a gather
 * happens on the side where it makes that so. The copy stands in the target's stream, which waits for the source's and
 * is waited for by it: the host waits for nothing. */
#include "../launch/launch.h"
#include "memory.h"
#include "../streams/stream.h"
#include "transfer.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* the events and masks of all devices */

/* What is sent to `then` from now on waits for what `first` has been sent so far. Leaves then's context current. */
static dt_status
order_after(int first, int then, dt_error *err)
{
    cuda_device *a, *b;
    DT_TRY(cuda_enter(first, &a, err));
    if (a->peer_event == NULL) {
        CUDA_TRY(a, cuEventCreate, (&a->peer_event, CU_EVENT_DISABLE_TIMING));
    }
    CUDA_TRY(a, cuEventRecord, (a->peer_event, cuda_stream(a)));
    DT_TRY(cuda_enter(then, &b, err));
    CUDA_TRY(b, cuStreamWaitEvent, (cuda_stream(b), a->peer_event, 0));
    return DT_OK;
}

/* Lets `to`, whose context is current, read from's memory over the link between them, if there is one. Without it the
 * driver goes through the host, so that a failure is none of ours. */
static void
ask_for_access(cuda_device *from, cuda_device *to)
{
    int can = 0;
    if (from->index >= 64 || (to->peers >> from->index & 1u)) {
        return;
    }
    to->peers |= (uint64_t)1 << from->index;
    if (cu.cuDeviceCanAccessPeer(&can, to->handle, from->handle) != CUDA_SUCCESS || !can) {
        return;
    }
    const CUmemAccessDesc access = {
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = to->handle},
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
    (void)cu.cuCtxEnablePeerAccess(from->context, 0);
    (void)cu.cuMemPoolSetAccess(from->pool, &access, 1);
}

/* Mistakes of work on `from`, and on whatever came there, now show in what `to` holds. */
static void
note_source(cuda_device *from, cuda_device *to)
{
    uint64_t own = from->index < 64 ? (uint64_t)1 << from->index : 0;
    (void)atomic_fetch_or(&to->sources, own | atomic_load(&from->sources));
}

/* The lock is held. */
static dt_status
send_to_peer(const dt_array *src, const dt_array *dst, dt_error *err)
{
    cuda_device *from, *to;
    int first = src->storage->device.index, second = dst->storage->device.index;
    DT_TRY(cuda_enter(first, &from, err));
    DT_TRY(order_after(first, second, err));
    DT_TRY(cuda_enter(second, &to, err));
    ask_for_access(from, to);
    note_source(from, to);
    CUDA_TRY(to, cuMemcpyPeerAsync,
             (cuda_address(dst), to->context, cuda_address(src), from->context, dt_array_nbytes(dst), cuda_stream(to)));
    dt_status rc = order_after(second, first, err);
    if (rc != DT_OK) { /* the source must not be given back while it is read */
        (void)cu.cuStreamSynchronize(cuda_stream(to));
    }
    return rc;
}

dt_status
cuda_to_peer(const dt_array *src, dt_array *dst, dt_error *err)
{
    cuda_device *first, *second;
    cuda_temporary leaving = CUDA_TEMPORARY_EMPTY, arriving = CUDA_TEMPORARY_EMPTY;
    dt_dtype bus = cuda_bus_dtype(src, dst);
    dt_array from = cuda_in_order_of(dst, src), to = cuda_in_order_of(dst, dst);
    const dt_array *sent = &from, *received = &to;
    dt_status rc = cuda_enter(src->storage->device.index, &first, err);
    if (rc == DT_OK && (from.dtype != bus || !dt_array_is_contiguous(&from))) {
        rc = cuda_temporary_init(&leaving, first, &from, bus, err);
        if (rc == DT_OK) {
            rc = cuda_copy_within(first, &from, &leaving.array, err);
        }
        sent = &leaving.array;
    }
    if (rc == DT_OK) {
        rc = cuda_enter(dst->storage->device.index, &second, err);
    }
    if (rc == DT_OK && (to.dtype != bus || !dt_array_is_contiguous(&to))) {
        rc = cuda_temporary_init(&arriving, second, &to, bus, err);
        received = &arriving.array;
    }
    if (rc == DT_OK) {
        pthread_mutex_lock(&lock);
        rc = send_to_peer(sent, received, err);
        pthread_mutex_unlock(&lock);
    }
    if (rc == DT_OK && received != &to && (rc = cuda_enter(dst->storage->device.index, &second, err)) == DT_OK) {
        rc = cuda_copy_within(second, &arriving.array, &to, err);
    }
    cuda_temporary_clear(&leaving);
    cuda_temporary_clear(&arriving);
    return rc;
}
