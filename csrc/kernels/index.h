/* index.h: where element i stands, and operands that are immediates. */
#ifndef DT_KERNEL_INDEX_H
#define DT_KERNEL_INDEX_H

#include "args.h"
#include "kernel.h"

#undef bool /* as a macro it would spoil the pasting of NAME */

/* Before a loop whose body is large: unrolled, the kernels would be several times as big and as slow to compile. */
#ifdef __CUDACC__
#define K_ROLLED _Pragma("unroll 1")
#else
#define K_ROLLED
#endif

#define K_KERNEL(name, args_type, a) DT_KERNEL(name, args_type, a)

DT_DEVICE_RARE void
k_locate_large(const dt_walk *walk, int n, int64_t i, int64_t *at)
{
    K_ROLLED
    for (int d = walk->ndim - 1; d >= 0; d--) {
        int64_t next = i / walk->shape[d], j = i - next * walk->shape[d];
        for (int k = 0; k < n; k++) {
            at[k] += j * walk->strides[k][d];
        }
        i = next;
    }
}

/* Offsets, in elements, of entry i of the walk in its first n arrays; n is a constant. */
DT_DEVICE void
k_locate(const dt_walk *walk, int n, int64_t i, int64_t *at)
{
    if (walk->ndim <= 1) {
        for (int k = 0; k < n; k++) {
            at[k] = walk->ndim == 0 ? 0 : i * walk->strides[k][0];
        }
        return;
    }
    for (int k = 0; k < n; k++) {
        at[k] = 0;
    }
    if (walk->numel > 0x7fffffff) { /* division of 32 bits is several times faster */
        k_locate_large(walk, n, i, at);
        return;
    }
    uint32_t rest = (uint32_t)i;
    K_ROLLED
    for (int d = walk->ndim - 1; d >= 0; d--) {
        uint32_t size = (uint32_t)walk->shape[d], next = rest / size;
        int64_t j = (int64_t)(rest - next * size);
        for (int k = 0; k < n; k++) {
            at[k] += j * walk->strides[k][d];
        }
        rest = next;
    }
}

/* An operand as a pointer (NULL for an immediate) and its value otherwise. */
#define K_IN(type, pointer, value, operand)                                                                            \
    const type *pointer = (operand).address ? DT_GLOBAL(const type, (operand).address, (operand).nbytes) : 0;          \
    type value;                                                                                                        \
    memcpy(&value, &(operand).bits, sizeof(value))
#define K_OUT(type, pointer, operand) type *pointer = DT_GLOBAL(type, (operand).address, (operand).nbytes)

#endif
