/* launch.h: kernels by name (module.c), and their launches (launch.c). */
#ifndef DT_CUDA_LAUNCH_H
#define DT_CUDA_LAUNCH_H

#include "../../kernels/args.h"
#include "../device.h"

/* ---------------------------------------------------------------- module.c */

/* Kernels that do not come from a .def list: name and dtype. */
#define CUDA_KERNELS(X)                                                                                                \
    X(where)                                                                                                           \
    X(softmax)                                                                                                         \
    X(log_softmax)                                                                                                     \
    X(cumsum)                                                                                                          \
    X(cumprod)                                                                                                         \
    X(logcumsumexp)                                                                                                    \
    X(cummax)                                                                                                          \
    X(cummin)                                                                                                          \
    X(sort_rows)                                                                                                       \
    X(select_rows)                                                                                                     \
    X(radix_rows)                                                                                                      \
    X(softmax_grad)                                                                                                    \
    X(variance)                                                                                                        \
    X(normalize)                                                                                                       \
    X(normalize_grad)                                                                                                  \
    X(normalize_sums)                                                                                                  \
    X(channels)                                                                                                        \
    X(channels_grad)                                                                                                   \
    X(batch_norm)                                                                                                      \
    X(lstm)                                                                                                            \
    X(gru)                                                                                                             \
    X(lstm_grad)                                                                                                       \
    X(gru_grad)                                                                                                        \
    X(lstm_steps)                                                                                                      \
    X(gru_steps)                                                                                                       \
    X(lstm_steps_grad)                                                                                                 \
    X(gru_steps_grad)                                                                                                  \
    X(attention)                                                                                                       \
    X(weigh)                                                                                                           \
    X(max_pool2d)                                                                                                      \
    X(max_pool2d_grad)                                                                                                 \
    X(max_pool2d_grad_rows)                                                                                            \
    X(avg_pool2d)                                                                                                      \
    X(arange)                                                                                                          \
    X(tri)                                                                                                             \
    X(uniform)                                                                                                         \
    X(normal)                                                                                                          \
    X(integers)                                                                                                        \
    X(permutation)                                                                                                     \
    X(dropout)                                                                                                         \
    X(transpose)                                                                                                       \
    X(depthwise)                                                                                                       \
    X(depthwise_planes)                                                                                                \
    X(skinny)                                                                                                          \
    X(small_matmul)                                                                                                    \
    X(dot)                                                                                                             \
    X(update)                                                                                                          \
    X(remap)                                                                                                           \
    X(remap_linear)                                                                                                    \
    X(gather)                                                                                                          \
    X(gather_wide)                                                                                                     \
    X(join)                                                                                                            \
    X(join_wide)                                                                                                       \
    X(places)                                                                                                          \
    X(sort)                                                                                                            \
    X(scatter_add)                                                                                                     \
    X(add_together)                                                                                                    \
    X(nonzero)

typedef enum {
#define DT_TERNARY(name, ...) CUDA_KERNEL_##name,
#include "../../core/elementwise.def"
#undef DT_TERNARY
#define CUDA_KERNEL(name) CUDA_KERNEL_##name,
    CUDA_KERNELS(CUDA_KERNEL)
#undef CUDA_KERNEL
        CUDA_NKERNELS
} cuda_kernel;

/* A kernel is named by its family, its place there and its dtype. */
typedef enum {
    CUDA_FAMILY_UNARY,
    CUDA_FAMILY_BINARY,
    CUDA_FAMILY_REDUCE,
    CUDA_FAMILY_CAST,
    CUDA_FAMILY_OTHER
} cuda_family;

dt_status cuda_function(cuda_device *device, cuda_family family, int op, dt_dtype dtype, CUfunction *function,
                        dt_error *err) DT_MUST_CHECK;

/* The name of the kernel with that number, to name. */
void cuda_function_name(unsigned id, char *name, size_t size);

/* ---------------------------------------------------------------- launch.c */

#define CUDA_THREADS 256 /* of a block; kernels are compiled for no more */

/* A thread for each of n items, or nblocks blocks of CUDA_THREADS, as far as the device has room. */
dt_status cuda_launch(cuda_device *device, CUfunction function, int64_t n, const void *args,
                      dt_error *err) DT_MUST_CHECK;
dt_status cuda_launch_blocks(cuda_device *device, CUfunction function, int64_t nblocks, const void *args,
                             dt_error *err) DT_MUST_CHECK;
/* Address, extent or immediate of an array. */
k_operand cuda_operand(const dt_array *a);
bool cuda_fits_narrow(const dt_walk *walk);
bool cuda_array_fits_narrow(const dt_array *a);
k_divisor cuda_divisor(int64_t size);
void cuda_index(k_index *index, const dt_walk *walk);
/* A walk in logical order over dimensions [first, last) of arrays of one shape: merged, not sorted. */
void cuda_walk_logical(dt_walk *walk, int first, int last, int narrays, const dt_array *const *arrays);

static inline CUdeviceptr
cuda_address(const dt_array *a)
{
    return (CUdeviceptr)(uintptr_t)a->storage->data + (CUdeviceptr)a->offset;
}

/* ---------------------------------------------------------------- elementwise.c */

/* Launches a kernel of stream.h over the walk; args has everything but the index. costly as in K_DEPTH; dtypes: of each
 * array. */
dt_status cuda_launch_stream(cuda_device *device, CUfunction function, bool costly, const dt_walk *walk,
                             const dt_dtype *dtypes, k_elementwise_args *args, dt_error *err) DT_MUST_CHECK;

#endif
