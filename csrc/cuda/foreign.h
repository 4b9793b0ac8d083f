/* foreign.h: memory shared with other libraries (foreign.c). */
#ifndef DT_CUDA_FOREIGN_H
#define DT_CUDA_FOREIGN_H

#include "cuda.h"

/* Before the address of a is given away: consumer's work (NULL: nobody's) runs behind ours on it from now on. */
dt_status cuda_lend(const dt_array *a, CUstream consumer, dt_error *err) DT_MUST_CHECK;
/* What is done with the memory from now on comes after all that the device was sent, by whomever: where others are done
 * with it, or it ends and nobody knows whether they are. Nothing on the host waits. */
void cuda_follow_others(dt_storage *storage);
/* A storage over nbytes of memory of device index that another library owns. Our work runs behind what producer (NULL:
 * nobody) was sent; release(owner, address) is called at the end, once our work on it is over. */
dt_status cuda_borrow(int index, CUdeviceptr address, size_t nbytes, unsigned flags, CUstream producer, void *owner,
                      void (*release)(void *owner, void *data), dt_storage **out, dt_error *err) DT_MUST_CHECK;
/* *index, an existing device, becomes that of an address, if it is one of a device. */
dt_status cuda_find_address(CUdeviceptr address, int *index, dt_error *err) DT_MUST_CHECK;

#endif
