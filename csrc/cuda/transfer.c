/* transfer.c: copies between the host and a device, and between devices. The narrower of the two dtypes goes over the
 * bus: narrowing casts happen before, widening ones after. Pageable memory passes through page-locked slots, where
 * strided sources are gathered and cast; page-locked memory goes directly. */
#include <string.h>

#include "../cpu/cpu.h"
#include "cuda.h"

static dt_dtype
bus_dtype(const dt_array *src, const dt_array *dst)
{
    return (dt_dtype)(dt_itemsize((dt_dtype)dst->dtype) <= dt_itemsize((dt_dtype)src->dtype) ? dst->dtype : src->dtype);
}

/* A view of a with its dimensions in the order in which key lies in memory. */
static dt_array
in_order_of(const dt_array *key, const dt_array *a)
{
    int order[DT_MAX_NDIM];
    dt_array view = *a;
    for (int d = 0; d < key->ndim; d++) {
        int at = d;
        for (; at > 0 && key->strides[order[at - 1]] < key->strides[d]; at--) {
            order[at] = order[at - 1];
        }
        order[at] = d;
    }
    for (int d = 0; d < key->ndim; d++) {
        view.shape[d] = a->shape[order[d]];
        view.strides[d] = a->strides[order[d]];
    }
    return view;
}

/* a with neighbouring dimensions merged, at least one. */
static dt_array
collapse(const dt_array *a)
{
    dt_walk walk;
    dt_array flat = *a;
    cuda_walk_logical(&walk, 0, a->ndim, 1, &a);
    flat.ndim = (uint8_t)(walk.ndim > 0 ? walk.ndim : 1);
    flat.shape[0] = flat.strides[0] = 1;
    memcpy(flat.shape, walk.shape, (size_t)walk.ndim * sizeof(flat.shape[0]));
    memcpy(flat.strides, walk.strides[0], (size_t)walk.ndim * sizeof(flat.strides[0]));
    return flat;
}

/* ---------------------------------------------------------------- slots */

/* part's elements, contiguous and of dtype, in the slot's memory; storage is the caller's. */
static dt_array
slot_view(const cuda_slot *slot, const dt_array *part, dt_dtype dtype, dt_storage *storage)
{
    dt_array view = *part;
    *storage = (dt_storage){.device = {DT_CPU, 0}, .nbytes = CUDA_SLOT_BYTES, .data = slot->memory};
    view.storage = storage;
    view.offset = 0;
    view.dtype = (uint8_t)dtype;
    dt_array_set_contiguous(&view);
    return view;
}

/* Waits until the slot's last copy is over, and puts what has arrived where it belongs. */
static dt_status
slot_settle(cuda_device *device, cuda_slot *slot, dt_error *err)
{
    if (!slot->busy) {
        return DT_OK;
    }
    DT_COUNT(synchronizations, 1);
    CUDA_TRY(device, cuEventSynchronize, (slot->event));
    slot->busy = false;
    if (!slot->arriving) {
        return DT_OK;
    }
    dt_storage storage;
    dt_array view = slot_view(slot, &slot->target, slot->arriving_dtype, &storage);
    slot->arriving = false;
    return cpu_copy(&view, &slot->target, false, err);
}

/* The next slot, free; the lock is held. */
static dt_status
slot_acquire(cuda_device *device, cuda_slot **out, dt_error *err)
{
    cuda_slot *slot = &device->slots[device->next_slot];
    device->next_slot = (device->next_slot + 1) % CUDA_NSLOTS;
    if (slot->memory == NULL) {
        CUDA_TRY(device, cuMemHostAlloc, (&slot->memory, CUDA_SLOT_BYTES, CU_MEMHOSTALLOC_PORTABLE));
    }
    if (slot->event == NULL) {
        CUDA_TRY(device, cuEventCreate, (&slot->event, CU_EVENT_DISABLE_TIMING));
    }
    DT_TRY(slot_settle(device, slot, err));
    *out = slot;
    return DT_OK;
}

/* After a copy was sent: the slot is taken until it is over. */
static dt_status
slot_mark(cuda_device *device, cuda_slot *slot, dt_error *err)
{
    dt_status rc = CUDA_CALL(device, cuEventRecord, (slot->event, cuda_stream(device)));
    if (rc != DT_OK) {
        (void)cu.cuStreamSynchronize(cuda_stream(device));
        slot->arriving = false;
        return rc;
    }
    slot->busy = true;
    return DT_OK;
}

/* ---------------------------------------------------------------- in parts that fit a slot */

typedef struct {
    cuda_device *device;
    CUdeviceptr address; /* of the next part */
    dt_dtype bus;
} transfer;

typedef dt_status (*transfer_part)(transfer *t, const dt_array *host, size_t nbytes, dt_error *err);

