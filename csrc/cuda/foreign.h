/* foreign.h: memory shared with other libraries (foreign.c). */
#ifndef DT_CUDA_FOREIGN_H
#define DT_CUDA_FOREIGN_H

#include "cuda.h"

/* Before the address of a is given away: consumer's work (NULL: nobody's) runs behind ours on it from now on. */
dt_status cuda_lend(const dt_array *a, CUstream consumer, dt_error *err) DT_MUST_CHECK;
/* At the end of memory whose address was given away: it may still be in use, on a stream that we know nothing of. */
void cuda_wait_for_others(cuda_device *device);
/* A storage over nbytes of memory of device index that another library owns. Our work runs behind what producer (NULL:
 * nobody) was sent; release(owner, address) is called at the end, once our work on it is over. */
dt_status cuda_borrow(int index, CUdeviceptr address, size_t nbytes, unsigned flags, CUstream producer, void *owner,
                      void (*release)(void *owner, void *data), dt_storage **out, dt_error *err) DT_MUST_CHECK;
/* *index, an existing device, becomes that of an address, if it is one of a device. */
dt_status cuda_find_address(CUdeviceptr address, int *index, dt_error *err) DT_MUST_CHECK;

#endif
