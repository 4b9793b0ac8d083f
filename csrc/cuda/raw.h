/* raw.h: kernels of users: compiled for each device at first use, and launched. */
#ifndef DT_CUDA_RAW_H
#define DT_CUDA_RAW_H

#include "../core/kernel.h"
#include "cuda.h"

typedef struct cuda_raw cuda_raw;

/* Takes nothing over: all texts are copied. kept: what NVRTC makes may be kept on the disk, since nothing but these
 * texts goes into it. */
dt_status cuda_raw_new(const dt_kernel *kernel, const char *source, int nheaders, const char *const *headers,
                       const char *const *header_names, int noptions, const char *const *options, bool kept,
                       cuda_raw **out, dt_error *err) DT_MUST_CHECK;
/* From any thread, also with no context: modules are given back later. */
void cuda_raw_release(cuda_raw *raw);
const dt_kernel *cuda_raw_kernel(const cuda_raw *raw);

/* Makes the kernel ready on a device. *log: NULL, or what the compiler says against it, by dt_free. */
dt_status cuda_raw_compile(cuda_raw *raw, int device, char **log, dt_error *err) DT_MUST_CHECK;

typedef struct {
    unsigned grid[3], block[3];
    int64_t shared_bytes;
    cuda_queue *queue; /* NULL: this thread's stream */
} cuda_raw_launch;

/* Sends a launch, in order with what other streams do to the arrays among args. *missing: the kernel is not ready on
 * that device, and nothing was sent. */
dt_status cuda_raw_call(cuda_raw *raw, const cuda_raw_launch *launch, const dt_kernel_arg *args, int nargs, int *device,
                        bool *missing, dt_error *err) DT_MUST_CHECK;

typedef struct {
    int max_threads, shared_bytes, const_bytes, local_bytes, registers, ptx_version, binary_version;
    int max_dynamic_shared_bytes; /* that a launch may ask for on this device */
} cuda_raw_attributes;

/* Of a kernel that is ready on that device. */
dt_status cuda_raw_describe(cuda_raw *raw, int device, cuda_raw_attributes *out, dt_error *err) DT_MUST_CHECK;

/* The name of a kernel of users' by its number, for sent.c. */
const char *cuda_raw_name(unsigned number);

#endif