static dt_status
send_part(transfer *t, const dt_array *host, size_t nbytes, dt_error *err)
{
    cuda_slot *slot;
    dt_storage storage;
    DT_TRY(slot_acquire(t->device, &slot, err));
    dt_array view = slot_view(slot, host, t->bus, &storage);
    DT_TRY(cpu_copy(host, &view, false, err));
    CUDA_TRY(t->device, cuMemcpyHtoDAsync_v2, (t->address, slot->memory, nbytes, cuda_stream(t->device)));
    return slot_mark(t->device, slot, err);
}

static dt_status
fetch_part(transfer *t, const dt_array *host, size_t nbytes, dt_error *err)
{
    cuda_slot *slot;
    DT_TRY(slot_acquire(t->device, &slot, err));
    CUDA_TRY(t->device, cuMemcpyDtoHAsync_v2, (slot->memory, t->address, nbytes, cuda_stream(t->device)));
    slot->arriving = true;
    slot->arriving_dtype = t->bus;
    slot->target = *host;
    return slot_mark(t->device, slot, err);
}

/* Cuts host along its first dimensions; the device's side is contiguous in the same order. */
static dt_status
in_parts(transfer *t, const dt_array *host, transfer_part part, dt_error *err)
{
    size_t itemsize = dt_itemsize(t->bus), nbytes = (size_t)dt_array_numel(host) * itemsize;
    if (nbytes <= CUDA_SLOT_BYTES) {
        DT_TRY(part(t, host, nbytes, err));
        t->address += nbytes;
        return DT_OK;
    }
    int64_t rows = (int64_t)(CUDA_SLOT_BYTES / (nbytes / (size_t)host->shape[0])), size = host->shape[0];
    rows = rows > 0 ? rows : 1;
    for (int64_t i = 0; i < size; i += rows) {
        dt_array piece = *host;
        piece.shape[0] = rows < size - i ? rows : size - i;
        piece.offset += i * host->strides[0] * (int64_t)dt_itemsize((dt_dtype)host->dtype);
        if (rows == 1) { /* may itself be too large: cut it along the next dimension */
            piece.ndim--;
            memmove(piece.shape, piece.shape + 1, piece.ndim * sizeof(piece.shape[0]));
            memmove(piece.strides, piece.strides + 1, piece.ndim * sizeof(piece.strides[0]));
        }
        DT_TRY(in_parts(t, &piece, part, err));
    }
    return DT_OK;
}

static dt_status
send_staged(cuda_device *device, const dt_array *src, CUdeviceptr address, dt_dtype bus, dt_error *err)
{
    transfer t = {device, address, bus};
    dt_array flat = collapse(src);
    pthread_mutex_lock(&device->transfer_lock);
    dt_status rc = in_parts(&t, &flat, send_part, err);
    pthread_mutex_unlock(&device->transfer_lock);
    return rc;
}

static dt_status
fetch_staged(cuda_device *device, CUdeviceptr address, dt_dtype bus, const dt_array *dst, dt_error *err)
{
    transfer t = {device, address, bus};
    dt_array flat = collapse(dst);
    pthread_mutex_lock(&device->transfer_lock);
    dt_status rc = in_parts(&t, &flat, fetch_part, err);
    for (unsigned i = 0; i < CUDA_NSLOTS; i++) { /* oldest first */
        cuda_slot *slot = &device->slots[(device->next_slot + i) % CUDA_NSLOTS];
        if (rc == DT_OK) {
            rc = slot_settle(device, slot, err);
        }
        slot->arriving = false; /* after a failure nobody waits for it */
    }
    pthread_mutex_unlock(&device->transfer_lock);
    return rc;
}

/* ---------------------------------------------------------------- one contiguous block, whole */

static dt_status
send_block(cuda_device *device, const dt_array *src, CUdeviceptr address, dt_dtype bus, bool non_blocking,
           dt_error *err)
{
    size_t nbytes = (size_t)dt_array_numel(src) * dt_itemsize(bus);
    if (src->dtype != bus || !cuda_is_pinned(src) || !dt_array_is_contiguous(src)) {
        DT_TRY(send_staged(device, src, address, bus, err));
    } else {
        CUDA_TRY(device, cuMemcpyHtoDAsync_v2, (address, dt_array_data(src), nbytes, cuda_stream(device)));
        if (non_blocking) {
            cuda_pinned_in_use(src, device);
        } else {
            DT_TRY(cuda_wait(device, err));
        }
    }
    DT_COUNT(transfers, 1);
    DT_COUNT(bytes_to_device, (int64_t)nbytes);
    return DT_OK;
}

