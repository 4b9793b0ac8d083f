/* args.h: what a launcher hands to a kernel. Read by csrc/cuda and by the kernels; plain data, passed by value. */
#ifndef DT_KERNEL_ARGS_H
#define DT_KERNEL_ARGS_H

#include "../core/walk.h"

/* An input or a result: its device address and how many bytes from there it may touch; or, with address 0, the
 * immediate whose bytes stand in bits. */
typedef struct {
    uint64_t address;
    uint64_t nbytes;
    uint64_t bits;
} k_operand;

/* Elementwise ops, casts and fills: array 0 of the walk is the result. */
typedef struct {
    dt_walk walk;
    k_operand array[4];
    double f[2]; /* parameters p0 and p1 */
    int64_t i[2];
} k_elementwise_args;

enum { K_STAGE_WHOLE, K_STAGE_PARTIAL, K_STAGE_COMBINE };

/* One result per entry of outer, over the entries of inner. A reduction that is cut into splits leaves an accumulator
 * and a position (8 bytes each) per result and split in scratch, which a second launch combines. */
typedef struct {
    dt_walk outer, inner; /* array 0 is x, in logical order */
    k_operand x, out, scratch;
    int32_t stage;
    int32_t by_thread; /* a thread a result, not a block a result */
    int32_t wide;      /* results are accumulators: int64 or float64 */
    int64_t splits;
} k_reduce_args;

/* Array 0 of outer is x, array 1 the result. */
typedef struct {
    dt_walk outer;
    int64_t n, x_stride, out_stride;
    k_operand x, out;
} k_softmax_args;

typedef struct {
    k_operand x, out, indices; /* indices: address 0 when not wanted */
    int64_t shape[4];          /* of out: N, C, P, Q */
    int64_t height, width;
    int64_t x_strides[4], out_strides[4], indices_strides[4];
    int64_t kernel[2], stride[2], padding[2], dilation[2];
    int64_t divisor;
    int32_t count_include_pad;
    int32_t adaptive;
} k_pool2d_args;

/* Element i of out, in logical order. */
typedef struct {
    dt_walk walk;
    k_operand out;
    double start, step;
    int64_t first, increment;
} k_arange_args;

/* Array 0 is the result, array 1 is x; every dimension is kept, the last two are the matrix. */
typedef struct {
    dt_walk walk;
    k_operand out, x;
    int64_t diagonal;
    int32_t upper;
} k_tri_args;

typedef struct {
    dt_walk walk;
    k_operand out;
    uint64_t seed, offset;
    double a, b;
    int64_t low, high;
} k_random_args;

#endif
