/* ops.h: the slots, put together in backend.c, and what ops do for each other. */
#ifndef DT_CUDA_OPS_H
#define DT_CUDA_OPS_H

#include "../launch/launch.h"

/* ---------------------------------------------------------------- backend.c */

extern const dt_backend cuda_backend;

#define DT_SLOT(ret, name, args) ret cuda_##name args;
#include "../../core/slots.def"
#undef DT_SLOT
/* x with its last two dimensions exchanged. */
dt_array cuda_transposed(const dt_array *x);

/* cuda_matmul also takes an out of float32 for a and b of a half type, without bias, beta and activation, and an out
 * whose matrices have contiguous rows. */

/* ---------------------------------------------------------------- depthwise.c, skinny.c: in place of the libraries */

bool cuda_depthwise_applies(const dt_array *x, const dt_array *weight, const dt_conv2d_params *params);
_Static_assert((int)K_ACTIVATION_RELU == DT_ACTIVATION_RELU && (int)K_ACTIVATION_GELU == DT_ACTIVATION_GELU &&
                   (int)K_ACTIVATION_GELU_TANH == DT_ACTIVATION_GELU_TANH,
               "kernels are given the core's numbers");
dt_status cuda_depthwise(const dt_array *x, const dt_array *weight, const dt_array *bias,
                         const dt_conv2d_params *params, dt_array *out, dt_error *err) DT_MUST_CHECK;

/* What a product would be for the kernels of skinny.cu. */
typedef struct {
    cuda_kernel kernel;
    k_skinny_args args;
} cuda_skinny_plan;

bool cuda_skinny_applies(const dt_array *a, const dt_array *b, const dt_array *out, cuda_skinny_plan *plan);
dt_status cuda_skinny(const dt_array *a, const dt_array *b, const dt_array *bias, const dt_matmul_params *params,
                      cuda_skinny_plan *plan, dt_array *out, dt_error *err) DT_MUST_CHECK;

/* dot.c: vectors so long that their product is a reduction. */
bool cuda_dot_applies(const dt_array *a, const dt_array *bias, const dt_matmul_params *params, const dt_array *out);
dt_status cuda_dot(const dt_array *a, const dt_array *b, dt_array *out, dt_error *err) DT_MUST_CHECK;

/* join.c: the slot join, but for the order among streams. */
dt_status cuda_join_parts(const dt_array *const *parts, int n, int dim, dt_array *out, bool *made,
                          dt_error *err) DT_MUST_CHECK;

/* ---------------------------------------------------------------- reduce.c: how work is shared out */

/* Blocks that fill a large device; not this device's number, so that bits do not depend on it. */
#define CUDA_WANTED_BLOCKS 1056

/* The least power of two that is no smaller than n, at most 2**most: its exponent. */
int cuda_log2(int64_t n, int most);

static inline int64_t
cuda_fewer(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---------------------------------------------------------------- channels.c: batch norm in training */

dt_status cuda_channels(const dt_array *x, const dt_array *weight, const dt_array *bias, double eps, dt_array *out,
                        dt_array *stats, dt_error *err) DT_MUST_CHECK;
dt_status cuda_channels_grad(const dt_array *grad, const dt_array *x, const dt_array *weight, double eps, dt_array *out,
                             dt_array *sums, dt_error *err) DT_MUST_CHECK;

/* ---------------------------------------------------------------- epilogue.c */

/* wide is bias with the shape of out: it runs along dimension dim. */
void cuda_along(const dt_array *bias, int dim, const dt_array *out, dt_array *wide);

/* out = activation(out + bias) in place, by kernels; bias, or NULL, runs along dimension dim. */
dt_status cuda_epilogue(const dt_array *bias, int dim, dt_activation activation, dt_array *out,
                        dt_error *err) DT_MUST_CHECK;

#endif
