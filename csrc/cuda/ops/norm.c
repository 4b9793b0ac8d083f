/* norm.c: layer norm and group norm by a kernel of their own; batch norm is made of other ops. */
#include "../launch/launch.h"
#include "ops.h"

#define MOST_LANES 8 /* a block */

static int32_t
lanes_of(int64_t n, int64_t each)
{
    int32_t lanes = 0;
    while (lanes < MOST_LANES && (each << lanes) < n) {
        lanes++;
    }
    return lanes;
}

static bool
is_aligned(const k_operand *x)
{
    return x->address % K_VECTOR_BYTES == 0; /* of none it is 0 */
}

dt_status
cuda_normalize(const dt_array *x, const dt_array *weight, const dt_array *bias, const dt_normalize_params *params,
               dt_array *out, dt_array *stats, bool *made, dt_error *err)
{
    cuda_device *d;
    CUfunction function;
    k_normalize_args args = {.n = 1, .eps = params->eps, .centred = params->centred};
    const dt_dtype dtype = (dt_dtype)x->dtype;
    const int64_t compute = dtype == DT_FLOAT64 ? 8 : 4, each = K_NORMALIZE_KEEP / compute;
    const int64_t width = K_VECTOR_BYTES / (int64_t)dt_itemsize(dtype);
    (void)stats;
    *made = params->kind != DT_NORM_CHANNELS;
    if (!*made || dt_array_numel(x) == 0) {
        return DT_OK;
    }
    for (int i = params->lead; i < x->ndim; i++) {
        args.n *= x->shape[i];
    }
    if (params->kind == DT_NORM_GROUPS) {
        args.groups = x->shape[1];
        args.each = x->shape[2];
        args.pixels = args.n / args.each;
    }
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, CUDA_KERNEL_normalize, dtype, &function, err));
    args.x = cuda_operand(x);
    args.out = cuda_operand(out);
    if (weight != NULL) {
        args.weight = cuda_operand(weight);
    }
    if (bias != NULL) {
        args.bias = cuda_operand(bias);
    }
    args.rows = dt_array_numel(x) / args.n;
    args.lanes = lanes_of(args.n, each);
    args.kept = args.n <= each << args.lanes;
    args.narrow = args.n <= INT32_MAX;
    args.vector = args.n % width == 0 && is_aligned(&args.x) && is_aligned(&args.out) &&
                  (args.pixels > 0 || (is_aligned(&args.weight) && is_aligned(&args.bias)));
    return cuda_launch_blocks(d, function, ((args.rows - 1) >> (MOST_LANES - args.lanes)) + 1, &args, err);
}

dt_status
cuda_normalize_grad(const dt_array *grad, const dt_array *x, const dt_array *weight, const dt_normalize_params *params,
                    dt_array *out, dt_array *sums, bool *made, dt_error *err)
{
    (void)grad, (void)x, (void)weight, (void)params, (void)out, (void)sums, (void)err;
    *made = false;
    return DT_OK;
}
