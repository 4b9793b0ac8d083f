/* compile.h: kernels from the embedded source. */
#ifndef DT_CUDA_COMPILE_H
#define DT_CUDA_COMPILE_H

#include "cuda.h"

/* A module with the kernel of that name alone, for the device: compiled by NVRTC, or read from the disk where that was
 * done before. */
dt_status cuda_compile(cuda_device *device, const char *name, CUmodule *module, dt_error *err) DT_MUST_CHECK;
/* Whether the driver, asked to load machine code, says that it is not for this device or not for this driver. */
bool cuda_is_refusal(int status);

/* How many kernels NVRTC compiled in this process, and how many came from the disk. */
void cuda_compile_counts(int64_t *compiled, int64_t *read);

#endif