/* Complete on return, also into pinned memory: a later read by the host could not be made to wait. */
static dt_status
fetch_block(cuda_device *device, CUdeviceptr address, dt_dtype bus, const dt_array *dst, dt_error *err)
{
    size_t nbytes = (size_t)dt_array_numel(dst) * dt_itemsize(bus);
    if (dst->dtype != bus || !cuda_is_pinned(dst) || !dt_array_is_contiguous(dst)) {
        DT_TRY(fetch_staged(device, address, bus, dst, err));
    } else {
        CUDA_TRY(device, cuMemcpyDtoHAsync_v2, (dt_array_data(dst), address, nbytes, cuda_stream(device)));
        DT_TRY(cuda_wait(device, err));
    }
    DT_COUNT(transfers, 1);
    DT_COUNT(bytes_to_host, (int64_t)nbytes);
    return DT_OK;
}

/* ---------------------------------------------------------------- host and device */

dt_status
cuda_to_device(cuda_device *device, const dt_array *src, dt_array *dst, bool non_blocking, dt_error *err)
{
    dt_dtype bus = bus_dtype(src, dst);
    dt_array from = in_order_of(dst, src), to = in_order_of(dst, dst);
    if (bus == to.dtype && dt_array_is_contiguous(&to)) {
        return send_block(device, &from, cuda_address(&to), bus, non_blocking, err);
    }
    cuda_temporary t;
    DT_TRY(cuda_temporary_init(&t, device, &to, bus, err));
    dt_status rc = send_block(device, &from, cuda_address(&t.array), bus, non_blocking, err);
    if (rc == DT_OK) {
        rc = cuda_copy_within(device, &t.array, &to, err);
    }
    cuda_temporary_clear(&t);
    return rc;
}

dt_status
cuda_to_host(cuda_device *device, const dt_array *src, dt_array *dst, dt_error *err)
{
    dt_dtype bus = bus_dtype(src, dst);
    const dt_array *key = bus == src->dtype && dt_array_is_dense(src) ? src : dst;
    dt_array from = in_order_of(key, src), to = in_order_of(key, dst);
    if (bus == from.dtype && dt_array_is_contiguous(&from)) {
        return fetch_block(device, cuda_address(&from), bus, &to, err);
    }
    cuda_temporary t;
    DT_TRY(cuda_temporary_init(&t, device, &from, bus, err));
    dt_status rc = cuda_copy_within(device, &from, &t.array, err);
    if (rc == DT_OK) {
        rc = fetch_block(device, cuda_address(&t.array), bus, &to, err);
    }
    cuda_temporary_clear(&t);
    return rc;
}

/* ---------------------------------------------------------------- device and device */

/* What is sent to `then` from now on waits for what `first` has been sent so far. Leaves then's context current. */
static dt_status
order_after(int first, int then, dt_error *err)
{
    cuda_device *a, *b;
    CUevent event = NULL;
    DT_TRY(cuda_enter(first, &a, err));
    CUDA_TRY(a, cuEventCreate, (&event, CU_EVENT_DISABLE_TIMING));
    dt_status rc = CUDA_CALL(a, cuEventRecord, (event, cuda_stream(a)));
    if (rc == DT_OK && (rc = cuda_enter(then, &b, err)) == DT_OK) {
        rc = CUDA_CALL(b, cuStreamWaitEvent, (cuda_stream(b), event, 0));
    }
    (void)cu.cuEventDestroy_v2(event);
    return rc;
}

/* The copy is in the target's stream, which waits for the source's and is waited for by it. */
static dt_status
send_to_peer(const dt_array *src, const dt_array *dst, dt_error *err)
{
    cuda_device *from, *to;
    int first = src->storage->device.index, second = dst->storage->device.index;
    size_t nbytes = dt_array_nbytes(dst);
    DT_TRY(cuda_enter(first, &from, err));
    DT_TRY(order_after(first, second, err));
    DT_TRY(cuda_enter(second, &to, err));
    CUDA_TRY(to, cuMemcpyPeerAsync,
             (cuda_address(dst), to->context, cuda_address(src), from->context, nbytes, cuda_stream(to)));
    dt_status rc = order_after(second, first, err);
    if (rc != DT_OK) { /* the source must not be given back while it is read */
        (void)cu.cuStreamSynchronize(cuda_stream(to));
        return rc;
    }
    DT_COUNT(transfers, 1);
    DT_COUNT(bytes_between_devices, (int64_t)nbytes);
    return DT_OK;
}

dt_status
cuda_to_peer(const dt_array *src, dt_array *dst, dt_error *err)
{
    cuda_device *first, *second;
    cuda_temporary leaving = CUDA_TEMPORARY_EMPTY, arriving = CUDA_TEMPORARY_EMPTY;
    dt_dtype bus = bus_dtype(src, dst);
    dt_array from = in_order_of(dst, src), to = in_order_of(dst, dst);
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
        rc = send_to_peer(sent, received, err);
    }
    if (rc == DT_OK && received != &to && (rc = cuda_enter(dst->storage->device.index, &second, err)) == DT_OK) {
        rc = cuda_copy_within(second, &arriving.array, &to, err);
    }
    cuda_temporary_clear(&leaving);
    cuda_temporary_clear(&arriving);
    return rc;
}
