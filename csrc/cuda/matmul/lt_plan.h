/* lt_plan.h: products of matrices by cuBLASLt, described once and cached (lt_plan.c). */
#ifndef DT_CUDA_LT_PLAN_H
#define DT_CUDA_LT_PLAN_H

#include "../api.h"
#include "../front.h"

/* Everything that a plan depends on, in 64-bit words. Row-major: a (m, k), b (k, n), c (m, n), where a transposed
 * matrix stands in memory as its transpose; ld elements from row to row, stride elements from one product of the batch
 * to the next. c and the bias are of dtype `result`. activation is NONE or GELU_TANH. Alignments are filled in by
 * cuda_lt_run. */
typedef struct {
    int64_t dtype, result, tf32, m, n, k, batch, has_bias, activation;
    int64_t a_transposed, a_ld, a_stride, a_alignment;
    int64_t b_transposed, b_ld, b_stride, b_alignment;
    int64_t c_ld, c_stride, c_alignment, d_alignment;
} lt_key;

typedef struct {
    CUdeviceptr a, b, c, bias;
    double alpha, beta;
    bool apart; /* the caller does what the library refused: what the key says of bias and activation is left out */
} lt_operands;

/* c = activation(alpha * a @ b + beta * c + bias). Where the library has no algorithm that adds the bias and applies
 * the activation too, *refused becomes true and c stays as it is. */
dt_status cuda_lt_run(cuda_device *device, const lt_key *key, const lt_operands *operands, bool *refused,
                      dt_error *err) DT_MUST_CHECK;

#endif
