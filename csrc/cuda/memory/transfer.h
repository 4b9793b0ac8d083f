/* transfer.h: copies: on one device (copy.c), and to and from others (transfer.c, staging.c, peer.c). */
#ifndef DT_CUDA_TRANSFER_H
#define DT_CUDA_TRANSFER_H

#include "../device.h"

/* dst = cast(src) on one device by a kernel (or a plain copy where the layouts agree); src may be an immediate. */
dt_status cuda_copy_within(cuda_device *device, const dt_array *src, dt_array *dst, dt_error *err) DT_MUST_CHECK;

void cuda_ring_init(cuda_ring *ring);
void cuda_ring_destroy(cuda_ring *ring);

/* src goes to address, or what stands there to dst, as contiguous elements of dtype bus in src's or dst's order,
 * through slots. The host has read all of src, or written all of dst, on return. */
dt_status cuda_send_staged(cuda_device *device, const dt_array *src, CUdeviceptr address, dt_dtype bus,
                           dt_error *err) DT_MUST_CHECK;
dt_status cuda_fetch_staged(cuda_device *device, CUdeviceptr address, dt_dtype bus, const dt_array *dst,
                            dt_error *err) DT_MUST_CHECK;

/* The narrower of the two dtypes goes over the bus. */
dt_dtype cuda_bus_dtype(const dt_array *src, const dt_array *dst);
/* A view of a with its dimensions in the order in which key lies in memory. */
dt_array cuda_in_order_of(const dt_array *key, const dt_array *a);

/* Between any two devices of which at least one is a GPU; the arrays have elements. */
dt_status cuda_transfer(const dt_array *src, dt_array *dst, bool non_blocking, dt_error *err) DT_MUST_CHECK;
dt_status cuda_to_peer(const dt_array *src, dt_array *dst, dt_error *err) DT_MUST_CHECK;

#endif
