/* transfer.c: copies between the host and a device. The narrower of the two dtypes goes over the bus: narrowing casts
 * happen before, widening ones after. Pageable memory is staged; page-locked memory goes directly, and the host need
 * not wait. */
#include "../../core/transfer.h"
#include "../launch/launch.h"
#include "../launch/launch_log.h"
#include "memory.h"
#include "../streams/stream.h"
#include "transfer.h"

dt_dtype
cuda_bus_dtype(const dt_array *src, const dt_array *dst)
{
    return (dt_dtype)(dt_itemsize((dt_dtype)dst->dtype) <= dt_itemsize((dt_dtype)src->dtype) ? dst->dtype : src->dtype);
}

dt_array
cuda_in_order_of(const dt_array *key, const dt_array *a)
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

/* ---------------------------------------------------------------- one contiguous block of the device */

static dt_status
send_block(cuda_device *device, const dt_array *src, CUdeviceptr address, dt_dtype bus, bool non_blocking,
           dt_error *err)
{
    size_t nbytes = (size_t)dt_array_numel(src) * dt_itemsize(bus);
    bool direct = cuda_is_pinned(src) && src->dtype == bus && dt_array_is_contiguous(src);
    if (!direct || (!non_blocking && nbytes <= CUDA_SMALL_BYTES)) { /* a few bytes are copied sooner than waited for */
        return cuda_send_staged(device, src, address, bus, err);
    }
    cuda_use *use;
    DT_TRY(cuda_pinned_begin(device, src, false, &use, err));
    dt_status rc = CUDA_CALL(device, cuMemcpyHtoDAsync_v2, (address, dt_array_data(src), nbytes, cuda_stream(device)));
    DT_TRY(cuda_pinned_end(device, src, false, use, rc, err));
    return non_blocking ? DT_OK : dt_settle(src, DT_WRITE, err);
}

/* What stands at address arrives later in dst, which is page-locked, contiguous and of the dtype on the bus. */
static dt_status
fetch_direct(cuda_device *device, CUdeviceptr address, const dt_array *dst, dt_error *err)
{
    cuda_use *use;
    DT_TRY(cuda_pinned_begin(device, dst, true, &use, err));
    dt_status rc = CUDA_CALL(device, cuMemcpyDtoHAsync_v2,
                             (dt_array_data(dst), address, dt_array_nbytes(dst), cuda_stream(device)));
    return cuda_pinned_end(device, dst, true, use, rc, err);
}

/* The same into any layout and dtype: whoever looks at dst first puts it there. */
static dt_status
fetch_deferred(cuda_device *device, CUdeviceptr address, dt_dtype bus, const dt_array *dst, dt_error *err)
{
    dt_array arriving = *dst;
    arriving.node = NULL;
    arriving.dtype = (uint8_t)bus;
    arriving.offset = 0;
    dt_array_set_contiguous(&arriving);
    DT_TRY(dt_storage_new_pinned(dt_array_nbytes(&arriving), &arriving.storage, err));
    dt_status rc = cuda_enter(device->index, &device, err); /* the allocation was the current device's */
    if (rc == DT_OK) {
        rc = fetch_direct(device, address, &arriving, err);
    }
    if (rc == DT_OK) {
        rc = cuda_pinned_defer(&arriving, dst, err);
    }
    dt_array_clear(&arriving);
    return rc;
}

static dt_status
fetch_block(cuda_device *device, CUdeviceptr address, dt_dtype bus, const dt_array *dst, bool non_blocking,
            dt_error *err)
{
    if (!cuda_is_pinned(dst)) {
        return cuda_fetch_staged(device, address, bus, dst, err);
    }
    if (dst->dtype == bus && dt_array_is_contiguous(dst)) {
        DT_TRY(fetch_direct(device, address, dst, err));
        return non_blocking ? DT_OK : dt_settle(dst, DT_READ, err);
    }
    return non_blocking ? fetch_deferred(device, address, bus, dst, err)
                        : cuda_fetch_staged(device, address, bus, dst, err);
}

/* ---------------------------------------------------------------- any layout and dtype */

static dt_status
to_device(cuda_device *device, const dt_array *src, dt_array *dst, bool non_blocking, dt_error *err)
{
    dt_dtype bus = cuda_bus_dtype(src, dst);
    dt_array from = cuda_in_order_of(dst, src), to = cuda_in_order_of(dst, dst);
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

static dt_status
to_host(cuda_device *device, const dt_array *src, dt_array *dst, bool non_blocking, dt_error *err)
{
    dt_dtype bus = cuda_bus_dtype(src, dst);
    const dt_array *key = bus == src->dtype && dt_array_is_dense(src) ? src : dst;
    dt_array from = cuda_in_order_of(key, src), to = cuda_in_order_of(key, dst);
    if (bus == from.dtype && dt_array_is_contiguous(&from)) {
        return fetch_block(device, cuda_address(&from), bus, &to, non_blocking, err);
    }
    cuda_temporary t;
    DT_TRY(cuda_temporary_init(&t, device, &from, bus, err));
    dt_status rc = cuda_copy_within(device, &from, &t.array, err);
    if (rc == DT_OK) {
        rc = fetch_block(device, cuda_address(&t.array), bus, &to, non_blocking, err);
    }
    cuda_temporary_clear(&t);
    return rc;
}

/* ---------------------------------------------------------------- every transfer passes here */

/* Whether the host goes on before the bytes are where they shall be, and they were not copied by itself. */
static bool
is_asynchronous(const dt_array *src, const dt_array *dst, bool non_blocking)
{
    if (dt_array_device(dst).type == DT_CPU) {
        return non_blocking && cuda_is_pinned(dst);
    }
    return dt_array_device(src).type == DT_CUDA ||
           (non_blocking && cuda_is_pinned(src) && src->dtype == cuda_bus_dtype(src, dst) && dt_array_is_dense(src));
}

dt_status
cuda_transfer(const dt_array *src, dt_array *dst, bool non_blocking, dt_error *err)
{
    cuda_device *device;
    dt_device from = dt_array_device(src), to = dt_array_device(dst);
    const dt_array *host = from.type == DT_CPU ? src : dst;
    if (host == dst && atomic_load_explicit(&dst->storage->exported, memory_order_relaxed)) {
        non_blocking = false; /* who has the address from us does not wait for what arrives */
    }
    const dt_transfer t = {
        .nbytes = (size_t)dt_array_numel(dst) * dt_itemsize(cuda_bus_dtype(src, dst)),
        .source = from,
        .target = to,
        .pinned = cuda_is_pinned(host),
        .synchronous = !is_asynchronous(src, dst, non_blocking),
    };
    DT_TRY(dt_transfer_begin(&t, err));
    if (from.type == DT_CUDA && to.type == DT_CUDA) {
        DT_TRY(cuda_to_peer(src, dst, err));
    } else {
        DT_TRY(cuda_enter(from.type == DT_CUDA ? from.index : to.index, &device, err));
        uint64_t sent = cuda_sent_mark(device);
        DT_TRY(to.type == DT_CPU ? to_host(device, src, dst, non_blocking, err)
                                 : to_device(device, src, dst, non_blocking, err));
        if (to.type == DT_CPU && t.synchronous) {
            cuda_sent_over(device, sent);
        }
    }
    dt_transfer_done(&t);
    return DT_OK;
}
