/* index.h: where element i stands, and operands that are immediates. */
#ifndef DT_KERNEL_INDEX_H
#define DT_KERNEL_INDEX_H

#include "args.h"
#include "kernel.h"

#undef bool /* as a macro it would spoil the pasting of NAME */

#define K_KERNEL(name, args_type, a) DT_KERNEL(name, args_type, a)

DT_DEVICE uint32_t
k_divide(uint32_t n, k_divisor by)
{
    return ((uint32_t)((uint64_t)n * by.multiplier >> 32) + n) >> by.shift;
}

/* Offsets, in elements, of entry i in the first n arrays; n is a constant, and more than one dimension is not wide. */
DT_DEVICE void
k_locate_narrow(const k_index *index, int n, int64_t i, int64_t *at)
{
    if (index->ndim <= 1) {
        for (int k = 0; k < n; k++) {
            at[k] = index->ndim == 0 ? 0 : i * index->strides[k][0];
        }
        return;
    }
    uint32_t rest = (uint32_t)i, sums[4] = {0, 0, 0, 0};
    DT_ROLLED
    for (int d = index->ndim - 1; d > 0; d--) {
        uint32_t next = k_divide(rest, index->divisor[d]), j = rest - next * (uint32_t)index->shape[d];
        for (int k = 0; k < n; k++) {
            sums[k] += j * (uint32_t)index->strides[k][d];
        }
        rest = next;
    }
    for (int k = 0; k < n; k++) {
        at[k] = (int32_t)(sums[k] + rest * (uint32_t)index->strides[k][0]);
    }
}

/* The same for any index. */
DT_DEVICE void
k_locate(const k_index *index, int n, int64_t i, int64_t *at)
{
    if (!index->wide || index->ndim <= 1) {
        k_locate_narrow(index, n, i, at);
        return;
    }
    for (int k = 0; k < n; k++) {
        at[k] = 0;
    }
    DT_ROLLED
    for (int d = index->ndim - 1; d >= 0; d--) {
        int64_t next = d > 0 ? i / index->shape[d] : 0, j = i - next * index->shape[d];
        for (int k = 0; k < n; k++) {
            at[k] += j * index->strides[k][d];
        }
        i = next;
    }
}

/* n elements that are read or written by one access. */
#define K_PACK(type, n)                                                                                                \
    struct {                                                                                                           \
        DT_ALIGNAS(sizeof(type) * (n)) type v[n];                                                                      \
    }

/* An operand as a pointer (NULL for an immediate) and its value otherwise. */
#define K_IN(type, pointer, value, operand)                                                                            \
    const type *pointer = (operand).address ? DT_GLOBAL(const type, (operand).address, (operand).nbytes) : 0;          \
    type value;                                                                                                        \
    memcpy(&value, &(operand).bits, sizeof(value))
#define K_OUT(type, pointer, operand) type *pointer = DT_GLOBAL(type, (operand).address, (operand).nbytes)

#endif
